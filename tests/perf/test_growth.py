"""Curves of cost have slopes, and the stored ones are those that the command measures."""

import json
from importlib import import_module
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


def test_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "perf"))
    growth = import_module("growth")
    monkeypatch.setattr(growth, "SECONDS", 0.0)
    np.testing.assert_allclose(growth.slope([[n, 3e-6 * n**1.5] for n in (1, 10, 100, 1000)]), 1.5)
    stored = json.loads((ROOT / "notebooks/growth.json").read_text())["curves"]
    assert list(stored) == list(growth.CURVES)
    for curve in stored.values():
        assert growth.slope(curve["points"]) == pytest.approx(curve["slope"], abs=1e-3)
    (first,) = islice(growth.CURVES["parameters, eager"](), 1)
    assert first[0] == 10
    assert first[1] > 0
