"""Comparisons of a result of PyTorch's with one of the face."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from numgrad.torch.wrapping import Tensor


class Differs(AssertionError):
    """The face gives something else."""


def leaves(value: Any) -> Iterator[Any]:
    """Tensors and numbers of a result, in order."""
    if isinstance(value, list | tuple):
        for each in value:
            yield from leaves(each)
    elif isinstance(value, dict):
        for key in sorted(value):
            yield from leaves(value[key])
    else:
        yield value


def as_array(x: Any) -> np.ndarray:
    if isinstance(x, Tensor):
        return x._tensor.numpy(force=True)
    return x.detach().resolve_conj().resolve_neg().numpy(force=True)


def agree(theirs: Any, ours: Any, what: str, values: bool = True) -> None:
    """Raise where a result differs in structure, dtype, shape or values."""
    import torch

    expected, got = list(leaves(theirs)), list(leaves(ours))
    if len(expected) != len(got):
        raise Differs(f"{what}: {len(got)} results, {len(expected)} of PyTorch's")
    if getattr(theirs, "_fields", None) is not None or hasattr(theirs, "n_fields"):
        fields = [
            n
            for n in dir(theirs)
            if n[0] != "_"
            and n not in ("count", "index", "n_fields", "n_sequence_fields", "n_unnamed_fields")
        ]
        for field in fields:
            if not hasattr(ours, field):
                raise Differs(f"{what}: no field {field}")
    for a, b in zip(expected, got, strict=True):
        if not isinstance(a, torch.Tensor):
            same = (
                str(a) == str(b) if not isinstance(a, float) else np.allclose(a, b, equal_nan=True)
            )
            if not same and isinstance(b, Tensor):
                raise Differs(f"{what}: a Tensor for {type(a).__name__}")
            if not same:
                raise Differs(f"{what}: {b!r:.60} for {a!r:.60}")
            continue
        if not isinstance(b, Tensor):
            raise Differs(f"{what}: {type(b).__name__} for a Tensor")
        if str(a.dtype) != str(b.dtype):
            raise Differs(f"{what}: dtype {b.dtype} for {a.dtype}")
        if tuple(a.shape) != tuple(b.shape):
            raise Differs(f"{what}: shape {tuple(b.shape)} for {tuple(a.shape)}")
        if values and a.numel():
            close(as_array(a), as_array(b), what)


def close(a: np.ndarray, b: np.ndarray, what: str) -> None:
    if a.dtype.kind in "fc":
        precise = a.dtype.itemsize == (8 if a.dtype.kind == "f" else 16)
        rtol, atol = (1e-7, 1e-7) if precise else (2e-5, 1e-5)
        equal = np.isclose(a, b, rtol, atol, equal_nan=True)
    else:
        equal = a == b
    if not equal.all():
        at = np.unravel_index(np.argmin(equal), equal.shape) if equal.ndim else ()
        raise Differs(f"{what}: {b[at]!r:.30} for {a[at]!r:.30}")
