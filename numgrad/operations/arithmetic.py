"""Sums, products, powers, rounding and their kin, element by element."""

import numpy as np

from numgrad.core.declare import composite, elementwise
from numgrad.errors import NumgradTypeError, NumgradValueError


@elementwise(ref=np.add, dunder="add", linear=True)
def add(a, b):
    """Sum of two operands."""
    return a + b


add.vjp(a=lambda g: g, b=lambda g: g)
add.kink(a=([np.inf], [1]), b=([-np.inf], [1]))


@elementwise(ref=np.subtract, dunder="sub", linear=True)
def subtract(a, b):
    """Difference of two operands."""
    return a - b


subtract.vjp(a=lambda g: g, b=lambda g: -g)


@elementwise(ref=np.multiply, dunder="mul", bilinear=True, smooth=True)
def multiply(a, b):
    """Product of two operands."""
    return a * b


multiply.vjp(a=lambda g, b: g * np.conj(b), b=lambda g, a: g * np.conj(a))


@elementwise(ref=np.divide, dunder="truediv", aliases=("true_divide",), special=(0.0,))
def divide(a, b):
    """Quotient of two operands."""
    return a / b


divide.vjp(a=lambda g, b: g / np.conj(b), b=lambda g, a, b: -g * np.conj((a / b) / b))
divide.kink(a=([1.0, 0.0], [np.inf, np.inf]), b=([0.0, 0.0], [-np.inf, np.nan]))


def _no_negative_power(args):
    exponent = args[1]
    if np.asarray(exponent).dtype.kind in "iu" and np.any(np.asarray(exponent) < 0):
        raise NumgradValueError(
            "power: an integer to a negative integer power is not an integer; convert the base to "
            "float64 first"
        )


@elementwise(ref=np.power, dunder="pow", domain=(0.3, 2.0), check=_no_negative_power)
def power(a, b):
    """The first operand raised to the second."""
    return np.power(a, b)


def _power_vjp_a(g, a, b):
    # b = 0 is masked where the factor b meets an infinity or NaN only: the formula has to stay a
    # function of b elsewhere, for the mixed second derivative there is 1 / a. The exponent is
    # floating, since small integers wrap around below their smallest.
    smooth = (b != 0) | np.isfinite(1 / a)
    return g * np.conj(np.where(smooth, b * np.power(a, np.where(smooth, b - 1.0, 1.0)), 0))


def _power_vjp_b(g, a, b, y):
    zero = ((a == 0) & (np.real(b) >= 0)) | ((a == np.inf) & (np.real(b) < 0))
    return g * np.conj(np.where(zero, 0, y * np.log(np.where(zero, 1, a))))


power.vjp(a=_power_vjp_a, b=_power_vjp_b)
power.kink(
    a=([5e-324, -5e-324, 5e-324, 5e-324, np.inf], [0, 1, 1e-323, -np.inf, 0]),
    b=([0.0, 1.0, 2.0, -1.0, 0.0], [-744.4400719213812, np.nan, 0, -np.inf, np.inf]),
)
power.kink(a=([np.inf, np.inf], [0, 0]), b=([-1.0, -0.5], [0, 0]))
power.kink(
    a=(
        [0.0, -2.0, 0.0, 0.0, 0.0, 0.0, -2.0, np.inf, np.nan],
        [0, -4, 0, 1, np.inf, -np.inf, 0, 0, 0],
    ),
    b=(
        [0.0, 2.0, 2.0, 1.0, 0.5, -1.0, 0.0, 0.0, 0.0],
        [0, np.nan, 0, 0, 0, -np.inf, np.nan, np.inf, np.nan],
    ),
)


@elementwise(ref=np.float_power, domain=(0.3, 2.0))
def float_power(a, b):
    """The first operand raised to the second, in floating point."""
    return np.power(a, b)


float_power.formulas.update(power.formulas)
float_power.kink(a=([0.0, -2.0, 0.0], [0, -4, -np.inf]), b=([0.0, 2.0, -1.0], [0, np.nan, -np.inf]))


@elementwise(ref=np.negative, dunder="neg", linear=True)
def negative(x):
    """The operand with its sign changed."""
    return -x


negative.vjp(x=lambda g: -g)


@elementwise(ref=np.positive, dunder="pos", linear=True)
def positive(x):
    """A copy of the operand."""
    return +x


positive.vjp(x=lambda g: g)


@elementwise(ref=np.absolute, dunder="abs", aliases=("abs",), special=(0.0,))
def absolute(x):
    """Absolute value; of a complex operand its real magnitude."""
    return np.absolute(x)


absolute.vjp(x=lambda g, x: g * np.sign(x))
absolute.kink(x=([0.0, -0.0, np.inf, -np.inf], [0, 0, 1, -1]))
absolute.kink(x=([0j, 3 + 4j], [0, 0.6 + 0.8j]))


@elementwise(ref=np.sign, special=(0.0,))
def sign(x):
    """-1, 0 or 1 by the sign of a real operand; a complex one divided by its magnitude."""
    return np.sign(x)


sign.vjp(
    x=lambda g, x, y: np.where(
        x == 0, 0, (g - y * np.real(g * np.conj(y))) / np.where(x == 0, 1, np.absolute(x))
    )
)
sign.kink(x=([0.0, -0.0, 2.0, -np.inf], [0, 0, 0, 0]))
sign.kink(x=([0j], [0]))


@elementwise(ref=np.square, smooth=True)
def square(x):
    """The operand times itself."""
    return x * x


square.vjp(x=lambda g, x: g * (2 * np.conj(x)))


@elementwise(ref=np.reciprocal, domain=(0.5, 3.0))
def reciprocal(x):
    """One divided by the operand."""
    return np.reciprocal(x)


reciprocal.vjp(x=lambda g, y: -g * np.conj(y * y))
reciprocal.kink(x=([0.0, -0.0, np.inf], [-np.inf, -np.inf, 0]))


@elementwise(ref=np.floor_divide, dunder="floordiv", domain=(0.5, 9.0), real=True)
def floor_divide(a, b):
    """Largest integer not above the quotient."""
    return np.floor_divide(a, b)


floor_divide.vjp(a=lambda: 0, b=lambda: 0)
floor_divide.kink(a=([5.0, 6.0], [0, 0]), b=([3.0, 3.0], [0, 0]))


@elementwise(ref=np.remainder, dunder="mod", aliases=("mod",), domain=(0.5, 9.0), real=True)
def remainder(a, b):
    """Remainder of the quotient rounded down; it has the sign of the divisor."""
    return np.remainder(a, b)


remainder.vjp(a=lambda g: g, b=lambda g, a, b: -g * np.floor_divide(a, b))
remainder.kink(a=([-5.0, 6.0, 5.0], [1, 1, 1]), b=([3.0, 3.0, -3.0], [2, -2, 2]))


@elementwise(ref=np.fmod, domain=(0.5, 9.0), real=True)
def fmod(a, b):
    """Remainder of the quotient rounded towards zero; it has the sign of the dividend."""
    return np.fmod(a, b)


fmod.vjp(a=lambda g: g, b=lambda g, a, b: -g * np.trunc(a / b))
fmod.kink(a=([5.0, 6.0, -5.0], [1, 1, 1]), b=([3.0, 3.0, 3.0], [-1, -2, 1]))


@elementwise(ref=np.maximum, signed_zeros=False)
def maximum(a, b):
    """Larger of two operands, NaN if either is; equal operands share the gradient."""
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
    """Smaller of two operands, NaN if either is; equal operands share the gradient."""
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
    """Larger of two operands, a NaN losing; of equal operands the first takes the gradient."""
    return np.fmax(a, b)


fmax.vjp(
    a=lambda g, a, b: np.where((a >= b) | np.isnan(b), g, 0),
    b=lambda g, a, b: np.where((a >= b) | np.isnan(b), 0, g),
)
fmax.kink(a=([1.0, np.nan, 1.0], [1, 0, 1]), b=([1.0, 1.0, np.nan], [0, 1, 0]))


@elementwise(ref=np.fmin, signed_zeros=False)
def fmin(a, b):
    """Smaller of two operands, a NaN losing; of equal operands the first takes the gradient."""
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
    """
    if min is not None:
        x = clip_below(x, min)
    if max is not None:
        x = clip_above(x, max)
    return positive(x) if min is None and max is None else x


clip.calls = [
    (((2, 3),), lambda x: clip(x, -0.5, 0.7)),
    (((2, 3), (3,)), lambda x, low: clip(x, low)),
    (((2, 3), ()), lambda x, high: clip(x, None, high)),
]
clip.kink(x=([-1.0, 1.0, 0.0, 2.0, -2.0], [1, 1, 1, 0, 0]), params={"min": -1.0, "max": 1.0})


@elementwise(ref=np.heaviside, special=(0.0,), real=True)
def heaviside(a, b):
    """0 where the first operand is negative, 1 where it is positive, the second where it is 0."""
    return np.where(a == 0, b, np.where(a < 0, 0, np.where(a > 0, 1, a)))


heaviside.vjp(a=lambda: 0, b=lambda g, a: np.where(a == 0, g, 0))
heaviside.kink(a=([0.0, -0.0, 2.0, -np.inf], [0, 0, 0, 0]), b=([3.0, 3.0, 3.0, 3.0], [1, 1, 0, 0]))


@elementwise(ref=np.copysign, real=True)
def copysign(a, b):
    """Magnitude of the first operand with the sign of the second."""
    return np.copysign(a, b)


copysign.vjp(a=lambda g, a, y: g * np.sign(a) * np.sign(y), b=lambda: 0)
copysign.kink(a=([0.0, -0.0, 2.0, 2.0], [0, 0, 1, -1]), b=([-1.0, 1.0, 0.0, -0.0], [0, 0, 0, 0]))


@elementwise(ref=np.floor, special=(0.5,), real=True)
def floor(x):
    """Largest integer not above the operand."""
    return np.floor(x)


floor.kink(x=([1.0, -0.5], [0, 0]))


@elementwise(ref=np.ceil, special=(0.5,), real=True)
def ceil(x):
    """Smallest integer not below the operand."""
    return np.ceil(x)


ceil.kink(x=([1.0, -0.5], [0, 0]))


@elementwise(ref=np.trunc, special=(0.5,), aliases=("fix",), real=True)
def trunc(x):
    """The operand without its fractional part."""
    return np.trunc(x)


trunc.kink(x=([1.0, -0.5], [0, 0]))


@elementwise(ref=np.rint, special=(0.5, 1.5, 2.5))
def rint(x):
    """Nearest integer, halves to even."""
    return np.rint(x)


rint.kink(x=([0.5, 2.5, 1.0], [0, 0, 0]))


for _step in (floor, ceil, trunc, rint):
    _step.vjp(x=lambda: 0)


@composite(ref=np.round, aliases=("around",))
def round(x, decimals=0):
    """The operand rounded to ``decimals`` decimal places, halves to even; integers stay so."""
    from numgrad.operations.shape import as_operand, astype, copy

    x = as_operand(x)
    integers = x.dtype.kind in "iu"
    if integers and decimals >= 0:
        return copy(x)
    if decimals == 0:
        return rint(x)
    scale = 10.0 ** abs(decimals)
    if decimals > 0:
        return rint(x * scale) / scale
    result = rint(x / scale) * scale
    return astype(result, dtype=x.dtype) if integers else result


round.calls = [
    (((2, 3),), lambda x: round(x, 1)),
]
round.kink(x=([0.25, 1.0], [0, 0]), params={"decimals": 1})


def _promote(operands):
    kinds = [o for o in operands[1:]]
    dtype = np.result_type(*[np.empty(0, k) if isinstance(k, np.dtype) else k(0) for k in kinds])
    return [np.dtype(bool), dtype, dtype], dtype


@elementwise(types=_promote, ref=np.where, method=False, smooth=True)
def where(condition, x, y_):
    """``x`` where the condition holds, else the other operand."""
    return np.where(condition, x, y_)


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
    real=True,
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
    """
    from numgrad.operations.complex import from_parts, imag, real
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
    if dtype.kind != "f":
        return positive(x)
    limit = float(np.finfo(dtype).max)
    return replace_nonfinite(
        x,
        float(nan),
        limit if posinf is None else float(posinf),
        -limit if neginf is None else float(neginf),
    )


nan_to_num.calls = [
    (((2, 3),), lambda x: nan_to_num(x)),
]
nan_to_num.kink(x=([np.nan, np.inf, -np.inf, 1.0], [0, 0, 0, 1]))
