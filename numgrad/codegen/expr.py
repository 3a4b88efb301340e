"""A formula read on symbols becomes typed straight-line source.

``Reader`` makes symbols for the inputs of a formula. Calling the formula with them builds a
graph of typed scalar operations (NumPy's promotion rules, Python numbers weak as in NEP 50);
``Emitter`` writes that graph as statements that mention one element of every input.

Reductions over an axis, ``np.sum(x, axis=axis, keepdims=True)`` and its like, become nodes too; the
templates in ``reductions`` decide in which pass over the data each is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numgrad.codegen.library import (
    COMPLEX_LIBRARY,
    EXTERNALS,
    LIBRARY,
    SLOW_FOR_ALL,
    WITH_RARE,
)
from numgrad.errors import NumgradTypeError

KERNEL_DTYPES = tuple(
    np.dtype(name)
    for name in (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float32", "float64", "complex64", "complex128",
    )
)  # fmt: skip
_KERNEL_DTYPES = frozenset(KERNEL_DTYPES)

_NAMES = {dtype: ("boolean" if dtype.kind == "b" else dtype.name) for dtype in KERNEL_DTYPES}
BOOL, INT64, FLOAT32, FLOAT64, COMPLEX64 = (
    np.dtype(n) for n in ("bool", "int64", "float32", "float64", "complex64")
)


def type_name(dtype: np.dtype) -> str:
    """Numba's name of a dtype."""
    return _NAMES[dtype]


def short(dtype: np.dtype) -> str:
    """Kind and size in two or three characters, as in NumPy's codes: ``f8``, ``c16``, ``b1``."""
    return f"{dtype.kind}{dtype.itemsize}"


def kernel_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype a kernel computes in where NumPy's rules give ``dtype``.

    NumPy gives float16 for functions of 8-bit integers; there are no float16 kernels, so float32.
    It compares two Python integers as objects, of any size.
    """
    if dtype.kind == "O":
        return INT64
    return FLOAT32 if dtype == np.float16 else dtype


def check_dtype(operation: str, dtype: np.dtype) -> None:
    """Raise unless kernels exist for ``dtype``."""
    if dtype not in _KERNEL_DTYPES:
        raise NumgradTypeError(
            f"{operation}: no kernels for dtype {dtype}; convert with astype to one of "
            f"{', '.join(d.name for d in KERNEL_DTYPES)}"
        )


def resolve(
    ufunc: np.ufunc, operands: Sequence[np.dtype | type]
) -> tuple[list[np.dtype], np.dtype]:
    """Dtypes of the operands inside NumPy's loop, and of its result.

    ``operands`` are dtypes, or ``int``, ``float``, ``complex`` for Python numbers.
    """
    try:
        *inputs, output = ufunc.resolve_dtypes((*operands, None))
    except TypeError as error:
        names = ", ".join(getattr(o, "name", getattr(o, "__name__", str(o))) for o in operands)
        raise NumgradTypeError(
            f"{ufunc.__name__}: not defined for {names}; convert with astype first"
        ) from error
    return [kernel_dtype(d) for d in inputs], kernel_dtype(output)


# ------------------------------------------------------------------------------------ reading


class Symbol:
    """One value of a formula under reading: an operation, its arguments and a dtype.

    ``dtype`` is a NumPy dtype, or ``int``, ``float``, ``complex`` for a Python number.
    """

    __slots__ = ("args", "detail", "dtype", "op", "reader")
    __array_priority__ = 1000.0

    def __init__(self, reader: Reader, op: str, args: tuple, dtype: Any, detail: Any) -> None:
        self.reader, self.op, self.args, self.dtype, self.detail = reader, op, args, dtype, detail

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Symbol:
        if method != "__call__" or kwargs:
            raise NumgradTypeError(f"a formula may call np.{ufunc.__name__} only plainly")
        return self.reader.ufunc(ufunc, *inputs)

    def __array_function__(self, func: Callable, types: Any, args: tuple, kwargs: dict) -> Any:
        return self.reader.function(func, args, kwargs)

    def __bool__(self) -> bool:
        raise NumgradTypeError("a formula has no branches: use np.where(condition, a, b)")

    @property
    def real(self) -> Symbol:
        return self.reader.real(self)

    @property
    def imag(self) -> Symbol:
        return self.reader.imag(self)

    def astype(self, dtype: Any) -> Symbol:
        return self.reader.cast(self, np.dtype(dtype))


def _binary(ufunc: np.ufunc) -> tuple[Callable, Callable]:
    def forward(self: Symbol, other: Any) -> Symbol:
        return self.reader.ufunc(ufunc, self, other)

    def reflected(self: Symbol, other: Any) -> Symbol:
        return self.reader.ufunc(ufunc, other, self)

    return forward, reflected


for _name, _ufunc in {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor, "lshift": np.left_shift, "rshift": np.right_shift,
}.items():  # fmt: skip
    _forward, _reflected = _binary(_ufunc)
    setattr(Symbol, f"__{_name}__", _forward)
    setattr(Symbol, f"__r{_name}__", _reflected)
for _name, _ufunc in {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal, "ne": np.not_equal,
}.items():  # fmt: skip
    setattr(Symbol, f"__{_name}__", _binary(_ufunc)[0])
Symbol.__hash__ = object.__hash__
for _name, _ufunc in {
    "neg": np.negative, "pos": np.positive, "invert": np.invert, "abs": np.absolute,
}.items():  # fmt: skip
    setattr(Symbol, f"__{_name}__", lambda self, _ufunc=_ufunc: self.reader.ufunc(_ufunc, self))


AXIS = object()
"""Stands for the reduced axis while a formula is read."""

REDUCERS = {getattr(np, name): name for name in ("sum", "prod", "max", "min", "any", "all")}
REDUCERS |= {np.amax: "max", np.amin: "min"}


class Reader:
    """Builds the graph of a formula; equal sub-expressions become one symbol."""

    def __init__(self) -> None:
        self._interned: dict[tuple, Symbol] = {}

    def make(self, op: str, args: tuple = (), dtype: Any = None, detail: Any = None) -> Symbol:
        key = (op, tuple(map(id, args)), dtype, type(detail), repr(detail))
        found = self._interned.get(key)
        if found is None:
            found = self._interned[key] = Symbol(self, op, args, dtype, detail)
        return found

    def input(self, name: str, dtype: np.dtype) -> Symbol:
        """The current element of an operand."""
        return self.make("input", (), dtype, name)

    def lift(self, value: Any) -> Symbol:
        """A Python or NumPy number as a symbol."""
        if isinstance(value, Symbol):
            return value
        if isinstance(value, np.generic):
            return self.make("const", (), value.dtype, value.item())
        if isinstance(value, bool):
            return self.make("const", (), BOOL, value)
        if isinstance(value, int | float | complex):
            return self.make("const", (), type(value), value)
        raise NumgradTypeError(f"a formula cannot use {type(value).__name__} {value!r}")

    def cast(self, x: Symbol, dtype: np.dtype) -> Symbol:
        if isinstance(x.dtype, np.dtype) and x.dtype == dtype:  # ``float`` equals float64 too
            return x
        if x.op == "const":
            return self.make("const", (), dtype, x.detail)
        return self.make("cast", (x,), dtype)

    def ufunc(self, ufunc: np.ufunc, *inputs: Any) -> Symbol:
        symbols = [self.lift(x) for x in inputs]
        if all(s.op == "const" and isinstance(s.dtype, type) for s in symbols):
            return self.lift(ufunc(*(s.detail for s in symbols)).item())
        if ufunc is np.power and symbols[1].op == "const" and symbols[1].detail == 2:
            return self.ufunc(np.square, symbols[0])
        loop, out = resolve(ufunc, [s.dtype for s in symbols])
        return self.call(ufunc.__name__, symbols, loop, out)

    def call(
        self, name: str, inputs: Sequence[Any], loop: Sequence[np.dtype], out: np.dtype
    ) -> Symbol:
        """Apply the scalar function ``name`` to operands converted to the dtypes ``loop``."""
        symbols = [self.cast(self.lift(x), d) for x, d in zip(inputs, loop, strict=True)]
        if name in ("conjugate", "real") and out.kind != "c" and loop[0].kind != "c":
            return symbols[0]
        if name == "imag" and loop[0].kind != "c":
            return self.make("const", (), out, 0)
        return self.make(name, tuple(symbols), out)

    def real(self, x: Any) -> Symbol:
        x = self.lift(x)
        return self.call("real", [x], [x.dtype], _real_dtype(x.dtype))

    def imag(self, x: Any) -> Symbol:
        x = self.lift(x)
        return self.call("imag", [x], [x.dtype], _real_dtype(x.dtype))

    def where(self, condition: Any, a: Any, b: Any) -> Symbol:
        condition, a, b = (self.lift(v) for v in (condition, a, b))
        _, out = resolve(np.add, [v.dtype for v in (a, b)]) if a.dtype != b.dtype else ((), a.dtype)
        if isinstance(out, type):
            out = np.dtype(out)
        if isinstance(a.dtype, np.dtype) and a.dtype == b.dtype == BOOL:
            out = BOOL
        return self.make(
            "where", (self.cast(condition, BOOL), self.cast(a, out), self.cast(b, out)), out
        )

    def function(self, func: Callable, args: tuple, kwargs: dict) -> Symbol:
        if func is np.where:
            return self.where(*args)
        if func is np.real:
            return self.real(*args)
        if func is np.imag:
            return self.imag(*args)
        if func in REDUCERS and kwargs.get("keepdims") is True and kwargs.get("axis") is AXIS:
            return self.reduce(REDUCERS[func], *args)
        raise NumgradTypeError(
            f"a formula cannot call np.{func.__name__} this way; reductions are written "
            "np.sum(x, axis=axis, keepdims=True)"
        )

    def reduce(self, kind: str, x: Any) -> Symbol:
        x = self.lift(x)
        dtype = x.dtype
        if kind in ("any", "all"):
            x, dtype = self.cast(x, BOOL), BOOL
        elif kind in ("sum", "prod") and dtype.kind in "biu":
            dtype = np.dtype("uint64" if dtype.kind == "u" else "int64")
            x = self.cast(x, dtype)
        return self.make("reduce", (x,), dtype, kind)


def _real_dtype(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


# ----------------------------------------------------------------------------------- emission

_INTRINSIC = {
    "sqrt": "sqrt", "absolute": "fabs", "fabs": "fabs", "floor": "floor", "ceil": "ceil",
    "trunc": "trunc", "rint": "rint", "copysign": "copysign", "maximum": "maximum",
    "minimum": "minimum",
}  # fmt: skip
_COMPARISONS = {
    "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==",
    "not_equal": "!=",
}  # fmt: skip
_ARITHMETIC = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "bitwise_and": "&",
    "bitwise_or": "|", "bitwise_xor": "^", "left_shift": "<<", "right_shift": ">>",
}  # fmt: skip
# Complex numbers are ordered as NumPy does it: real parts decide, then imaginary parts.
_LEXICOGRAPHIC = (
    "(({{0}}.real {0} {{1}}.real) & ({{0}}.imag == {{0}}.imag) & ({{1}}.imag == {{1}}.imag)) | "
    "(({{0}}.real == {{1}}.real) & ({{0}}.imag {1} {{1}}.imag))"
)
# The text of what Python spells itself, by name, or by name and kind of the first operand: {0} and
# {1} are operands, {true0} and {true1} whether they are non-zero, {type} is the type of the result.
_SPELLINGS: dict[str | tuple[str, str], str] = {
    "real": "{0}.real",
    "imag": "{0}.imag",
    "conjugate": "{type}(np.conj({0}))",
    "from_parts": "{type}(complex({0}, {1}))",
    "positive": "{0}",
    "negative": "{type}(-{0})",
    "square": "{type}({0} * {0})",
    "logical_not": "not {true0}",
    "logical_and": "{true0} & {true1}",
    "logical_or": "{true0} | {true1}",
    "logical_xor": "{true0} ^ {true1}",
    ("isnan", "f"): "{0} != {0}",
    **{(name, kind): "False" for name in ("isnan", "isinf") for kind in "biu"},
    **{("isfinite", kind): "True" for kind in "biu"},
    **{name: f"{{0}} {sign} {{1}}" for name, sign in _COMPARISONS.items()},
    **{
        (name, "c"): _LEXICOGRAPHIC.format(sign[0], sign)
        for name, sign in _COMPARISONS.items()
        if sign[0] in "<>"
    },
    **{name: f"{{type}}({{0}} {sign} {{1}})" for name, sign in _ARITHMETIC.items()},
    ("divide", "c"): "{type}(np.divide({0}, {1}))",  # Numba's / raises for zero, the ufunc does not
}
_COST_NS = {"divide": 0.2, "sqrt": 0.3, "where": 0.05}


@dataclass
class Emitter:
    """Writes symbols as statements; keeps what the statements need around them."""

    imports: dict[str, str] = field(default_factory=dict)  # local name -> "module:function"
    externals: set[str] = field(default_factory=set)
    namespace: dict[str, Any] = field(default_factory=dict)  # users' own compiled functions
    constants: dict[str, str] = field(default_factory=dict)  # text -> name
    scalar_functions: dict[str, Any] = field(default_factory=dict)
    cost_ns: float = 0.0
    _counter: int = 0

    def block(
        self, outputs: Iterable[Symbol], names: dict[Symbol, str], *, slow: bool = False
    ) -> tuple[list[str], list[str]]:
        """Statements that compute ``outputs``, and the expression of each output.

        ``names`` gives the text of inputs and of values computed before; it gains the new ones.
        With ``slow``, functions with rare arguments take any argument.
        """
        outputs = list(outputs)
        lines: list[str] = []
        for symbol in in_order(outputs, names):
            text = self._text(symbol, [names[a] for a in symbol.args], slow)
            if symbol.op == "const":
                names[symbol] = text
                continue
            self._counter += 1
            names[symbol] = f"v{self._counter}"
            lines.append(f"{names[symbol]} = {text}")
        return lines, [names[o] for o in outputs]

    def rare(self, outputs: Iterable[Symbol], names: dict[Symbol, str]) -> tuple[list[str], str]:
        """Statements and a condition that holds when a fast function would meet a rare argument."""
        tests = []
        for symbol in in_order(list(outputs), names):
            if symbol.op in WITH_RARE and symbol.dtype.kind == "f":
                tests.append((symbol.args, self._library(symbol.op, symbol.dtype, "_rare")))
        if not tests:
            return [], ""
        names = dict(names)
        lines, _ = self.block([a for arguments, _ in tests for a in arguments], names)
        calls = [f"{test}({', '.join(names[a] for a in args)})" for args, test in tests]
        return lines, " | ".join(calls)

    def _library(self, name: str, dtype: np.dtype, suffix: str = "") -> str:
        module, function = LIBRARY[name]
        local = f"{function}{suffix}_{'f32' if dtype == FLOAT32 else 'f64'}"
        self.imports[local] = f"{module}:{local}"
        if name in EXTERNALS:
            self.externals.add(EXTERNALS[name])
        return local

    def _intrinsic(self, name: str) -> str:
        self.imports[f"i_{name}"] = f"numgrad.codegen.intrinsics:{name}"
        return f"i_{name}"

    def constant(self, value: Any, dtype: Any) -> str:
        """Name of a typed module-level constant."""
        dtype = np.dtype(dtype)
        # repr of nan and inf is no expression by itself
        text = f"np.{dtype.type.__name__}({_literal(value, dtype)})"
        return self.constants.setdefault(text, f"C{len(self.constants)}")

    def _text(self, symbol: Symbol, args: list[str], slow: bool) -> str:
        op, dtype = symbol.op, symbol.dtype
        if op == "const":
            return self.constant(symbol.detail, dtype)
        if op == "cast":
            return cast_text(args[0], symbol.args[0].dtype, dtype)
        cost = _COST_NS.get(op, 1.0 if op in LIBRARY else 0.05)
        self.cost_ns += 4.0 * cost if dtype.kind == "c" else cost
        if op in self.scalar_functions:
            local = op.replace(":", "_")
            self.namespace[local] = self.scalar_functions[op]
            return f"{type_name(dtype)}({local}({', '.join(args)}))"
        if op == "where":
            if dtype.kind == "c":
                return f"({args[1]} if {args[0]} else {args[2]})"
            return f"{self._intrinsic('select')}({', '.join(args)})"
        kind, operand = symbol.args[0].dtype.kind, symbol.args[-1].dtype
        if kind == "c" and op in COMPLEX_LIBRARY:
            local = f"{op}_{'c64' if operand == COMPLEX64 else 'c128'}"
            self.imports[local] = f"{COMPLEX_LIBRARY[op]}:{local}"
            return f"{local}({', '.join(args)})"
        if op == "reciprocal" and kind == "f":
            op, args = "divide", [self.constant(1, dtype), args[0]]
        spelling = _SPELLINGS.get((op, kind)) or _SPELLINGS.get(op)
        if spelling is not None:
            true = {f"true{k}": truth(args[k], a.dtype.kind) for k, a in enumerate(symbol.args)}
            return spelling.format(*args, type=type_name(dtype), **true)
        if kind == "f" and op in _INTRINSIC:
            return f"{self._intrinsic(_INTRINSIC[op])}({', '.join(args)})"
        if kind == "f" and op in LIBRARY:
            return self._call(op, operand, args, slow)
        if isinstance(getattr(np, op, None), np.ufunc):
            return cast_text(f"np.{op}({', '.join(args)})", dtype, dtype)
        raise NumgradTypeError(f"no scalar code for {op} of {operand}")

    def _call(self, op: str, dtype: np.dtype, args: list[str], slow: bool) -> str:
        """A call of the library; ``slow`` where an argument may be a rare one."""
        if not slow or op not in WITH_RARE:
            return f"{self._library(op, dtype)}({', '.join(args)})"
        exact = f"{self._library(op, dtype, '_slow')}({', '.join(args)})"
        if op in SLOW_FOR_ALL:
            return exact
        fast, rare = (self._library(op, dtype, suffix) for suffix in ("", "_rare"))
        return f"({exact} if {rare}({args[0]}) else {fast}({args[0]}))"

    def header(self) -> str:
        """The import and constant lines of a generated file."""
        lines = [
            "import numpy as np",
            "from numba import prange",
            "from numba import boolean, int8, int16, int32, int64, uint8, uint16, uint32, uint64",
            "from numba import float32, float64, complex64, complex128",
        ]
        for local, target in sorted(self.imports.items()):
            module, function = target.split(":")
            lines.append(f"from {module} import {function} as {local}")
        lines += [f"{name} = {text}" for text, name in self.constants.items()]
        return "\n".join(lines) + "\n\n"


def _literal(value: Any, dtype: np.dtype) -> str:
    if dtype.kind == "c":
        value = complex(value)
        return f"complex({_literal(value.real, FLOAT64)}, {_literal(value.imag, FLOAT64)})"
    if dtype.kind == "f":
        value = float(value)
        return repr(value) if np.isfinite(value) else f"float('{value}')"
    return repr(bool(value)) if dtype.kind == "b" else repr(int(value))


def has_scalar(name: str, kind: str) -> bool:
    """Whether the kernel library has the function for floats, or for complex numbers."""
    return kind == "f" or (kind == "c" and name in COMPLEX_LIBRARY)


def truth(text: str, kind: str) -> str:
    """A bool expression: whether a value is non-zero."""
    return text if kind == "b" else f"({text} != 0)"


def cast_text(text: str, source: np.dtype, target: np.dtype) -> str:
    """Conversion as NumPy's astype does it; complex to real keeps the real part."""
    if target.kind == "b":
        return truth(text, source.kind)
    if source.kind == "c" and target.kind != "c":
        text = f"({text}).real"
    return f"{type_name(target)}({text})"


def in_order(outputs: Sequence[Symbol], known: dict[Symbol, str]) -> list[Symbol]:
    """Symbols needed for ``outputs`` that are not ``known``, arguments first."""
    order: list[Symbol] = []
    seen = set(map(id, known))
    stack: list[tuple[Symbol, bool]] = [(o, False) for o in reversed(outputs)]
    while stack:
        symbol, expanded = stack.pop()
        if expanded:
            order.append(symbol)
        elif id(symbol) not in seen:
            seen.add(id(symbol))
            stack.append((symbol, True))
            stack.extend((a, False) for a in reversed(symbol.args))
    return order
