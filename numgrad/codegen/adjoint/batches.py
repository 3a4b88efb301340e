"""Functions for batches of examples: the batch as a parallel loop around everything.

Note [Batch loop]
-----------------
An argument that differs by example, and every result, has an axis more in front. The function's
body becomes that of a loop over the examples, which begin their indices with its variable: what
``vmap`` does to a function, as a transformation of its loops. Derivatives are derived from the
loop, so the gradient of what all examples share is summed over them, and the loop is cut into
chunks like one that is written with ``prange``: Note [Chunks] in ``parallel``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.codegen.adjoint.program import DerivativeProgram, KernelDefinition
from numgrad.codegen.adjoint.reading import Kind, number
from numgrad.codegen.adjoint.representation import (
    Block,
    Expression,
    KernelArray,
    KernelFunction,
    KernelLoop,
    KernelStatement,
    Load,
    Store,
    Value,
    blocks_of,
    map_ends,
    map_values,
    walk,
)
from numgrad.codegen.dtypes import INT64
from numgrad.errors import NumgradKernelError


class BatchDefinition:
    """A kernel's definition for batches, with the attributes that programs need of one.

    Attributes
    ----------
    batched
        For each parameter that callers pass, whether it differs by example.
    """

    def __init__(self, definition: KernelDefinition, batched: Sequence[bool]) -> None:
        self.scope, self.written = definition.scope, definition.written
        self.parameters, self.operations = definition.parameters, definition.operations
        self.save = definition.save
        self.batched = tuple(batched)
        self._programs: dict[tuple, BatchProgram] = {}
        self.last: DerivativeProgram | None = None

    @property
    def name(self) -> str:
        return self.scope.name

    def specialize(self, kinds: Sequence[Kind]) -> DerivativeProgram:
        """The program for arguments of these dtypes and ranks, that of the batch counted."""
        key = tuple(kinds)
        program = self._programs.get(key)
        if program is None:
            program = self._programs[key] = BatchProgram(self, key)
        self.last = program
        return program


class BatchProgram(DerivativeProgram):
    """A function for batches, with its derivatives: Note [Batch loop]."""

    definition: Any

    def __init__(self, definition: BatchDefinition, kinds: Sequence[Kind]) -> None:
        pairs = zip(kinds, definition.batched, strict=True)
        super().__init__(
            definition,  # pyright: ignore[reportArgumentType]
            [(dtype, rank - own) for (dtype, rank), own in pairs],
        )
        if not all(self.lengths.is_known(check.condition) for check in self.function.checks):
            raise NumgradKernelError(
                f"{definition.name}: checks numbers of which a batch has many; map the examples "
                "in turn"
            )

    def _read(self, scope: Any, kinds: Sequence[Kind], written: Any) -> KernelFunction:
        function = super()._read(scope, kinds, written)
        if scope is not self.definition.scope:  # a text with its tangents
            return function
        pairs = zip(function.parameters, self.definition.batched, strict=True)
        return _Batching(function, [name for name, own in pairs if own]).function


class _Batching:
    """Turns a function into one for batches, in place."""

    def __init__(self, function: KernelFunction, names: Sequence[str]) -> None:
        self.function = function
        self.arrays = {n for n in names if n in function.arrays} | set(function.results)
        self.variable = "example"
        while self.variable in function.dtypes or self.variable in function.arrays:
            self.variable += "_"
        inner = function.body
        loads = [self._number(name, inner) for name in names if name not in function.arrays]
        first = loads[0].array if loads else next(n for n in names if n in function.arrays)
        for s in walk(inner):
            self._rewrite(s)
        for name, array in function.arrays.items():
            array.shape = tuple(map(self._value, array.shape))
            if name in self.arrays:
                self._widen(array, Expression("shape", (first, 0)))
        function.checks = [
            check._replace(
                condition=self._value(check.condition),
                operands=tuple(map(self._value, check.operands)),
            )
            for check in function.checks
        ]
        function.scalars = set()
        outer = Block()
        length = Expression("shape", (first, 0))
        loop = KernelLoop(self.variable, 0, length, 1, inner, parallel=True)
        loop.home, loop.line = outer, 1
        outer.statements = [loop]
        inner.parent = outer
        self._enter(inner, loop)
        inner.statements[:0] = loads
        function.dtypes[self.variable], function.homes[self.variable] = INT64, inner
        for name in function.parameters:
            if name in function.homes:
                function.homes[name] = outer
        function.body = outer
        number(function)

    def _number(self, name: str, block: Block) -> Load:
        """A number of each example, read from a vector."""
        function = self.function
        rows = f"{name}_rows"
        while rows in function.dtypes or rows in function.arrays:
            rows += "_"
        function.parameters[function.parameters.index(name)] = rows
        function.arrays[rows] = KernelArray(rows, function.dtypes[name], 1, "argument")
        load = Load(name, rows, (self.variable,))
        load.home, load.line = block, 1
        return load

    def _widen(self, array: KernelArray, examples: Value) -> None:
        """Give an array the axis of the batch, a result that is a number that axis alone."""
        is_number = array.name in self.function.scalars
        array.ndim += not is_number
        if array.shape or is_number:
            array.shape = (examples,) if is_number else (examples, *array.shape)

    def _enter(self, block: Block, loop: KernelLoop) -> None:
        """Note that a block without a loop is in this one."""
        if block.loop is None:
            block.loop = loop
            for s in block.statements:
                if not isinstance(s, KernelLoop):
                    for inner in blocks_of(s):
                        self._enter(inner, loop)

    def _value(self, value: Any) -> Any:
        if not isinstance(value, Expression):
            return value
        if value.operation == "shape":
            array, axis = value.operands
            return Expression("shape", (array, axis + 1)) if array in self.arrays else value
        return Expression(value.operation, tuple(map(self._value, value.operands)))

    def _rewrite(self, s: KernelStatement) -> None:
        map_values(s, self._value)
        map_ends(s, self._value)
        if isinstance(s, Load | Store) and s.array in self.arrays:
            places = () if s.array in self.function.scalars else s.index
            s.index = (self.variable, *places)
