"""Forward mode: each statement with its tangent before it.

Note [Tangents by gradients]
----------------------------
The operation table has gradients, which are linear in the cotangent, over the real numbers. For
real operands and results the tangent is the same with the tangent in place of the cotangent. A
holomorphic function multiplies the cotangent with the conjugate of its derivative, so the tangent
is the conjugate of what it makes of the conjugated tangent. Of other functions the real part of the
tangent is the inner product of the operand's tangent with the gradient for a cotangent of 1, and
the imaginary part that for a cotangent of 1j.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from numgrad.codegen.adjoint.activity import Activity
from numgrad.codegen.adjoint.operations import LABELS, Operations, cast, literal
from numgrad.codegen.adjoint.replay import branch_lines
from numgrad.codegen.adjoint.representation import (
    Allocate,
    Block,
    Define,
    Ensure,
    KernelBranch,
    KernelFunction,
    KernelLoop,
    KernelStatement,
    Load,
    Store,
    Value,
)
from numgrad.codegen.adjoint.sweeps import (
    definition,
    differentiable_arrays,
    differentiable_numbers,
    parameters,
)
from numgrad.codegen.adjoint.text import Line, Texts, zero

_NOT_HOLOMORPHIC = {"conjugate", "absolute", "sign", "angle"}


def dot(name: str) -> str:
    """The name of the tangent."""
    return f"{name}__d"


class Forward:
    """Writes a function with its tangents."""

    def __init__(
        self, function: KernelFunction, operations: Operations, inputs: Sequence[str]
    ) -> None:
        self.function, self.operations = function, operations
        self.texts = Texts(function, operations)
        self.activity = Activity(function, operations, inputs, everything=True)

    def tangent(self, value: Value, dtype: np.dtype) -> str:
        """The tangent of a value of a dtype."""
        if isinstance(value, str) and value in self.activity:
            return dot(value)
        return zero(dtype)

    def lines(self, block: Block) -> list[Line]:
        return [line for s in block.statements for line in self._statement(s)]

    def _statement(self, s: KernelStatement) -> list[Line]:
        match s:
            case Define():
                return self._define(s)
            case KernelBranch():
                return self._branch(s)
            case KernelLoop():
                return self._loop(s)
        return [*self._before(s), self.texts.statement(s), *self._after(s)]

    def _has_tangents(self, array: str) -> bool:
        return self.function.arrays[array].differentiable and array in self.activity

    def _before(self, s: KernelStatement) -> list[Line]:
        if isinstance(s, Load) and s.name in self.activity:
            return [f"{dot(s.name)} = {self.texts.element(dot(s.array), s.index)}"]
        if isinstance(s, Store) and self._has_tangents(s.array):
            if s.add and s.value not in self.activity:
                return []
            value = self.tangent(s.value, self.function.arrays[s.array].dtype)
            place = self.texts.element(dot(s.array), s.index)
            return [f"{place} {'+=' if s.add else '='} {value}"]
        return []

    def _after(self, s: KernelStatement) -> list[Line]:
        if isinstance(s, Allocate) and self._has_tangents(s.array):
            maker = "growing" if s.maker == "growing" else "zeros"
            return [self.texts.allocation(dot(s.array), Allocate(s.array, maker, s.shape))]
        if isinstance(s, Ensure) and self._has_tangents(s.array):
            return [f"grow({dot(s.array)}, {self.texts.value(s.length)})"]
        return []

    def _define(self, s: Define) -> list[Line]:
        own = self.texts.statement(s)
        if s.name not in self.activity:
            return [own]
        dtype = self.function.dtypes[s.name]
        if s.operation == "from_parts":
            part = np.dtype(f"f{dtype.itemsize // 2}")
            parts = [self.tangent(o, part) for o in s.operands]
            text = self.operations.expression("from_parts", parts, [part, part])
            return [own, f"{dot(s.name)} = {text}"]
        terms = []
        for k, operand in enumerate(s.operands):
            if operand in self.activity:
                term = self._term(s, k)
                if term is not None:
                    terms.append(term)
        if len(terms) > 1:
            terms = [f"({t})" for t in terms]
        return [own, f"{dot(s.name)} = {' + '.join(terms) or zero(dtype)}"]

    def _term(self, s: Define, k: int) -> str | None:
        """The tangent by one operand: Note [Tangents by gradients]."""
        function, operations = self.function, self.operations
        dtypes = [function.dtype_of(o) for o in s.operands]
        out = function.dtypes[s.name]
        own = dot(str(s.operands[k]))
        if s.operation == "cast":
            return cast(own, dtypes[0], out)
        if s.operation in ("copy", "real", "imag"):
            return operations.expression(s.operation, [own], [dtypes[0]])
        template = operations.partial(s.operation, k, dtypes, out, s.operands)
        if template is None:
            return None
        words = {c: self.texts.value(o) for c, o in zip(LABELS, s.operands, strict=False)}

        def gradient(g: str) -> str:
            return template.format(**words, t=s.name, g=g)

        if out.kind != "c" and dtypes[k].kind != "c":
            return gradient(own)
        if out.kind == dtypes[k].kind == "c" and s.operation not in _NOT_HOLOMORPHIC:
            return f"np.conj({gradient(f'np.conj({own})')})"
        if dtypes[k].kind == "c":
            one = self._inner(gradient(literal(1.0, out)), own)
            if out.kind != "c":
                return one
            other = self._inner(gradient(literal(1j, out)), own)
        else:
            one, other = (f"({gradient(literal(c, out))}) * {own}" for c in (1.0, 1j))
        part = np.dtype(f"f{out.itemsize // 2}")
        return operations.expression("from_parts", [one, other], [part, part])

    @staticmethod
    def _inner(gradient: str, tangent: str) -> str:
        return f"(np.conj({gradient}) * {tangent}).real"

    def _both(self, names: Sequence[str], values: Sequence[Value]) -> list[Line]:
        """Names and their tangents that get values at the same time."""
        left, right = list(names), [self.texts.value(v) for v in values]
        for name, value in zip(names, values, strict=True):
            if name in self.activity:
                left.append(dot(name))
                right.append(self.tangent(value, self.function.dtypes[name]))
        return self.texts.assignment(left, right)

    def _branch(self, s: KernelBranch) -> list[Line]:
        sides = []
        names = [name for name, *_ in s.joined]
        for k, side in enumerate((s.then, s.other)):
            ends = self._both(names, [values[k] for _, *values in s.joined])
            sides.append(self.lines(side) + ends)
        if not any(sides):
            return []
        return branch_lines(self.texts.value(s.condition), sides)

    def _loop(self, s: KernelLoop) -> list[Line]:
        lines = self._both([c.name for c in s.carried], [c.start for c in s.carried])
        moving = [c for c in s.carried if c.moves]
        ends = self._both([c.name for c in moving], [c.end for c in moving])
        body = [*self.lines(s.body), *ends]
        condition = self.texts.value(s.condition)
        if s.test is None:
            bounds = self.texts.values([s.low, s.high, s.step])
            word = "prange" if s.parallel else "range"
            lines += [f"for {s.variable} in {word}({bounds}):", body]
        elif test := self.lines(s.test):
            lines += ["while True:", [*test, f"if not {condition}:", ["break"], *body]]
        else:
            lines += [f"while {condition}:", body]
        return lines + self._both([c.out for c in s.carried], [c.name for c in s.carried])


def tangent_text(
    function: KernelFunction, operations: Operations, moving: Sequence[str] | None = None
) -> str:
    """The function with its tangents: Note [Arguments of texts] in ``sweeps``.

    ``moving`` are the parameters whose tangents are not zero, all if None: an operand that does not
    move adds nothing, be its partial derivative finite or not.
    """
    names = [*differentiable_arrays(function), *differentiable_numbers(function)]
    if moving is None:
        moving = [n for n in names if n not in function.results]
    forward = Forward(function, operations, moving)
    lines = forward.lines(function.body)
    return definition(function, [*parameters(function), *map(dot, names)], lines)
