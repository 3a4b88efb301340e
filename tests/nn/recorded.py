"""What PyTorch gave for the functions of ``test_catalogue.py``, for where it is not installed.

``python -m tests.nn.recorded`` writes ``recorded.json``. Of each array it keeps the shape and sums
with fixed weights, which no other array has by chance.
"""

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("recorded.json")

ROUGH = {"edges-hardsigmoid": 1e-7}
"""PyTorch multiplies by a sixth in single precision."""


def sums(array: np.ndarray) -> list[Any]:
    """The shape, a few weighted sums, and their scale; numbers that are not finite as positions."""
    flat = np.asarray(array, np.float64).ravel()
    places = np.arange(flat.size)
    finite = np.where(np.isfinite(flat), flat, 0.0)
    odd = np.where(np.isnan(flat), 7.0, np.where(np.isinf(flat), np.sign(flat), 0.0))
    weights = [np.cos(1.0 + places), np.sin(2.0 + 0.7 * places), np.ones(flat.size)]
    scale = float(np.abs(finite).sum())
    return [list(array.shape), *(float(finite @ w) for w in weights), scale, float(odd @ places)]


def agree(name: str, given: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
    """Assert that results are those recorded for the same operands."""
    recorded = json.loads(FILE.read_text())[name]
    for array, expected in zip(given, recorded["given"], strict=True):
        _close(sums(array), expected, "operands are not those recorded: run tests.nn.recorded")
    assert len(results) >= len(recorded["results"])
    for array, expected in zip(results, recorded["results"], strict=False):
        _close(sums(array), expected, name, ROUGH.get(name, 1e-9))


def _close(actual: list[Any], expected: list[Any], message: str, rtol: float = 1e-9) -> None:
    assert actual[0] == expected[0], message
    atol = rtol * max(1.0, expected[4])
    np.testing.assert_allclose(actual[1:], expected[1:], rtol=rtol, atol=atol, err_msg=message)


def write() -> None:
    """Record all cases from the installed PyTorch."""
    import torch

    from tests.nn.agreement import found_by
    from tests.nn.test_catalogue import RECORDED

    torch.set_default_dtype(torch.float64)
    found = {}
    for name, make, arrays in RECORDED:
        with warnings.catch_warnings(action="ignore"):
            results = found_by(torch, make(torch), arrays)
        if name.startswith("edges"):  # second derivatives where pieces meet are a convention
            results = results[:2]
        found[name] = {"given": [sums(a) for a in arrays], "results": [sums(a) for a in results]}
    lines = (f"{json.dumps(name)}: {json.dumps(case)}" for name, case in found.items())
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    write()
