"""Live variables of a text: which names are read later, before they are assigned.

A backward data-flow analysis over structured statements (Aho, Lam, Sethi, Ullman, *Compilers*,
section 9.2.5). An array counts as assigned where it is made, not where an element is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from numgrad.codegen.native.syntax import used_names

Names = frozenset[str]
_NONE: Names = frozenset()


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
    """What a statement assigns to, one by one."""
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
        self.before = self._block(statements, _NONE, _NONE, _NONE)

    def _block(
        self, statements: Sequence[ast.stmt], live: Names, at_break: Names, at_next: Names
    ) -> Names:
        """The live names before statements, given those after them and after break, continue."""
        for statement in reversed(statements):
            live = self._statement(statement, live, at_break, at_next)
        return live

    def _statement(
        self, statement: ast.stmt, live: Names, at_break: Names, at_next: Names
    ) -> Names:
        match statement:
            case ast.Assign() | ast.AugAssign():
                targets = list(targets_of(statement))
                set_names = {t.id for t in targets if isinstance(t, ast.Name)}
                elements = [t for t in targets if not isinstance(t, ast.Name)]
                indices = [t.slice for t in elements if isinstance(t, ast.Subscript)]
                live = (live - set_names) | read_names(statement.value, *indices)
                if isinstance(statement, ast.AugAssign):
                    base = statement.target
                    base = base.value if isinstance(base, ast.Subscript) else base
                    live |= {base.id} if isinstance(base, ast.Name) else _NONE
                return live
            case ast.If():
                sides = [
                    self._block(side, live, at_break, at_next)
                    for side in (statement.body, statement.orelse)
                ]
                return sides[0] | sides[1] | read_names(statement.test)
            case ast.For() | ast.While():
                return self._loop(statement, live)
            case ast.Break():
                return at_break
            case ast.Continue():
                return at_next
            case ast.Return():
                return read_names(statement.value)
        return live | read_names(statement)

    def _loop(self, loop: ast.For | ast.While, live: Names) -> Names:
        self.after[loop] = self.after.get(loop, _NONE) | live
        own = read_names(loop.test) if isinstance(loop, ast.While) else _NONE
        index = {loop.target.id} if isinstance(loop, ast.For) else set()  # pyright: ignore
        head = live | own
        while True:
            more = head | (self._block(loop.body, head, live, head) - index)
            if more == head:
                break
            head = more
        return head | (read_names(loop.iter) if isinstance(loop, ast.For) else _NONE)


def read_before_set(statements: Sequence[ast.stmt]) -> Names:
    """The names whose value from before the statements these read."""
    return Liveness(statements).before
