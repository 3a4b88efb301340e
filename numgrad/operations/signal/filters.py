"""Recursive filters, forward and in both directions, and smoothing by polynomials."""

from math import prod
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import check_dtype
from numgrad.core.axis import normalize_axes, one_axis
from numgrad.core.declare import OPS, BatchOperand, Meta, bind, composite, made, primitive, state
from numgrad.errors import NumgradValueError
from numgrad.kernels.recurrence import all_pole_kernel
from numgrad.operations.arrangement import flip, moveaxis
from numgrad.operations.extend import pad, pad_constant
from numgrad.operations.images.operands import extended
from numgrad.operations.index import getitem
from numgrad.operations.join import concat, stack
from numgrad.operations.shape import as_index, as_operand, broadcast_to, copy, reshape
from numgrad.operations.shared_rules import numbers_of
from numgrad.operations.signal.convolution import convolution, turned


@primitive(
    internal=True,
    method=False,
    smooth=True,
    domain=(-0.6, 0.6),
    samples=[
        (((3, 5), (2,)), {"axis": 1}),
        (((5, 2), (3,)), {"axis": 0, "reverse": True}),
        (((2,), (4,)), {}),
    ],
)
def all_pole(x, a, *, axis=-1, reverse=False):
    """The recurrence ``y[k] = x[k] - sum(a[i] y[k-1-i])`` along an axis, or from its end."""
    dtype = _all_pole_result(x, a, axis=axis, reverse=reverse).dtype
    axis = one_axis("lfilter", axis, x.ndim)
    x, a = np.ascontiguousarray(x, dtype), np.ascontiguousarray(a, dtype)
    out = np.empty(x.shape, dtype)
    if out.size:
        sizes = prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 :])
        all_pole_kernel(dtype)(x.ravel(), a, out.ravel(), *sizes, a.size, reverse)
    return out


@all_pole.shape
def _all_pole_result(x, a, *, axis, reverse):
    check_dtype("lfilter", x.dtype)
    check_dtype("lfilter", a.dtype)
    normalize_axes("lfilter", axis, x.ndim)
    return Meta(x.shape, np.result_type(x.dtype, a.dtype, np.float32))


def _vjp_x(g, a, axis, reverse):
    return all_pole(g, np.conj(a), axis=axis, reverse=not reverse)


def _vjp_a(g, a, y, meta_a, axis, reverse):
    axis, order = axis % len(y.shape), meta_a.shape[0]
    u = _vjp_x(g, a, axis, reverse)
    if y.shape[axis] == 0:
        return broadcast_to(-OPS["sum"](u), shape=(order,))
    if reverse:
        u, y = flip(u, axis=axis), flip(y, axis=axis)
    u = _along(u, axis, 1, None, after=order)
    result = convolution(u, turned(y, (axis,)), (axis,), "valid", "direct")
    others = tuple([k for k in range(len(y.shape)) if k != axis])
    return -OPS["sum"](result, axis=others) if others else -result


all_pole.vjp(x=_vjp_x, a=_vjp_a)


@all_pole.batch
def _batched_all_pole(op: Any, operands: Any, params: dict[str, Any], size: int) -> Any:
    x, a = operands
    if a.batched:
        return NotImplemented
    assert isinstance(x, BatchOperand)
    return bind(op, (x.value, a.value), {**params, "axis": x.axes(params["axis"])})


def _along(x: Any, axis: int, start: Any, stop: Any, *, after: int = 0, before: int = 0) -> Any:
    """A part of an array along an axis, and zeros put before and after it."""
    if start is not None or stop is not None:
        x = getitem(x, (slice(None),) * axis + (slice(start, stop),))
    if after or before:
        widths = [(0, 0)] * len(x.shape)
        widths[axis] = (before, after)
        x = pad_constant(x, widths=tuple(widths))
    return x


def _coefficients(name: str, b: Any, a: Any) -> tuple[Any, Any]:
    """Numerator and denominator, the first coefficient of which is 1."""
    b, a = as_operand(b), as_operand(a)
    b, a = (reshape(c, (1,)) if not len(c.shape) else c for c in (b, a))
    for title, c in (("b", b), ("a", a)):
        if len(c.shape) != 1 or c.shape[0] == 0:
            raise NumgradValueError(
                f"{name}: {title} of shape {tuple(c.shape)}; coefficients are a 1-d array that is "
                "not empty"
            )
    known = state.ground.numbers(a)
    if known is not None and known[0] == 0:
        raise NumgradValueError(f"{name}: the first coefficient in a is 0; it divides the others")
    first = getitem(a, (slice(0, 1),))
    return OPS["divide"](b, first), OPS["divide"](a, first)


@composite(ref="scipy.signal.lfilter", method=False, smooth=True, domain=(0.3, 0.6))
def lfilter(b, a, x, axis=-1, zi=None):
    """The filter with numerator ``b`` and denominator ``a``, along an axis.

    Parameters
    ----------
    b
        Coefficients of the numerator, of what comes in.
    a
        Coefficients of the denominator, of what came out before; the first one divides all others.
    x
        Signal.
    zi : array_like
        State before the first element, of length ``max(len(a), len(b)) - 1`` along the axis.

    Returns
    -------
    Tensor
        Of the shape of ``x``; with ``zi`` a pair of that and the state after the last element.

    Examples
    --------
    >>> x = ng.tensor([1.0, 0.0, 0.0, 0.0], requires_grad=True)
    >>> y = ng.signal.lfilter([1.0], [1.0, -0.5], x)
    >>> y.detach()
    tensor([1.   , 0.5  , 0.25 , 0.125])
    >>> y[-1].backward()
    >>> x.grad
    tensor([0.125, 0.25 , 0.5  , 1.   ])
    """
    b, a = _coefficients("lfilter", b, a)
    x = as_operand(x)
    axis = one_axis("lfilter", axis, len(x.shape))
    (past,), (present,) = a.shape, b.shape
    n, order = x.shape[axis], max(past, present) - 1
    shape = [1] * len(x.shape)

    def laid(c: Any) -> Any:
        (shape[axis],) = c.shape
        return reshape(c, tuple(shape))

    driven = convolution(x, laid(b), (axis,), "full", "direct")
    tail = getitem(a, (slice(1, None),))
    if zi is None:
        driven = _along(driven, axis, None, n)
        return all_pole(driven, tail, axis=axis) if past > 1 else driven
    zi = as_operand(zi)
    expected = (*x.shape[:axis], order, *x.shape[axis + 1 :])
    fits = len(zi.shape) == len(expected) and all(
        m in (n, 1) if k != axis else m == n
        for k, (m, n) in enumerate(zip(zi.shape, expected, strict=True))
    )
    if not fits:
        raise NumgradValueError(
            f"lfilter: zi of shape {tuple(zi.shape)}; it must be {expected} for b and a of lengths "
            f"{present} and {past}, and x of shape {tuple(x.shape)}"
        )
    driven = _along(driven, axis, None, None, after=n + order - driven.shape[axis])
    driven = OPS["add"](driven, _along(zi, axis, None, None, after=n))
    out = _along(driven, axis, None, n)
    state = _along(driven, axis, n, None)
    if past > 1:
        out = all_pole(out, tail, axis=axis)
        fed = convolution(out, laid(tail), (axis,), "full", "direct")
        fed = _along(fed, axis, None, None, after=n + order - fed.shape[axis], before=1)
        state = OPS["subtract"](state, _along(fed, axis, n, n + order))
    return out, state


@composite(ref="scipy.signal.lfilter_zi", method=False, smooth=True, domain=(0.3, 0.6))
def lfilter_zi(b, a):
    """The state of a filter that makes a constant signal of ones come out without an onset.

    Parameters
    ----------
    b
        Coefficients of the numerator.
    a
        Coefficients of the denominator.

    Returns
    -------
    Tensor
        Of length ``max(len(a), len(b)) - 1``.

    Examples
    --------
    >>> ng.signal.lfilter_zi([0.5, 0.5], ng.tensor([1.0, 0.0]))
    tensor([0.5])
    """
    b, a = _coefficients("lfilter_zi", b, a)
    n = max(a.shape[0], b.shape[0])
    a, b = (_along(c, 0, None, None, after=n - c.shape[0]) for c in (a, b))
    add, multiply, subtract = OPS["add"], OPS["multiply"], OPS["subtract"]
    later = getitem(a, (slice(1, None),))
    pushed = subtract(getitem(b, (slice(1, None),)), multiply(later, getitem(b, (slice(0, 1),))))
    first = OPS["divide"](OPS["sum"](pushed), OPS["sum"](a))
    before = OPS["cumsum"](getitem(a, (slice(0, n - 1),)))
    came = subtract(OPS["cumsum"](pushed), pushed)
    return add(multiply(before, first), -came)


def _sections(name: str, sos: Any) -> tuple[Any, list[tuple[Any, Any]]]:
    """Filters of second order as pairs of numerators and denominators."""
    sos = as_operand(sos)
    if len(sos.shape) != 2 or sos.shape[1] != 6:
        raise NumgradValueError(
            f"{name}: sos of shape {tuple(sos.shape)}; it has a row of 6 coefficients for each "
            "section"
        )
    rows = range(sos.shape[0])
    return sos, [(getitem(sos, (k, slice(0, 3))), getitem(sos, (k, slice(3, 6)))) for k in rows]


@composite(ref="scipy.signal.sosfilt", method=False, smooth=True, domain=(0.3, 0.6))
def sosfilt(sos, x, axis=-1, zi=None):
    """Filters of second order, one after the other, along an axis.

    Parameters
    ----------
    sos
        A row for each filter, three coefficients of the numerator and three of the denominator.
    x
        Signal.
    zi : array_like
        State of each filter before the first element, of the shape of ``x`` with length 2 along the
        axis.

    Returns
    -------
    Tensor
        Of the shape of ``x``; with ``zi`` a pair of that and the states after the last element.

    Examples
    --------
    >>> ng.signal.sosfilt([[1.0, 0.0, 0.0, 1.0, -0.5, 0.0]], ng.tensor([1.0, 0.0, 0.0]))
    tensor([1.  , 0.5 , 0.25])
    """
    _, sections = _sections("sosfilt", sos)
    x = as_operand(x)
    if zi is None:
        for b, a in sections:
            x = lfilter(b, a, x, axis=axis)
        return x
    zi = as_operand(zi)
    if len(zi.shape) != len(x.shape) + 1 or zi.shape[0] != len(sections):
        raise NumgradValueError(
            f"sosfilt: zi of shape {tuple(zi.shape)} for {len(sections)} sections and x of shape "
            f"{tuple(x.shape)}; it has a state like x, of length 2 along the axis, for each section"
        )
    states = []
    for k, (b, a) in enumerate(sections):
        x, state = lfilter(b, a, x, axis=axis, zi=getitem(zi, (k,)))
        states.append(state)
    return x, stack(states)


@composite(ref="scipy.signal.sosfilt_zi", method=False, smooth=True, domain=(0.3, 0.6))
def sosfilt_zi(sos):
    """The states of filters that make a constant signal of ones come out without an onset.

    Parameters
    ----------
    sos
        A row for each filter, three coefficients of the numerator and three of the denominator.

    Returns
    -------
    Tensor
        Two numbers for each filter.

    Examples
    --------
    >>> ng.signal.sosfilt_zi(ng.tensor([[0.5, 0.5, 0.0, 1.0, 0.0, 0.0]]))
    tensor([[0.5, 0. ]])
    """
    _, sections = _sections("sosfilt_zi", sos)
    scale: Any = 1.0
    states = []
    for b, a in sections:
        states.append(OPS["multiply"](lfilter_zi(b, a), scale))
        scale = OPS["multiply"](scale, OPS["divide"](OPS["sum"](b), OPS["sum"](a)))
    return stack(states)


def _forth_and_back(
    name: str, run: Any, start: Any, x: Any, axis: int, padtype: str | None, padlen: Any, taps: int
) -> Any:
    """A filter run forward, then backward, over a signal continued at both ends."""
    x = as_operand(x)
    axis = one_axis(name, axis, len(x.shape))
    if padtype not in ("odd", "even", "constant", None):
        raise NumgradValueError(
            f"{name}: padtype is 'odd', 'even', 'constant' or None, got {padtype!r}"
        )
    edge = 3 * taps if padlen is None else as_index(name, padlen, "padlen")
    edge = 0 if padtype is None else edge
    if edge < 0 or x.shape[axis] <= edge:
        raise NumgradValueError(
            f"{name}: {x.shape[axis]} elements along axis {axis}; there must be more than padlen="
            f"{edge}, which must not be negative"
        )
    n = x.shape[axis]
    if edge:
        widths = [(0, 0)] * len(x.shape)
        widths[axis] = (edge, edge)
        longer = pad(x, widths, "edge" if padtype == "constant" else "reflect")
        if padtype == "odd":
            turn = pad(x, widths, "edge") * 2 - longer
            pieces = [_along(turn, axis, None, edge), x, _along(turn, axis, edge + n, None)]
            longer = concat(pieces, axis=axis)
        x = longer
    for _ in range(2):
        first = _along(x, axis, 0, 1)
        x = flip(run(x, axis, OPS["multiply"](start(axis, len(x.shape)), first))[0], axis=axis)
    return _along(x, axis, edge, edge + n) if edge else x


@composite(ref="scipy.signal.filtfilt", method=False, smooth=True, domain=(0.3, 0.6))
def filtfilt(b, a, x, axis=-1, padtype="odd", padlen=None):
    """The filter of ``lfilter`` forward and then backward, so that nothing is delayed.

    Parameters
    ----------
    b
        Coefficients of the numerator.
    a
        Coefficients of the denominator.
    x
        Signal.
    padtype : {'odd', 'even', 'constant', None}
        How the signal is continued at its ends: turned about its last point, mirrored, or by that.
    padlen : int
        How far; by default three times the length of ``a`` or ``b``.

    Returns
    -------
    Tensor
        Of the shape of ``x``.

    Examples
    --------
    >>> ng.signal.filtfilt([0.5, 0.5], [1.0], ng.arange(8.0)).round(12)
    tensor([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    b, a = as_operand(b), as_operand(a)
    taps = max(prod(b.shape), prod(a.shape))

    def start(axis: int, ndim: int) -> Any:
        shape = [1] * ndim
        shape[axis] = taps - 1
        return reshape(lfilter_zi(b, a), tuple(shape))

    def run(x: Any, axis: int, zi: Any) -> Any:
        return lfilter(b, a, x, axis=axis, zi=zi)

    return _forth_and_back("filtfilt", run, start, x, axis, padtype, padlen, taps)


@composite(ref="scipy.signal.sosfiltfilt", method=False, smooth=True, domain=(0.3, 0.6))
def sosfiltfilt(sos, x, axis=-1, padtype="odd", padlen=None):
    """The filters of ``sosfilt`` forward and then backward, so that nothing is delayed.

    Parameters
    ----------
    sos
        A row for each filter, three coefficients of the numerator and three of the denominator.
    x
        Signal.
    padtype : {'odd', 'even', 'constant', None}
        How the signal is continued at its ends: turned about its last point, mirrored, or by that.
    padlen : int
        How far; by default about six times the number of filters.

    Returns
    -------
    Tensor
        Of the shape of ``x``.

    Examples
    --------
    >>> section = [[0.5, 0.5, 0.0, 1.0, 0.0, 0.0]]
    >>> ng.signal.sosfiltfilt(section, ng.arange(8.0)).round(12)
    tensor([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    sos, sections = _sections("sosfiltfilt", sos)
    taps = 2 * len(sections) + 1
    if padlen is None and padtype is not None:
        known = numbers_of("sosfiltfilt without padlen", sos)
        taps -= int(min((known[:, 2] == 0).sum(), (known[:, 5] == 0).sum()))

    def start(axis: int, ndim: int) -> Any:
        shape = [1] * ndim
        shape[axis] = 2
        return reshape(sosfilt_zi(sos), (len(sections), *shape))

    def run(x: Any, axis: int, zi: Any) -> Any:
        return sosfilt(sos, x, axis=axis, zi=zi)

    return _forth_and_back("sosfiltfilt", run, start, x, axis, padtype, padlen, taps)


def _savgol_coefficients(
    window_length: Any, polyorder: Any, deriv: Any, *options: Any
) -> np.ndarray:
    import scipy.signal

    try:
        return np.asarray(scipy.signal.savgol_coeffs(window_length, polyorder, deriv, *options))
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
    offsets = np.arange(n) - (n - 1) / 2
    powers = np.polynomial.polynomial.polyvander(offsets, polyorder)
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

    def end(span: slice, rows: slice) -> Any:
        points = moveaxis(getitem(x, (*lead, span)), axis, -1)
        return moveaxis(OPS["matmul"](points, made(matrix[rows].T)), -1, axis)

    if not half:
        return middle
    before = end(slice(0, size), slice(0, half))
    after = end(slice(n - size, n), slice(size - half, size))
    return concat(before, middle, after, axis=axis)
