"""What PyTorch gave for the functions of ``test_catalogue.py``.

``python -m tests.nn.recorded`` writes ``recorded.json``.
"""

import json
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests import recorded

FILE = Path(__file__).with_name("recorded.json")
ROUGH = {"edges-hardsigmoid": 1e-7}
"""PyTorch multiplies by a sixth in single precision."""


@cache
def _cases() -> dict[str, Any]:
    return json.loads(FILE.read_text())


def agree(name: str, given: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
    """Assert that results are those recorded for the same operands."""
    case = _cases()[name]
    recorded.agree(given, case["given"], "other operands: run tests.nn.recorded", 1e-12)
    recorded.agree(results, case["results"], name, ROUGH.get(name, 1e-9))


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
        found[name] = {
            "given": [*map(recorded.sums, arrays)],
            "results": [*map(recorded.sums, results)],
        }
    recorded.write(FILE, found)


if __name__ == "__main__":
    write()
