"""Live variables of a text: which names are read later, before they are assigned.

A backward data-flow analysis over structured statements (Aho, Lam, Sethi, Ullman, *Compilers*,
section 9.2.5). An array counts as assigned where it is made, not where an element is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from numgrad.codegen.native.syntax import cached_on_node, used_names

Names = frozenset[str]


def read_names(*expressions: ast.AST | None) -> Names:
    """The names that expressions read; of an element that is set, those of its index."""
    return frozenset(
        [
            name.id
            for expression in expressions
            if expression is not None
            for name in used_names(expression)
            if isinstance(name.ctx, ast.Load)
        ]
    )


def targets_of(statement: ast.stmt) -> Iterator[ast.expr]:
    """The targets of an assignment, one by one."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from target.elts if isinstance(target, ast.Tuple) else [target]
    elif isinstance(statement, ast.AugAssign | ast.For):
        yield statement.target


def statements_in(statements: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements, those inside of others after these."""
    for statement in statements:
        yield statement
        for block in (getattr(statement, "body", ()), getattr(statement, "orelse", ())):
            yield from statements_in(block)


def assigned_names(statements: Iterable[ast.stmt]) -> set[str]:
    """The names that statements assign to."""
    return {
        target.id
        for statement in statements_in(statements)
        for target in targets_of(statement)
        if isinstance(target, ast.Name)
    }


class NameUse(NamedTuple):
    """The names that statements read before they set them, and those that they set in any case."""

    reads: Names
    sets: Names


_NOTHING = NameUse(frozenset(), frozenset())


def summary_of(statements: Sequence[ast.stmt]) -> NameUse:
    """Names that statements read from before them, and names that they set.

    A loop may run no iteration; what one sets, and reads in the next, it reads from before it too.
    """
    reads, sets = set[str](), set[str]()
    for statement in statements:
        one = _summary(statement)
        reads |= one.reads - sets
        sets |= one.sets
    return NameUse(frozenset(reads), frozenset(sets))


@cached_on_node
def _summary(statement: ast.stmt) -> NameUse:
    match statement:
        case ast.Assign() | ast.AugAssign():
            targets = list(targets_of(statement))
            names = frozenset([t.id for t in targets if isinstance(t, ast.Name)])
            indices = [t.slice for t in targets if isinstance(t, ast.Subscript)]
            reads = read_names(statement.value, *indices)
            if isinstance(statement, ast.AugAssign):
                base = statement.target
                base = base.value if isinstance(base, ast.Subscript) else base
                reads |= {base.id} if isinstance(base, ast.Name) else set()
            return NameUse(reads, names)
        case ast.If():
            then, other = summary_of(statement.body), summary_of(statement.orelse)
            reads = read_names(statement.test) | then.reads | other.reads
            return NameUse(reads, then.sets & other.sets)
        case ast.For():
            inner = summary_of(statement.body).reads - {statement.target.id}  # pyright: ignore
            return NameUse(read_names(statement.iter) | inner, frozenset())
        case ast.While():
            inner = summary_of(statement.body).reads
            return NameUse(read_names(statement.test) | inner, frozenset())
        case ast.Break() | ast.Continue():
            return _NOTHING
    return NameUse(read_names(statement), frozenset())


class Liveness:
    """Live names around the loops of a text.

    Attributes
    ----------
    after
        By loop, the names that are read after it before they are assigned, also in the next
        iteration of a loop around it.
    """

    def __init__(self, statements: Sequence[ast.stmt]) -> None:
        self.after: dict[ast.stmt, Names] = {}
        self._block(statements, frozenset())

    def _block(self, statements: Sequence[ast.stmt], live: Names) -> None:
        """Note what is live in statements, given what is after them."""
        for statement in reversed(statements):
            own = _summary(statement)
            if isinstance(statement, ast.If):
                self._block(statement.body, live)
                self._block(statement.orelse, live)
            elif isinstance(statement, ast.For | ast.While):
                self.after[statement] = live
                self._block(statement.body, live | own.reads)
            live = own.reads | (live - own.sets)
