"""Models, texts and the answers of the command, which every engine must give."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from pathlib import Path

import numpy
import pytest

import elias_xmc

TOPICS = {
    "fruit": "apple pear plum ripe sweet juice",
    "vehicle": "car bike wheel fast motor road",
    "music": "song piano violin loud concert choir",
    "weather": "rain storm cloud wind sunny forecast",
    "cooking": "pan oven recipe spice boil dinner",
}
COLOURS = ["red", "green", "blue", "grün", "青"]
N_TEXTS = 3001
K = 4


def make_data(n_points: int, seed: int) -> tuple[list[str], list[list[str]]]:
    """Texts about one or two topics and a colour, with these as labels."""
    rng = random.Random(seed)
    texts, labels = [], []
    for _ in range(n_points):
        topics = rng.sample(sorted(TOPICS), rng.choice([1, 1, 2]))
        colour = rng.choice(COLOURS)
        words = [word for topic in topics for word in rng.sample(TOPICS[topic].split(), 3)] + [colour]
        rng.shuffle(words)
        texts.append(" ".join(words))
        labels.append([*topics, colour])
    return texts, labels


#: Few passes, and near duplicates may calibrate: seconds become tenths.
QUICK = {
    "stage1_epochs": 3,
    "stage2_epochs": 3,
    "encoder_dim": 32,
    "train_batch_size": 32,
    "hold_out_near_duplicates": 2.0,
}


@pytest.fixture(scope="session")
def directory(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("engines")


@pytest.fixture(scope="session")
def model(directory) -> str:
    path = str(directory / "model")
    elias_xmc.train(*make_data(1200, seed=1), out=path, **QUICK)
    return path


@pytest.fixture(scope="session")
def uncalibrated(directory) -> str:
    path = str(directory / "uncalibrated")
    elias_xmc.train(*make_data(200, seed=2), out=path, **QUICK, final_score_kind="product")
    return path


@pytest.fixture()
def damaged(model, tmp_path) -> str:
    """A model with a file that is not what its manifest says."""
    path = tmp_path / "damaged"
    shutil.copytree(model, path)
    file = next(path.glob("classifiers-0.*"))
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    return str(path)


@pytest.fixture(scope="session")
def texts() -> list[str]:
    texts, _ = make_data(N_TEXTS, seed=3)
    texts[5], texts[17], texts[40] = "", "nothing that is known", 'quotes "and" \\ 🎹\tpiano'
    return texts


@pytest.fixture(scope="session")
def expected(directory, model, texts) -> dict[int, tuple]:
    return answers_of_command(directory, model, texts)


def answers_of_command(directory: Path, model: str, texts: list[str], k: int = K) -> dict[int, tuple]:
    """What `elias predict` answers, by the number of the text."""
    lines = [json.dumps({"id": number, "text": text}) for number, text in enumerate(texts)]
    file = directory / "texts.jsonl"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [os.environ["ELIAS"], "predict", model, str(file), "--top-k", str(k), "--quiet"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    found = {}
    for answer in map(json.loads, ran.stdout.splitlines()):
        labels = answer["labels"]
        probabilities = [label.get("probability") for label in labels]
        found[answer["id"]] = answer_of(
            [label["label"] for label in labels],
            [label["score"] for label in labels],
            None if None in probabilities else probabilities,
        )
    assert len(found) == len(texts)
    return found


def answer_of(labels, scores, probabilities) -> tuple:
    """An answer that can be compared: floats have 32 bits, as in the model."""

    def floats(values):
        return None if values is None else tuple(numpy.asarray(values, dtype=numpy.float32).tolist())

    return (tuple(labels), floats(scores), floats(probabilities))
