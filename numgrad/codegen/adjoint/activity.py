"""Activity: what depends on an input, and what a result depends on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from numgrad.codegen.adjoint.operations import Operations
from numgrad.codegen.adjoint.representation import (
    Define,
    KernelBranch,
    KernelFunction,
    KernelLoop,
    KernelStatement,
    Load,
    Store,
    Value,
    names_in,
    walk,
)


class Activity:
    """Names of scalars and arrays that depend on an input and on which a result depends.

    With ``everything``, all that depend on an input, be they used or not: of forward mode.
    """

    def __init__(
        self,
        function: KernelFunction,
        operations: Operations,
        inputs: Iterable[str],
        *,
        everything: bool = False,
    ) -> None:
        self.function, self.operations = function, operations
        self.statements = list(walk(function.body))
        varied = {name for name in inputs if self._is_differentiable(name)}
        outputs = {s.array for s in self.statements if isinstance(s, Store)}
        useful = {n for n in outputs if function.arrays[n].role in ("argument", "result")}
        useful |= set(function.results)
        useful |= {n for n in varied if n in function.arrays}
        _fixed_point(self.statements, varied, self._forwards)
        if not everything:
            _fixed_point(self.statements[::-1], useful, self._backwards)
        self.active = varied if everything else varied & useful

    def __contains__(self, name: Any) -> bool:
        return isinstance(name, str) and name in self.active

    def _is_differentiable(self, name: str) -> bool:
        array = self.function.arrays.get(name)
        return array.differentiable if array is not None else self._is_number(name)

    def _is_number(self, name: Any) -> bool:
        return self.function.is_real_or_complex(name)

    def passes(self, statement: Define, k: int) -> bool:
        """Whether a derivative goes from operand ``k`` to the result."""
        function = self.function
        if not self._is_number(statement.name) or not self._is_number(statement.operands[k]):
            return False
        dtypes = [function.dtype_of(o) for o in statement.operands]
        out = function.dtypes[statement.name]
        partial = self.operations.partial(statement.operation, k, dtypes, out, statement.operands)
        return partial is not None

    def _forwards(self, s: KernelStatement, names: set[str]) -> None:
        match s:
            case Define():
                if any(o in names and self.passes(s, k) for k, o in enumerate(s.operands)):
                    names.add(s.name)
            case Load():
                array = self.function.arrays[s.array]
                if array.differentiable and array.name in names:
                    names.add(s.name)
            case Store():
                array = self.function.arrays[s.array]
                if array.differentiable and isinstance(s.value, str) and s.value in names:
                    names.add(array.name)
            case KernelBranch():
                names |= {n for n, a, b in s.joined if self._is_number(n) and {a, b} & names}
            case KernelLoop():
                for c in s.carried:
                    if self._is_number(c.name) and {c.start, c.end} & names:
                        names |= {c.name, c.out}

    def _backwards(self, s: KernelStatement, names: set[str]) -> None:
        def use(*values: Value) -> None:
            for value in values:
                names.update(names_in(value))

        match s:
            case Define() if s.name in names:
                use(*s.operands)
            case Load() if s.name in names:
                names.add(s.array)
            case Store() if s.array in names:
                use(s.value)
            case KernelBranch():
                for name, *values in s.joined:
                    if name in names:
                        use(*values)
            case KernelLoop():
                for c in s.carried:
                    if c.out in names or c.name in names:
                        names.add(c.name)
                        use(c.start, c.end)


def _fixed_point(
    statements: list[KernelStatement],
    names: set[str],
    step: Callable[[KernelStatement, set[str]], None],
) -> None:
    size = -1
    while size != len(names):
        size = len(names)
        for statement in statements:
            step(statement, names)
