"""Rows of functions of elements: Note [Rows of names] in ``calls``."""

from __future__ import annotations

from typing import Any

import numpy as np

import numgrad as ng
from numgrad.autograd.batching.batch import Batched
from numgrad.autograd.variable import Tensor as Base
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.errors import NumgradRuntimeError
from numgrad.torch.calls import cast, table
from numgrad.torch.dtypes import common_dtype, get_default_dtype


def kind_of(x: Any) -> str:
    """NumPy's kind of a Tensor's or number's dtype."""
    return x.dtype.kind if hasattr(x, "dtype") else np.result_type(x).kind


def _scaled(x: Any, alpha: Any) -> Any:
    if kind_of(x) in "biu" and isinstance(alpha, float):
        raise NumgradRuntimeError("for integral input tensors alpha and value must be integers")
    return x if alpha == 1 else OPS["multiply"](x, alpha)


def of_bools(function: Any, x: Any, d: Any = None) -> Any:
    """A function of numbers, or booleans in a dtype: as they are, if none is given."""
    if x.dtype.kind == "b":
        return ng.copy(x) if d is None else function(OPS["astype"](x, dtype=np.dtype(d)))
    return function(x)


def _quotient(op: str, a: Any, b: Any) -> Any:
    """A quotient or remainder, none of integers by zero, of which NumPy makes 0."""
    if kind_of(a) in "biu" and kind_of(b) in "biu" and getattr(a, "size", 1):
        divisors = b
        while isinstance(divisors, Batched):
            divisors = divisors.value  # of all examples
        if isinstance(divisors, Base):
            divisors = state.ground.numbers(divisors)
        if divisors is not None and not np.all(divisors):
            raise NumgradRuntimeError(f"{op}: ZeroDivisionError: of integers; divide floats")
    return OPS[op](a, b)


def _div(a: Any, b: Any, mode: str | None) -> Any:
    d = common_dtype((a, b))
    if mode is None and d.kind not in "fc":
        d = get_default_dtype().numpy
    if not isinstance(a, Base) and not isinstance(b, Base):
        a = Base(np.asarray(a))
    a, b = cast(a, d), cast(b, d)
    if mode is None:
        return OPS["divide"](a, b)
    if mode == "floor":
        return _quotient("floor_divide", a, b)
    if mode != "trunc":
        raise NumgradRuntimeError(f"div: rounding_mode is None, 'trunc' or 'floor', not {mode!r}")
    if kind_of(a) == "f" or kind_of(b) == "f":
        return ng.trunc(OPS["divide"](a, b))
    return (a - _quotient("fmod", a, b)) // b


def _pow(a: Any, b: Any) -> Any:
    if type(b) in (int, float) and b in (2, 3) and kind_of(a) in "fc":
        return OPS["square" if b == 2 else "cube"](a)  # products, as PyTorch computes them
    if kind_of(a) in "biu" and kind_of(b) in "biu":
        if isinstance(b, int) and b < 0:
            raise NumgradRuntimeError("pow: integers to negative integer powers are not allowed")
        if kind_of(a) == "b" and isinstance(b, bool):
            return OPS["astype"](OPS["power"](a, b), dtype=np.dtype(bool))
        if isinstance(b, Base) and b.dtype.kind == "i":  # 1 / a**-b, without a fraction
            even = 1 - 2 * (b % 2)
            inverse = ng.where(a == 1, 1, ng.where(a == -1, even, 0))
            power = OPS["power"](a, ng.abs(b))
            return OPS["astype"](ng.where(b < 0, inverse, power), dtype=b.dtype)
    return OPS["power"](a, b)


def _log_of_sum(a: Any, b: Any) -> Any:
    if kind_of(a) != "c":
        return OPS["logaddexp"](a, b)
    top = ng.where(ng.real(a) > ng.real(b), a, b)
    return ng.where(a == b, a + float(np.log(2)), top + ng.log(ng.exp(a - top) + ng.exp(b - top)))


def log_product(function: Any, least: float, x: Any, y: Any) -> Any:
    """``x`` times a logarithm, whose derivative by ``x`` is 0, too, where it is 0 for all ``y``."""
    d = common_dtype((x, y))
    x, y = (v if isinstance(v, Base) else Base(np.asarray(v, d)) for v in (x, y))
    return function(x, ng.where((x == 0) & (y <= least), d.type(1), y))


def _where(condition: Any, x: Any, y: Any) -> Any:
    d = common_dtype((x, y))
    return ng.where(
        condition, *[cast(v, d) if isinstance(v, Base) else np.asarray(v, d) for v in (x, y)]
    )


TABLE = """
[float 1 inplace]
{exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan sinh cosh tanh sigmoid erf erfc erfinv digamma
 lgamma=gammaln reciprocal acos=arccos asin=arcsin atan=arctan acosh=arccosh asinh=arcsinh
 atanh=arctanh deg2rad rad2deg}(input): @ == OPS["@"](input)
[same 1 inplace]
{neg=negative abs=absolute floor ceil trunc relu}(input): @ == OPS["@"](input)
[same 1]
{isnan isinf isfinite signbit}(input): @ == OPS["@"](input)
[number 2]
{maximum minimum fmax fmin}(input, other): @ == OPS["@"](input, other)
[number 2 inplace]
{mul=multiply eq=equal ne=not_equal lt=less le=less_equal gt=greater ge=greater_equal bitwise_and
 bitwise_or bitwise_xor}(input, other): @ == OPS["@"](input, other)
clamp_min(input, min): ng.clip(input, min, None)
clamp_max(input, max): ng.clip(input, None, max)
[float 2 inplace]
{atan2=arctan2 hypot copysign}(input, other): @ == OPS["@"](input, other)
[float 2]
logaddexp(input, other): logaddexp == _log_of_sum(input, other)
logaddexp2(input, other): logaddexp2 == OPS["logaddexp2"](input, other)
[number 2 inplace]
add(input, other, *, alpha=1): add == OPS["add"](input, _scaled(other, alpha))
{gcd lcm nextafter bitwise_left_shift=left_shift bitwise_right_shift=right_shift}(input, other): (
    ng.@(input, other))
sub(input, other, *, alpha=1): subtract == OPS["subtract"](input, _scaled(other, alpha))
[number 2 inplace learned]
pow(input, exponent): power == _pow(input, exponent)
[number 2 inplace values]
floor_divide(input, other): _quotient("floor_divide", input, other)
{fmod remainder}(input, other): @ == _quotient("@", input, other)
[own 2 inplace values]
div(input, other, *, rounding_mode=None): divide == _div(input, other, rounding_mode)
[number 2 function]
rsub(input, other, *, alpha=1): OPS["subtract"](other, _scaled(input, alpha))
[equal 2 inplace]
heaviside(input, values): ng.heaviside(input, values).astype(input.dtype)
[equal 2]
{isclose allclose}(input, other, rtol=1e-05, atol=1e-08, equal_nan=False) if (
    rtol >= 0 and atol >= 0): ng.@(input, other, rtol, atol, equal_nan)
[equal 3 inplace]
lerp(input, end, weight): input + weight * (end - input)
[number 3 inplace]
clamp(input, min=None, max=None) if not min is max is None: ng.clip(input, min, max)
addcmul(input, tensor1, tensor2, *, value=1): input + _scaled(tensor1 * tensor2, value)
addcdiv(input, tensor1, tensor2, *, value=1): input + _scaled(tensor1 / tensor2, value)
[float 2 inplace]
ldexp(input, other): input * ng.exp2(other)
xlogy(input, other): log_product(ng.special.xlogy, 0, input, other)
{igamma=gammainc igammac=gammaincc}(input, other): ng.special.@(input, other)
[own 2 inplace]
float_power(input, exponent): ng.float_power(input, exponent)
{logical_and logical_or logical_xor}(input, other): ng.@(input, other)
[same 1 inplace]
square(input): square == of_bools(OPS["square"], input, np.int64)
sign(input): sign == of_bools(OPS["sign"], input)
{logical_not bitwise_not=invert}(input): ng.@(input)
conj_physical(input): ng.conjugate(input) if kind_of(input) == "c" else input
frac(input): input - ng.trunc(input)
nan_to_num(input, nan=None, posinf=None, neginf=None): ng.nan_to_num(
    input, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)
round(input, *, decimals=0): ng.round(input, decimals)
sgn(input): of_bools(ng.sign, input)
[float 1 inplace]
rsqrt(input): 1 / ng.sqrt(input)
sinc(input): ng.sinc(input)
i0(input): ng.special.i0(input)
mvlgamma(input, p): ng.special.multigammaln(input, p)
logit(input, eps=None): ng.logit(ng.clip(input, eps, 1 - eps)) if eps is not None else ng.logit(
    input * ng.where((input < 0) | (input > 1), np.nan, 1.0).astype(input.dtype))
[float 1]
angle(input): ng.angle(input)
[float 1:2 reflected]
polygamma(n, input): ng.polygamma(n, input)
[same 1]
positive(input): ng.positive(input) if kind_of(input) == "b" else input
resolve_conj(input): input if isinstance(input, Batched) or input._array.flags.writeable else (
    ng.copy(input))
resolve_neg(input): input
{isneginf=-np.inf isposinf=np.inf}(input): input == @
isreal(input): ng.imag(input) == 0 if kind_of(input) == "c" else input == input
frexp(input) -> mantissa exponent: ng.frexp(input)
[equal 2 function]
complex(real, imag): OPS["from_parts"](real, imag)
polar(abs, angle): OPS["from_parts"](abs * ng.cos(angle), abs * ng.sin(angle))
[same 1 reflected]
where(condition, input=None, other=None) if input is None or condition.dtype in (bool, np.uint8): (
    tuple(ng.nonzero(ng.atleast_1d(condition))) if input is None else
    _where(condition, input, other))
[number 0:0]
aliases arccos=acos arcsin=asin arctan=atan arccosh=acosh arcsinh=asinh arctanh=atanh
 arctan2=atan2 absolute=abs negative=neg fix=trunc multiply=mul greater=gt greater_equal=ge
 less=lt less_equal=le not_equal=ne subtract=sub divide=div true_divide=div clip=clamp
"""
table("", globals(), TABLE)
