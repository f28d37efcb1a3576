"""Data and models that the tests share: tiny, and made once."""

from __future__ import annotations

import random

import pytest

import elias_xmc

TOPICS = {
    "fruit": "apple pear plum ripe sweet juice",
    "vehicle": "car bike wheel fast motor road",
    "music": "song piano violin loud concert choir",
    "weather": "rain storm cloud wind sunny forecast",
    "cooking": "pan oven recipe spice boil dinner",
}
COLOURS = ["red", "green", "blue"]


def make_data(n_points: int, seed: int = 0) -> tuple[list[str], list[list[str]]]:
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


#: Few passes, no second training: seconds become tenths.
QUICK = {"stage1_epochs": 4, "stage2_epochs": 4, "encoder_dim": 32, "final_score_kind": "product", "train_batch_size": 16}


@pytest.fixture(scope="session")
def data() -> tuple[list[str], list[list[str]]]:
    return make_data(120)


@pytest.fixture(scope="session")
def model_path(data, tmp_path_factory) -> str:
    path = str(tmp_path_factory.mktemp("models") / "model")
    elias_xmc.train(*data, out=path, **QUICK)
    return path


@pytest.fixture(scope="session")
def model(model_path) -> elias_xmc.Model:
    return elias_xmc.load(model_path)


@pytest.fixture(scope="session")
def memory_model(data) -> elias_xmc.Model:
    return elias_xmc.train(*data, **QUICK)


@pytest.fixture(scope="session")
def calibrated() -> elias_xmc.Model:
    settings = {**QUICK, "final_score_kind": "boosted", "hold_out_refit": "nothing", "hold_out_near_duplicates": 2.0}
    return elias_xmc.train(*make_data(1200, seed=1), **settings)
