"""Statements of the loop representation as lines of the kernel language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from numgrad.codegen.adjoint.operations import Operations, cast, literal
from numgrad.codegen.adjoint.representation import (
    Allocate,
    Carried,
    Define,
    Ensure,
    Expression,
    KernelFunction,
    KernelLoop,
    KernelStatement,
    Load,
    Store,
    Value,
)
from numgrad.codegen.dtypes import INT64, numpy_name

Line = Any
"""A line, a list of lines that are indented further, or a contribution to a cotangent."""
_CALLS = ("int", "float", "bool", "abs", "min", "max")


def joined_lines(lines: Iterable[Line], depth: int = 1) -> str:
    """Nested lists of lines as text."""
    out = []
    for line in lines:
        if isinstance(line, list):
            out.append(joined_lines(line or ["pass"], depth + 1))
        else:
            out.append("    " * depth + str(line))
    return "\n".join(out)


_NAMES = re.compile(r"[A-Za-z_]\w*")


def names_of_text(text: str) -> set[str]:
    """The identifiers in a text."""
    return set(_NAMES.findall(text))


def zero(dtype: np.dtype) -> str:
    """Zero of a dtype, as a text writes it."""
    return literal(0.0 if dtype.kind in "fc" else 0, dtype)


class Texts:
    """Writes values and statements of a function.

    Attributes
    ----------
    function, operations
        What is written, and how operations are.
    """

    def __init__(self, function: KernelFunction, operations: Operations) -> None:
        self.function, self.operations = function, operations

    def value(self, value: Value) -> str:
        """A value as an expression that needs no parentheses around it."""
        if isinstance(value, str):
            return value
        if not isinstance(value, Expression):
            return literal(value, self.function.dtype_of(value))
        operation, operands = value
        if operation == "shape":
            return f"{operands[0]}.shape[{operands[1]}]"
        parts = [self.value(o) for o in operands]
        if operation in _CALLS:
            return f"{operation}({', '.join(parts)})"
        if operation == "isqrt":
            return f"int(sqrt_f64(float({parts[0]})))"
        if operation == "wrap":
            place, length = parts
            return f"({place} if {place} >= 0 else {place} + {length})"
        if operation == "not":
            return f"(not {parts[0]})"
        if operation == "neg":
            return f"(-{parts[0]})"
        return f"({parts[0]} {operation} {parts[1]})"

    def values(self, values: Sequence[Value]) -> str:
        return ", ".join(self.value(v) for v in values)

    def shape(self, values: Sequence[Value]) -> str:
        """A shape as a tuple."""
        return f"({self.values(values)},)"

    def element(self, array: str, index: Sequence[Value]) -> str:
        return f"{array}[{self.values(index)}]"

    def defined(self, statement: Define) -> str:
        """The right-hand side of a definition."""
        dtypes = [self.function.dtype_of(o) for o in statement.operands]
        texts = [self.value(o) for o in statement.operands]
        if statement.operation == "cast":
            return cast(texts[0], dtypes[0], self.function.dtypes[statement.name])
        return self.operations.expression(statement.operation, texts, dtypes)

    def allocation(self, array: str, like: Allocate) -> str:
        """The text that makes an array like the one that a statement makes."""
        dtype = numpy_name(self.function.arrays[like.array].dtype)
        if like.maker == "growing":
            return f"{array} = growing({dtype})"
        return f"{array} = np.{like.maker}({self.shape(like.shape)}, {dtype})"

    def statement(self, statement: KernelStatement) -> str:
        """A statement without blocks, as a line."""
        match statement:
            case Define():
                return f"{statement.name} = {self.defined(statement)}"
            case Load():
                element = self.element(statement.array, statement.index)
                dtype = self.function.arrays[statement.array].dtype
                narrow = dtype.kind in "iu" and dtype != INT64
                return f"{statement.name} = {f'int({element})' if narrow else element}"
            case Store():
                sign = "+=" if statement.add else "="
                place = self.element(statement.array, statement.index)
                return f"{place} {sign} {self.value(statement.value)}"
            case Allocate():
                return self.allocation(statement.array, statement)
            case Ensure():
                return f"grow({statement.array}, {self.value(statement.length)})"
        raise TypeError(type(statement).__name__)

    def assignment(self, names: Sequence[str], values: Sequence[str]) -> list[Line]:
        """Names that get values at the same time."""
        pairs = [(n, v) for n, v in zip(names, values, strict=True) if n != v]
        if not pairs:
            return []
        return [f"{', '.join(n for n, _ in pairs)} = {', '.join(v for _, v in pairs)}"]

    def ends(self, carried: Sequence[Carried]) -> list[Line]:
        """Assign the values that an iteration leaves for the next."""
        moving = [c for c in carried if c.moves]
        return self.assignment([c.name for c in moving], [self.value(c.end) for c in moving])

    def trips(self, loop: KernelLoop) -> str:
        """How often a loop runs."""
        if loop.test is not None:
            return loop.count
        low, high, step = self.value(loop.low), self.value(loop.high), loop.step
        if step == 1:
            return f"max(0, {high} - {low})" if loop.low != 0 else f"max(0, {high})"
        if isinstance(step, int):
            sign = 1 if step > 0 else -1
            return f"max(0, ({high} - {low} + {step - sign}) // {self.value(step)})"
        text = self.value(step)
        return f"max(0, ({high} - {low} + {text} - (1 if {text} > 0 else -1)) // {text})"

    def counted(self, loop: KernelLoop, variable: str) -> str:
        """The assignment of a loop's variable in iteration ``k``."""
        if loop.test is not None or (loop.low == 0 and loop.step == 1):
            return f"{variable} = k{loop.key}_"
        step = "" if loop.step == 1 else f" * {self.value(loop.step)}"
        return f"{variable} = {self.value(loop.low)} + k{loop.key}_{step}"
