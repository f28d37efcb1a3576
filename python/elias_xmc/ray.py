"""Scoring on Ray, and training the members of an ensemble on it.

    from elias_xmc import ray
    answers = ray.predict(ds, "/shared/my-model", text="title", k=5, keep=["id"])
    model = ray.train_members("/shared/data", members=3, out="/shared/ensemble", cpus=8)

Nothing is loaded before the answers are consumed. docs/many-machines.md tells how models reach the workers.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _elias
from ._engines import Scoring
from ._errors import EliasError, EliasValueError
from ._model import Model, load, merge
from ._train import prepare
from ._types import Labels, PathLike

if TYPE_CHECKING:
    from ray.data import Dataset

__all__ = ["predict", "train_members"]


def predict(
    ds: Dataset,
    model: Model | PathLike,
    text: str = "text",
    k: int = 10,
    *,
    keep: Iterable[str] | None = None,
    threshold: float | None = None,
    stage: str | None = None,
    threads: int = 1,
    ship: bool = False,
    actors: int | tuple[int, int] | None = None,
    batch_size: int = 8192,
) -> Dataset:
    """The `k` best labels of each text of a data set: the columns `labels`, `scores` and `probabilities`.

    All columns of `ds` stay, or those that `keep` names. The answers are lists of equal length, best label first;
    `probabilities` is null if the model is not calibrated, all three are null where the text is.

    `model` is a path that all nodes see. With `ship`, it is a path on this machine, and its files go through the object
    store to each node once. `actors` is the number of processes, or the least and the most, by default up to one per
    core; each has `threads` threads and counts as so many CPUs. `threshold` and `stage` are those of `Model.predict`.
    """
    import ray
    from ray.data import ActorPoolStrategy

    scoring = Scoring.of(model, text, k, keep, threshold, stage, threads)
    files = None
    if ship:
        if scoring.fingerprint is None:
            raise EliasValueError(f"{scoring.path}: no such directory to ship")
        files = ray.put(_pack(scoring.path))
    if actors is None:
        actors = (1, max(1, int(ray.cluster_resources().get("CPU", 1)) // scoring.threads))
    least, most = (actors, actors) if isinstance(actors, int) else actors
    return ds.map_batches(
        _Scorer,
        # In a list, so that Ray hands on the reference and not the files.
        fn_constructor_args=(scoring, [files]),
        batch_format="pyarrow",
        batch_size=batch_size,
        zero_copy_batch=True,
        num_cpus=scoring.threads,
        compute=ActorPoolStrategy(min_size=least, max_size=most),
    )


class _Scorer:
    """An actor that scores batches. It loads the model with the first one, so that errors are those of a batch."""

    def __init__(self, scoring: Scoring, files: list[Any]) -> None:
        self.scoring = scoring
        self.files = files[0]

    def __call__(self, batch: Any) -> Any:
        if self.files is not None:
            self.scoring = self.scoring.at(_unpack(self.files, str(self.scoring.fingerprint)))
            self.files = None
        return self.scoring.batch(batch)


def _pack(path: str) -> dict[str, bytes]:
    """The files of a model by their names."""
    files = {}
    for entry in os.scandir(path):
        if entry.is_file():
            with open(entry.path, "rb") as file:
                files[entry.name] = file.read()
    return files


def _unpack(files: Any, fingerprint: str) -> str:
    """The directory on this node that holds the files of a model; the first process that needs it makes it."""
    import ray

    # Only its owner can put a model there.
    owned = os.path.join(tempfile.gettempdir(), f"elias-models-{os.getuid()}")
    os.makedirs(owned, mode=0o700, exist_ok=True)
    state = os.lstat(owned)
    if state.st_uid != os.getuid() or state.st_mode & 0o077:
        raise EliasError(f"{owned} belongs to others, or others can write there: remove it")
    path = os.path.join(owned, fingerprint)
    if not os.path.exists(path):
        with tempfile.TemporaryDirectory(dir=owned) as temporary:
            place = os.path.join(temporary, "model")
            os.mkdir(place)
            for name, content in ray.get(files).items():
                with open(os.path.join(place, os.path.basename(name)), "wb") as file:
                    file.write(content)
            try:
                os.rename(place, path)
            except OSError:
                # Another process was faster.
                if not os.path.exists(path):
                    raise
    return path


def train_members(
    texts: Any,
    labels: Labels | None = None,
    *,
    out: PathLike,
    members: int | Sequence[Mapping[str, Any]],
    cpus: int = 1,
    calibrate: Any = None,
    resume: bool = False,
    overwrite: bool = False,
    **options: Any,
) -> Model:
    """Trains the members of an ensemble as Ray tasks and makes one model of them.

    With a number of `members`, the model has the same bytes as `train(..., ensemble_members=members)` on one machine,
    probabilities included. With a list of settings, such as `[{"stage2_epochs": 4}, {"stage2_epochs": 8}]`, one model is
    trained with each, on top of `options`, and they are merged as by `elias_xmc.merge`: settings without a `train_seed`
    get one of their own, and there are probabilities only if `calibrate` is held-out data.

    `texts`, `labels` and `options` are those of `train`. A task has `cpus` threads and counts as so many CPUs. `out` is
    on storage that all nodes see; finished members are beside it, in `out` with `.members` at the end, until the model is
    complete. A task whose worker is lost continues from its last checkpoint; `resume=True` continues what was stopped
    as a whole.
    """
    import ray

    for name, remedy in (("progress", "tasks report to Ray"), ("threads", "cpus"), ("ensemble_members", "members")):
        if name in options:
            raise TypeError(f"train_members has no {name}: {remedy}")
    target = os.path.abspath(os.fspath(out))
    places = target + ".members"
    _check_free(target, places, resume, overwrite)
    task = ray.remote(num_cpus=cpus, max_retries=3)
    data = ray.put((texts, labels))
    options = {**options, "threads": cpus}

    if isinstance(members, int):
        options["ensemble_members"] = members
        # Members are trained once to calibrate on what was held out, and small data again on all points; else the
        # second half has nothing to do.
        runs = [(os.path.join(places, str(run)), run) for run in range(2 * members)]
        train_run = task(_train_run)
        _wait([train_run.remote(data, place, run, options) for place, run in runs])
        gather = task(_gather).remote(data, target, [place for place, _ in runs], overwrite or resume, options)
        _wait([gather])
    else:
        grid = [dict(settings) for settings in members]
        models = [os.path.join(places, str(place)) for place in range(len(grid))]
        train_model = task(_train_model)
        jobs = [
            train_model.remote(data, path, {**options, "train_seed": place, **settings})
            for place, (path, settings) in enumerate(zip(models, grid))
        ]
        _wait(jobs)
        if len(models) == 1:
            load(models[0]).save(target, overwrite=overwrite or resume)
        else:
            merge(models, target, calibrate=calibrate, overwrite=overwrite or resume, threads=cpus)
    shutil.rmtree(places, ignore_errors=True)
    return load(target)


def _check_free(target: str, places: str, resume: bool, overwrite: bool) -> None:
    if os.path.exists(places) and not resume:
        if not overwrite:
            raise EliasValueError(
                f"{places} holds unfinished members: resume=True continues them, overwrite=True discards them"
            )
        shutil.rmtree(places)
    if os.path.exists(target) and not (resume or overwrite):
        raise EliasValueError(f"{target} exists: choose another output, or give overwrite=True")
    os.makedirs(places, exist_ok=True)


def _wait(tasks: list[Any]) -> None:
    """Waits for all tasks; once one fails, or this one is interrupted, the others stop at their next step."""
    import ray

    waiting = tasks
    try:
        while waiting:
            done, waiting = ray.wait(waiting)
            ray.get(done)
    except BaseException as error:
        for task in waiting:
            ray.cancel(task)
        cause = error.cause if isinstance(error, ray.exceptions.RayTaskError) else None
        if isinstance(cause, EliasError):
            raise cause from None
        raise


def _train_run(data: Any, place: str, run: int, options: dict[str, Any]) -> None:
    """Trains one member and leaves it at a place; continues what a lost worker left there."""
    texts, labels = data
    call = prepare(texts, labels, out=place, resume=True, **options)
    call.run["only_run"] = run
    _elias.train(*call)


def _gather(data: Any, out: str, places: list[str], replace: bool, options: dict[str, Any]) -> None:
    """Makes a model of the members at these places."""
    for place in places:
        if not os.path.exists(place):
            raise EliasValueError(f"{place} is not there: put out on storage that all nodes see")
    texts, labels = data
    call = prepare(texts, labels, out=out, resume=True, overwrite=replace, **options)
    call.run["runs_from"] = places
    _elias.train(*call)


def _train_model(data: Any, out: str, options: dict[str, Any]) -> None:
    """Trains a model, or continues what a lost worker left."""
    texts, labels = data
    _elias.train(*prepare(texts, labels, out=out, resume=True, **options))
