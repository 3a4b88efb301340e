"""Arrays that PyTorch gave, kept as sums with fixed weights, for where it is not installed."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np


def sums(array: Any) -> list[Any]:
    """The shape, a few weighted sums, and their scale; numbers that are not finite as positions.

    No other array has the same by chance.
    """
    flat = np.asarray(array, np.float64).ravel()
    places = np.arange(flat.size)
    finite = np.where(np.isfinite(flat), flat, 0.0)
    odd = np.where(np.isnan(flat), 7.0, np.where(np.isinf(flat), np.sign(flat), 0.0))
    weights = [np.cos(1.0 + places), np.sin(2.0 + 0.7 * places), np.ones(flat.size)]
    scale = float(np.abs(finite).sum())
    shape = list(np.shape(array))
    return [shape, *(float(finite @ w) for w in weights), scale, float(odd @ (1 + places))]


def agree(results: Iterable[Any], recorded: Sequence[list], message: str, rtol: float) -> None:
    """Assert that arrays have the sums recorded; what is not recorded may be anything."""
    results = list(results)
    assert len(results) >= len(recorded), message
    for array, expected in zip(results, recorded, strict=False):
        found = sums(array)
        assert found[0] == expected[0], message
        atol = rtol * max(1.0, expected[4])
        np.testing.assert_allclose(found[1:], expected[1:], rtol=rtol, atol=atol, err_msg=message)


def write(file: Path, cases: Mapping[str, Any]) -> None:
    """A line of JSON for each case."""
    lines = (f"{json.dumps(name)}: {json.dumps(case)}" for name, case in cases.items())
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")
