"""The notebook of the documentation, cell by cell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("pandas")

NOTEBOOK = Path(__file__).parents[2] / "docs" / "first-hour.ipynb"


def test_the_notebook_runs(monkeypatch):
    monkeypatch.chdir(NOTEBOOK.parent)
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    names: dict[str, object] = {}
    for place, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"cell {place}", "exec"), names)
    model, found, predicted, again = (names[name] for name in ("model", "found", "predicted", "again"))
    assert model.is_calibrated and any(found) and predicted.shape[1] == 50
    assert again.predict("a parser for XML") == model.predict("a parser for XML")
