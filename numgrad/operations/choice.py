"""Operations that choose between values: the larger and the smaller, bounds, masks, no NaN."""

import numpy as np

from numgrad.core.declare import OPS, composite, elementwise
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.arithmetic import positive


@elementwise(ref=np.maximum, signed_zeros=False)
def maximum(a, b):
    """Larger of two operands, NaN if either is; equal operands share the gradient.

    Examples
    --------
    >>> x = ng.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> y = ng.maximum(x, 2.0)
    >>> y.detach()
    tensor([2., 2., 3.])
    >>> y.sum().backward()
    >>> x.grad
    tensor([0. , 0.5, 1. ])
    """
    return np.maximum(a, b)


maximum.vjp(
    a=lambda g, a, b: np.where(a == b, g / 2, np.where(a < b, 0, g)),
    b=lambda g, a, b: np.where(a == b, g / 2, np.where(b < a, 0, g)),
)
maximum.kink(
    a=([1.0, 0.0, np.inf, np.nan], [0.5, 0.5, 0.5, 1]),
    b=([1.0, -0.0, np.inf, 1.0], [0.5, 0.5, 0.5, 1]),
)


@elementwise(ref=np.minimum, signed_zeros=False)
def minimum(a, b):
    """Smaller of two operands, NaN if either is; equal operands share the gradient.

    Examples
    --------
    >>> x = ng.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> y = ng.minimum(x, 2.0)
    >>> y.detach()
    tensor([1., 2., 2.])
    >>> y.sum().backward()
    >>> x.grad
    tensor([1. , 0.5, 0. ])
    """
    return np.minimum(a, b)


minimum.vjp(
    a=lambda g, a, b: np.where(a == b, g / 2, np.where(a > b, 0, g)),
    b=lambda g, a, b: np.where(a == b, g / 2, np.where(b > a, 0, g)),
)
minimum.kink(
    a=([1.0, 0.0, np.inf, np.nan], [0.5, 0.5, 0.5, 1]),
    b=([1.0, -0.0, np.inf, 1.0], [0.5, 0.5, 0.5, 1]),
)


@elementwise(ref=np.fmax, signed_zeros=False)
def fmax(a, b):
    """Larger of two operands, a NaN losing; of equal operands the first takes the gradient.

    Examples
    --------
    >>> ng.fmax(ng.tensor([1.0, np.nan]), ng.tensor([2.0, 0.0]))
    tensor([2., 0.])
    """
    return np.fmax(a, b)


fmax.vjp(
    a=lambda g, a, b: np.where((a >= b) | np.isnan(b), g, 0),
    b=lambda g, a, b: np.where((a >= b) | np.isnan(b), 0, g),
)
fmax.kink(a=([1.0, np.nan, 1.0], [1, 0, 1]), b=([1.0, 1.0, np.nan], [0, 1, 0]))


@elementwise(ref=np.fmin, signed_zeros=False)
def fmin(a, b):
    """Smaller of two operands, a NaN losing; of equal operands the first takes the gradient.

    Examples
    --------
    >>> ng.fmin(ng.tensor([1.0, np.nan]), ng.tensor([2.0, 0.0]))
    tensor([1., 0.])
    """
    return np.fmin(a, b)


fmin.vjp(
    a=lambda g, a, b: np.where((a <= b) | np.isnan(b), g, 0),
    b=lambda g, a, b: np.where((a <= b) | np.isnan(b), 0, g),
)
fmin.kink(a=([1.0, np.nan, 1.0], [1, 0, 1]), b=([1.0, 1.0, np.nan], [0, 1, 0]))


@elementwise(
    types=np.maximum,
    method=False,
    internal=True,
    ref=lambda x, low: np.where((x < low) | (low != low), low, x),
    beyond=lambda low, limits: limits.min if low < limits.min else None,
)
def clip_below(x, low):
    """The operand where it is at least ``low``, else ``low``."""
    return np.where((x < low) | (low != low), low, x)


clip_below.vjp(
    x=lambda g, x, low: np.where(x >= low, g, 0),
    low=lambda g, x, low: np.where((x < low) | (low != low), g, 0),
)
clip_below.kink(x=([1.0], [1]), low=([1.0], [0]))


@elementwise(
    types=np.minimum,
    method=False,
    internal=True,
    ref=lambda x, high: np.where((x > high) | (high != high), high, x),
    beyond=lambda high, limits: limits.max if high > limits.max else None,
)
def clip_above(x, high):
    """The operand where it is at most ``high``, else ``high``."""
    return np.where((x > high) | (high != high), high, x)


clip_above.vjp(
    x=lambda g, x, high: np.where(x <= high, g, 0),
    high=lambda g, x, high: np.where((x > high) | (high != high), g, 0),
)
clip_above.kink(x=([1.0], [1]), high=([1.0], [0]))


@composite(ref=np.clip, aliases=("clamp",))
def clip(x, min=None, max=None):
    """The operand limited to the interval from ``min`` to ``max``, either of which may be None.

    The gradient passes where the operand lies inside, the bounds included.

    Parameters
    ----------
    min : array_like
        Lower bound.
    max : array_like
        Upper bound.

    Returns
    -------
    Tensor
        Of the shape the operands broadcast to, and of their dtype.

    Examples
    --------
    >>> x = ng.tensor([-2.0, 0.5, 1.0, 3.0], requires_grad=True)
    >>> y = ng.clip(x, -1, 1)
    >>> y.detach()
    tensor([-1. ,  0.5,  1. ,  1. ])
    >>> y.sum().backward()
    >>> x.grad
    tensor([0., 1., 1., 0.])
    """
    if min is not None:
        x = clip_below(x, min)
    if max is not None:
        x = clip_above(x, max)
    return positive(x) if min is None and max is None else x


clip.kink(x=([-1.0, 1.0, 0.0, 2.0, -2.0], [1, 1, 1, 0, 0]), params={"min": -1.0, "max": 1.0})


@elementwise(ref=np.heaviside, special=(0.0,), real_only=True)
def heaviside(a, b):
    """0 where the first operand is negative, 1 where it is positive, the second where it is 0.

    Examples
    --------
    >>> ng.heaviside(ng.tensor([-1.0, 0.0, 2.0]), 0.5)
    tensor([0. , 0.5, 1. ])
    """
    return np.where(a == 0, b, np.where(a < 0, 0, np.where(a > 0, 1, a)))


heaviside.vjp(a=lambda: 0, b=lambda g, a: np.where(a == 0, g, 0))
heaviside.kink(a=([0.0, -0.0, 2.0, -np.inf], [0, 0, 0, 0]), b=([3.0, 3.0, 3.0, 3.0], [1, 1, 0, 0]))


def _promote(operands):
    kinds = [o for o in operands[1:]]
    dtype = np.result_type(*[np.empty(0, k) if isinstance(k, np.dtype) else k(0) for k in kinds])
    return [np.dtype(bool), dtype, dtype], dtype


@elementwise(types=_promote, ref=np.where, method=False, smooth=True)
def where(condition, x, y_):
    """``x`` where the condition holds, else the other operand.

    Parameters
    ----------
    condition : array_like of bool
        What chooses between the elements of the others.
    y_
        Other operand.

    Examples
    --------
    >>> x = ng.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> y = ng.where(x > 1.5, x, 0.0)
    >>> y.detach()
    tensor([0., 2., 3.])
    >>> y.sum().backward()
    >>> x.grad
    tensor([0., 1., 1.])
    """
    return np.where(condition, x, y_)


where.no_derivative("condition")
where.vjp(
    x=lambda g, condition: np.where(condition, g, 0),
    y_=lambda g, condition: np.where(condition, 0, g),
)


def _first(operands):
    if operands[0] is complex or np.dtype(operands[0]).kind == "c":
        raise NumgradTypeError(
            "replace_nonfinite: takes real numbers; nan_to_num takes complex ones"
        )
    return [operands[0]] * len(operands), operands[0]


@elementwise(
    types=_first,
    method=False,
    internal=True,
    ref=lambda x, nan, posinf, neginf: np.where(
        np.isnan(x), nan, np.where(np.isinf(x), np.where(x > 0, posinf, neginf), x)
    ),
    real_only=True,
)
def replace_nonfinite(x, nan, posinf, neginf):
    """The operand with NaN and infinities replaced; the gradient passes finite elements only."""
    return np.where(np.isnan(x), nan, np.where(np.isinf(x), np.where(x > 0, posinf, neginf), x))


replace_nonfinite.vjp(x=lambda g, x: np.where(np.isfinite(x), g, 0))
replace_nonfinite.kink(
    x=([np.nan, np.inf, -np.inf, 1.0], [0, 0, 0, 1]),
    nan=(0.0, None),
    posinf=(9.0, None),
    neginf=(-9.0, None),
)


@composite(ref=np.nan_to_num)
def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    """The operand with NaN replaced by ``nan`` and infinities by the largest finite numbers.

    ``copy`` must be true: ``nan_to_num_`` works in place.

    Parameters
    ----------
    copy
        Must be true.
    nan
        What replaces NaN.
    posinf
        What replaces infinity; by default the largest finite number.
    neginf
        What replaces minus infinity; by default the smallest finite number.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Examples
    --------
    >>> ng.nan_to_num(ng.tensor([1.0, np.nan, np.inf]), nan=-1.0, posinf=9.0)
    tensor([ 1., -1.,  9.])
    """
    from numgrad.operations.arithmetic import from_parts, imag, real
    from numgrad.operations.shape import as_operand

    if copy is not True:
        raise NumgradValueError(
            f"nan_to_num: copy={copy!r} is not available, the operand is not written to; call "
            "nan_to_num_(x) for that, and give nan= by its name"
        )
    x = as_operand(x)
    dtype = np.result_type(x.dtype)
    if dtype.kind == "c":
        return from_parts(
            nan_to_num(real(x), True, nan, posinf, neginf),
            nan_to_num(imag(x), True, nan, posinf, neginf),
        )
    if dtype.kind == "b":
        return OPS["copy"](x)
    if dtype.kind != "f":
        return positive(x)
    limit = float(np.finfo(dtype).max)
    return replace_nonfinite(
        x,
        float(nan),
        limit if posinf is None else float(posinf),
        -limit if neginf is None else float(neginf),
    )


nan_to_num.kink(x=([np.nan, np.inf, -np.inf, 1.0], [0, 0, 0, 1]))
