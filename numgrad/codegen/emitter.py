"""Symbols as statements: typed straight-line source that mentions one element of every input."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any

import numpy as np

from numgrad.codegen import library
from numgrad.codegen.dtypes import COMPLEX64, FLOAT32, FLOAT64, type_name
from numgrad.codegen.symbols import Symbol, in_order
from numgrad.dataclass import dataclass
from numgrad.errors import NumgradTypeError

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


def price_ns(symbol: Symbol) -> float:
    """Nanoseconds that computing a symbol of known operands takes for an element, about."""
    op, dtype = symbol.op, symbol.dtype
    if op in ("const", "cast", "input", "reduce"):
        return 0.0
    cost = _COST_NS.get(op, 1.0 if op in library.LIBRARY else 0.05)
    # complex numbers take several operations, and vectors hold twice as many float32
    return cost * (4.0 if dtype.kind == "c" else 0.5 if dtype == FLOAT32 else 1.0)


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
            if symbol.op in library.WITH_RARE and symbol.dtype.kind == "f":
                tests.append((symbol.args, self._library(symbol.op, symbol.dtype, "_rare")))
        if not tests:
            return [], ""
        names = dict(names)
        lines, _ = self.block([a for arguments, _ in tests for a in arguments], names)
        calls = [f"{test}({', '.join(names[a] for a in args)})" for args, test in tests]
        return lines, " | ".join(calls)

    def _library(self, name: str, dtype: np.dtype, suffix: str = "") -> str:
        module, function = library.LIBRARY[name]
        local = f"{function}{suffix}_{'f32' if dtype == FLOAT32 else 'f64'}"
        self.imports[local] = f"{module}:{local}"
        self.externals.update(library.EXTERNALS.get(name, ()))
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
            return self._cast(args[0], symbol.args[0].dtype, dtype)
        self.cost_ns += price_ns(symbol)
        if op in self.scalar_functions:
            local = op.replace(":", "_")
            self.namespace[local] = self.scalar_functions[op]
            return f"{type_name(dtype)}({local}({', '.join(args)}))"
        if op == "where":
            if dtype.kind == "c":
                return f"({args[1]} if {args[0]} else {args[2]})"
            return f"{self._intrinsic('select')}({', '.join(args)})"
        kind, operand = symbol.args[0].dtype.kind, symbol.args[-1].dtype
        if operand.kind == "c" and op in library.COMPLEX_LIBRARY:
            local = f"{op}_{'c64' if operand == COMPLEX64 else 'c128'}"
            self.imports[local] = f"{library.COMPLEX_LIBRARY[op]}:{local}"
            self.externals.update(library.EXTERNALS.get(local, ()))
            return f"{local}({', '.join(args)})"
        if op == "reciprocal" and kind == "f":
            op, args = "divide", [self.constant(1, dtype), args[0]]
        spelling = _SPELLINGS.get((op, kind)) or _SPELLINGS.get(op)
        if spelling is not None:
            true: dict[str, str] = {}
            if "{true" in spelling:
                true = {f"true{k}": truth(args[k], a.dtype.kind) for k, a in enumerate(symbol.args)}
            return spelling.format(*args, type=type_name(dtype), **true)
        if kind == "f" and op in _INTRINSIC:
            return f"{self._intrinsic(_INTRINSIC[op])}({', '.join(args)})"
        if kind == "f" and op in library.LIBRARY:
            return self._call(op, operand, args, slow)
        if isinstance(getattr(np, op, None), np.ufunc):
            return cast_text(f"np.{op}({', '.join(args)})", dtype, dtype)
        raise NumgradTypeError(f"no scalar code for {op} of {operand}")

    def _cast(self, text: str, source: np.dtype, target: np.dtype) -> str:
        """A conversion, the same of floats out of an integer's range as everywhere."""
        if source.kind not in "fc" or target.kind not in "iu":
            return cast_text(text, source, target)
        whole = target.name if target.itemsize > 2 else "int32"
        kind = FLOAT32 if source in (FLOAT32, COMPLEX64) else FLOAT64
        convert = self._library(f"to_{whole}", kind)
        return f"{type_name(target)}({convert}({cast_text(text, source, kind)}))"

    def _call(self, op: str, dtype: np.dtype, args: list[str], slow: bool) -> str:
        """A call of the library; ``slow`` where an argument may be a rare one."""
        if not slow or op not in library.WITH_RARE:
            return f"{self._library(op, dtype)}({', '.join(args)})"
        exact = f"{self._library(op, dtype, '_slow')}({', '.join(args)})"
        if op in library.SLOW_FOR_ALL:
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
    return kind == "f" or (kind == "c" and name in library.COMPLEX_LIBRARY)


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
