"""Convolutions over any axes, directly or by Fourier transforms.

Note [Convolutions and their gradients]
---------------------------------------
There are two: *full*, of every place where the operands meet, and *valid*, of those where the
smaller one lies within the larger. The gradients of either are convolutions of the other kind with
an operand turned round, so that gradients of any order cost as much as the call: that of a short
filter is short. What else there is (*same*, boundaries) is cut from these, or padded before.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import log2, prod
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import check_dtype
from numgrad.core.batching import BatchOperand
from numgrad.core.declare import primitive
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind
from numgrad.core.op import OPS, Op
from numgrad.errors import NumgradValueError
from numgrad.kernels.recurrence import taps_kernel
from numgrad.operations.arrangement import flip
from numgrad.operations.index import getitem
from numgrad.operations.shape import broadcast_to

_VECTORS, _IMAGES = 24, 3
"""Products for each element and doubling of the length from which Fourier transforms are faster."""


@primitive(
    internal=True,
    bilinear=True,
    smooth=True,
    method=False,
    samples=[
        (((3, 4), (2, 2)), {"axes": (0, 1), "mode": "full"}),
        (((3, 4), (2, 3)), {"axes": (0, 1), "mode": "valid"}),
        (((3, 4), (3, 2)), {"axes": (1,), "mode": "valid", "method": "fft"}),
        (((1, 4), (3, 2)), {"axes": (1,), "mode": "full", "method": "fft"}),
        (((4,), (3,)), {"axes": (0,), "mode": "valid"}),
    ],
)
def discrete_convolution(a, b, *, axes, mode, method="auto"):
    """Convolution along axes, over which ``b`` is not longer if the mode is valid.

    Other axes broadcast.
    """
    out = _result(a, b, axes=axes, mode=mode, method=method)
    a, b = a.astype(out.dtype, copy=False), b.astype(out.dtype, copy=False)
    if 0 in (*a.shape, *b.shape, *out.shape):
        return np.zeros(out.shape, out.dtype)
    if method == "auto":
        method = _choose(a, b, axes, mode)
    return (_by_transforms if method == "fft" else _directly)(a, b, axes, mode)


@discrete_convolution.shape
def _result(a, b, *, axes, mode, method):
    check_dtype("convolve", a.dtype)
    check_dtype("convolve", b.dtype)
    shape = list(np.broadcast_shapes(*[_without(x.shape, axes) for x in (a, b)]))
    for axis in axes:
        short = -1 if mode == "full" else 1
        shape[axis] = a.shape[axis] - short * (b.shape[axis] - 1)
        if a.shape[axis] < 1 or b.shape[axis] < 1:
            shape[axis] = max(shape[axis], 0)
    return Meta(tuple(shape), np.result_type(a.dtype, b.dtype))


def _without(shape: Sequence[Any], axes: Sequence[int]) -> tuple[Any, ...]:
    return tuple([1 if k in axes else n for k, n in enumerate(shape)])


def _choose(a: np.ndarray, b: np.ndarray, axes: Sequence[int], mode: str) -> str:
    """The faster way; integers stay exact."""
    if a.dtype.kind not in "fc":
        return "direct"
    n = prod([a.shape[k] for k in axes])
    taps = prod([b.shape[k] for k in axes])
    if mode == "valid":
        taps = min(taps, prod([a.shape[k] - b.shape[k] + 1 for k in axes]))
    else:
        taps = min(n, taps)
    few = (_VECTORS if a.ndim == 1 else _IMAGES) * log2(n + 2)
    return "direct" if taps <= few else "fft"


def _by_transforms(a: np.ndarray, b: np.ndarray, axes: Sequence[int], mode: str) -> np.ndarray:
    import scipy.fft

    real = a.dtype.kind != "c"
    if a.dtype.kind in "biu":
        a, b, dtype = a.astype(np.float64), b.astype(np.float64), a.dtype
    else:
        dtype = a.dtype
    cut = [slice(None)] * a.ndim
    sizes = []
    for k in axes:
        if mode == "full":
            n = a.shape[k] + b.shape[k] - 1
            cut[k] = slice(0, n)
        else:  # what comes round reaches the first elements only, which are not valid
            n = a.shape[k]
            cut[k] = slice(b.shape[k] - 1, n)
        sizes.append(scipy.fft.next_fast_len(n, real))
    forth: Any = scipy.fft.rfftn if real else scipy.fft.fftn
    back: Any = scipy.fft.irfftn if real else scipy.fft.ifftn
    spectrum = forth(a, sizes, axes) * forth(b, sizes, axes)
    out = back(spectrum, sizes, axes)[tuple(cut)]
    return np.rint(out).astype(dtype) if dtype.kind in "biu" else np.ascontiguousarray(out)


def _directly(a: np.ndarray, b: np.ndarray, axes: Sequence[int], mode: str) -> np.ndarray:
    if a.ndim == 1:
        return np.convolve(a, b, mode)  # pyright: ignore
    if mode == "full":
        if prod([a.shape[k] for k in axes]) < prod([b.shape[k] for k in axes]):
            a, b = b, a
        a = np.pad(a, [((b.shape[k] - 1,) * 2 if k in axes else (0, 0)) for k in range(a.ndim)])
    taps = [b.shape[k] for k in axes]
    places = [a.shape[k] - n + 1 for k, n in zip(axes, taps, strict=True)]
    shape = list(np.broadcast_shapes(*[_without(x.shape, axes) for x in (a, b)]))
    for k, n in zip(axes, places, strict=True):
        shape[k] = n
    if len(axes) == 1 and b.size == taps[0] and taps[0] <= places[0] and a.dtype.kind in "fc":
        (axis,) = axes
        x, out = np.ascontiguousarray(a), np.empty(shape, a.dtype)
        sizes = prod(a.shape[:axis]), a.shape[axis], prod(a.shape[axis + 1 :])
        weights = np.ascontiguousarray(b).ravel()
        taps_kernel(a.dtype)(x.ravel(), weights, out.ravel(), *sizes, taps[0])
        return out
    b = b[tuple([slice(None, None, -1) if k in axes else slice(None) for k in range(b.ndim)])]
    out = np.zeros(shape, a.dtype)

    def part(starts: Sequence[int], lengths: Sequence[int]) -> tuple[slice, ...]:
        found = [slice(None)] * a.ndim
        for k, start, n in zip(axes, starts, lengths, strict=True):
            found[k] = slice(start, start + n)
        return tuple(found)

    ones = [1] * len(axes)
    if prod(taps) <= prod(places):
        term = np.empty_like(out)
        for tap in product(*map(range, taps)):
            np.multiply(a[part(tap, places)], b[part(tap, ones)], out=term)
            out += term
    else:
        for place in product(*map(range, places)):
            window = a[part(place, taps)] * b
            out[part(place, ones)] = np.sum(window, axis=tuple(axes), keepdims=True)
    return out


def turned(x: Any, axes: Sequence[int]) -> Any:
    """The conjugate, turned round along axes."""
    x = np.conj(x) if x.dtype.kind == "c" else x
    return flip(x, axis=tuple(axes)) if len(axes) else x


def _vjp_a(g, b, axes, mode, method):
    other = "valid" if mode == "full" else "full"
    return discrete_convolution(g, turned(b, axes), axes=axes, mode=other, method=method)


def _vjp_b(g, a, axes, mode, method):
    if mode == "full":
        return _vjp_a(g, a, axes, mode, method)
    found = discrete_convolution(
        np.conj(a), flip(g, axis=axes), axes=axes, mode="valid", method=method
    )
    return flip(found, axis=axes)


discrete_convolution.vjp(a=_vjp_a, b=_vjp_b)


@discrete_convolution.batch
def _batched(op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int) -> Any:
    a, b = operands
    ndim = max(a.ndim, b.ndim)
    values = [o.aligned(ndim) if o.batched else o.value[None] for o in (a, b)]
    return bind(op, tuple(values), {**params, "axes": a.axes(params["axes"])})


def convolution(
    a: Any, b: Any, axes: Sequence[int], mode: str = "valid", method: str = "auto"
) -> Any:
    """The same, also of what has no element: zeros, sums over none."""
    if all(x.shape[k] != 0 for x in (a, b) for k in axes):
        return discrete_convolution(a, b, axes=axes, mode=mode, method=method)
    out = _result(a, b, axes=axes, mode=mode, method=method)
    none = tuple([slice(0, 0) if k in axes else slice(None) for k in range(len(a.shape))])
    a, b = [OPS["sum"](getitem(x, none), axis=axes, keepdims=True) for x in (a, b)]
    return broadcast_to(OPS["multiply"](a, b).astype(out.dtype), shape=out.shape)


def convolved(name: str, a: Any, b: Any, axes: Sequence[int], mode: str, method: str) -> Any:
    """The convolution in SciPy's modes; same means the middle of full, of the size of ``a``."""
    axes = tuple(axes)
    if mode not in ("full", "same", "valid"):
        raise NumgradValueError(f"{name}: mode is 'full', 'same' or 'valid', got {mode!r}")
    if method not in ("auto", "direct", "fft"):
        raise NumgradValueError(f"{name}: method is 'auto', 'direct' or 'fft', got {method!r}")
    if mode == "valid":
        fits = [a.shape[k] >= b.shape[k] for k in axes]
        if not all(fits):
            if any(a.shape[k] > b.shape[k] for k in axes):
                raise NumgradValueError(
                    f"{name}: shapes {tuple(a.shape)} and {tuple(b.shape)}: in mode 'valid' one "
                    "operand must be at least as long as the other along every axis"
                )
            a, b = b, a
        return convolution(a, b, axes, mode, method)
    out = convolution(a, b, axes, "full", method)
    if mode == "full":
        return out
    starts = [(n - m) // 2 for n, m in zip(out.shape, a.shape, strict=True)]
    return getitem(
        out, tuple([slice(start, start + m) for start, m in zip(starts, a.shape, strict=True)])
    )
