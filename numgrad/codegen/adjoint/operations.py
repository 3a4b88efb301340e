"""Scalar operations: how each is written, and its partial derivatives from the operation table.

Note [Templates]
----------------
A partial derivative is a text that names the operands ``{a}``, ``{b}``, ..., the result ``{t}`` and
the cotangent ``{g}``. What it names is what the backward sweep needs. It is made from the gradient
formula of the operation table, which is read on symbols; a formula that uses a value twice becomes
a function of the text, in the language of kernels as everything else, so it has derivatives too.

Functions of the kernel library are written with the dtype of their operands, ``exp_f64(x)``: the
compiler binds the name to the library, a plain run to NumPy, and reading finds the operation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from numgrad.codegen.adjoint.scopes import TEXT
from numgrad.codegen.library import COMPLEX_LIBRARY, LIBRARY
from numgrad.codegen.symbols import Reader, Symbol, in_order
from numgrad.dataclass import dataclass
from numgrad.errors import NumgradKernelError, NumgradNotImplementedError, NumgradTypeError

SUFFIXES = {"float32": "f32", "float64": "f64", "complex64": "c64", "complex128": "c128"}
NAMED = re.compile(r"(?<!def )\b([A-Za-z]\w*?)_(f32|f64|c64|c128)(?=\()")
"""A call of a function of the library in a text."""
INSTRUCTIONS = {
    "sqrt": "sqrt", "fabs": "fabs", "floor": "floor", "ceil": "ceil", "trunc": "trunc",
    "rint": "rint", "copysign": "copysign", "maximum": "maximum", "minimum": "minimum",
}  # fmt: skip
"""Operations on floats that are single instructions, and their names in ``intrinsics``."""
_INFIX = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "less": "<", "less_equal": "<=",
    "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!=", "bitwise_and": "&",
    "bitwise_or": "|", "bitwise_xor": "^", "logical_and": "&", "logical_or": "|",
    "logical_xor": "^",
}  # fmt: skip
LABELS = "abcdefhijklmnopqrsu"
"""Names of operands in templates; ``g`` and ``t`` are the cotangent and the result."""
_SAME = {"max": "maximum", "min": "minimum"}
"""Python's own functions, whose derivatives are those of operations."""
TIES = {"constant": 1, "tie_count": 3, "tie_share": 4}
"""Operations that share derivatives of extremes, and how many operands they have."""
_CHEAP = {
    "add", "subtract", "multiply", "divide", "negative", "copy", "cast", "max", "min", *TIES
}  # fmt: skip


class OperationTable(Protocol):
    """The operations of one element, as the floors above hand them in."""

    def name_of(self, function: Any) -> str | None:
        """The operation that a Python function stands for."""
        ...

    def count(self, name: str) -> int:
        """How many operands an operation has."""
        ...

    def types(self, name: str, dtypes: Sequence[np.dtype]) -> tuple[list[np.dtype], np.dtype]:
        """Dtypes in which it computes, and of its result."""
        ...

    def value(self, name: str, reader: Reader, operands: Sequence[Symbol]) -> Symbol:
        """Its result."""
        ...

    def gradient(self, name: str, k: int, g: Symbol, operands: Sequence[Symbol], y: Symbol) -> Any:
        """The gradient of operand ``k``, a symbol or number; None if it has no derivative."""
        ...

    def plain(self, name: str) -> Callable[..., Any]:
        """The operation as a Python function of numbers."""
        ...


@dataclass(frozen=True)
class ScalarFunction:
    """A name of a text such as ``exp_f64``: reading finds the operation, plain runs call it."""

    operation: str
    function: Callable[..., Any]

    def __call__(self, *numbers: Any) -> Any:
        return self.function(*numbers)


class Operations:
    """Texts of operations of scalars, by an operation table.

    Attributes
    ----------
    definitions
        Functions of texts by name: gradient formulas, operations made of several others.
    keeps_dear
        Whether values that are dear to compute are kept, not computed again.
    """

    def __init__(self, table: OperationTable, *, keeps_dear: bool = True) -> None:
        self.table, self.keeps_dear = table, keeps_dear
        self.definitions: dict[str, str] = {}
        self._partials: dict[tuple, str | None] = {}

    # ------------------------------------------------------------------------------ expressions

    def expression(
        self, operation: str, operands: Sequence[str], dtypes: Sequence[np.dtype]
    ) -> str:
        """An operation on operands that are written already, of one dtype each."""
        kind = dtypes[0].kind
        if operation == "copy":
            return operands[0]
        if operation in ("max", "min"):
            return f"{operation}({', '.join(operands)})"
        if operation in _INFIX and not (operation == "divide" and kind == "c"):
            return f"{operands[0]} {_INFIX[operation]} {operands[1]}"
        if operation == "divide":
            return f"np.divide({operands[0]}, {operands[1]})"
        if operation == "negative":
            return f"-{operands[0]}"
        if operation == "positive":
            return operands[0]
        if operation in ("real", "imag"):
            return f"{operands[0]}.{operation}"
        if operation == "conjugate":
            return f"np.conj({operands[0]})"
        if operation == "logical_not" or (operation == "invert" and kind == "b"):
            return f"not {operands[0]}"
        if operation == "from_parts":
            whole = f"complex({operands[0]}, {operands[1]})"
            return whole if dtypes[0].itemsize == 8 else f"np.complex64({whole})"
        if operation in ("isnan", "isinf", "isfinite", "signbit"):
            return f"np.{operation}({operands[0]})"
        if operation == "square":
            return f"{operands[0]} * {operands[0]}"
        if operation == "reciprocal" and kind == "f":
            return f"{literal(1.0, dtypes[0])} / {operands[0]}"
        if operation == "where":
            return f"{operands[1]} if {operands[0]} else {operands[2]}"
        if operation == "absolute" and kind in "fiu":
            return f"abs({operands[0]})"
        name = self._function(operation, dtypes[-1])
        return f"{name}({', '.join(operands)})"

    def _function(self, operation: str, dtype: np.dtype) -> str:
        """The name of a function of the library, or of one that is defined here."""
        suffix = SUFFIXES.get(dtype.name)
        if suffix is None:
            raise NumgradTypeError(f"{operation} has no form for {dtype}")
        name = f"{operation}_{suffix}"
        if name in self.definitions or _in_library(operation, dtype):
            return name
        reader = Reader()
        operands = [reader.input(c, dtype) for c in LABELS[: self.table.count(operation)]]
        value = self.table.value(operation, reader, operands)
        if value.op == operation:
            raise NumgradTypeError(f"{operation} has no form for {dtype} in compiled loops")
        self._define(name, operands, value)
        return name

    def _define(self, name: str, inputs: Sequence[Symbol], value: Symbol) -> None:
        """Add a function that computes a symbol."""
        names = {symbol: str(symbol.detail) for symbol in inputs}
        lines = []
        for symbol in in_order([value], names):
            text = self._written(symbol, [names[a] for a in symbol.args])
            if symbol.op == "const":
                names[symbol] = text
                continue
            names[symbol] = f"v{len(names)}"
            lines.append(f"    {names[symbol]} = {text}")
        head = ", ".join(str(symbol.detail) for symbol in inputs)
        lines.append(f"    return {names[value]}")
        self.definitions[name] = f"def {name}({head}):\n" + "\n".join(lines) + "\n"

    def _written(self, symbol: Symbol, operands: Sequence[str]) -> str:
        if symbol.op == "const":
            return literal(symbol.detail, np.dtype(symbol.dtype))
        if symbol.op == "cast":
            return cast(operands[0], np.dtype(symbol.args[0].dtype), np.dtype(symbol.dtype))
        return self.expression(symbol.op, operands, [np.dtype(a.dtype) for a in symbol.args])

    # ------------------------------------------------------------------------------- derivatives

    def types(self, operation: str, dtypes: Sequence[np.dtype]) -> tuple[list[np.dtype], np.dtype]:
        """Dtypes in which an operation computes, and of its result."""
        return self.table.types(operation, dtypes)

    def partial(
        self,
        operation: str,
        k: int,
        dtypes: Sequence[np.dtype],
        out: np.dtype,
        operands: Sequence,
        is_sum: bool = False,
    ) -> str | None:
        """The derivative by operand ``k``: Note [Templates]; None if it is zero.

        ``is_sum`` says that the loop around only adds to the cotangent of this operand.
        """
        if operation == "divide" and k == 1 and {out.kind, *[d.kind for d in dtypes]} == {"f"}:
            # the first has one division less, which a chain of cotangents would wait for
            return "(-({g} / {b})) * {t}" if is_sum else "(-{g}) * ({t} / {b})"
        power = operands[1] if operation == "power" else None
        if k == 0 and isinstance(power, int | float) and out.kind == "f":
            return _of_power(power, out)
        key = (operation, k, *dtypes, out)
        if key not in self._partials:
            self._partials[key] = self._partial(operation, k, dtypes, out)
        return self._partials[key]

    def _partial(
        self, operation: str, k: int, dtypes: Sequence[np.dtype], out: np.dtype
    ) -> str | None:
        if operation == "copy":
            return "{g}"
        if operation == "sign" and out.kind == "f":
            return None
        if operation == "cast":
            return None if dtypes[0].kind not in "fc" else cast("{g}", out, dtypes[0])
        if operation in ("real", "imag"):
            zero = literal(0.0, out)
            parts = ("{g}", zero) if operation == "real" else (zero, "{g}")
            return self.expression("from_parts", parts, [out])
        if operation == "from_parts":
            return "{g}.imag" if k else "{g}.real"
        reader = Reader()
        g = reader.input("g", out)
        inputs = [reader.input(c, d) for c, d in zip(LABELS, dtypes, strict=False)]
        y = reader.input("t", out)
        try:
            value = self.table.gradient(_SAME.get(operation, operation), k, g, inputs, y)
        except NumgradNotImplementedError as error:
            raise NumgradKernelError(
                f"{operation} has no derivative with respect to its operand {k + 1}; give it an "
                "integer there, as int(n)"
            ) from error
        if value is None:
            return None
        symbol = reader.lift(value)
        if symbol.op == "const" and symbol.detail == 0:
            return None
        if symbol.dtype != dtypes[k]:
            if np.dtype(symbol.dtype).kind == "c" and dtypes[k].kind != "c":
                symbol = reader.real(symbol)
            symbol = reader.cast(symbol, dtypes[k])
        return self._template(f"{operation}_vjp{k}", symbol, [g, *inputs, y])

    def _template(self, name: str, symbol: Symbol, inputs: Sequence[Symbol]) -> str:
        order = in_order([symbol], dict.fromkeys(inputs))
        uses: dict[Symbol, int] = {}
        for each in order:
            for a in each.args:
                uses[a] = uses.get(a, 0) + (2 if each.op == "square" else 1)
        shared = [s for s in order if s.args and uses.get(s, 1) > 1]
        needed = [s for s in inputs if s is symbol or uses.get(s)]
        if len(order) > 8 or shared or any(s.op == "where" for s in order):
            name = f"{name}_{SUFFIXES[np.dtype(needed[-1].dtype).name]}"
            self._define(name, needed, symbol)
            labels = ", ".join(f"{{{s.detail}}}" for s in needed)
            return f"{name}({labels})"
        texts = {s: f"{{{s.detail}}}" for s in inputs}
        for each in order:
            text = self._written(each, [texts[a] for a in each.args])
            atom = not each.args or re.fullmatch(r"[\w.]+\([^()]*\)", text)
            texts[each] = text if atom or each is symbol else f"({text})"
        return texts[symbol]

    def is_dear(self, operation: str) -> bool:
        """Whether computing it again costs more than reading a value that was kept."""
        return (
            self.keeps_dear
            and operation not in _CHEAP
            and operation not in ("real", "imag", "from_parts", "square")
        )

    # -------------------------------------------------------------------------------- namespaces

    def namespace(self, text: str) -> dict[str, Any]:
        """Values of the names in a text, for reading and for plain runs."""
        names: dict[str, Any] = {"np": np}
        for match in NAMED.finditer(text):
            operation, name = match[1], match[0]
            if name in names:
                continue
            if name in self.definitions and "_vjp" in operation:
                inner = self.namespace(self.definitions[name])
                exec(self.definitions[name], inner)
                names[name] = inner[name]
                setattr(names[name], TEXT, self.definitions[name])
            else:
                names[name] = ScalarFunction(operation, self.table.plain(operation))
        return names

    def with_definitions(self, text: str) -> str:
        """A text with the functions that it calls before it."""
        known: dict[str, str] = {}

        def collect(text: str) -> None:
            for match in NAMED.finditer(text):
                definition = self.definitions.get(match[0])
                if definition is not None and match[0] not in known:
                    known[match[0]] = ""  # it comes after those that it calls
                    collect(definition)
                    del known[match[0]]
                    known[match[0]] = definition

        collect(text)
        return "\n\n".join([*known.values(), text])


def _in_library(operation: str, dtype: np.dtype) -> bool:
    if dtype.kind == "c":
        return operation in COMPLEX_LIBRARY
    return operation in LIBRARY or operation in INSTRUCTIONS


def _of_power(power: float, dtype: np.dtype) -> str | None:
    """The derivative of a power with a constant exponent."""
    if power == 0:
        return None
    if power == 1:
        return "{g}"
    factor = literal(float(power), dtype)
    if power == 2:
        return f"{{g}} * ({factor} * {{a}})"
    suffix = SUFFIXES[dtype.name]
    return f"{{g}} * ({factor} * power_{suffix}({{a}}, {literal(float(power) - 1.0, dtype)}))"


def literal(value: Any, dtype: np.dtype) -> str:
    """A number of a dtype, as a text writes it."""
    if dtype.kind == "b":
        return repr(bool(value))
    if dtype.kind in "iu":
        return repr(int(value)) if value >= 0 else f"({int(value)!r})"
    if dtype.kind == "c":
        value = complex(value)
        parts = [literal(p, np.dtype("float64")) for p in (value.real, value.imag)]
        whole = f"complex({parts[0]}, {parts[1]})"
        return whole if dtype.itemsize == 16 else f"np.complex64({whole})"
    value = float(value)
    if value != value or value in (float("inf"), float("-inf")):
        text = {"nan": "np.nan", "inf": "np.inf", "-inf": "(-np.inf)"}[repr(value)]
    else:
        text = f"({value!r})" if repr(value).startswith("-") else repr(value)
    return text if dtype.itemsize == 8 else f"np.float32({text})"


def cast(text: str, source: np.dtype, target: np.dtype) -> str:
    """A conversion as NumPy's astype does it; complex to real keeps the real part."""
    if source == target:
        return text
    if target.kind == "b":
        return f"({text} != 0)"
    if source.kind == "c" and target.kind != "c":
        text, source = f"{text}.real", np.dtype(f"f{source.itemsize // 2}")
        if source == target:
            return text
    if target.name == "float64":
        return f"float({text})"
    if target.name == "int64":
        return f"int({text})"
    return f"np.{target.name}({text})"
