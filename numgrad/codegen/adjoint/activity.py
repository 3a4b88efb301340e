"""Activity: what depends on an input, and what a result depends on; in which branches.

Note [Sinking]
--------------
Where all that uses a value with a derivative is in one side of a branch, its cotangent is zero
unless that side runs. So the reversal of the statement that computes it goes to the end of that
side's (code sinking: Knoop, Ruething and Steffen, "Partial Dead Code Elimination", PLDI 1994): a
pair of atoms beyond the cutoff adds no zeros to their gradients, and no infinite slope of what a
branch guards makes them NaN. A read of an array that is written in the same block stays, since
cotangents of elements are set to zero there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from numgrad.codegen.adjoint.operations import Operations
from numgrad.codegen.adjoint.representation import (
    Block,
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
from numgrad.errors import NumgradKernelError


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
        self._varied = varied
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
        try:
            partial = self.operations.partial(
                statement.operation, k, dtypes, out, statement.operands
            )
        except NumgradKernelError as error:
            raise NumgradKernelError(f"{function.name}: {error}") from error
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
                pairs = enumerate(s.operands)
                use(*[o for k, o in pairs if o in self._varied and self.passes(s, k)])
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


class CotangentBlocks:
    """The blocks in which values have a cotangent that is not zero: Note [Sinking].

    Attributes
    ----------
    blocks
        By name, the side of a branch that its statement is reversed in.
    statements
        By side, the statements from before the branch that are reversed at its end, last ones
        first.
    """

    def __init__(self, function: KernelFunction, activity: Activity) -> None:
        self.function, self.activity = function, activity
        self.blocks: dict[str, Block] = {}
        self.statements: dict[Block, list[Define | Load]] = defaultdict(list)
        self._uses: dict[str, list[Block]] = defaultdict(list)
        self._visit(function.body)

    def _use(self, value: Value, block: Block) -> None:
        if isinstance(value, str) and value in self.activity:
            self._uses[value].append(block)

    def _visit(self, block: Block) -> None:
        """Note uses in a block, from its last statement to the first."""
        written = {s.array for s in walk(block) if isinstance(s, Store)}
        for s in reversed(block.statements):
            match s:
                case Define() | Load():
                    side = block
                    if not (isinstance(s, Load) and s.array in written):
                        side = self._side(s.name, block)
                    if side is not block:
                        self.blocks[s.name] = side
                        self.statements[side].append(s)
                    if isinstance(s, Define) and s.name in self.activity:
                        for value in s.operands:
                            self._use(value, side)
                case Store():
                    self._use(s.value, block)
                case KernelBranch():
                    for name, then, other in s.joined:
                        if name in self.activity:
                            self._use(then, s.then)
                            self._use(other, s.other)
                    self._visit(s.then)
                    self._visit(s.other)
                case KernelLoop():
                    for c in s.carried:
                        self._use(c.start, block)
                        self._use(c.end, s.body)
                    self._visit(s.body)

    def _side(self, name: str, home: Block) -> Block:
        """The innermost block of the same iteration with all uses of a value."""
        common: list[Block] | None = None
        for block in self._uses.get(name, ()):
            around = _blocks_within(block, home)
            if common is None:
                common = around
            else:
                common = [a for a, b in zip(common, around, strict=False) if a is b]
        return common[-1] if common else home


def _blocks_within(block: Block, home: Block) -> list[Block]:
    """The blocks around a block of the same iteration as an outer one, from that on."""
    blocks: list[Block] = []
    at: Block | None = block
    while at is not None and at is not home:
        blocks.append(at)
        at = at.parent
    blocks.append(home)
    return [b for b in blocks[::-1] if b.loop is home.loop]
