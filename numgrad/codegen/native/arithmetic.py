"""Arithmetic on numbers: operators and conversions of the language of kernels.

Types follow Numba's rules, which the text was written for: integers become at least 64 bits wide,
an integer beside a float32 makes float64. Nothing is contracted or reordered.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from numgrad.codegen.native.ir import FunctionWriter, Unsupported
from numgrad.codegen.native.values import (
    BOOL,
    FLOAT64,
    INT64,
    UINT64,
    Number,
    constant,
    in_lanes,
    kind_of,
    part_dtype,
    scalar_type,
    vector_type,
)

_FLOAT = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv", "%": "frem"}
_INTEGER = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor", "<<": "shl"}
_PYTHON = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b if b else None,
    "<<": lambda a, b: a << b,
}
_COMPARISONS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def common(a: np.dtype, b: np.dtype) -> np.dtype:
    """The dtype that two operands are converted to."""
    if a is b and a.kind == "f":
        return a
    if a.kind in "biu" and b.kind in "biu":
        return UINT64 if a.kind == b.kind == "u" else INT64
    return np.result_type(a, b)


def together(f: FunctionWriter, *numbers: Number) -> list[Number]:
    """Numbers with the same number of lanes."""
    lanes = max([x.lanes for x in numbers])
    return [in_lanes(x, lanes, f) for x in numbers] if lanes else [*numbers]


def apply(f: FunctionWriter, operation: str, *numbers: Number, dtype: np.dtype) -> Number:
    """An instruction on one part of each operand, which have the same type."""
    given = together(f, *numbers)
    operands = ", ".join([x.parts[0] for x in given])
    text = f"{operation} {kind_of(given[0])} {operands}"
    return Number(dtype, (f.pure(text),), given[0].lanes)


def _affine(f: FunctionWriter, op: str, a: Number, b: Number) -> Number | None:
    """Sums and multiples of an index that runs along the lanes, such an index too."""
    lanes = a.lanes or b.lanes
    if op not in "+-*" or not all(x.step is not None or not x.lanes for x in (a, b)):
        return None
    if op == "*" and a.step is not None and b.step is not None:
        return None
    first, second = (Number(INT64, x.parts, literal=x.literal) for x in (a, b))
    start = binary(f, op, first, second)
    zero = constant(0, INT64)
    if op == "*":
        step = binary(f, "*", a.step or first, b.step or second)
    else:
        step = binary(f, op, a.step or zero, b.step or zero)
    return Number(INT64, start.parts, lanes, None, step)


def binary(f: FunctionWriter, op: str, a: Number, b: Number) -> Number:
    """``a op b``."""
    if a.literal is not None and b.literal is not None and a.dtype == b.dtype == INT64:
        value = _PYTHON[op](a.literal, b.literal) if op in _PYTHON else None
        if value is not None:
            return constant(value, INT64)
    if op in "&|^" and a.dtype == b.dtype == BOOL:
        return apply(f, _INTEGER[op], a, b, dtype=BOOL)
    if op == "<<" or op == ">>":
        dtype = UINT64 if a.dtype.kind == "u" else INT64
    elif op == "/" and a.dtype.kind in "biu" and b.dtype.kind in "biu":
        dtype = FLOAT64
    else:
        dtype = common(a.dtype, b.dtype)
    if dtype == INT64 and (a.step is not None or b.step is not None):
        result = _affine(f, op, cast(f, a, INT64), cast(f, b, INT64))
        if result is not None:
            return result
    a, b = cast(f, a, dtype), cast(f, b, dtype)
    if dtype.kind == "c":
        return _complex(f, op, a, b)
    if dtype.kind == "f":
        if op not in _FLOAT:
            raise Unsupported(f"{op} of floats")
        return apply(f, _FLOAT[op] + f.contract, a, b, dtype=dtype)
    if op == "+" and 0 in (a.literal, b.literal):
        return b if a.literal == 0 else a
    if op == "*" and 0 in (a.literal, b.literal):
        return constant(0, dtype)
    if op == "*" and 1 in (a.literal, b.literal):
        return b if a.literal == 1 else a
    if op in ("<<", ">>"):
        return _shift(f, op, a, b)
    if op in _INTEGER:
        return apply(f, _INTEGER[op], a, b, dtype=dtype)
    if op in ("//", "%") and _is_power_of_two(b.literal):
        if op == "%":
            return apply(f, "and", a, constant(b.literal - 1, dtype), dtype=dtype)
        return _shift(f, ">>", a, constant(b.literal.bit_length() - 1, dtype))
    if op == "//":
        return _floor_divide(f, a, b)
    if op == "%":
        rest = binary(f, "-", a, binary(f, "*", _floor_divide(f, a, b), b))
        return select(f, compare(f, "==", b, constant(0, dtype)), constant(0, dtype), rest)
    raise Unsupported(f"{op} of integers")


def _shift(f: FunctionWriter, op: str, a: Number, b: Number) -> Number:
    """``a`` shifted by ``b`` bits, as far as it goes by 64 and more, as by a negative number."""
    dtype = a.dtype
    if op == "<<":
        shift = "shl"
    else:
        shift = "lshr" if dtype.kind == "u" else "ashr"
    if b.literal is not None and 0 <= b.literal < 64:
        return apply(f, shift, a, b, dtype=dtype)
    count = in_lanes(b, b.lanes, f)
    count = Number(UINT64, count.parts, count.lanes)
    within = compare(f, "<", count, constant(64, UINT64))
    most = select(f, within, count, constant(63, UINT64))
    shifted = apply(f, shift, a, Number(dtype, most.parts, most.lanes), dtype=dtype)
    if shift == "ashr":
        return shifted
    return select(f, within, shifted, constant(0, dtype))


def _is_power_of_two(number: int | None) -> bool:
    return number is not None and number > 0 and not number & (number - 1)


DIVISIONS = 2
"""Places of a module where one number divided by another is written out; further ones call it."""


def _floor_divide(f: FunctionWriter, a: Number, b: Number) -> Number:
    """The quotient rounded down; of a division by zero 0, and nothing traps."""
    if b.literal == 1:
        return a
    if a.dtype == INT64 and not (a.lanes or b.lanes) and b.literal is None:
        count = f.module.written["//"] = f.module.written.get("//", 0) + 1
        if count > DIVISIONS:
            return _floor_divide_elsewhere(f, a, b)
    return _floor_divide_here(f, a, b)


def _floor_divide_elsewhere(f: FunctionWriter, a: Number, b: Number) -> Number:
    module = f.module
    name = module.known_functions.get("//")
    if name is None:
        operands = ("i64", "%a"), ("i64", "%b")
        name = module.known_functions["//"] = module.unique("floor_divide")
        own = FunctionWriter(module, name, operands)
        quotient = _floor_divide_here(own, *(Number(INT64, (x,)) for _, x in operands))
        own.leave(f"ret i64 {quotient.part}")
        own.flags = "noinline memory(none) "
        module.functions.append(own.text("i64"))
    return Number(INT64, (f.pure(f"call i64 @{name}(i64 {a.part}, i64 {b.part})"),))


def _floor_divide_here(f: FunctionWriter, a: Number, b: Number) -> Number:
    dtype = a.dtype
    zero, one = constant(0, dtype), constant(1, dtype)
    if dtype.kind == "u":
        nothing = compare(f, "==", b, zero)
        quotient = apply(f, "udiv", a, select(f, nothing, one, b), dtype=dtype)
        return select(f, nothing, zero, quotient)
    if b.literal is not None and b.literal > 0:
        quotient, nothing, negative = apply(f, "sdiv", a, b, dtype=dtype), None, None
    else:
        nothing = compare(f, "==", b, zero)
        negative = compare(f, "==", b, constant(-1, dtype))  # the least number has no opposite
        safe = select(f, binary(f, "|", nothing, negative), one, b)
        quotient = apply(f, "sdiv", a, safe, dtype=dtype)
        quotient = select(f, negative, negate(f, a), quotient)
    rest = apply(f, "sub", a, apply(f, "mul", quotient, b, dtype=dtype), dtype=dtype)
    inexact = compare(f, "!=", rest, zero)
    signs = apply(f, "xor", rest, b, dtype=dtype)
    below = binary(f, "&", inexact, compare(f, "<", signs, zero))
    floor = select(f, below, apply(f, "sub", quotient, one, dtype=dtype), quotient)
    return floor if nothing is None else select(f, nothing, zero, floor)


def _parts(x: Number) -> tuple[Number, Number]:
    dtype = part_dtype(x.dtype)
    literals = (None, None) if x.literal is None else (x.literal.real, x.literal.imag)
    real, imag = (
        Number(dtype, (p,), x.lanes, value) for p, value in zip(x.parts, literals, strict=True)
    )
    return real, imag


def real(x: Number) -> Number:
    """The real part."""
    return _parts(x)[0] if x.dtype.kind == "c" else x


def imag(x: Number) -> Number:
    """The imaginary part."""
    return _parts(x)[1] if x.dtype.kind == "c" else constant(0, x.dtype)


def make_complex(f: FunctionWriter, x: Number, y: Number) -> Number:
    """A complex number from its parts."""
    real_dtype = common(x.dtype, y.dtype)
    real_dtype = real_dtype if real_dtype.kind == "f" else FLOAT64
    a, b = together(f, cast(f, x, real_dtype), cast(f, y, real_dtype))
    dtype = np.dtype(f"c{2 * real_dtype.itemsize}")
    return Number(dtype, (a.part, b.part), a.lanes)


def _complex(f: FunctionWriter, op: str, a: Number, b: Number) -> Number:
    (p, q), (r, s) = _parts(a), _parts(b)
    if op in "+-":
        x, y = binary(f, op, p, r), binary(f, op, q, s)
    elif op == "*":
        x = binary(f, "-", binary(f, "*", p, r), binary(f, "*", q, s))
        y = binary(f, "+", binary(f, "*", p, s), binary(f, "*", q, r))
    else:
        raise Unsupported(f"{op} of complex numbers")
    x, y = together(f, x, y)
    return Number(a.dtype, (x.part, y.part), x.lanes)


def divide_complex(f: FunctionWriter, a: Number, b: Number) -> Number:
    """The quotient by Smith's method, as NumPy's: zero divisors give infinities and NaN."""
    (ar, ai), (br, bi) = _parts(a), _parts(b)
    size_r, size_i = (absolute(f, x) for x in (br, bi))
    zero = constant(0.0, br.dtype)
    one = constant(1.0, br.dtype)
    first = compare(f, ">=", size_r, size_i)
    large, small = select(f, first, br, bi), select(f, first, bi, br)
    ratio = binary(f, "/", small, large)
    scale = binary(f, "/", one, binary(f, "+", large, binary(f, "*", small, ratio)))
    one_r, two_r = select(f, first, ar, ai), select(f, first, ai, ar)
    x = binary(f, "*", binary(f, "+", one_r, binary(f, "*", two_r, ratio)), scale)
    y1 = binary(f, "-", ai, binary(f, "*", ar, ratio))
    y2 = binary(f, "-", binary(f, "*", ai, ratio), ar)
    y = binary(f, "*", select(f, first, y1, y2), scale)
    nothing = binary(f, "&", compare(f, "==", size_r, zero), compare(f, "==", size_i, zero))
    x = select(f, nothing, binary(f, "/", ar, size_r), x)
    y = select(f, nothing, binary(f, "/", ai, size_r), y)
    x, y = together(f, x, y)
    return Number(a.dtype, (x.part, y.part), x.lanes)


def absolute(f: FunctionWriter, x: Number) -> Number:
    """The magnitude of a number that is not complex."""
    if x.dtype.kind == "f":
        return call_intrinsic(f, "llvm.fabs", x)
    if x.dtype.kind in ("b", "u"):
        return x
    return select(f, compare(f, "<", x, constant(0, x.dtype)), negate(f, x), x)


def call_intrinsic(f: FunctionWriter, name: str, *numbers: Number, flags: str = "") -> Number:
    """An intrinsic function of LLVM on operands of one type, without effects."""
    numbers = tuple(together(f, *numbers))
    kind = kind_of(numbers[0])
    function = f.module.declare(f"{name}.{mangled(numbers[0])}", kind, [kind] * len(numbers))
    operands = ", ".join(f"{kind} {x.part}" for x in numbers)
    text = f"call {flags}{kind} {function}({operands})"
    return Number(numbers[0].dtype, (f.pure(text),), numbers[0].lanes)


def mangled(x: Number) -> str:
    """A type in the name of an intrinsic function."""
    dtype = part_dtype(x.dtype)
    scalar = f"f{8 * dtype.itemsize}" if dtype.kind == "f" else scalar_type(dtype)
    return f"v{x.lanes}{scalar}" if x.lanes else scalar


def negate(f: FunctionWriter, x: Number) -> Number:
    """``-x``."""
    if x.literal is not None and x.dtype.kind != "b" and x.dtype.kind != "c":
        return constant(-x.literal, x.dtype) if x.dtype.kind != "u" else _wrapped(-x.literal, x)
    if x.step is not None:
        return binary(f, "-", constant(0, INT64), x)
    if x.dtype.kind in "biu" and x.dtype.itemsize < 8:
        x = cast(f, x, UINT64 if x.dtype.kind == "u" else INT64)
    if x.dtype.kind in "iu":
        return apply(f, "sub", constant(0, x.dtype), x, dtype=x.dtype)
    kind = kind_of(x)
    return Number(x.dtype, tuple(f.pure(f"fneg {kind} {p}") for p in x.parts), x.lanes)


def _wrapped(value: int, x: Number) -> Number:
    return constant(value % (1 << 64), UINT64)


def invert(f: FunctionWriter, x: Number) -> Number:
    """``~x``."""
    if x.dtype.kind == "b":
        return logical_not(f, x)
    x = cast(f, x, UINT64 if x.dtype.kind == "u" else INT64)
    return apply(f, "xor", x, constant(-1, x.dtype), dtype=x.dtype)


def logical_not(f: FunctionWriter, x: Number) -> Number:
    """Whether a number is zero."""
    return apply(f, "xor", truth(f, x), constant(True, BOOL), dtype=BOOL)


def truth(f: FunctionWriter, x: Number) -> Number:
    """Whether a number is not zero."""
    if x.dtype.kind == "b":
        return x
    if x.literal is not None and not x.lanes:
        return constant(bool(x.literal), BOOL)
    return compare(f, "!=", x, constant(0, x.dtype))


def compare(f: FunctionWriter, op: str, a: Number, b: Number) -> Number:
    """``a op b``, False for NaN but of ``!=``."""
    if {a.dtype, b.dtype} == {INT64, UINT64}:
        return _compare_signs(f, op, a, b)
    dtype = common(a.dtype, b.dtype)
    if a.dtype == b.dtype:
        dtype = a.dtype
    a, b = cast(f, a, dtype), cast(f, b, dtype)
    if dtype.kind == "c":
        if op not in ("==", "!="):
            raise Unsupported("an order of complex numbers")
        (p, q), (r, s) = _parts(a), _parts(b)
        return binary(f, "&" if op == "==" else "|", compare(f, op, p, r), compare(f, op, q, s))
    code = _COMPARISONS[op]
    if dtype.kind == "f":
        operation = f"fcmp {'u' if op == '!=' else 'o'}{code}"
    else:
        sign = "" if op in ("==", "!=") else "u" if dtype.kind in ("b", "u") else "s"
        operation = f"icmp {sign}{code}"
    return apply(f, operation, a, b, dtype=BOOL)


def _compare_signs(f: FunctionWriter, op: str, a: Number, b: Number) -> Number:
    """A comparison of a signed and an unsigned number."""
    if a.dtype == UINT64:
        return _compare_signs(f, _MIRRORED[op], b, a)
    negative = compare(f, "<", a, constant(0, INT64))
    positive = compare(f, op, Number(UINT64, a.parts, a.lanes, a.literal, a.step), b)
    return select(f, negative, constant(op in ("<", "<=", "!="), BOOL), positive)


def select(f: FunctionWriter, condition: Number, a: Number, b: Number) -> Number:
    """``a`` where ``condition`` holds, else ``b``."""
    if a.dtype != b.dtype:
        dtype = common(a.dtype, b.dtype)
        a, b = cast(f, a, dtype), cast(f, b, dtype)
    if a.parts == b.parts and a.lanes == b.lanes and a.step is b.step is None:
        return a
    lanes = max(condition.lanes, a.lanes, b.lanes)
    a, b = in_lanes(a, lanes, f), in_lanes(b, lanes, f)
    kind, flag = kind_of(a), vector_type("i1", condition.lanes)
    parts = tuple(
        f.pure(f"select {flag} {condition.part}, {kind} {x}, {kind} {y}")
        for x, y in zip(a.parts, b.parts, strict=True)
    )
    return Number(a.dtype, parts, lanes)


def cast(f: FunctionWriter, x: Number, dtype: np.dtype) -> Number:
    """Conversion as NumPy's astype does it; complex to real keeps the real part."""
    if x.dtype is dtype or x.dtype == dtype:
        return x
    if dtype.kind == "b":
        return truth(f, x)
    if dtype.kind == "c":
        real_dtype = part_dtype(dtype)
        a, b = cast(f, real(x), real_dtype), cast(f, imag(x), real_dtype)
        a, b = together(f, a, b)
        return Number(dtype, (a.part, b.part), a.lanes, x.literal)
    if x.dtype.kind == "c":
        return cast(f, real(x), dtype)
    if x.literal is not None and not x.lanes and _exact(x.literal, dtype):
        return constant(dtype.type(x.literal).item(), dtype)
    x = in_lanes(x, x.lanes, f)
    source, size = x.dtype, x.dtype.itemsize
    operation = _conversion(source, dtype)
    if operation is None:
        return Number(dtype, x.parts, x.lanes)
    if source.kind == "f" and dtype.kind in "iu" and dtype.itemsize < 8 and size:
        return cast(f, cast(f, x, INT64), dtype)
    kind = vector_type(scalar_type(dtype), x.lanes)
    return Number(dtype, (f.pure(f"{operation} {kind_of(x)} {x.part} to {kind}"),), x.lanes)


def _exact(value: int | float, dtype: np.dtype) -> bool:
    """Whether Python converts a number as machine code does."""
    if dtype.kind == "f":
        return True
    if isinstance(value, float):
        return value.is_integer() and abs(value) < 2.0**31
    info = np.iinfo(dtype)
    return int(info.min) <= value <= int(info.max)


def _conversion(source: np.dtype, target: np.dtype) -> str | None:
    if target.kind == "f":
        if source.kind == "f":
            return "fpext" if target.itemsize > source.itemsize else "fptrunc"
        return "sitofp" if source.kind == "i" else "uitofp"
    if source.kind == "f":
        return "fptosi" if target.kind == "i" else "fptoui"
    if source.kind == "b" or target.itemsize > source.itemsize:
        return "sext" if source.kind == "i" else "zext"
    return "trunc" if target.itemsize < source.itemsize else None


def reduce_halves(f: FunctionWriter, x: Number, step: Callable[[Number, Number], Number]) -> Number:
    """The lanes of a vector put together: the second half to the first, until one is left.

    The order is written out, since each CPU's part of LLVM has another one of its own.
    """
    scalar = scalar_type(x.dtype)
    vector, count = x.part, x.lanes
    while count > 1:
        kind, half = f"<{count} x {scalar}>", count // 2
        halves = [
            f.value(
                f"shufflevector {kind} {vector}, {kind} poison, <{half} x i32> "
                f"<{', '.join(f'i32 {k}' for k in range(first, first + half))}>"
            )
            for first in (0, half)
        ]
        joined = step(*[Number(x.dtype, (each,), half) for each in halves])
        vector, count = cast(f, joined, x.dtype).part, half
    return Number(x.dtype, (f.value(f"extractelement <1 x {scalar}> {vector}, i64 0"),))
