"""Smoothing by polynomials, after Savitzky and Golay."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.core.abstract import made
from numgrad.core.axis import one_axis
from numgrad.core.declare import composite
from numgrad.core.op import OPS
from numgrad.errors import NumgradValueError
from numgrad.operations.arrangement import moveaxis
from numgrad.operations.index import getitem
from numgrad.operations.join import concat
from numgrad.operations.shape import as_index, as_operand, copy
from numgrad.operations.signal.boundaries import extended
from numgrad.operations.signal.convolution import convolution


def _savgol_coefficients(window_length: Any, polyorder: Any, deriv: Any, *more: Any) -> np.ndarray:
    import scipy.signal

    try:
        return np.asarray(scipy.signal.savgol_coeffs(window_length, polyorder, deriv, *more))
    except ValueError as error:
        raise NumgradValueError(
            f"savgol_coeffs: {window_length} places, a polynomial of order {polyorder}: {error}"
        ) from None


@composite(ref="scipy.signal.savgol_coeffs", method=False, differentiable=False)
def savgol_coeffs(window_length, polyorder, deriv=0, delta=1.0, pos=None, use="conv"):
    """Weights with which a convolution fits polynomials.

    Parameters
    ----------
    window_length : int
        Number of places.
    polyorder : int
        Order of the polynomials.
    deriv : int
        Order of the derivative that is asked for.
    delta : float
        Distance of the places.
    pos : int
        At which of them; by default the middle.
    use : {'conv', 'dot'}
        Whether they are turned round, for a convolution.

    Returns
    -------
    Tensor
        Weights without a gradient.

    Examples
    --------
    >>> ng.signal.savgol_coeffs(3, 1)
    tensor([0.33333333, 0.33333333, 0.33333333])
    """
    return copy(made(_savgol_coefficients(window_length, polyorder, deriv, delta, pos, use)))


def _ends(n: int, polyorder: int, deriv: int, delta: float) -> np.ndarray:
    """The matrix from the points of a window to the values of their polynomial at each."""
    places = np.arange(n) - (n - 1) / 2
    powers = np.polynomial.polynomial.polyvander(places, polyorder)
    values = powers
    if deriv:
        derivative = np.polynomial.polynomial.polyder(np.eye(polyorder + 1), deriv, axis=0)
        values = powers[:, : len(derivative)] @ derivative
    return values @ np.linalg.pinv(powers) / delta**deriv


@composite(ref="scipy.signal.savgol_filter", method=False, smooth=True)
def savgol_filter(
    x, window_length, polyorder, deriv=0, delta=1.0, axis=-1, mode="interp", cval=0.0
):
    """Polynomials fitted around each place, or their derivatives.

    Parameters
    ----------
    x
        Signal.
    window_length : int
        Number of places to which one is fitted.
    polyorder : int
        Order of the polynomials.
    deriv : int
        Order of the derivative.
    delta : float
        Distance of the places.
    mode : {'interp', 'mirror', 'constant', 'nearest', 'wrap'}
        How the signal goes on beyond its ends; ``"interp"`` takes the last polynomial there.
    cval : float
        What is beyond them in the mode ``"constant"``.

    Returns
    -------
    Tensor
        Of the shape of the signal.

    Examples
    --------
    >>> ng.signal.savgol_filter(ng.tensor([0.0, 1.0, 4.0, 9.0, 16.0]), 3, 1).round(6)
    tensor([-0.333333,  1.666667,  4.666667,  9.666667, 15.666667])
    """
    x = as_operand(x)
    if x.dtype.kind not in "fc":
        x = OPS["astype"](x, dtype=np.float64)
    axis = one_axis("savgol_filter", axis, len(x.shape))
    if mode not in ("interp", "mirror", "constant", "nearest", "wrap"):
        raise NumgradValueError(f"savgol_filter: mode {mode!r} is not known")
    kind = np.float32 if x.dtype in (np.float32, np.complex64) else np.float64
    size, half = as_index("savgol_filter", window_length, "window_length"), window_length // 2
    weights = made(
        _savgol_coefficients(size, polyorder, deriv, delta)
        .astype(kind)
        .reshape([-1 if k == axis else 1 for k in range(len(x.shape))])
    )
    n = x.shape[axis]
    if mode != "interp":
        # of an even number of places the one before the middle is first, as in a convolution
        widths = [(0, 0)] * len(x.shape)
        widths[axis] = (size - 1 - half, half) if size % 2 else (half - 1, half)
        modes = [mode] * len(x.shape)
        longer = extended("savgol_filter", x, widths, modes, cval)
        return convolution(longer, weights, (axis,))
    if size > n:
        raise NumgradValueError(
            f"savgol_filter: window_length={size} is more than {n} elements along axis {axis}, in "
            "mode 'interp'"
        )
    lead = (slice(None),) * axis
    middle = convolution(x, weights, (axis,))
    if size % 2 == 0:
        middle = getitem(middle, (*lead, slice(1, None)))
    matrix = _ends(size, polyorder, deriv, delta).astype(kind)

    def end(part: slice, rows: slice) -> Any:
        points = moveaxis(getitem(x, (*lead, part)), axis, -1)
        return moveaxis(OPS["matmul"](points, made(matrix[rows].T)), -1, axis)

    if not half:
        return middle
    before = end(slice(0, size), slice(0, half))
    after = end(slice(n - size, n), slice(size - half, size))
    return concat(before, middle, after, axis=axis)


savgol_filter.calls = [
    (((2, 6),), lambda x: savgol_filter(x, 5, 2, 1)),
    (((6,),), lambda x: savgol_filter(x, 3, 1, mode="wrap")),
]
