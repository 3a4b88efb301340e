"""Functions of PyTorch and JAX that give the same numbers: ``python -m _site.equivalents``.

A function of the same name counts if it returns what numgrad does for sample operands; the names
are stored in ``equivalents.json``, so that a build needs neither library.
"""

import importlib
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

STORE = Path(__file__).with_name("equivalents.json")
PEERS = {
    "numgrad": (
        "torch",
        "torch.special",
        "torch.nn.functional",
        "jax.numpy",
        "jax.nn",
        "jax.scipy.special",
    ),
    "numgrad.special": ("torch.special", "jax.scipy.special"),
    "numgrad.linalg": ("torch.linalg", "jax.numpy.linalg", "jax.scipy.linalg"),
    "numgrad.fft": ("torch.fft", "jax.numpy.fft"),
    "numgrad.nn.functional": ("torch.nn.functional", "jax.nn"),
}
"""Modules of numgrad, and where others may have the same names."""

_RNG = np.random.default_rng(3)
_MATRIX = _RNG.uniform(0.2, 0.8, (3, 3)) + np.eye(3)
SAMPLES = (
    (_MATRIX,),
    (_MATRIX, _RNG.uniform(0.2, 0.8, (3, 3))),
    (_MATRIX @ _MATRIX.T,),
    (_RNG.uniform(0.2, 0.8, 4), _RNG.uniform(0.2, 0.8, 4)),
)
"""Operands: a function has to agree on all that numgrad's takes."""


def find() -> dict[str, list[str]]:
    """Names of other libraries by numgrad's."""
    equivalents: dict[str, list[str]] = {}
    for module, homes in PEERS.items():
        own = importlib.import_module(module)
        for name in sorted(n for n in dir(own) if n[0] != "_" and callable(getattr(own, n))):
            for home in homes:
                other = getattr(importlib.import_module(home), name, None)
                if callable(other) and not isinstance(other, type):
                    array = _tensor if home.startswith("torch") else np.asarray
                    if agrees(getattr(own, name), other, array):
                        equivalents.setdefault(f"{module}.{name}", []).append(f"{home}.{name}")
    return equivalents


def agrees(own: Callable[..., Any], other: Callable[..., Any], array: Callable[..., Any]) -> bool:
    """Whether two functions return the same numbers for every sample that ours takes."""
    count = 0
    for sample in SAMPLES:
        try:
            expected = list(_arrays(own(*sample)))
        except Exception:
            continue
        try:
            got = list(_arrays(other(*map(array, sample))))
        except Exception:
            return False
        if not _are_close(expected, got):
            return False
        count += bool(expected)
    return count > 0


def _are_close(expected: list[np.ndarray], got: list[np.ndarray]) -> bool:
    return len(expected) == len(got) and all(
        a.shape == b.shape
        and a.dtype.kind in "biufc"
        and np.allclose(a, b, 1e-5, 1e-6, equal_nan=True)
        for a, b in zip(expected, got, strict=True)
    )


def _arrays(value: Any) -> Iterator[np.ndarray]:
    if isinstance(value, tuple | list):
        for item in value:
            yield from _arrays(item)
    else:
        yield np.asarray(value)


def _tensor(array: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(array.copy())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    import jax

    jax.config.update("jax_enable_x64", True)
    equivalents = find()
    STORE.write_text(json.dumps(equivalents, indent=0, sort_keys=True) + "\n")
    print(f"{len(equivalents)} functions in {STORE}", file=sys.stderr)
