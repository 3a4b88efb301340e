"""Instructions of the kernel library in LLVM's language, by their names, and functions of NumPy.

Results of NumPy's functions are NumPy's, also where integers wrap around or an operand is zero;
nothing traps.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from numgrad.codegen.device import Instruction
from numgrad.codegen.native import arithmetic as do, memory
from numgrad.codegen.native.ir import FunctionWriter, Unsupported
from numgrad.codegen.native.source import library_function
from numgrad.codegen.native.values import (
    BOOL,
    FLOAT64,
    INT32,
    INT64,
    Array,
    Known,
    Lanes,
    NotVector,
    Number,
    constant,
    in_lanes,
    integer,
    kind_of,
    scalar_type,
    vector_type,
)


class InstructionContext(Protocol):
    """The function under translation, as instructions see it."""

    f: FunctionWriter
    lanes: Lanes | None
    has_fma: bool

    def dtype_of(self, value: Any) -> np.dtype:
        """The dtype that a type stands for."""
        ...

    def call_function(self, function: Any, arguments: list[Any]) -> Any:
        """Call a function of the library or of the text, or write it here."""
        ...

    def as_number(self, value: Any) -> Number:
        """A value that is a number."""
        ...


INSTRUCTIONS: dict[str, Callable[..., Any]] = {}
"""Translators by name, each a function of the body under translation and of the arguments."""


def _instruction(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(translate: Callable[..., Any]) -> Callable[..., Any]:
        INSTRUCTIONS[name] = translate
        return translate

    return add


def instruction(called: Any, name: str) -> Callable[..., Any] | None:
    """The writer of an instruction: a function of the table, or of the module beside its own."""
    translate = INSTRUCTIONS.get(name)
    if translate is not None or not isinstance(called, Instruction):
        return translate
    module = f"{called.__module__}_native"
    if importlib.util.find_spec(module) is None:
        return None
    return getattr(importlib.import_module(module), name, None)


# ------------------------------------------------------------------------------------ arithmetic


def _math(name: str) -> Callable[..., Number]:
    def translate(body: InstructionContext, *numbers: Number) -> Number:
        _require_floats(name, numbers)
        return do.call_intrinsic(body.f, name, *numbers)

    return translate


def _require_floats(name: str, numbers: tuple[Number, ...]) -> None:
    if any(x.dtype.kind != "f" or x.dtype != numbers[0].dtype for x in numbers):
        raise Unsupported(f"{name} of {', '.join(str(x.dtype) for x in numbers)}")


for _name in ("sqrt", "fabs", "floor", "ceil", "trunc", "rint", "copysign", "maximum", "minimum"):
    INSTRUCTIONS[_name] = _math(f"llvm.{_name}")
INSTRUCTIONS["fma"] = _math("llvm.fma")


@_instruction("mul_add")
def _mul_add(body: InstructionContext, a: Number, b: Number, c: Number) -> Number:
    _require_floats("mul_add", (a, b, c))
    if body.has_fma:
        return do.call_intrinsic(body.f, "llvm.fma", a, b, c)
    return do.binary(body.f, "+", do.binary(body.f, "*", a, b), c)


@_instruction("estrin")
def _estrin(body: InstructionContext, x: Number, coefficients: tuple[Number, ...]) -> Number:
    power, terms = x, list(coefficients)
    while len(terms) > 1:
        odd = terms[-1:] if len(terms) % 2 else []
        pairs = zip(terms[0::2], terms[1::2], strict=False)
        terms = [_mul_add(body, b, power, a) for a, b in pairs] + odd
        if len(terms) > 1:
            power = do.binary(body.f, "*", power, power)
    return terms[0]


_BITS = {4: INT32, 8: INT64}


@_instruction("bits")
def _bits(body: InstructionContext, x: Number) -> Number:
    _require_floats("bits", (x,))
    return _bitcast(body.f, x, _BITS[x.dtype.itemsize])


@_instruction("from_bits")
def _from_bits(body: InstructionContext, x: Number) -> Number:
    if x.dtype not in (INT32, INT64):
        raise Unsupported(f"from_bits of {x.dtype}")
    return _bitcast(body.f, in_lanes(x, x.lanes, body.f), np.dtype(f"f{x.dtype.itemsize}"))


def _bitcast(f: FunctionWriter, x: Number, dtype: np.dtype) -> Number:
    kind = vector_type(scalar_type(dtype), x.lanes)
    return Number(dtype, (f.pure(f"bitcast {kind_of(x)} {x.part} to {kind}"),), x.lanes)


@_instruction("select")
def _select(body: InstructionContext, condition: Number, a: Number, b: Number) -> Number:
    if a.dtype != b.dtype or condition.dtype != BOOL:
        raise Unsupported("select of different types")
    return do.select(body.f, condition, a, b)


@_instruction("add_any_order")
def _add_any_order(body: InstructionContext, a: Number, b: Number) -> Number:
    return do.binary(body.f, "+", a, b)


@_instruction("add_product")
def _add_product(body: InstructionContext, total: Number, a: Number, b: Number) -> Number:
    return _mul_add(body, a, b, total)


@_instruction("multiply_any_order")
def _multiply_any_order(body: InstructionContext, a: Number, b: Number) -> Number:
    return do.binary(body.f, "*", a, b)


@_instruction("ordered_maximum")
def _ordered_maximum(body: InstructionContext, a: Number, b: Number) -> Number:
    return do.select(body.f, do.compare(body.f, ">", a, b), a, b)


@_instruction("ordered_minimum")
def _ordered_minimum(body: InstructionContext, a: Number, b: Number) -> Number:
    return do.select(body.f, do.compare(body.f, "<", a, b), a, b)


# ---------------------------------------------------------------------------------------- memory


@_instruction("load")
def _load(body: InstructionContext, like: Any, at: Number, index: Number, *scope: Number) -> Number:
    return memory.read(body.f, _element(body, body.dtype_of(like), at, index, scope), body.lanes)


@_instruction("load_if")
def _load_if(
    body: InstructionContext, like: Any, flag: Number, at: Number, index: Number, *scope: Number
) -> Number:
    element = _element(body, body.dtype_of(like), at, index, scope)
    return memory.read(body.f, element, body.lanes, do.truth(body.f, flag))


@_instruction("store")
def _store(body: InstructionContext, x: Number, at: Number, index: Number, *scope: Number) -> None:
    memory.write(body.f, _element(body, x.dtype, at, index, scope), x, body.lanes)


@_instruction("peek")
def _peek(body: InstructionContext, like: Any, at: Number) -> Number:
    zero = Number(INT64, ("0",), literal=0)
    dtype = body.dtype_of(like)
    element = memory.at_address(body.f, dtype, at, zero, ("peek", at.part), "")
    return memory.read(body.f, element, body.lanes)


@_instruction("prefetch")
def _prefetch(body: InstructionContext, row: Array, index: Number) -> None:
    if body.lanes is not None:
        raise NotVector("a prefetch")
    pointer = memory.address(body.f, memory.Element(row.dtype, row.data, index, row.root))
    name = body.f.module.declare("llvm.prefetch.p0", "void", ["ptr", "i32", "i32", "i32"])
    body.f.effect(f"call void {name}(ptr {pointer}, i32 1, i32 3, i32 1)")  # a write, near, of data


def _element(
    body: InstructionContext, dtype: np.dtype, at: Number, index: Number, scope: tuple[Number, ...]
) -> memory.Element:
    number, count = (int(s.literal) for s in scope)
    metadata = body.f.scope(number, count)
    return memory.at_address(body.f, dtype, at, index, ("scope", number), metadata)


@_instruction("partial_sums")
def _partial_sums(body: Any, count: Number, like: Number | Array) -> Array:
    return body.allocate([count, Known(like.dtype)], zero=False)


@_instruction("chunk_of")
def _chunk_of(body: InstructionContext, whole: Array, sums: Array, chunk: Number) -> Array:
    f = body.f
    offset = do.binary(f, "*", do.binary(f, "-", chunk, integer(1)), integer(whole.dtype.itemsize))
    for length in whole.shape:
        offset = do.binary(f, "*", offset, length)
    own = f.pure(f"getelementptr i8, ptr {sums.data}, i64 {offset.part}")
    first = do.compare(f, "<", chunk, integer(1))
    data = f.pure(f"select i1 {first.part}, ptr {whole.data}, ptr {own}")
    roots = [a.root if isinstance(a.root, frozenset) else {a.root} for a in (whole, sums)]
    return Array(whole.dtype, data, whole.shape, None, frozenset().union(*roots))


@_instruction("no_inline")
def _no_inline(body: InstructionContext) -> None:
    body.f.flags = "noinline "


# ------------------------------------------------------------------------------- NumPy's functions

NUMPY: dict[str, Callable[..., Any]] = {}
"""Functions of NumPy that the text calls."""


def _numpy(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(translate: Callable[..., Any]) -> Callable[..., Any]:
        NUMPY.update(dict.fromkeys(names, translate))
        return translate

    return add


@_numpy("conj", "conjugate")
def _conj(body: InstructionContext, x: Number) -> Number:
    if x.dtype.kind != "c":
        return x
    minus = do.negate(body.f, do.imag(x))
    return Number(x.dtype, (x.parts[0], minus.part), x.lanes)


@_numpy("divide")
def _divide(body: InstructionContext, a: Number, b: Number) -> Number:
    dtype = do.common(a.dtype, b.dtype)
    if dtype.kind == "c":
        return do.divide_complex(body.f, do.cast(body.f, a, dtype), do.cast(body.f, b, dtype))
    return do.binary(body.f, "/", a, b)


def _float_function(name: str) -> None:
    def translate(body: InstructionContext, x: Number) -> Number:
        if x.dtype.kind != "f":
            raise Unsupported(f"np.{name} of {x.dtype}")
        return do.call_intrinsic(body.f, f"llvm.{name}", x)

    NUMPY[name] = translate


for _name in ("floor", "ceil", "trunc", "rint", "sqrt", "fabs"):
    _float_function(_name)


@_numpy("isnan")
def _isnan(body: InstructionContext, x: Number) -> Number:
    if x.dtype.kind == "c":
        parts = (_isnan(body, p) for p in (do.real(x), do.imag(x)))
        return do.binary(body.f, "|", *parts)
    return do.compare(body.f, "!=", x, x)


@_numpy("isfinite")
def _isfinite(body: InstructionContext, x: Number) -> Number:
    if x.dtype.kind == "c":
        parts = (_isfinite(body, p) for p in (do.real(x), do.imag(x)))
        return do.binary(body.f, "&", *parts)
    size = do.absolute(body.f, x)
    infinity = Number(x.dtype, ("0x7FF0000000000000",), literal=float("inf"))
    return do.compare(body.f, "<", size, infinity)


@_numpy("isinf")
def _isinf(body: InstructionContext, x: Number) -> Number:
    if x.dtype.kind == "c":
        parts = (_isinf(body, p) for p in (do.real(x), do.imag(x)))
        return do.binary(body.f, "|", *parts)
    size = do.absolute(body.f, x)
    infinity = Number(x.dtype, ("0x7FF0000000000000",), literal=float("inf"))
    return do.compare(body.f, "==", size, infinity)


@_numpy("signbit")
def _signbit(body: InstructionContext, x: Number) -> Number:
    return do.compare(body.f, "<", _bits(body, x), Number(INT64, ("0",), literal=0))


def _extreme(name: str, op: str) -> None:
    def translate(body: InstructionContext, a: Number, b: Number) -> Number:
        dtype = do.common(a.dtype, b.dtype) if a.dtype != b.dtype else a.dtype
        a, b = do.cast(body.f, a, dtype), do.cast(body.f, b, dtype)
        if dtype.kind == "f":
            return do.call_intrinsic(body.f, f"llvm.{name}", a, b)
        if dtype.kind == "c":
            raise Unsupported("an extreme of complex numbers")
        return do.select(body.f, do.compare(body.f, op, a, b), a, b)

    NUMPY[name] = translate


_extreme("maximum", ">")
_extreme("minimum", "<")


@_numpy("absolute", "abs")
def _absolute(body: InstructionContext, x: Number) -> Number:
    if x.dtype.kind == "c":
        raise Unsupported("a magnitude")
    return do.absolute(body.f, x)


@_numpy("sign")
def _sign(body: InstructionContext, x: Number) -> Number:
    if x.dtype.kind not in "iu":
        raise Unsupported(f"np.sign of {x.dtype}")
    f, zero = body.f, do.cast(body.f, Number(INT64, ("0",), literal=0), x.dtype)
    one = do.cast(f, Number(INT64, ("1",), literal=1), x.dtype)
    positive = do.select(f, do.compare(f, ">", x, zero), one, zero)
    if x.dtype.kind == "u":
        return positive
    minus = do.cast(f, Number(INT64, ("-1",), literal=-1), x.dtype)
    return do.select(f, do.compare(f, "<", x, zero), minus, positive)


@_numpy("invert", "bitwise_not")
def _invert(body: InstructionContext, x: Number) -> Number:
    return do.invert(body.f, x)


@_numpy("remainder")
def _remainder(body: InstructionContext, a: Number, b: Number) -> Number:
    if a.dtype.kind not in "biu" or b.dtype.kind not in "biu":
        raise Unsupported("remainder of floats")
    return do.binary(body.f, "%", a, b)


@_numpy("floor_divide")
def _floor_divide(body: InstructionContext, a: Number, b: Number) -> Number:
    if a.dtype.kind not in "biu" or b.dtype.kind not in "biu":
        raise Unsupported("floor_divide of floats")
    return do.binary(body.f, "//", a, b)


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
    power = body.call_function(library_function(integer_power, False), [*given, least])
    assert isinstance(power, Number)
    return do.cast(body.f, power, do.common(a.dtype, b.dtype))


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
        extreme = do.select(f, first, a, b)
        of_a, of_b = NUMPY["isnan"](body, a), NUMPY["isnan"](body, b)
        if past_nan:
            return do.select(f, of_b, a, do.select(f, of_a, b, extreme))
        return do.select(f, of_a, a, do.select(f, of_b, b, extreme))

    return translate


def _complex_rint(body: InstructionContext, x: Number) -> Number:
    real, imag = (NUMPY["rint"](body, component) for component in (do.real(x), do.imag(x)))
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
