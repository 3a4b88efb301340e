"""Sorting, gathering and sums by place of a million numbers, as each library writes them."""

from __future__ import annotations

from typing import Any

import numpy as np

CODES = {
    "sort": {"numgrad": "lib.sort(x)", "numpy": "lib.sort(x)", "torch": "lib.sort(x)[0]"},
    "argsort": {"numgrad": "lib.argsort(x)", "numpy": "lib.argsort(x)", "torch": "lib.argsort(x)"},
    "cumsum": {"numgrad": "lib.cumsum(x)", "numpy": "lib.cumsum(x)", "torch": "lib.cumsum(x, 0)"},
    "gather": {
        "numgrad": "lib.take_along_axis(x, i, 0)",
        "numpy": "lib.take_along_axis(x, i, 0)",
        "torch": "lib.gather(x, 0, i)",
    },
    "scatter_add": {
        "numgrad": "lib.scatter_add(zeros, i, x, axis=0)",
        "numpy": "out = zeros.copy(); lib.add.at(out, i, x)",
        "torch": "lib.scatter_add(zeros, 0, i, x)",
    },
    "bincount": {
        "numgrad": "lib.bincount(i, x)",
        "numpy": "lib.bincount(i, x)",
        "torch": "lib.bincount(i, x)",
    },
}
"""Names -> libraries -> what is timed."""

_SIZE = 1_000_000


def ordering(name: str, library: Any, function: str, gradient: bool) -> tuple[str, dict[str, Any]]:
    """A statement, and the names in it.

    Torch's ``bincount`` has no gradient in the weights; ``index_add`` stands for it.
    """
    rng = np.random.default_rng(0)
    places = 1000 if function == "bincount" else _SIZE
    arrays = {
        "x": rng.normal(size=_SIZE),
        "w": rng.normal(size=places),
        "i": rng.integers(0, places, _SIZE),
        "zeros": np.zeros(places),
    }
    names: dict[str, Any] = dict(arrays)
    if name != "numpy":
        names = {k: library.tensor(a) for k, a in arrays.items()}
    code = CODES[function][name]
    if gradient:
        names["x"].requires_grad_()
        if function == "bincount" and name == "torch":
            code = "lib.index_add(zeros, 0, i, x)"
        code = f"x.grad = None; ({code} * w).sum().backward()"
    return code, {**names, "lib": library}
