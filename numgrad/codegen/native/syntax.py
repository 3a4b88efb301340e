"""The syntax of a kernel's text: its pieces, and which local names change while it runs.

Note [Variables]
----------------
A name that is only read where its last assignment has just been made, in the same list of
statements or deeper, is a name of a value. Others live in memory of the stack, which LLVM turns
into registers: accumulators of loops, what branches set, what is read after the loop that sets it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence, Set
from typing import Any, TypeVar

T = TypeVar("T")


def cached_on_node(find: Callable[[Any], T]) -> Callable[[Any], T]:
    """A function of a piece of syntax that keeps its answer in the piece, for as long as it lives.

    Syntax does not change after it is read.
    """
    key = f"cached_{find.__name__}"

    def lookup(node: ast.AST) -> T:
        facts = node.__dict__
        if key not in facts:
            facts[key] = find(node)
        return facts[key]

    lookup.__doc__ = find.__doc__
    return lookup


@cached_on_node
def nodes(node: ast.AST) -> tuple[ast.AST, ...]:
    """A piece of syntax and all pieces in it, in the order of ``ast.walk``."""
    pieces = [node]
    for each in pieces:  # which grows
        facts = each.__dict__
        for field in each._fields:
            value = facts.get(field)
            if isinstance(value, ast.AST):
                pieces.append(value)
            elif isinstance(value, list):
                pieces += [item for item in value if isinstance(item, ast.AST)]
    return tuple(pieces)


@cached_on_node
def calls(node: ast.AST) -> tuple[ast.Call, ...]:
    """The calls in a piece of syntax."""
    return tuple(each for each in nodes(node) if isinstance(each, ast.Call))


Path = tuple[tuple[int, int], ...]
"""Where a statement stands: each list of statements around it, with the place there."""


def variables(function: ast.FunctionDef) -> frozenset[str]:
    """The names of a function that need memory."""
    if is_straight(function.body):
        return frozenset()
    stored: dict[str, list[Path]] = {}
    loaded: dict[str, list[Path]] = {}
    for argument in function.args.args:
        stored[argument.arg] = [((id(function.body), -1),)]
    for path, name, writes in _uses(function.body, ()):
        (stored if writes else loaded).setdefault(name, []).append(path)
    return frozenset(
        name for name, places in stored.items() if not _fixed(places, loaded.get(name, ()))
    )


def _fixed(stores: Sequence[Path], loads: Sequence[Path]) -> bool:
    """Whether every read sees an assignment of a list of statements that it is in."""
    if len(stores) == 1:
        own, since = stores[0][-1]
        for path in loads:
            key, position = path[-1]
            if key != own:
                position = next((position for key, position in path if key == own), since)
            if position <= since:
                return False
        return True
    first: dict[int, int] = {}
    for path in stores:
        key, position = path[-1]
        first[key] = min(first.get(key, position), position)
    for path in stores:  # one further in, where a list further out has a value already
        if any(key in first and position >= first[key] for key, position in path[:-1]):
            return False
    return all(
        any(key in first and position > first[key] for key, position in path) for path in loads
    )


Use = tuple[Path, str, bool]
"""A use of a name: where it stands, and whether it is assigned to."""


def _uses(statements: list[ast.stmt], around: Path) -> list[Use]:
    """Every use of a name."""
    all_uses: list[Use] = []
    for position, statement in enumerate(statements):
        here: Path = (*around, (id(statements), position))
        if isinstance(statement, ast.For):
            all_uses += _names(statement.iter, here)
            body: Path = (*here, (id(statement.body), -1))
            all_uses += [(body, name, True) for name, _ in uses(statement.target)]
            all_uses += _uses(statement.body, here)
        elif isinstance(statement, ast.If | ast.While):
            all_uses += _names(statement.test, here)
            all_uses += _uses(statement.body, here)
            all_uses += _uses(statement.orelse, here)
        elif isinstance(statement, ast.AugAssign):
            all_uses += _names(statement.value, here)
            for name, writes in uses(statement.target):
                all_uses.append((here, name, False))
                if writes:
                    all_uses.append((here, name, True))
        else:
            all_uses += _names(statement, here)
    return all_uses


def _names(node: ast.AST, path: Path) -> list[Use]:
    return [(path, name, writes) for name, writes in uses(node)]


@cached_on_node
def uses(node: ast.AST) -> tuple[tuple[str, bool], ...]:
    """The names in a piece of syntax, and which are assigned to."""
    form = node.__dict__.get("form")
    if form is None:
        return tuple([(each.id, isinstance(each.ctx, ast.Store)) for each in used_names(node)])
    parts = form.parts
    return tuple([(parts[k] if type(k) is int else k, writes) for k, writes in form.names])


@cached_on_node
def used_names(node: ast.AST) -> tuple[ast.Name, ...]:
    """The names in a piece of syntax, outermost first."""
    names, rest = [], [node]
    for each in rest:  # which grows
        if isinstance(each, ast.Name):
            names.append(each)
        elif not isinstance(each, ast.Constant):
            facts = each.__dict__
            for field in each._fields:
                value = facts.get(field)
                if isinstance(value, list):
                    rest += [child for child in value if isinstance(child, ast.AST)]
                elif isinstance(value, _PARTS):
                    rest.append(value)
    return tuple(names)


_PARTS = (ast.expr, ast.stmt)


def assigned(statements: Sequence[ast.stmt]) -> list[str]:
    """The names that statements assign to, in order."""
    return list(dict.fromkeys(name for s in statements for name, writes in _all_uses(s) if writes))


@cached_on_node
def _all_uses(statement: ast.stmt) -> tuple[tuple[str, bool], ...]:
    """The names in a statement and in those within it, and which are assigned to."""
    return tuple([(name, writes) for _, name, writes in _uses([statement], ())])


def read_first(statements: Sequence[ast.stmt], before: Set[str] = frozenset()) -> set[str]:
    """The names whose value from before the statements they read, if not among ``before``."""
    known, names = set(before), set[str]()
    for statement in statements:
        if isinstance(statement, ast.For):
            names |= reads(statement.iter) - known
            names |= read_first(statement.body, known | _written(statement.target))
            names |= read_first(statement.orelse, known)
        elif isinstance(statement, ast.If | ast.While):
            names |= reads(statement.test) - known
            names |= read_first(statement.body, known) | read_first(statement.orelse, known)
            if isinstance(statement, ast.If):
                known.update(set(assigned(statement.body)) & set(assigned(statement.orelse)))
        else:
            uses = _all_uses(statement)
            names |= {name for name, writes in uses if not writes and name not in known}
            known.update(name for name, writes in uses if writes)
    return names


@cached_on_node
def reads(node: ast.AST) -> frozenset[str]:
    """The names that a statement reads."""
    return frozenset([name for name, writes in uses(node) if not writes])


def _written(node: ast.AST) -> set[str]:
    return {name for _, name, writes in _names(node, ()) if writes}


def is_straight(statements: Sequence[ast.stmt]) -> bool:
    """Whether statements run one after the other, to a result at the end."""
    plain = ast.Assign | ast.AugAssign | ast.Expr | ast.AnnAssign | ast.Pass
    *rest, last = statements
    return all(isinstance(s, plain) for s in rest) and isinstance(last, plain | ast.Return)
