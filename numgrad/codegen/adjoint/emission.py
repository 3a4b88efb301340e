"""Names and statements of the loop representation, as reading adds them to a block."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from numgrad.codegen.adjoint.operations import Operations
from numgrad.codegen.adjoint.representation import (
    COMPARISONS,
    COMPLEX128,
    Allocate,
    Block,
    CallCheck,
    Define,
    Expression,
    KernelArray,
    KernelStatement,
    Load,
    Value,
    dtype_of,
)
from numgrad.codegen.adjoint.scopes import Scope
from numgrad.codegen.adjoint.sharing import SharedCopy
from numgrad.codegen.dtypes import FLOAT64, INT64

NUMBERS = (bool, int, float, complex)
SCALARS = (*NUMBERS, str, Expression)


class StatementEmitter:
    """Adds statements of a function to blocks, for arguments of known dtypes and ranks.

    Attributes
    ----------
    dtypes, homes, arrays
        What ``representation.Function`` has.
    block, top
        The block that statements are added to; the outermost one.
    written
        Parameters that may be overwritten.
    scopes
        The function under reading and those that it is inlined in.
    lowest
        Known lower bounds of integers.
    following
        Statements after the one that is read, innermost last; a loop stands for its next iteration.
    promoted, unbounded
        Names that loops carry: dtypes that turned out wider than at the start, and integers
        without a lower bound.
    buffers
        Arrays that take turns, by scope and set of names; ``turning`` has these by the array.
    around
        Of the loops around: the depth of functions, and what names stand for before.
    storages
        Arrays that iterations make anew, by depth of functions and name.
    copies
        Note [Shared copies] in ``sharing``.
    is_generated
        Whether the function is one of our own texts.
    failures, failed
        What the kernel itself checks, and the array that counts failures: ``KernelFunction``.
    guarded
        The lesser of two lengths that the kernel compares, with the first of them.
    """

    def __init__(self, operations: Operations) -> None:
        self.operations = operations
        self.dtypes: dict[str, np.dtype] = {}
        self.homes: dict[str, Block] = {}
        self.arrays: dict[str, KernelArray] = {}
        self.constants: dict[str, np.ndarray] = {}
        self.checks: list[CallCheck] = []
        self.captured: dict[str, np.ndarray] = {}
        self.lowest: dict[str, int] = {}
        self.scopes: list[Scope] = []
        self.block = Block()
        self.reserved: set[str] = set()
        self.top = self.block
        self.written: frozenset[str] = frozenset()
        self.count = 0
        self.line = 0
        self.results: list[Any] = []
        self.following: list[Sequence[ast.stmt]] = []
        self.promoted: dict[str, np.dtype] = {}
        self.unbounded: set[str] = set()
        self.buffers: dict[tuple[Scope, str], Allocate] = {}
        self.turning: dict[str, tuple[Scope, str]] = {}
        self.around: list[tuple[int, dict[str, Any]]] = []
        self.storages: dict[tuple[int, str], Any] = {}
        self.copies: list[SharedCopy] = []
        self.is_generated = False
        self.failures: list[str] = []
        self.failed = "failed"
        self.guarded: dict[Value, Value] = {}

    # ---------------------------------------------------------------------------------- names

    def refuse(self, node: Any, problem: str, remedy: str) -> NoReturn:
        """Raise for what has no derivative."""
        names = [n.id for n in ast.walk(self.scopes[-1].tree) if isinstance(n, ast.Name)]
        result = _RESULT.search(problem)
        if result and result[0] not in names:  # a name of the rewriting of exits
            problem = "an early return of an array, from a loop or beside one of a number"
            remedy = ("make one before, assign to its elements, out[:] = ..., leave a loop by "
                      "break, and return it at the end")  # fmt: skip
        self.scopes[-1].refuse(node, problem, remedy)

    def fresh(self, stem: str, dtype: np.dtype) -> str:
        """A new name of a scalar of this block."""
        stem = _NOT_ASCII.sub("", stem).rstrip("_0123456789") or "v"
        if stem.startswith(("tape_", "kept_")):
            stem = "v"
        while True:
            self.count += 1
            name = f"{stem}_{self.count}"
            if name not in self.reserved and name not in self.arrays:
                break
        self.dtypes[name], self.homes[name] = dtype, self.block
        return name

    def emit(self, statement: KernelStatement) -> None:
        statement.home, statement.line = self.block, self.line
        self.block.statements.append(statement)

    def dtype_of(self, value: Value) -> np.dtype:
        return dtype_of(value, self.dtypes)

    def define(self, operation: str, *operands: Value, stem: str = "v") -> Value:
        """The result of an operation, of operands that are converted to its dtypes."""
        given = [self.dtype_of(o) for o in operands]
        if operation in ("copy", "max", "min"):
            common = np.result_type(*given)
            loop, out = [common] * len(given), common
        else:
            loop, out = self.operations.types(operation, given)
        return self.defined(
            operation, [self.cast(o, d) for o, d in zip(operands, loop, strict=True)], out, stem
        )

    def defined(
        self, operation: str, operands: Sequence[Value], dtype: np.dtype, stem: str = "v"
    ) -> Value:
        name = self.fresh(stem, dtype)
        self.emit(Define(name, operation, tuple(operands)))
        return name

    def cast(self, value: Value, dtype: np.dtype) -> Value:
        """A number in another dtype."""
        own = self.dtype_of(value)
        if own == dtype:
            return value
        if isinstance(value, NUMBERS):
            if dtype == FLOAT64 and not isinstance(value, complex):
                return float(value)
            if dtype == COMPLEX128:
                return complex(value)
            if dtype == INT64 and not isinstance(value, complex):
                return int(value)
        if dtype.kind in "iu":
            return self.integer(value)
        if dtype.kind == "b":
            return self.truth(value)
        return self.defined("cast", [value], dtype)

    def check_real(self, given: np.dtype, dtype: np.dtype, node: Any) -> None:
        """Refuse a complex number where a real one is due, whose imaginary part would be lost."""
        if given.kind == "c" and dtype.kind in "fiu" and not self.is_generated:
            self.refuse(
                node,
                f"a complex number where {dtype.name} is due",
                "take .real, or make the array of complex128",
            )

    def integer(self, value: Value) -> Value:
        """A number as an integer."""
        kind = self.dtype_of(value).kind
        if kind == "i":
            return value
        if isinstance(value, NUMBERS):
            return int(value.real)
        return Expression("int", (value,))

    def truth(self, value: Value) -> Value:
        """Whether a number is not zero."""
        if isinstance(value, NUMBERS):
            return bool(value)
        if self.dtype_of(value).kind == "b":
            return value
        return Expression("!=", (value, 0))

    def renamed(self, value: Value, stem: str) -> Value:
        """A value that was just computed under a name like the user's."""
        last = self.block.statements[-1] if self.block.statements else None
        if isinstance(last, Define | Load) and value == last.name:
            last.name = self.fresh(stem, self.dtypes[last.name])
            return last.name
        return value

    def lower_bound(self, value: Value) -> int | None:
        """A number that an integer is not below, if one is known."""
        if isinstance(value, int):
            return int(value)
        if isinstance(value, str):
            return self.lowest.get(value)
        if not isinstance(value, Expression):
            return None
        operation, operands = value
        if operation in ("shape", "abs", "wrap") or operation in COMPARISONS:
            return 0
        bounds = [self.lower_bound(o) for o in operands]
        if operation == "max":
            known = [b for b in bounds if b is not None]
            return max(known) if known else None
        if operation == "-" and isinstance(operands[1], int) and bounds[0] is not None:
            return bounds[0] - operands[1]
        if operation == "%" and bounds[1] is not None and bounds[1] >= 0:
            return 0
        if any(b is None for b in bounds):
            return None
        a, *b = [b for b in bounds if b is not None]
        if operation == "min":
            return min(a, *b)
        if operation == "+":
            return a + b[0]
        if operation == "*" and a >= 0 and b[0] >= 0:
            return a * b[0]
        return 0 if operation in ("//", ">>", "&", "|", "**") and min(a, *b) >= 0 else None


_RESULT = re.compile(r"\bresult\d+_\b")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_OF_TEXTS = re.compile(
    r"(k|n|pos|base|chunk|chunks|size|block|q|s|m|row|sum|terms)\d+_|result\d+_?|"
    r"(tape|kept)_.*|.*__([bdos]|in|own|sums|b_sum)|.*_(f32|f64|c64|c128)|kernel|growing|grow|np|"
    r"prange|range|len|int|float|bool|complex|abs|min|max|round|add_any_order|add_chunks|"
    r"blocks_of|chunk_of|clear_chunk|cut_in_chunks|partial_sums|tasks"
)


def safe_name(name: str) -> str:
    """A name that no name of generated texts is like, in ASCII."""
    name = _NOT_ASCII.sub(lambda character: f"u{ord(character[0]):x}", name)
    return f"{name}_own" if _OF_TEXTS.fullmatch(name) else name
