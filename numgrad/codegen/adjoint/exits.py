"""``break``, ``continue`` and early ``return`` as flags, so that blocks have one entry and exit."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence

Refuse = Callable[[ast.AST, str, str], None]
"""Raises for a node: what is wrong, what to do."""
_EXITS = (ast.Break, ast.Continue, ast.Return)
_OWN = re.compile(r"left_|result\d+_|(stop|skip|trip)\d+_|trip\d+_(n|low)_|\w+_each_")
"""Names that the rewriting gives."""
BOUND = "at_most"
"""Attribute of a while loop made from a range: the name of the number of its iterations."""


def without_exits(body: list[ast.stmt], refuse: Refuse) -> list[ast.stmt]:
    """A function's body with a return at its end, if anywhere, and neither break nor continue."""
    inner = body[:-1] if isinstance(body[-1], ast.Return) else body
    if not any(_leaves(s) for s in inner):
        return body
    named = [n for s in body for n in ast.walk(s) if isinstance(n, ast.Name)]
    for node in named:
        if _OWN.fullmatch(node.id):
            refuse(node, f"the name {node.id} with break, continue or return", "choose another")
    return _Exits(refuse).rewritten(body, inner)


def _leaves(node: ast.AST) -> bool:
    """Whether a statement contains one of the three."""
    return any(isinstance(each, _EXITS) for each in ast.walk(node))


def _ends(statements: Sequence[ast.stmt]) -> bool:
    """Whether a list of statements always leaves by its last one, and not before."""
    if not statements or any(_leaves(s) for s in statements[:-1]):
        return False
    last = statements[-1]
    if isinstance(last, ast.If):
        return _ends(last.body) and _ends(last.orelse)
    return isinstance(last, _EXITS)


def _assign(name: str, value: str | ast.expr, like: ast.AST) -> ast.stmt:
    expression = ast.parse(value, mode="eval").body if isinstance(value, str) else value
    node = ast.Assign([ast.Name(name, ast.Store())], expression)
    return _placed(node, like)


def _placed(node: ast.stmt, like: ast.AST) -> ast.stmt:
    line = getattr(like, "lineno", 1)
    for each in ast.walk(node):
        if not hasattr(each, "lineno"):
            each.lineno = line  # pyright: ignore
            each.col_offset = 0  # pyright: ignore
    return node


class _Exits:
    """The rewriting of one function."""

    def __init__(self, refuse: Refuse) -> None:
        self.refuse = refuse
        self.count = 0
        self.same: list[str | None] = []

    def rewritten(self, body: list[ast.stmt], inner: list[ast.stmt]) -> list[ast.stmt]:
        if not any(isinstance(n, ast.Return) for s in inner for n in ast.walk(s)):
            statements, _ = self._block(inner, "", "")
            return _without_unread([*statements, *body[len(inner) :]])
        returns = [n for s in body for n in ast.walk(s) if isinstance(n, ast.Return)]
        widths = {_width(n) for n in returns}
        if len(widths) > 1:
            other = next(n for n in returns if _width(n) != _width(returns[0]))
            self.refuse(other, "returns of different numbers of values", "return the same in each")
        if widths != {0} and not _always_returns(body):
            self.refuse(returns[0], "a path without return", "return a value on every path")
        count = widths.pop()
        self.same = _same_names(returns, count)
        statements, _ = self._block(body, "", "")
        start = [_assign("left_", "False", body[0])]
        start += [
            _assign(f"result{k}_", "0", body[0]) for k in range(count) if self.same[k] is None
        ]
        names = ", ".join(self.same[k] or f"result{k}_" for k in range(count))
        last = ast.Return(ast.parse(names, mode="eval").body if names else None)
        return _without_unread([*start, *statements, _placed(last, returns[-1])])

    def _block(
        self, statements: Sequence[ast.stmt], breaking: str, skipping: str
    ) -> tuple[list[ast.stmt], set[str]]:
        """Statements without exits, and the flags that they may raise."""
        out: list[ast.stmt] = []
        raised: set[str] = set()
        for k, statement in enumerate(statements):
            rest = list(statements[k + 1 :])
            if isinstance(statement, ast.If) and rest and _leaves(statement):
                moved = self._with_rest(statement, rest)
                if moved is not None:
                    new, flags = self._statement(moved, breaking, skipping)
                    return out + new, raised | flags
            new, flags = self._statement(statement, breaking, skipping)
            out += new
            raised |= flags
            if isinstance(statement, _EXITS):
                return out, raised  # what follows is never reached
            if flags and rest:
                guarded, more = self._block(rest, breaking, skipping)
                test = " and ".join(f"not {flag}" for flag in sorted(flags))
                condition = ast.parse(test, mode="eval").body
                out.append(_placed(ast.If(condition, guarded, []), rest[0]))
                return out, raised | more
        return out, raised

    @staticmethod
    def _with_rest(node: ast.If, rest: list[ast.stmt]) -> ast.If | None:
        """The branch with what follows it in the side that does not leave."""
        if _ends(node.body):
            return ast.copy_location(ast.If(node.test, node.body, [*node.orelse, *rest]), node)
        if _ends(node.orelse):
            return ast.copy_location(ast.If(node.test, [*node.body, *rest], node.orelse), node)
        return None

    def _statement(
        self, node: ast.stmt, breaking: str, skipping: str
    ) -> tuple[list[ast.stmt], set[str]]:
        if isinstance(node, ast.Break):
            return [_assign(breaking, "True", node)], {breaking}
        if isinstance(node, ast.Continue):
            return [_assign(skipping, "True", node)], {skipping}
        if isinstance(node, ast.Return):
            values = _values(node)
            new = [
                _assign(f"result{k}_", v, node)
                for k, v in enumerate(values)
                if self.same[k] is None
            ]
            return [*new, _assign("left_", "True", node)], {"left_"}
        if isinstance(node, ast.If):
            then, one = self._block(node.body, breaking, skipping)
            other, two = self._block(node.orelse, breaking, skipping)
            body: list[ast.stmt] = then or [_placed(ast.Pass(), node)]
            return [ast.copy_location(ast.If(node.test, body, other), node)], one | two
        if isinstance(node, ast.For | ast.While):
            if node.orelse and _leaves(node):
                return self._with_else(node, breaking, skipping)
            if any(_leaves(s) for s in node.body):
                return self._loop(node)
        return [node], set()

    def _with_else(
        self, node: ast.For | ast.While, breaking: str, skipping: str
    ) -> tuple[list[ast.stmt], set[str]]:
        """A loop, and what follows it unless it was left by ``break``."""
        alone = type(node)(**{f: getattr(node, f) for f in node._fields})
        alone.orelse = []
        stop = f"stop{self.count + 1}_"
        loop, flags = self._statement(ast.copy_location(alone, node), breaking, skipping)
        rest, more = self._block(node.orelse, breaking, skipping)
        assigned = {n.id for s in loop for n in ast.walk(s) if isinstance(n, ast.Name)}
        guards = sorted(flags | ({stop} & assigned))
        if guards:
            test = ast.parse(" and ".join(f"not {flag}" for flag in guards), mode="eval").body
            rest = [_placed(ast.If(test, rest, []), node)]
        return [*loop, *rest], flags | more

    def _loop(self, node: ast.For | ast.While) -> tuple[list[ast.stmt], set[str]]:
        self.count += 1
        stop, skip, trip = (f"{word}{self.count}_" for word in ("stop", "skip", "trip"))
        body, flags = self._block(node.body, stop, skip)
        if skip in flags:
            body = [_assign(skip, "False", node), *body]
        leaving = sorted(flags & {stop, "left_"})
        start = [_assign(stop, "False", node)] if stop in flags else []
        if not leaving:
            again = type(node)(**{f: getattr(node, f) for f in node._fields})
            again.body = body
            return [ast.copy_location(again, node)], set()
        guard = " and ".join(f"not {flag}" for flag in leaving)
        if isinstance(node, ast.While):
            test = ast.BoolOp(ast.And(), [ast.parse(guard, mode="eval").body, node.test])
            loop = ast.While(test, body, [])
            bound = ""
        elif not self._is_range(node):
            return [*start, self._guarded(node, body, guard)], flags & {"left_"}
        else:
            opening, test, body, bound = self._as_while(node, body, trip, guard)
            start += opening
            loop = ast.While(test, body, [])
        loop.orelse = node.orelse
        setattr(loop, BOUND, bound)
        return [*start, _placed(ast.copy_location(loop, node), node)], flags & {"left_"}

    @staticmethod
    def _is_range(node: ast.For) -> bool:
        call = node.iter
        if not (isinstance(call, ast.Call) and isinstance(node.target, ast.Name)):
            return False
        word = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
        return word in ("range", "prange")

    @staticmethod
    def _guarded(node: ast.For, body: list[ast.stmt], guard: str) -> ast.stmt:
        """A loop over something else whose iterations do nothing after it was left."""
        names = [n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)]
        target = ast.parse(ast.unparse(node.target), mode="eval").body
        for each in ast.walk(target):
            if isinstance(each, ast.Name):
                each.id += "_each_"
            if isinstance(each, ast.Name | ast.Tuple):
                each.ctx = ast.Store()
        given = [_assign(name, f"{name}_each_", node) for name in names]
        condition = ast.parse(guard, mode="eval").body
        inner = _placed(ast.If(condition, [*given, *body], []), node)
        loop = ast.For(target, node.iter, [inner], node.orelse)
        return _placed(ast.copy_location(loop, node), node)

    def _as_while(
        self, node: ast.For, body: list[ast.stmt], trip: str, guard: str
    ) -> tuple[list[ast.stmt], ast.expr, list[ast.stmt], str]:
        """A range that may be left, as a while loop: what is before it, its test, body, bound."""
        call = node.iter
        assert isinstance(call, ast.Call)
        assert isinstance(node.target, ast.Name)
        word = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
        if word == "prange":
            self.refuse(node, "break or return in prange", "use range, or an array of flags")
        bounds: list[ast.expr] = list(call.args)
        zero, one = ast.Constant(0), ast.Constant(1)
        low, high, step = ([zero, *bounds, one] if len(bounds) == 1 else [*bounds, one])[:3]
        step_text = ast.unparse(step)
        count, first = f"{trip}n_", f"{trip}low_"
        start = [_assign(first, low, node)]
        span = f"({ast.unparse(high)} - {first})"
        if step_text == "1":
            start.append(_assign(count, f"max(0, {span})", node))
            at = f"{first} + {trip}"
        else:
            sign = f"(1 if ({step_text}) > 0 else -1)"
            start.append(
                _assign(count, f"max(0, ({span} + ({step_text}) - {sign}) // ({step_text}))", node)
            )
            at = f"{first} + {trip} * ({step_text})"
        start.append(_assign(trip, "0", node))
        body = [_assign(node.target.id, at, node), *body, _assign(trip, f"{trip} + 1", node)]
        test = ast.parse(f"{trip} < {count} and {guard}", mode="eval").body
        return start, test, body, count


def _same_names(returns: Sequence[ast.Return], count: int) -> list[str | None]:
    """For each result the name that all returns give, if they do: an array, perhaps."""
    names: list[str | None] = []
    for k in range(count):
        values = [_values(r)[k] for r in returns]
        given = {v.id if isinstance(v, ast.Name) else "" for v in values}
        names.append(given.pop() if len(given) == 1 and "" not in given else None)
    return names


def _width(node: ast.Return) -> int:
    return len(_values(node))


def _values(node: ast.Return) -> list[ast.expr]:
    """The values that a return gives."""
    if isinstance(node.value, ast.Tuple | ast.List):
        return node.value.elts
    is_none = isinstance(node.value, ast.Constant) and node.value.value is None
    return [] if node.value is None or is_none else [node.value]


def _always_returns(statements: Sequence[ast.stmt]) -> bool:
    """Whether the last statement returns on every path; loops that end are passed."""
    if not statements:
        return False
    last = statements[-1]
    if isinstance(last, ast.If):
        return _always_returns(last.body) and _always_returns(last.orelse)
    if isinstance(last, ast.While) and isinstance(last.test, ast.Constant):
        return bool(last.test.value)
    return isinstance(last, ast.Return | ast.Raise)


def _without_unread(statements: list[ast.stmt]) -> list[ast.stmt]:
    """Statements without assignments to flags that nobody reads."""
    read = {
        n.id
        for s in statements
        for n in ast.walk(s)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
    }

    def is_unread(s: ast.stmt) -> bool:
        if not (isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name)):
            return False
        name = s.targets[0].id
        flag = name == "left_" or (name.startswith(("skip", "stop")) and name.endswith("_"))
        return flag and name not in read

    class Remove(ast.NodeTransformer):
        def visit_Assign(self, node: ast.Assign) -> ast.stmt:
            return _placed(ast.Pass(), node) if is_unread(node) else node

    return [Remove().visit(s) for s in statements]
