"""NumPy's functions that machines have no instruction for.

Results are NumPy's, also where integers wrap around or an operand is zero; nothing traps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from numgrad.codegen.native import arithmetic as do
from numgrad.codegen.native.accesses import NotVector
from numgrad.codegen.native.instructions import NUMPY, InstructionContext
from numgrad.codegen.native.ir import Unsupported
from numgrad.codegen.native.source import library_function
from numgrad.codegen.native.values import FLOAT64, INT64, Number, constant


def _fmod(body: InstructionContext, a: Number, b: Number) -> Number:
    f, dtype = body.f, do.common(a.dtype, b.dtype)
    a, b = do.together(f, do.cast(f, a, dtype), do.cast(f, b, dtype))
    if dtype.kind == "f":
        if a.lanes:
            raise NotVector("fmod is a call")
        return do.apply(f, "frem", a, b, dtype=dtype)
    _require_integers("fmod", a, b)
    whole = do.compare(f, "==", b, constant(0, dtype))
    if dtype.kind == "i":  # the least number has no opposite
        whole = do.binary(f, "|", whole, do.compare(f, "==", b, constant(-1, dtype)))
    b = do.select(f, whole, constant(1, dtype), b)
    return do.apply(f, "urem" if dtype.kind == "u" else "srem", a, b, dtype=dtype)


def integer_power(a, b, least):
    """``a**b``, wrapped around; ``least`` is 0 to a negative power."""
    if b < 0:
        if a == 0:
            return least
        if a == 1:
            return 1
        if a == -1:
            return 1 - 2 * (b & 1)
        return 0
    result = 1
    while b != 0:
        if (b & 1) != 0:
            result *= a
        b >>= 1
        a *= a
    return result


def _power(body: InstructionContext, a: Number, b: Number) -> Number:
    _require_integers("power", a, b)
    least = constant(1 << (8 * a.dtype.itemsize - 1), INT64)  # Numba's, where NumPy raises
    given = do.cast(body.f, a, INT64), do.cast(body.f, b, do.common(b.dtype, b.dtype))
    found = body.call_function(library_function(integer_power, False), [*given, least])
    assert isinstance(found, Number)
    return do.cast(body.f, found, do.common(a.dtype, b.dtype))


def power_of_floats(body: InstructionContext, a: Number, b: Number) -> Number:
    """``a**b``, a call of C's function."""
    if not a.dtype == b.dtype == FLOAT64:
        raise Unsupported(f"{a.dtype} to a power of {b.dtype}")
    if a.lanes or b.lanes:
        raise NotVector("a power is a call")
    name = body.f.module.declare("pow", "double", ["double", "double"])
    return Number(FLOAT64, (body.f.pure(f"call double {name}(double {a.part}, double {b.part})"),))


def _reciprocal(body: InstructionContext, x: Number) -> Number:
    _require_integers("reciprocal", x)
    f, dtype = body.f, x.dtype
    infinite = do.compare(f, "==", x, constant(0, dtype))
    divisor = do.cast(f, do.select(f, infinite, constant(1, dtype), x), FLOAT64)
    quotient = do.cast(f, do.binary(f, "/", constant(1.0, FLOAT64), divisor), dtype)
    with np.errstate(all="ignore"):
        of_zero = int(np.reciprocal(dtype.type(0)))
    return do.select(f, infinite, constant(of_zero, dtype), quotient)


def _complex_extreme(op: str, *, past_nan: bool = False) -> Callable[..., Number]:
    """Real parts decide, then imaginary parts; the first with a NaN wins, or loses."""

    def translate(body: InstructionContext, a: Number, b: Number) -> Number:
        f, dtype = body.f, do.common(a.dtype, b.dtype)
        a, b = do.together(f, do.cast(f, a, dtype), do.cast(f, b, dtype))
        real, imag = (do.real(a), do.real(b)), (do.imag(a), do.imag(b))
        same = do.binary(f, "&", do.compare(f, "==", *real), do.compare(f, f"{op}=", *imag))
        first = do.binary(f, "|", do.compare(f, op, *real), same)
        found = do.select(f, first, a, b)
        of_a, of_b = NUMPY["isnan"](body, a), NUMPY["isnan"](body, b)
        if past_nan:
            return do.select(f, of_b, a, do.select(f, of_a, b, found))
        return do.select(f, of_a, a, do.select(f, of_b, b, found))

    return translate


def _complex_rint(body: InstructionContext, x: Number) -> Number:
    real, imag = (NUMPY["rint"](body, part) for part in (do.real(x), do.imag(x)))
    return do.make_complex(body.f, real, imag)


def _by_kind(kinds: str, translate: Callable[..., Number], name: str) -> None:
    """Add a translation for operands of some kinds to what others have."""
    other = NUMPY.get(name)

    def choose(body: InstructionContext, *given: Number) -> Number:
        if all(x.dtype.kind in kinds for x in given):
            return translate(body, *given)
        if other is None:
            raise Unsupported(f"{name} of {', '.join(str(x.dtype) for x in given)}")
        return other(body, *given)

    NUMPY[name] = choose


def _require_integers(name: str, *numbers: Number) -> None:
    if any(x.dtype.kind not in "biu" for x in numbers):
        raise Unsupported(f"{name} of {', '.join(str(x.dtype) for x in numbers)}")


NUMPY["fmod"], NUMPY["power"], NUMPY["reciprocal"] = _fmod, _power, _reciprocal
for _name, _like, _op in (("fmax", "maximum", ">"), ("fmin", "minimum", "<")):
    _by_kind("biu", NUMPY[_like], _name)
    _by_kind("c", _complex_extreme(_op), _like)
    _by_kind("c", _complex_extreme(_op, past_nan=True), _name)
_by_kind("c", _complex_rint, "rint")
for _name in ("floor", "ceil", "trunc"):
    _by_kind("biu", lambda body, x: x, _name)
