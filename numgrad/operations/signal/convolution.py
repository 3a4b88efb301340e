"""Convolutions over any axes, directly or by Fourier transforms, as ``scipy.signal`` has them.

Note [Convolutions and their gradients]
---------------------------------------
There are two: *full*, of every place where the operands meet, and *valid*, of those where the
smaller one lies within the larger. The gradients of either are convolutions of the other kind with
an operand turned round, so that gradients of any order cost as much as the call: that of a short
filter is short. What else there is (*same*, boundaries) is cut from these, or padded before.
"""

from collections.abc import Sequence
from itertools import product
from math import log2, prod
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import check_dtype
from numgrad.core.declare import OPS, BatchOperand, Meta, Op, bind, composite, primitive
from numgrad.errors import NumgradValueError
from numgrad.kernels.recurrence import taps_kernel
from numgrad.operations.arrangement import flip
from numgrad.operations.extend import pad
from numgrad.operations.fourier.spectra import axes_in_order
from numgrad.operations.index import getitem
from numgrad.operations.shape import as_operand, broadcast_to

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
    counts = [a.shape[k] - n + 1 for k, n in zip(axes, taps, strict=True)]
    shape = list(np.broadcast_shapes(*[_without(x.shape, axes) for x in (a, b)]))
    for k, n in zip(axes, counts, strict=True):
        shape[k] = n
    if len(axes) == 1 and b.size == taps[0] and taps[0] <= counts[0] and a.dtype.kind in "fc":
        (axis,) = axes
        x, out = np.ascontiguousarray(a), np.empty(shape, a.dtype)
        sizes = prod(a.shape[:axis]), a.shape[axis], prod(a.shape[axis + 1 :])
        weights = np.ascontiguousarray(b).ravel()
        taps_kernel(a.dtype)(x.ravel(), weights, out.ravel(), *sizes, taps[0])
        return out
    b = b[tuple([slice(None, None, -1) if k in axes else slice(None) for k in range(b.ndim)])]
    out = np.zeros(shape, a.dtype)

    def part(starts: Sequence[int], lengths: Sequence[int]) -> tuple[slice, ...]:
        result = [slice(None)] * a.ndim
        for k, start, n in zip(axes, starts, lengths, strict=True):
            result[k] = slice(start, start + n)
        return tuple(result)

    ones = [1] * len(axes)
    if prod(taps) <= prod(counts):
        term = np.empty_like(out)
        for tap in product(*map(range, taps)):
            np.multiply(a[part(tap, counts)], b[part(tap, ones)], out=term)
            out += term
    else:
        for corner in product(*map(range, counts)):
            window = a[part(corner, taps)] * b
            out[part(corner, ones)] = np.sum(window, axis=tuple(axes), keepdims=True)
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
    result = discrete_convolution(
        np.conj(a), flip(g, axis=axes), axes=axes, mode="valid", method=method
    )
    return flip(result, axis=axes)


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


def _pair(name: str, a: Any, b: Any, ndim: int | None = None) -> tuple[Any, Any]:
    a, b = as_operand(a), as_operand(b)
    if len(a.shape) != len(b.shape) or ndim not in (None, len(a.shape)):
        expected = "as many axes as each other" if ndim is None else f"{ndim} axes each"
        raise NumgradValueError(
            f"{name}: shapes {tuple(a.shape)} and {tuple(b.shape)}: operands have {expected}"
        )
    return a, b


def _everywhere(name: str, a: Any, b: Any, mode: str, method: str) -> Any:
    if not a.shape:
        return OPS["multiply"](a, b)
    return convolved(name, a, b, range(len(a.shape)), mode, method)


@composite(ref="scipy.signal.convolve", method=False, smooth=True)
def signal_convolve(in1, in2, mode="full", method="auto"):
    """Convolution of two arrays over all of their axes.

    Parameters
    ----------
    in1
        First operand.
    in2
        Second operand, with as many axes.
    mode : {'full', 'same', 'valid'}
        Where they meet, the middle of that as large as ``in1``, or where one lies in the other.
    method : {'auto', 'direct', 'fft'}
        How it is computed; the faster way by default, directly for integers.

    Returns
    -------
    Tensor
        With the axes of the operands, of a length that ``mode`` says.

    Examples
    --------
    >>> ng.signal.convolve(ng.tensor([1.0, 2.0, 3.0]), [1.0, 10.0], mode="same")
    tensor([ 1., 12., 23.])
    """
    a, b = _pair("convolve", in1, in2)
    return _everywhere("convolve", a, b, mode, method)


@composite(ref="scipy.signal.correlate", method=False, smooth=True)
def signal_correlate(in1, in2, mode="full", method="auto"):
    """Correlation of two arrays over all of their axes, the second one conjugated.

    Parameters
    ----------
    in1
        First operand.
    in2
        Second operand, with as many axes.
    mode : {'full', 'same', 'valid'}
        Where they meet, the middle of that as large as ``in1``, or where one lies in the other.
    method : {'auto', 'direct', 'fft'}
        How it is computed; the faster way by default, directly for integers.

    Returns
    -------
    Tensor
        With the axes of the operands, of a length that ``mode`` says.

    Examples
    --------
    >>> ng.signal.correlate(ng.tensor([1.0, 2.0, 3.0]), [1.0, 10.0], mode="valid")
    tensor([21., 32.])
    """
    a, b = _pair("correlate", in1, in2)
    return _everywhere("correlate", a, turned(b, range(len(b.shape))), mode, method)


def _over_axes(name: str, in1: Any, in2: Any, mode: str, axes: Any) -> Any:
    a, b = _pair(name, in1, in2)
    if not a.shape:
        return OPS["multiply"](a, b)
    result = axes_in_order(name, axes, None, len(a.shape))
    if not result or len(set(result)) < len(result):
        raise NumgradValueError(f"{name}: axes={axes!r}; give at least one, each once")
    return convolved(name, a, b, result, mode, "fft")


@composite(ref="scipy.signal.fftconvolve", method=False, smooth=True)
def fftconvolve(in1, in2, mode="full", axes=None):
    """Convolution by Fourier transforms; axes over which it does not work broadcast.

    Parameters
    ----------
    in1
        First operand.
    in2
        Second operand, with as many axes.
    mode : {'full', 'same', 'valid'}
        Where they meet, the middle of that as large as ``in1``, or where one lies in the other.
    axes : int or sequence of ints
        Axes over which it works; by default all.

    Returns
    -------
    Tensor
        With the axes of the operands, of a length that ``mode`` says.

    Examples
    --------
    >>> ng.signal.fftconvolve(ng.tensor([1.0, 2.0, 3.0]), [1.0, 10.0]).round(12)
    tensor([ 1., 12., 23., 30.])
    """
    return _over_axes("fftconvolve", in1, in2, mode, axes)


@composite(ref="scipy.signal.oaconvolve", method=False, smooth=True)
def oaconvolve(in1, in2, mode="full", axes=None):
    """The same as ``fftconvolve``, under the name that SciPy has for long signals.

    Parameters
    ----------
    in1
        First operand.
    in2
        Second operand, with as many axes.
    mode : {'full', 'same', 'valid'}
        Where they meet, the middle of that as large as ``in1``, or where one lies in the other.
    axes : int or sequence of ints
        Axes over which it works; by default all.

    Returns
    -------
    Tensor
        With the axes of the operands, of a length that ``mode`` says.

    Examples
    --------
    >>> ng.signal.oaconvolve(ng.tensor([1.0, 2.0, 3.0]), [1.0, 10.0]).round(12)
    tensor([ 1., 12., 23., 30.])
    """
    return _over_axes("oaconvolve", in1, in2, mode, axes)


_BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


def _with_boundary(
    name: str, a: Any, b: Any, mode: str, boundary: str, fillvalue: Any, odd: int
) -> Any:
    """Convolution of an image of which there is more beyond its edges.

    The middle is that of all places where they meet; with even lengths the one before, or ``odd``
    places later.
    """
    if boundary not in _BOUNDARIES:
        raise NumgradValueError(f"{name}: boundary is 'fill', 'wrap' or 'symm', got {boundary!r}")
    if mode == "valid":
        return convolved(name, a, b, (0, 1), mode, "auto")
    if mode not in ("full", "same"):
        raise NumgradValueError(f"{name}: mode is 'full', 'same' or 'valid', got {mode!r}")
    if 0 in b.shape:
        raise NumgradValueError(f"{name}: the second image, of shape {tuple(b.shape)}, is empty")
    widths = []
    for n in b.shape:
        after = n - 1 if mode == "full" else (n - 1 + odd) // 2
        widths.append((n - 1 if mode == "full" else n - 1 - after, after))
    if boundary == "fill":
        a = pad(a, widths, constant_values=fillvalue)
    else:
        a = pad(a, widths, _BOUNDARIES[boundary])
    return convolution(a, b, (0, 1))


@composite(ref="scipy.signal.convolve2d", method=False, smooth=True)
def convolve2d(in1, in2, mode="full", boundary="fill", fillvalue=0):
    """Convolution of images.

    Parameters
    ----------
    in1
        Image, of two axes.
    in2
        Second one.
    mode : {'full', 'same', 'valid'}
        Where they meet, the middle of that as large as ``in1``, or where one lies in the other.
    boundary : {'fill', 'wrap', 'symm'}
        What is beyond the edges of ``in1``: a number, its other end, or its mirror image.
    fillvalue
        The number.

    Returns
    -------
    Tensor
        An image, of a size that ``mode`` says.

    Examples
    --------
    >>> ng.signal.convolve2d(ng.ones((2, 3)), ng.ones((2, 2)), "same", "symm")
    tensor([[4., 4., 4.],
            [4., 4., 4.]])
    """
    a, b = _pair("convolve2d", in1, in2, 2)
    return _with_boundary("convolve2d", a, b, mode, boundary, fillvalue, 0)


@composite(ref="scipy.signal.correlate2d", method=False, smooth=True)
def correlate2d(in1, in2, mode="full", boundary="fill", fillvalue=0):
    """Correlation of images, the second one conjugated.

    Parameters
    ----------
    in1
        Image, of two axes.
    in2
        Second one.
    mode : {'full', 'same', 'valid'}
        Where they meet, the middle of that as large as ``in1``, or where one lies in the other.
    boundary : {'fill', 'wrap', 'symm'}
        What is beyond the edges of ``in1``: a number, its other end, or its mirror image.
    fillvalue
        The number.

    Returns
    -------
    Tensor
        An image, of a size that ``mode`` says.

    Examples
    --------
    >>> ng.signal.correlate2d(ng.ones((2, 3)), ng.tensor([[1.0, 2.0]]), "valid")
    tensor([[3., 3.],
            [3., 3.]])
    """
    a, b = _pair("correlate2d", in1, in2, 2)
    return _with_boundary("correlate2d", a, turned(b, (0, 1)), mode, boundary, fillvalue, 1)
