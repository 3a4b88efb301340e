"""Sampled functions: derivatives, integrals and values between samples."""

from collections.abc import Callable, Sequence
from math import pi
from operator import truediv
from typing import Any

import numpy as np

from numgrad.codegen.symbols import real_dtype
from numgrad.core.axis import normalize_axes, one_axis
from numgrad.core.declare import BatchOperand, Meta, Op, bind, composite, primitive
from numgrad.core.interpreter import state
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.kernels.interpolation import interpolate, interpolate_backward
from numgrad.operations.cumulative import cumsum, diff
from numgrad.operations.index import getitem
from numgrad.operations.join import concat, stack
from numgrad.operations.reduce import sum
from numgrad.operations.shape import as_operand, broadcast_to, reshape
from numgrad.operations.sorting import argsort
from numgrad.operations.take import in_a_row, take, take_backward


def _cut(x: Any, axis: int, start: int | None, stop: int | None, step: int | None = None) -> Any:
    return getitem(x, (slice(None),) * axis + (slice(start, stop, step),))


def _along(spacing: Any, axis: int, ndim: int) -> Any:
    """Numbers along ``axis`` of ``ndim``."""
    return reshape(spacing, tuple([-1 if k == axis else 1 for k in range(ndim)]))


def _intervals(name: str, y: Any, x: Any, dx: Any, axis: int) -> Any:
    """Lengths of the intervals between samples, or the one length of all."""
    if x is None:
        return dx
    x = as_operand(x)
    d = diff(x) if len(x.shape) == 1 else diff(x, axis=axis - len(y.shape))
    if len(x.shape) == 1:
        if x.shape[0] != y.shape[axis]:
            raise NumgradValueError(
                f"{name}: {x.shape[0]} points for an axis of length {y.shape[axis]} of shape "
                f"{tuple(y.shape)}; they must be as many"
            )
        return _along(d, axis, len(y.shape))
    return d


# ------------------------------------------------------------------------------------ derivatives


@composite(ref=np.gradient, method=False, smooth=True)
def gradient(f, *varargs, axis=None, edge_order=1):
    """Derivatives along axes of a function given by samples, by differences of neighbours.

    The samples and where they are have gradients themselves.

    Parameters
    ----------
    f : array_like
        Samples.
    varargs
        For each axis the distance of samples, or their coordinates; one distance for all.
    edge_order : {1, 2}
        Order of the differences at both ends.

    Returns
    -------
    Tensor
        Of the shape of ``f``; a tuple with one for each axis if there are several.

    Examples
    --------
    >>> ng.gradient(ng.tensor([1.0, 4.0, 9.0, 16.0]), 0.5)
    tensor([ 6.,  8., 12., 14.])
    """
    f = as_operand(f)
    ndim = len(f.shape)
    if axis is None:
        axes = tuple(range(ndim))
    else:
        normalize_axes("gradient", axis, ndim)
        axes = tuple([a % ndim for a in (axis if isinstance(axis, tuple) else (axis,))])
    if len(varargs) not in (0, 1, len(axes)):
        raise NumgradTypeError(
            f"gradient: {len(varargs)} spacings for {len(axes)} axes; give one, or one for each"
        )
    if edge_order not in (1, 2):
        raise NumgradValueError(f"gradient: edge_order is 1 or 2, got {edge_order!r}")
    spacings = [as_operand(v) for v in varargs] or [np.ones(())]
    if len(spacings) == 1:
        if len(spacings[0].shape) and len(axes) > 1:
            raise NumgradTypeError("gradient: give coordinates for each of the axes")
        spacings = spacings * len(axes)
    if f.dtype.kind == "b":
        raise NumgradTypeError("gradient: bools have no difference; convert them with astype first")
    if f.dtype.kind not in "fc":
        f = f.astype(np.float64)
    results = []
    for a, h in zip(axes, spacings, strict=True):
        n = f.shape[a]
        if n < edge_order + 1:
            raise NumgradValueError(
                f"gradient: axis {a} of shape {tuple(f.shape)} has too few elements; "
                f"edge_order={edge_order} needs {edge_order + 1}"
            )
        if len(h.shape) > 1 or (len(h.shape) == 1 and h.shape[0] != n):
            raise NumgradValueError(
                f"gradient: coordinates of shape {tuple(h.shape)} for axis {a} of length {n}"
            )
        uniform = not len(h.shape)
        h = h.astype(f.dtype) if uniform and h.dtype != f.dtype and isinstance(h, np.ndarray) else h
        results.append((_uniform if uniform else _uneven)(f, h, a, edge_order))
    return results[0] if len(results) == 1 else tuple(results)


def _uniform(f: Any, h: Any, a: int, edge_order: int) -> Any:
    inner = [(_cut(f, a, 2, None) - _cut(f, a, None, -2)) / (2 * h)]
    if edge_order == 1:
        first = (_cut(f, a, 1, 2) - _cut(f, a, 0, 1)) / h
        last = (_cut(f, a, -1, None) - _cut(f, a, -2, -1)) / h
    else:
        first = (
            -1.5 / h * _cut(f, a, 0, 1) + 2.0 / h * _cut(f, a, 1, 2) - 0.5 / h * _cut(f, a, 2, 3)
        )
        last = (
            0.5 / h * _cut(f, a, -3, -2) - 2.0 / h * _cut(f, a, -2, -1)
            + 1.5 / h * _cut(f, a, -1, None)
        )  # fmt: skip
    return concat(first, *inner, last, axis=a)


def _uneven(f: Any, x: Any, a: int, edge_order: int) -> Any:
    d = _along(diff(x * 1.0), a, len(f.shape))
    before, after = _cut(d, a, None, -1), _cut(d, a, 1, None)
    both = before + after
    middle = (
        -after / (before * both) * _cut(f, a, None, -2)
        + (after - before) / (before * after) * _cut(f, a, 1, -1)
        + before / (after * both) * _cut(f, a, 2, None)
    )
    if edge_order == 1:
        first = (_cut(f, a, 1, 2) - _cut(f, a, 0, 1)) / _cut(d, a, 0, 1)
        last = (_cut(f, a, -1, None) - _cut(f, a, -2, -1)) / _cut(d, a, -1, None)
    else:
        p, q = _cut(d, a, 0, 1), _cut(d, a, 1, 2)
        first = (
            -(2 * p + q) / (p * (p + q)) * _cut(f, a, 0, 1)
            + (p + q) / (p * q) * _cut(f, a, 1, 2)
            - p / (q * (p + q)) * _cut(f, a, 2, 3)
        )
        p, q = _cut(d, a, -2, -1), _cut(d, a, -1, None)
        last = (
            q / (p * (p + q)) * _cut(f, a, -3, -2)
            - (p + q) / (p * q) * _cut(f, a, -2, -1)
            + (2 * q + p) / (q * (p + q)) * _cut(f, a, -1, None)
        )
    return concat(first, middle, last, axis=a)


@composite(ref=np.ediff1d, method=False, smooth=True)
def ediff1d(x, to_end=None, to_begin=None):
    """Differences of neighbours of the flattened operand.

    Parameters
    ----------
    to_end : array_like
        What is put behind the differences.
    to_begin : array_like
        What is put before them.

    Returns
    -------
    Tensor
        With one axis.

    Examples
    --------
    >>> ng.ediff1d(ng.tensor([1.0, 4.0, 9.0]), to_end=0.0)
    tensor([3., 5., 0.])
    """
    x = reshape(as_operand(x), (-1,))
    if x.dtype.kind == "b":
        raise NumgradTypeError("ediff1d: bools have no difference; convert them with astype(int)")
    pieces = [diff(x) if x.shape[0] else x]
    for end, position in ((to_begin, 0), (to_end, 2)):
        if end is None:
            continue
        end = reshape(as_operand(end), (-1,))
        if not np.can_cast(end.dtype, x.dtype, "same_kind"):
            raise NumgradTypeError(
                f"ediff1d: {('to_begin', '', 'to_end')[position]} of dtype {end.dtype} does not go "
                f"into {x.dtype}"
            )
        pieces.insert(position, end.astype(x.dtype))
    return pieces[0] if len(pieces) == 1 else concat(pieces, axis=0)


@composite(ref=np.unwrap, method=False, smooth=True)
def unwrap(x, discont=None, axis=-1, *, period=2 * pi):
    """Angles along an axis with jumps of more than half a period made smaller by whole periods.

    Parameters
    ----------
    discont : float
        Largest jump that stays, by default (and at least) half a period.
    period : float
        What is added and taken off.

    Returns
    -------
    Tensor
        Of the shape of ``x``.

    Examples
    --------
    >>> ng.unwrap(ng.tensor([0.0, 3.0, 6.0 - 2 * np.pi]))
    tensor([0., 3., 6.])
    """
    x = as_operand(x)
    axis = one_axis("unwrap", axis, len(x.shape))
    if x.dtype.kind == "c":
        raise NumgradTypeError("unwrap: takes real angles, got complex numbers; use angle()")
    if discont is None:
        discont = period / 2
    whole = x.dtype.kind in "iu" and isinstance(period, int)
    half = period // 2 if whole else period / 2
    ambiguous = not whole or period % 2 == 0
    d = diff(x, axis=axis)
    turned = np.mod(d + half, period) - half
    if ambiguous:
        turned = np.where((turned == -half) & (d > 0), half, turned)
    change = np.where(np.abs(d) < discont, 0, turned - d)
    first = _cut(x, axis, 0, 1)
    return concat(first, _cut(x, axis, 1, None) + cumsum(change, axis=axis), axis=axis)


# -------------------------------------------------------------------------------------- integrals


@composite(ref=np.trapezoid, method=False, smooth=True)
def trapezoid(y, x=None, dx=1.0, axis=-1):
    """Integral along an axis of a function given by samples, by the trapezoidal rule.

    Parameters
    ----------
    y : array_like
        Samples.
    x : array_like
        Where they are; without, they are ``dx`` apart.
    dx : float
        Distance of samples.

    Returns
    -------
    Tensor
        Without the axis.

    Examples
    --------
    >>> ng.trapezoid([1.0, 2.0, 3.0], [0.0, 1.0, 3.0])
    tensor(6.5)
    """
    y = as_operand(y)
    axis = one_axis("trapezoid", axis, len(y.shape))
    d = _intervals("trapezoid", y, x, dx, axis)
    return sum(d * (_cut(y, axis, 1, None) + _cut(y, axis, None, -1)) / 2.0, axis=axis)


@composite(ref="scipy.integrate.cumulative_trapezoid", method=False, smooth=True)
def cumulative_trapezoid(y, x=None, dx=1.0, axis=-1, initial=None):
    """Integrals up to each sample but the first, by the trapezoidal rule.

    Parameters
    ----------
    y : array_like
        Samples.
    x : array_like
        Where they are; without, they are ``dx`` apart.
    dx : float
        Distance of samples.
    initial : {None, 0}
        0 puts a zero first, so that there are as many integrals as samples.

    Returns
    -------
    Tensor
        Shorter by one along the axis, without ``initial``.

    Examples
    --------
    >>> ng.cumulative_trapezoid([1.0, 2.0, 3.0], initial=0)
    tensor([0. , 1.5, 4. ])
    """
    y = as_operand(y)
    axis = one_axis("cumulative_trapezoid", axis, len(y.shape))
    if not y.shape[axis]:
        raise NumgradValueError("cumulative_trapezoid: needs at least one sample")
    if initial is not None and initial != 0:
        raise NumgradValueError(f"cumulative_trapezoid: initial is None or 0, got {initial!r}")
    d = _intervals("cumulative_trapezoid", y, x, dx, axis)
    result = cumsum(d * (_cut(y, axis, 1, None) + _cut(y, axis, None, -1)) / 2.0, axis=axis)
    if initial is None:
        return result
    return concat(_cut(result, axis, 0, 1) * 0 if result.shape[axis] else _cut(y, axis, 0, 1) * 0.0,
                  result, axis=axis)  # fmt: skip


@composite(ref="scipy.integrate.simpson", method=False, smooth=True)
def simpson(y, x=None, dx=1.0, axis=-1):
    """Integral along an axis of a function given by samples, by Simpson's rule.

    Of an even number of samples, the last interval is that of the parabola through the last three.
    Where samples are at one place, terms that would divide by their distance count nothing.

    Parameters
    ----------
    y : array_like
        Samples.
    x : array_like
        Where they are; without, they are ``dx`` apart.
    dx : float
        Distance of samples.

    Returns
    -------
    Tensor
        Without the axis.

    Examples
    --------
    >>> ng.simpson([0.0, 1.0, 4.0, 9.0, 16.0])
    tensor(21.33333333)
    """
    y = as_operand(y)
    axis = one_axis("simpson", axis, len(y.shape))
    n = y.shape[axis]
    if n < 3:
        return trapezoid(y, x, dx, axis)
    d = _intervals("simpson", y, x, dx, axis)
    if x is None:
        lengths = [n - 1 if k == axis else 1 for k in range(len(y.shape))]
        if not hasattr(d, "shape"):
            kind = real_dtype(y.dtype) if y.dtype.kind in "fc" else np.float64
            d = np.asarray(d, kind)
        d = broadcast_to(as_operand(d) * 1.0, lengths)
    stop = n - 1 if n % 2 else n - 2  # intervals in pairs
    h0, h1 = _cut(d, axis, 0, stop, 2), _cut(d, axis, 1, stop, 2)
    both, ratio = h0 + h1, truediv if x is None else _ratio
    out = sum(
        both / 6.0 * (
            _cut(y, axis, 0, stop - 1, 2) * (2.0 - ratio(h1, h0))
            + _cut(y, axis, 1, stop, 2) * ratio(both * both, h0 * h1)
            + _cut(y, axis, 2, stop + 1, 2) * (2.0 - ratio(h0, h1))
        ),
        axis=axis,
    )  # fmt: skip
    if n % 2:
        return out
    ends = [_cut(y, axis, -k, 1 - k or None) for k in (1, 2, 3)]
    last = _first_interval(_cut(d, axis, -1, None), _cut(d, axis, -2, -1), *ends, ratio=ratio)
    return out + sum(last, axis=axis)


def _ratio(a: Any, b: Any) -> Any:
    """Quotients, 0 where the divisor is: samples at one place have no parabola."""
    empty = b == 0
    return np.where(empty, 0, a / np.where(empty, 1, b))


def _first_interval(
    h0: Any, h1: Any, y0: Any, y1: Any, y2: Any, ratio: Callable[[Any, Any], Any] = truediv
) -> Any:
    """Integrals over intervals of length ``h0`` of the parabolas that continue over ``h1``."""
    return (
        ratio(2 * h0 * h0 + 3 * h1 * h0, 6 * (h0 + h1)) * y0
        + ratio(h0 * h0 + 3 * h1 * h0, 6 * h1) * y1
        - ratio(h0 * h0 * h0, 6 * h1 * (h1 + h0)) * y2
    )


@composite(ref="scipy.integrate.cumulative_simpson", method=False, smooth=True)
def cumulative_simpson(y, *, x=None, dx=1.0, axis=-1, initial=None):
    """Integrals up to each sample but the first, by Simpson's rule for each interval [1]_.

    An interval's integral is that of the parabola through its ends and the sample behind, or
    before it, by turns.

    Parameters
    ----------
    y : array_like
        Samples.
    x : array_like
        Where they are, strictly increasing, which is checked where numbers are known: not in
        compiled functions, nor of a batch; without, they are ``dx`` apart.
    dx : float
        Distance of samples.
    initial : array_like
        Put first, and added to all integrals.

    Returns
    -------
    Tensor
        Shorter by one along the axis, without ``initial``.

    References
    ----------
    .. [1] K. V. Cartwright, "Simpson's Rule Cumulative Integration with MS Excel and Irregularly-
       spaced Data", J. Math. Sci. Math. Educ. 12, 2017.

    Examples
    --------
    >>> ng.integrate.cumulative_simpson([0.0, 1.0, 4.0, 9.0], initial=0.0)
    tensor([0.        , 0.33333333, 2.66666667, 9.        ])
    """
    y = as_operand(y)
    axis = one_axis("cumulative_simpson", axis, len(y.shape))
    n = y.shape[axis]
    if n < 3:
        out = cumulative_trapezoid(y, x, dx, axis)
    else:
        d = _intervals("cumulative_simpson", y, x, dx, axis)
        lengths = None if x is None or state.ground.deferred else state.ground.numbers(d)
        if lengths is not None and np.any(lengths <= 0):
            raise NumgradValueError(
                "cumulative_simpson: x must be strictly increasing along the axis; sort the "
                "samples, and merge those of equal places"
            )
        before, after = (d, d) if x is None else (_cut(d, axis, None, -1), _cut(d, axis, 1, None))
        triple = [_cut(y, axis, k, k - 2 or None) for k in range(3)]
        ahead = _first_interval(before, after, *triple)
        behind = _first_interval(after, before, *triple[::-1])
        # the first, third, ... of one, and after each the one of the other; at last the last
        pairs = (n - 1) // 2
        by_turns = stack(
            [_cut(ahead, axis, 0, 2 * pairs, 2), _cut(behind, axis, 0, 2 * pairs, 2)], axis=axis + 1
        )
        lengths = [2 * pairs if k == axis else m for k, m in enumerate(ahead.shape)]
        out = reshape(by_turns, tuple(lengths))
        if not n % 2:
            out = concat(out, _cut(behind, axis, -1, None), axis=axis)
        out = cumsum(out, axis=axis)
    if initial is None:
        return out
    first = as_operand(initial)
    lengths = tuple([1 if k == axis else m for k, m in enumerate(out.shape)])
    if len(first.shape) and tuple(first.shape) != lengths:
        raise NumgradValueError(
            f"cumulative_simpson: initial of shape {tuple(first.shape)} is one number, or has "
            f"shape {lengths}"
        )
    first = broadcast_to(first, lengths)
    return concat(first * 1.0, out + first, axis=axis)


@composite(ref="scipy.integrate.romb", method=False, smooth=True)
def romb(y, dx=1.0, axis=-1):
    """Integral of evenly spaced samples by Romberg's method.

    Parameters
    ----------
    y : array_like
        Samples, one more than a power of 2 along the axis.
    dx : float
        Distance of samples.

    Returns
    -------
    Tensor
        Without the axis.

    Examples
    --------
    >>> ng.integrate.romb([0.0, 1.0, 4.0, 9.0, 16.0])
    tensor(21.33333333)
    """
    y = as_operand(y)
    axis = one_axis("romb", axis, len(y.shape))
    intervals = int(y.shape[axis]) - 1
    if intervals < 1 or intervals & (intervals - 1):
        raise NumgradValueError(
            f"romb: {intervals + 1} samples along axis {axis}; there must be one more than a power "
            "of 2"
        )
    columns: list[Any] = []
    step = intervals
    while step:
        whole = _cut(y, axis, None, None, step)
        row = [trapezoid(whole, None, dx * step, axis)]
        for k, before in enumerate(columns):  # Richardson's extrapolation
            row.append(row[k] + (row[k] - before) / (4 ** (k + 1) - 1))
        columns, step = row, step // 2
    return columns[-1]


_FLOAT64 = np.dtype(np.float64)


@primitive(
    lowering="numgrad.compiler.lower.library_calls",
    internal=True,
    method=False,
    auxiliaries=("interval",),
    real_only=True,
)
def piecewise_linear(x, xp, fp):
    """The piecewise linear function through points, in order, constant beyond them."""
    if "c" in (x.dtype.kind, xp.dtype.kind, fp.dtype.kind):
        raise NumgradTypeError("piecewise_linear: not defined for complex numbers; use interp")
    x, xp, fp = (np.asarray(a, _FLOAT64) for a in (x, xp, fp))
    y, interval = interpolate(in_a_row(x), in_a_row(xp), in_a_row(fp))
    return y.reshape(x.shape), (interval.reshape(x.shape),)


@piecewise_linear.shape
def _piecewise_linear_shape(x, xp, fp):
    return Meta(x.shape, _FLOAT64), (Meta(x.shape, np.dtype(np.int64)),)


def _interval(x: Any, xp: Any, fp: Any, interval: Any) -> tuple[Any, Any, Any, Any]:
    """The points around each ``x``, the slope between them, and which part of the way it lies."""
    n = xp.shape[0]
    inside = (interval >= 0) & (interval < n - 1)
    before = np.clip(interval, 0, n - 1)
    after = np.minimum(before + 1, n - 1)
    x0, f0 = take(xp, before), take(fp, before)
    width = np.where(inside, take(xp, after) - x0, 1.0)
    slope = np.where(inside, (take(fp, after) - f0) / width, 0.0)
    return before, after, slope, np.where(inside, (x - x0) / width, 0.0)


def _lost(x: Any, n: Any) -> Any:
    """Where the value is NaN because ``x`` is; one point alone gives its value everywhere."""
    return np.isnan(x) & (n > 1)


def _of_x(g, x, xp, fp, interval):
    lost = _lost(x, xp.shape[0])
    return np.where(lost, g, g * _interval(x, xp, fp, interval)[2])


def _of_points(g: Any, x: Any, before: Any, after: Any, fraction: Any, n: Any) -> Any:
    lost = _lost(x, n)
    g = np.where(lost, 0.0, g)
    fraction = np.where(lost, 0.0, fraction)
    at_first = take_backward(g * (1 - fraction), before, shape=(n,))
    return at_first + take_backward(g * fraction, after, shape=(n,))


def _of_xp(g, x, xp, fp, interval):
    before, after, slope, fraction = _interval(x, xp, fp, interval)
    return _of_points(-g * slope, x, before, after, fraction, xp.shape[0])


def _of_fp(g, x, xp, fp, interval):
    before, after, _, fraction = _interval(x, xp, fp, interval)
    return _of_points(g, x, before, after, fraction, xp.shape[0])


piecewise_linear.vjp(x=_of_x, xp=_of_xp, fp=_of_fp)


@piecewise_linear.vjp_kernel
def _piecewise_linear_backward(
    call, mask, g, x: Any = None, xp=None, fp=None, interval: Any = None
):
    x, xp, fp, g = (np.asarray(a, _FLOAT64) for a in (x, xp, fp, g))
    rows = [in_a_row(a) for a in (x, xp, fp, interval, g)]
    gx, gxp, gfp = interpolate_backward(*rows)
    results = [gx.reshape(x.shape), gxp, gfp]
    return [value if mask >> k & 1 else None for k, value in enumerate(results)]


@piecewise_linear.batch
def _batched_piecewise_linear(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    x, xp, fp = operands
    if xp.batched or fp.batched:
        return NotImplemented
    return bind(op, (x.value, xp.value, fp.value), params)


# at a point the slope is that of what begins there
piecewise_linear.kink(
    x=([-1.0, 0.0, 1.0, 2.0], [0, 1, 2, 0]), xp=([0.0, 1.0, 2.0], None), fp=([0.0, 1.0, 3.0], None)
)


@composite(ref=np.interp, method=False)
def interp(x, xp, fp, left=None, right=None, period=None):
    """Piecewise linear function through given points, with gradients in ``x`` and in the points.

    At a point, the derivative in ``x`` is that of the interval behind it. At NaN the value is NaN,
    unless there is but one point: then it is that point's, as NumPy's.

    Parameters
    ----------
    x
        Where the function is wanted.
    xp
        Where it is known, in ascending order.
    fp
        Its values there.
    left : float
        Value before the first point, by default that at it.
    right : float
        Value behind the last point, by default that at it.
    period : float
        Period of the function, whose points may be in any order then.

    Returns
    -------
    Tensor
        Of the shape of ``x``.

    Examples
    --------
    >>> x = ng.tensor([0.5, 1.5, 9.0], requires_grad=True)
    >>> y = ng.interp(x, [0.0, 1.0, 2.0], [0.0, 2.0, 3.0])
    >>> y.detach()
    tensor([1. , 2.5, 3. ])
    >>> y.sum().backward()
    >>> x.grad
    tensor([2., 1., 0.])
    """
    x, xp, fp = as_operand(x), as_operand(xp), as_operand(fp)
    if x.dtype.kind == "c" or xp.dtype.kind == "c":
        raise NumgradTypeError("interp: takes real x and xp, got complex numbers")
    if len(xp.shape) != 1 or len(fp.shape) != 1 or xp.shape[0] != fp.shape[0]:
        raise NumgradValueError(
            f"interp: xp and fp have one axis and the same length, got shapes {tuple(xp.shape)} "
            f"and {tuple(fp.shape)}"
        )
    if not xp.shape[0]:
        raise NumgradValueError("interp: needs at least one point")
    if fp.dtype.kind == "c":
        components = [
            interp(x, xp, component(fp), _part(component, left), _part(component, right), period)
            for component in (np.real, np.imag)
        ]
        return components[0] + 1j * components[1]
    x, xp, fp = (a if a.dtype == _FLOAT64 else a.astype(_FLOAT64) for a in (x, xp, fp))
    if period is not None:
        if period == 0:
            raise NumgradValueError("interp: the period must not be zero")
        period = abs(period)
        left = right = None
        x, xp = np.mod(x, period), np.mod(xp, period)
        order = argsort(xp)
        xp, fp = take(xp, order), take(fp, order)
        last, first = slice(-1, None), slice(0, 1)
        xp = concat(getitem(xp, last) - period, xp, getitem(xp, first) + period, axis=0)
        fp = concat(getitem(fp, last), fp, getitem(fp, first), axis=0)
    y = piecewise_linear(x, xp, fp)
    if left is not None:
        y = np.where(x < getitem(xp, 0), left, y)
    return y if right is None else np.where(x > getitem(xp, -1), right, y)


def _part(component: Any, value: Any) -> Any:
    return None if value is None else component(value)


interp.kink(x=([1.0], [1.0]), xp=([0.0, 1.0, 2.0], None), fp=([0.0, 2.0, 3.0], None))
