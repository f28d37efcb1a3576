"""The Rust half; `elias_xmc` is what users call."""

from collections.abc import Callable
from typing import Any, final

from ._types import Prediction

__all__ = ["VERSION", "ArrowBatch", "Core", "Dataset", "commented_config", "merge", "metrics", "predict_arrow", "setting_keys", "train"]

VERSION: str

@final
class ArrowBatch:
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Dataset:
    n_points: int
    n_labels: int
    @staticmethod
    def build(points: Any, labels: Any, names: list[str] | None = None, known: Core | Dataset | None = None) -> Dataset: ...
    @staticmethod
    def read(
        path: str,
        part: str,
        format: str | None = None,
        text_columns: list[str] = ...,
        label_column: str | None = None,
        label_separator: str | None = None,
        known: Core | Dataset | None = None,
        threads: int | None = None,
    ) -> Dataset: ...
    def with_label_file(self, path: str) -> Dataset: ...
    def with_synonyms(self, synonyms: str | list[tuple[str, str]]) -> Dataset: ...
    def with_word_vectors(self, path: str) -> Dataset: ...
    def with_embeddings(self, embeddings: Any) -> Dataset: ...

@final
class Core:
    path: Any
    takes_texts: bool
    n_labels: int
    is_calibrated: bool
    @staticmethod
    def load(path: str, verify: bool = False, temporary: bool = False) -> Core: ...
    def save(self, path: str, overwrite: bool) -> None: ...
    def labels(self) -> list[str]: ...
    def predict_one(self, text: str, options: dict[str, Any]) -> list[Prediction]: ...
    def predict(self, points: Any, options: dict[str, Any]) -> list[list[Prediction]]: ...
    def predict_csr(self, points: Any, options: dict[str, Any], probabilities: bool) -> tuple[Any, Any, Any]: ...
    def embed(self, points: Any = None, threads: int | None = None) -> tuple[Any, int]: ...
    def explain(self, text: str, k: int) -> str: ...
    def inspect(self) -> str: ...
    def evaluate(
        self,
        data: Dataset,
        propensity: str,
        filter: list[tuple[int, int]],
        by_decile: bool,
        latency: bool,
        by_label: bool,
        at: list[int] | None = None,
        threshold: float | None = None,
        stage: str | None = None,
        threads: int | None = None,
    ) -> str: ...
    def report(self, out: str, test: Dataset, train: Dataset | None = None, threads: int | None = None) -> None: ...

def predict_arrow(model: Core, batch: Any, options: dict[str, Any], column: str | None = None) -> ArrowBatch: ...
def merge(
    paths: list[str], out: str, overwrite: bool, held_out: Dataset | None = None, threads: int | None = None
) -> None: ...
def commented_config(preset: str | None = None) -> str: ...
def setting_keys() -> list[str]: ...
def metrics(
    truth: Any,
    scores: Any,
    train: Any = None,
    propensity: str = "default",
    filter: list[tuple[int, int]] = ...,
    at: list[int] | None = None,
) -> dict[str, Any]: ...
def train(
    data: Dataset,
    settings: dict[str, Any],
    run: dict[str, Any],
    validation: Dataset | None = None,
    on_event: Callable[[dict[str, Any]], object] | None = None,
) -> Core | None: ...
