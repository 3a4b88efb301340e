"""Simplification of the loop representation: values computed once, and outside of loops.

Note [Simplification]
---------------------
Common subexpressions are one value, as are an element and what it was just set to; and what is the
same in all iterations of a loop is computed before it (loop-invariant code motion), so that the
gradient keeps it once, and sums its cotangent in a scalar. LLVM does the same to values, but not to
tapes. Every value is computed as before, bit by bit.

A statement leaves a loop only if each iteration runs it, and only behind the question whether there
is an iteration at all: elements are read nowhere else than before, and no gradient of infinite
slope comes from what never ran. (Aho, Lam, Sethi and Ullman, Compilers, 2006, chapter 9.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numgrad.codegen.adjoint.representation import (
    Allocate,
    Block,
    Carried,
    Define,
    Ensure,
    Expression,
    KernelBranch,
    KernelFunction,
    KernelLoop,
    KernelStatement,
    Load,
    Store,
    Value,
    blocks_of,
    map_ends,
    map_values,
    names_in,
    values_of,
    walk,
)
from numgrad.codegen.dtypes import FLOAT64


def simplify(function: KernelFunction) -> None:
    """Compute values once, and outside of loops where they are the same in all iterations."""
    _CommonValues(function).run()
    _Motion(function).block(function.body)
    _CommonValues(function).run()


def substituted(value: Any, names: Mapping[str, Value]) -> Any:
    """A value with others in place of names."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, Expression) and value.operation != "shape":
        return _folded(value.operation, tuple([substituted(v, names) for v in value.operands]))
    return value


def _folded(operation: str, operands: tuple[Any, ...]) -> Value:
    """A truth without parts that are known."""
    if operation == "not" and isinstance(operands[0], bool):
        return not operands[0]
    if operation in ("and", "or") and any(isinstance(o, bool) for o in operands):
        a, b = operands
        known, other = (a, b) if isinstance(a, bool) else (b, a)
        return other if known == (operation == "and") else known
    return Expression(operation, operands)


def _key(value: Any) -> Any:
    """A value as part of a key: numbers that compare equal need not be the same."""
    if isinstance(value, Expression):
        return value.operation, tuple(map(_key, value.operands))
    return value if isinstance(value, str) else (type(value), repr(value))


def written_arrays(*blocks: Block) -> set[str]:
    """The arrays that change in blocks."""
    return {
        s.array for block in blocks for s in walk(block) if isinstance(s, Store | Allocate | Ensure)
    }


class _CommonValues:
    """Common subexpression elimination over dominating statements."""

    def __init__(self, function: KernelFunction) -> None:
        self.function = function
        self.names: dict[str, Value] = {}

    def run(self) -> None:
        self._block(self.function.body, {})
        if not self.names:
            return
        for array in self.function.arrays.values():
            array.shape = tuple([substituted(n, self.names) for n in array.shape])
        self.function.checks = [
            check._replace(
                condition=substituted(check.condition, self.names),
                operands=tuple([substituted(o, self.names) for o in check.operands]),
            )
            for check in self.function.checks
        ]

    def _block(self, block: Block, known: dict[Any, str]) -> None:
        """Go through a block; ``known`` are values by what computes them, which grows."""
        statements = []
        for s in block.statements:
            map_values(s, self._value)
            match s:
                case Define():
                    key = (s.operation, self.function.dtypes[s.name], *map(_key, s.operands))
                    if key in known:
                        self.names[s.name] = known[key]
                        continue
                    known[key] = s.name
                case Load():
                    key = ("element", s.array, *map(_key, s.index))
                    if key in known:
                        self.names[s.name] = known[key]
                        continue
                    known[key] = s.name
                case Store() | Allocate() | Ensure():
                    _forget(known, {s.array})
                    if isinstance(s, Store) and self._stays_the_same(s):
                        known["element", s.array, *map(_key, s.index)] = str(s.value)
                case KernelBranch():
                    for side in (s.then, s.other):
                        self._block(side, dict(known))
                    map_ends(s, self._value)
                    _forget(known, written_arrays(s.then, s.other))
                case KernelLoop():
                    _forget(known, written_arrays(*blocks_of(s)))
                    for inner in blocks_of(s):
                        self._block(inner, dict(known))
                    map_ends(s, self._value)
            statements.append(s)
        block.statements = statements

    def _stays_the_same(self, s: Store) -> bool:
        """Whether what is read of an element that was just set is the value itself."""
        if s.add or not isinstance(s.value, str):
            return False
        return self.function.dtypes[s.value] == self.function.arrays[s.array].dtype

    def _value(self, value: Any) -> Any:
        return substituted(value, self.names)


def _forget(known: dict[Any, str], arrays: set[str]) -> None:
    """Forget elements of arrays that change."""
    for key in [k for k in known if k[0] == "element" and k[1] in arrays]:
        del known[key]


class _Motion:
    """Loop-invariant code motion: Note [Simplification]."""

    def __init__(self, function: KernelFunction) -> None:
        self.function = function
        self.written = written_arrays(function.body)

    def block(self, block: Block) -> None:
        """Move statements out of the loops of a block, inner ones first."""
        statements: list[KernelStatement] = []
        for s in block.statements:
            for inner in blocks_of(s):
                self.block(inner)
            if isinstance(s, KernelLoop):
                statements += self._before(s)
            statements.append(s)
        block.statements = self._early(statements)

    def _early(self, statements: list[KernelStatement]) -> list[KernelStatement]:
        """Statements in another order: before a block's first loop what does not depend on it.

        So more is known before the loop: Note [Fused sweeps] in ``fused``.
        """
        places = [k for k, s in enumerate(statements) if isinstance(s, KernelLoop)]
        if not places:
            return statements
        late = {c.out for c in statements[places[0]].carried}  # pyright: ignore
        moved: list[KernelStatement] = []
        rest: list[KernelStatement] = []
        for s in statements[places[0] :]:
            is_constant = isinstance(s, Load) and s.array not in self.written
            names = [n for v in values_of(s) for n in names_in(v)]
            if (isinstance(s, Define) or is_constant) and late.isdisjoint(names):
                moved.append(s)
                continue
            rest.append(s)
            late |= set(_names_of(s))
            if isinstance(s, KernelLoop):
                late |= {c.out for c in s.carried}
        return [*statements[: places[0]], *moved, *rest]

    def _before(self, loop: KernelLoop) -> list[KernelStatement]:
        """The statements that leave a loop, as they stand before it."""
        runs = _runs_at_all(loop)
        if runs is None or runs is False:
            return []
        written = written_arrays(*blocks_of(loop))
        moved: list[KernelStatement] = []
        moved_names: set[str] = set()

        def is_fixed(value: Value | None) -> bool:
            return all(
                n in moved_names
                or not any(self.function.homes[n].is_within(b) for b in blocks_of(loop))
                for n in names_in(value)
            )

        def moves(s: KernelStatement, own: frozenset[str] = frozenset()) -> bool:
            """Whether a statement may leave, with the names of a branch that leaves with it."""

            def all_fixed(*values: Value) -> bool:
                return all(
                    is_fixed(v) or all(n in own or is_fixed(n) for n in names_in(v)) for v in values
                )

            match s:
                case Define():
                    return all_fixed(*s.operands)
                case Load():
                    array = self.function.arrays[s.array]
                    return s.array not in written and not array.grows and all_fixed(*s.index)
                case KernelBranch():
                    inside = frozenset(
                        [n for b in blocks_of(s) for t in b.statements for n in _names_of(t)]
                    )
                    return (
                        all_fixed(s.condition)
                        and all(moves(t, own | inside) for b in blocks_of(s) for t in b.statements)
                        and all(is_fixed(v) or v in inside for _, *vs in s.joined for v in vs)
                    )
            return False

        rest: list[KernelStatement] = []
        for s in loop.body.statements:
            if moves(s):
                moved.append(s)
                moved_names |= set(_names_of(s))
            else:
                rest.append(s)
        if not moved:
            return []
        loop.body.statements = rest
        if runs is True:
            for s in moved:
                self._settle(s, loop.home)
            return moved
        return [self._behind(runs, moved, loop)]

    def _settle(self, s: KernelStatement, home: Block) -> None:
        """Give a statement its new place."""
        s.home = home
        for name in _names_of(s):
            self.function.homes[name] = home
        for inner in blocks_of(s):
            inner.parent, inner.loop = home, home.loop
            for t in inner.statements:
                self._settle(t, inner)

    def _behind(
        self, condition: Value, moved: list[KernelStatement], loop: KernelLoop
    ) -> KernelBranch:
        """A branch that runs statements if a loop runs at all, and gives their values."""
        home = loop.home
        then = Block(home.loop, home, [])
        other = Block(home.loop, home, [])
        branch = KernelBranch(condition, then, other, home=home, line=loop.line)
        names: dict[str, Value] = {}
        for s in moved:
            own = _names_of(s)
            for name in own:
                names[name] = self._fresh(name)
            self._rename(s, names)
            then.statements.append(s)
            self._settle(s, then)
            for name in own:
                self.function.homes[name] = home
                branch.joined.append((name, names[name], self._nothing(name, other)))
        return branch

    def _rename(self, s: KernelStatement, names: dict[str, Value]) -> None:
        for change in (map_values, map_ends):
            change(s, lambda value: substituted(value, names))
        if isinstance(s, Define | Load):
            s.name = str(names.get(s.name, s.name))
        elif isinstance(s, KernelBranch):
            for inner in blocks_of(s):
                for t in inner.statements:
                    self._rename(t, names)
            s.joined = [(str(names.get(name, name)), a, b) for name, a, b in s.joined]

    def _fresh(self, name: str) -> str:
        """Another name for a value of the same dtype."""
        function = self.function
        count = 1
        while (other := f"{name}_{count}") in function.dtypes or other in function.arrays:
            count += 1
        function.dtypes[other] = function.dtypes[name]
        return other

    def _nothing(self, name: str, block: Block) -> Value:
        """Zero of the dtype of a name, in a block."""
        dtype = self.function.dtypes[name]
        if dtype.kind == "b":
            return False
        if dtype.kind in "iu":
            return 0
        if dtype == FLOAT64:
            return 0.0
        if dtype.name == "complex128":
            return 0j
        other = self._fresh(name)
        self.function.homes[other] = block
        start: Value = 0j if dtype.kind == "c" else 0.0
        block.statements.append(Define(other, "cast", (start,), home=block))
        return other


def _names_of(s: KernelStatement) -> list[str]:
    """The names that a statement gives values to, for what comes after it."""
    if isinstance(s, Define | Load):
        return [s.name]
    return [name for name, *_ in s.joined] if isinstance(s, KernelBranch) else []


def _runs_at_all(loop: KernelLoop) -> Value | None:
    """The condition of a first iteration; None if it is not known before the loop."""
    if loop.test is not None:
        if loop.test.statements:
            return None
        starts: dict[str, Value] = {c.name: c.start for c in loop.carried if _is_simple(c)}
        if not all(n in starts for n in names_in(loop.condition) if _is_carried(n, loop)):
            return None
        return substituted(loop.condition, starts)
    low, high, step = loop.low, loop.high, loop.step
    if not isinstance(step, int) or isinstance(step, bool) or step == 0:
        return None
    if isinstance(low, int) and isinstance(high, int):
        return low < high if step > 0 else low > high
    return Expression("<" if step > 0 else ">", (low, high))


def _is_simple(c: Carried) -> bool:
    return isinstance(c.start, bool | int | str | Expression)


def _is_carried(name: str, loop: KernelLoop) -> bool:
    return any(c.name == name for c in loop.carried)
