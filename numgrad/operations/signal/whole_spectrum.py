"""What the Fourier transform of a whole signal gives: its analytic signal, other points."""

from __future__ import annotations

import numpy as np

from numgrad.core.abstract import made
from numgrad.core.axis import normalize_axes
from numgrad.core.declare import composite
from numgrad.core.op import OPS
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.arrangement import moveaxis
from numgrad.operations.fourier.operands import resized
from numgrad.operations.fourier.transforms import fft, ifft, irfft, rfft
from numgrad.operations.index import getitem
from numgrad.operations.join import concat
from numgrad.operations.shape import as_index, as_operand, copy
from numgrad.operations.signal.segments import floating


@composite(ref="scipy.signal.hilbert", method=False, smooth=True)
def hilbert(x, N=None, axis=-1):
    """The analytic signal: without negative frequencies.

    Parameters
    ----------
    x
        Signal, real.
    N : int
        Number of points: the signal is cut or filled up with zeros.

    Returns
    -------
    Tensor
        Complex, of length ``N`` along the axis.

    Examples
    --------
    >>> ng.signal.hilbert(ng.tensor([1.0, 0.0, -1.0, 0.0])).imag
    tensor([ 0.,  1.,  0., -1.])
    """
    x = as_operand(x)
    if x.dtype.kind == "c":
        raise NumgradTypeError(
            "hilbert: the operand is complex; the analytic signal is of a real one"
        )
    (axis,) = normalize_axes("hilbert", axis, len(x.shape))
    spectrum = fft(x, N, axis)
    n = int(spectrum.shape[axis])
    weights = np.zeros(n, np.float32 if spectrum.dtype == np.complex64 else np.float64)
    weights[0] = 1
    weights[1 : (n + 1) // 2] = 2
    if n % 2 == 0:
        weights[n // 2] = 1
    shape = [1] * len(x.shape)
    shape[axis] = n
    return ifft(OPS["multiply"](spectrum, made(weights.reshape(shape))), axis=axis)


@composite(ref="scipy.signal.resample", method=False, smooth=True)
def resample(x, num, t=None, axis=0):
    """A periodic signal at other, equally spaced points, by its Fourier transform.

    Parameters
    ----------
    x
        Signal.
    num : int
        Number of points.
    t : array_like
        Places of the given points; the new ones are returned too.

    Returns
    -------
    Tensor
        Of length ``num`` along the axis; with ``t`` a pair of that and the places.

    Examples
    --------
    >>> ng.signal.resample(ng.tensor([1.0, 0.0, -1.0, 0.0]), 8).round(6)
    tensor([ 1.      ,  0.707107,  0.      , -0.707107, -1.      , -0.707107,
             0.      ,  0.707107])
    """
    x = floating(as_operand(x))
    (axis,) = normalize_axes("resample", axis, len(x.shape))
    num = as_index("resample", num, "num")
    n = int(x.shape[axis])
    if num < 1 or n < 1:
        raise NumgradValueError(f"resample: {n} points to {num}; both must be at least one")
    x = moveaxis(x, axis, -1)
    kept = min(n, num)
    middle, paired = kept // 2, kept % 2 == 0 and n != num
    multiply = OPS["multiply"]
    if x.dtype.kind != "c":
        spectrum = getitem(rfft(x), (Ellipsis, slice(0, middle + 1)))
        if paired:
            weights = np.ones(middle + 1, x.dtype)
            weights[-1] = 2 if num < n else 0.5
            spectrum = multiply(spectrum, made(weights))
        y = irfft(resized(spectrum, (len(x.shape) - 1,), (num // 2 + 1,)), num)
    else:
        spectrum = fft(x)
        first = getitem(spectrum, (Ellipsis, slice(0, (kept + 1) // 2)))
        last = getitem(spectrum, (Ellipsis, slice(n - (kept - 1) // 2, n)))
        parts = [first]
        if kept % 2 == 0:
            both = getitem(spectrum, (Ellipsis, slice(middle, middle + 1)))
            if num < n:
                both = both + getitem(spectrum, (Ellipsis, slice(n - middle, n - middle + 1)))
            parts.append(both / 2 if num > n else both)
        if num > n:
            twice = kept % 2 == 0
            zeros = num - kept - twice
            parts.append(made(np.zeros((*x.shape[:-1], zeros), spectrum.dtype)))
            if twice:
                parts.append(parts[1])
        y = ifft(concat(*parts, last, axis=-1))
    y = moveaxis(multiply(y, num / n), -1, axis)
    if t is None:
        return y
    t = np.asarray(t)
    return y, copy(made(t[0] + np.arange(num) * (t[1] - t[0]) * n / num))


hilbert.calls = [(((2, 5),), lambda x: hilbert(np.real(x)))]
resample.calls = [
    (((4, 2),), lambda x: resample(x, 6)),
    (((6,),), lambda x: resample(x, 4)),
]
