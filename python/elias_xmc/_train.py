"""`train`: from texts and labels to a model."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

from . import _elias
from ._inputs import as_list, dense_of, make_dataset, number, path_of, synonyms_of, threads_of
from ._model import Model
from ._progress import observer
from ._settings import make_settings
from ._types import Labels, OnEvent, PathLike

__all__ = ["Call", "prepare", "train"]


class Call(NamedTuple):
    """What the Rust half takes to train."""

    data: _elias.Dataset
    settings: dict[str, Any]
    run: dict[str, Any]
    validation: _elias.Dataset | None


def train(
    texts: Any,
    labels: Labels | None = None,
    *,
    out: PathLike | None = None,
    progress: bool | OnEvent = False,
    config: PathLike | None = None,
    preset: str | None = None,
    encoder: PathLike | None = None,
    label_names: Any = None,
    label_file: PathLike | None = None,
    synonyms: PathLike | Iterable[tuple[str, str]] | None = None,
    embeddings: PathLike | None = None,
    X_dense: Any = None,
    sample_weight: Any = None,
    validation: Any = None,
    resume: bool = False,
    overwrite: bool = False,
    checkpoint_every: float | None = None,
    memory_limit: int | None = None,
    threads: int | None = None,
    format: str | None = None,
    text_column: str | list[str] | None = None,
    label_column: str | None = None,
    label_separator: str | None = None,
    **settings: Any,
) -> Model:
    """Trains a model.

    `texts` is a list of strings, a column of pandas, polars, Arrow or Hugging Face datasets, or a sparse matrix of
    features; `labels` has a list of names for each text (or a dict with their relevance), or is a sparse matrix whose
    columns `label_names` names. Or `texts` is the path of a file or directory in any format of the command line, with
    `format`, `text_column`, `label_column` and `label_separator` as there.

    `out` is the directory of the model, with checkpoints on the way: after Ctrl-C, or a crash, the same call with
    `resume=True` continues and ends in the same model. Without `out` the model is kept in memory.

    `progress=True` shows bars; a function gets each event as a dict, and what it raises stops the training.

    Every setting of `elias config` is a keyword, with `_` for `.`: `stage2_epochs=6`, `ensemble_members=3`. `config` is
    a TOML file with settings, `preset` the name of a built-in one, `encoder` the directory of a transformer. Later ones
    win: defaults, preset, file, keywords.

    `validation` is a pair `(texts, labels)` or a path, predicted every few epochs; `label_file` has names, synonyms or
    descriptions of the labels; `synonyms` is a file, or pairs, of a word or phrase and the words that are added to texts
    with it, which the model keeps; `embeddings` has vectors of words to start from, a file or a directory; `X_dense` is
    an array with an embedding of every text, which `predict` then needs, too; `sample_weight` has a number per text: one of
    weight 2 counts as much as two texts, one of weight 0 teaches nothing; `memory_limit` is in bytes.

    >>> model = train(["red apple", "blue sky"], [["fruit"], ["weather"]], stage1_epochs=20)
    >>> model.labels
    ['fruit', 'weather']
    """
    call = prepare(
        texts,
        labels,
        out=out,
        config=config,
        preset=preset,
        encoder=encoder,
        label_names=label_names,
        label_file=label_file,
        synonyms=synonyms,
        embeddings=embeddings,
        X_dense=X_dense,
        sample_weight=sample_weight,
        validation=validation,
        resume=resume,
        overwrite=overwrite,
        checkpoint_every=checkpoint_every,
        memory_limit=memory_limit,
        threads=threads,
        format=format,
        text_column=text_column,
        label_column=label_column,
        label_separator=label_separator,
        **settings,
    )
    with observer(progress) as on_event:
        core = _elias.train(*call, on_event)
    assert core is not None, "all members were trained"
    return Model(core)


def prepare(
    texts: Any,
    labels: Labels | None = None,
    *,
    out: PathLike | None = None,
    config: PathLike | None = None,
    preset: str | None = None,
    encoder: PathLike | None = None,
    label_names: Any = None,
    label_file: PathLike | None = None,
    synonyms: PathLike | Iterable[tuple[str, str]] | None = None,
    embeddings: PathLike | None = None,
    X_dense: Any = None,
    sample_weight: Any = None,
    validation: Any = None,
    resume: bool = False,
    overwrite: bool = False,
    checkpoint_every: float | None = None,
    memory_limit: int | None = None,
    threads: int | None = None,
    format: str | None = None,
    text_column: str | list[str] | None = None,
    label_column: str | None = None,
    label_separator: str | None = None,
    **settings: Any,
) -> Call:
    """Reads the data and checks the settings of a training, as `train` takes them."""
    reading = {
        "format": format,
        "text_column": text_column,
        "label_column": label_column,
        "label_separator": label_separator,
    }
    prepared = make_settings(preset=preset, encoder=encoder, config=config, settings=settings)
    data = make_dataset(texts, labels, part="train", label_names=label_names, reading=reading, threads=threads)
    if label_file is not None:
        data = data.with_label_file(path_of(label_file))
        prepared["assignments"].insert(0, "train.label_texts=on")
    if synonyms is not None:
        data = data.with_synonyms(synonyms_of(synonyms))
    if embeddings is not None:
        data = data.with_word_vectors(path_of(embeddings))
    if X_dense is not None:
        data = data.with_embeddings(dense_of(X_dense))
    if sample_weight is not None:
        data = data.with_weights([number(weight, "sample_weight") for weight in as_list(sample_weight, "sample_weight")])
    run: dict[str, Any] = {
        "out": None if out is None else path_of(out),
        "resume": bool(resume),
        "overwrite": bool(overwrite),
        "checkpoint_every": None if checkpoint_every is None else number(checkpoint_every, "checkpoint_every"),
        "memory_limit": None if memory_limit is None else int(max(0, min(number(memory_limit, "memory_limit"), sys.maxsize >> 1))),
        "threads": threads_of(threads),
        "only_run": None,
        "runs_from": [],
    }
    held_out = None
    if validation is not None:
        points, truth = validation if isinstance(validation, tuple) else (validation, None)
        held_out = make_dataset(points, truth, part="test", label_names=label_names, known=data, threads=threads)
    return Call(data, prepared, run, held_out)
