"""Values that an iteration of a loop in lanes shares with those next to it.

Note [Neighbours]
-----------------
What a stencil reads at ``i + 1`` the next iteration reads at ``i``, and may compute the same of it.
Vectors at places that are not multiples of their length lie across lines of the cache: such loops
wait for their reads. Where a register holds a whole line, a value that is that of some iterations
later, moved, is put together instead from the lanes that the other one has in this turn and had
in the one before; for the first turn it is computed before the loop. It has the same bits either
way. Iterations left over compute everything themselves.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from numgrad.codegen.native.function import FunctionBody
from numgrad.codegen.native.ir import FunctionWriter
from numgrad.codegen.native.syntax import assigned, calls, reads, used_names, uses
from numgrad.codegen.native.values import INT64, Known, Lanes, Number, integer, kind_of
from numgrad.dataclass import dataclass

MOST = 200
"""Statements up to which a loop is looked at."""


class Moved(NamedTuple):
    """The value of an expression, but for a number that is added to the index of the loop.

    ``by`` is that number; None if it is the same in all iterations.
    """

    key: Any
    by: int | None


@dataclass
class Follower:
    """A name whose value is that of another one some iterations before.

    Attributes
    ----------
    place
        The statement that computes it.
    source
        The other name.
    distance
        How many iterations.
    slot
        The vector of ``source`` in the turn before.
    """

    place: int
    source: str
    distance: int
    slot: str = ""


class Neighbours:
    """The statements of a loop in lanes, of which some only move lanes: Note [Neighbours].

    Attributes
    ----------
    followers
        By name.
    """

    def __init__(
        self, body: FunctionBody, node: ast.For, totals: Collection[int], count: int
    ) -> None:
        assert isinstance(node.target, ast.Name)
        self.body, self.index, self.statements = body, node.target.id, node.body
        self.count = count
        self.changing = {*assigned(node.body), self.index}
        self.names = {
            k: s.targets[0].id
            for k, s in enumerate(node.body)
            if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) and k not in totals
        }
        times = Counter(name for s in node.body for name, writes in uses(s) if writes)
        self.place = {
            name: k
            for k, name in self.names.items()
            if times[name] == 1 and name not in body.variables
        }
        self.forms: dict[str, Moved] = {}
        self.followers = self._found()
        needed = self._needed()
        self.followers = {k: v for k, v in self.followers.items() if v.place in needed}

    # ------------------------------------------------------------------------------- who follows

    def _found(self) -> dict[str, Follower]:
        groups: dict[Any, dict[int, str]] = {}
        for name, position in self.place.items():
            form = self._form(self.statements[position].value)  # pyright: ignore
            if form is not None:
                self.forms[name] = form
                if form.by is not None:
                    groups.setdefault(form.key, {}).setdefault(form.by, name)
        followers: dict[str, Follower] = {}
        for group in groups.values():
            places = sorted(group, reverse=True)
            for later, earlier in pairwise(places):
                if later - earlier < self.count:
                    name = group[earlier]
                    followers[name] = Follower(self.place[name], group[later], later - earlier)
        return followers

    def _form(self, node: ast.expr) -> Moved | None:
        """The form of an expression of reads, arithmetic and conversions alone; else None."""
        if isinstance(node, ast.Constant):
            return Moved((type(node.value), repr(node.value)), None)
        if isinstance(node, ast.Name):
            if node.id in self.changing:
                return self.forms.get(node.id)
            return Moved(node.id, None)
        if isinstance(node, ast.BinOp) and not self.body.f.contract:  # a fused product is not one
            return self._joined(type(node.op), [node.left, node.right])
        if isinstance(node, ast.UnaryOp):
            return self._joined(type(node.op), [node.operand])
        if not isinstance(node, ast.Call) or node.keywords or not isinstance(node.func, ast.Name):
            return None
        called = self.body.value(node.func)
        function = called.value if isinstance(called, Known) else None
        if getattr(function, "__name__", "") == "load" and len(node.args) == 5:
            return self._read(node)
        if isinstance(function, np.dtype) or (
            isinstance(function, type) and issubclass(function, np.generic)
        ):
            return self._joined(node.func.id, node.args)
        return None

    def _joined(self, kind: Any, operands: Sequence[ast.expr]) -> Moved | None:
        parts = [self._form(x) for x in operands]
        if None in parts:
            return None
        moves = [operand.by for operand in parts if operand is not None and operand.by is not None]
        by = max(moves, default=None)
        key = [
            (operand.key, None if operand.by is None or by is None else operand.by - by)
            for operand in parts
            if operand is not None
        ]
        return Moved((kind, *key), by)

    def _read(self, node: ast.Call) -> Moved | None:
        """A read of memory whose place grows by one with each iteration."""
        kind, array, index, *scope = node.args
        if not isinstance(array, ast.Name) or array.id in self.changing:
            return None
        names = [name for name in used_names(index) if name.id in self.changing]
        terms: dict[str, int] = {}
        by = _add_terms(index, 1, terms)
        if [name.id for name in names] != [self.index] or terms.pop(self.index, 0) != 1:
            return None
        rest = tuple(sorted((text, times) for text, times in terms.items() if times))
        return Moved(("load", ast.dump(kind), array.id, rest, *map(ast.dump, scope)), by)

    # ------------------------------------------------------------------------------- translation

    def begin(self, start: str) -> None:
        """Set what followers have before the first turn, which begins at ``start`` and is whole."""
        body, f = self.body, self.body.f
        names = dict(body.names)
        body.lanes = Lanes(self.count, True, f.depth, block=f.block)
        body.names[self.index] = Number(INT64, (start,), self.count, None, integer(1))
        done: set[int] = set()
        for name, follower in [*self.followers.items()]:
            self._compute(follower.place, done)
            value = body.names[name]
            if not _is_vector(value, self.count):
                del self.followers[name]
                continue
            assert isinstance(value, Number)
            kind = kind_of(value)
            order = [(k + follower.distance) % self.count for k in range(self.count)]
            first = _shuffled(f, value, value.part, "poison", order)
            follower.slot = f.slot(kind)
            f.effect(f"store {kind} {first}, ptr {follower.slot}")
        body.lanes, body.names = None, names

    def _compute(self, position: int, done: set[int]) -> None:
        """Translate a statement after those it needs, as they stand."""
        done.add(position)
        statement = self.statements[position]
        for name in sorted(reads(statement)):
            if name in self.place and self.place[name] not in done:
                self._compute(self.place[name], done)
        self.body.run([statement])

    def turn(self, run: Callable[[int], None]) -> None:
        """Translate the statements for a whole vector; ``run`` translates one as it stands."""
        needed, done = self._needed(), set[int]()

        def translate(position: int) -> None:
            if position in done:
                return
            done.add(position)
            name = self.names.get(position, "")
            if name in self.followers:
                translate(self.place[self.followers[name].source])
                self._follow(name)
                return
            for other in sorted(reads(self.statements[position])):
                if other in self.place:
                    translate(self.place[other])
            run(position)

        for position in range(len(self.statements)):
            if position in needed:
                translate(position)
        for follower in self.followers.values():
            value = self.body.names[follower.source]
            assert isinstance(value, Number)
            self.body.f.effect(f"store {kind_of(value)} {value.part}, ptr {follower.slot}")

    def _needed(self) -> set[int]:
        """The statements that are left: what only followers were computed from is not."""
        stack = [k for k in range(len(self.statements)) if self.names.get(k) not in self.forms]
        offsets: set[int] = set()
        while stack:
            position = stack.pop()
            if position not in offsets:
                offsets.add(position)
                follower = self.followers.get(self.names.get(position, ""))
                read = [follower.source] if follower else reads(self.statements[position])
                stack += [self.place[name] for name in read if name in self.place]
        return offsets

    def _follow(self, name: str) -> None:
        """Put a value together from the one it follows."""
        body, follower = self.body, self.followers[name]
        value = body.names[follower.source]
        assert isinstance(value, Number)
        kind = kind_of(value)
        before = body.f.value(f"load {kind}, ptr {follower.slot}")
        order = range(self.count - follower.distance, 2 * self.count - follower.distance)
        moved = _shuffled(body.f, value, before, value.part, order)
        body.names[name] = Number(value.dtype, (moved,), self.count)


def _is_vector(value: Any, count: int) -> bool:
    """Whether a value has lanes that may be moved."""
    if not isinstance(value, Number) or value.lanes != count or value.dtype.kind not in "fiu":
        return False
    return value.literal is None and value.step is None


def _shuffled(f: FunctionWriter, value: Number, a: str, b: str, order: Sequence[int]) -> str:
    """A vector like ``value`` of lanes of two others, which are numbered one after the other."""
    kind, places = kind_of(value), ", ".join(f"i32 {k}" for k in order)
    return f.pure(f"shufflevector {kind} {a}, {kind} {b}, <{len(order)} x i32> <{places}>")


def neighbours(
    body: FunctionBody, node: ast.For, totals: Collection[int], count: int
) -> Neighbours | None:
    """The values that iterations of a loop share, if that pays on this CPU; else None."""
    if not body.f.module.wide or len(node.body) > MOST:
        return None
    arrays = [call.args[1] for s in node.body for call in calls(s) if len(call.args) == 5]
    names = [array.id for array in arrays if isinstance(array, ast.Name)]
    if len(set(names)) == len(names):
        return None
    shared = Neighbours(body, node, totals, count)
    return shared if shared.followers else None


def _add_terms(node: ast.expr, sign: int, terms: dict[str, int]) -> int:
    """Collect the terms of a sum; returns the constant among them."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        right = sign if isinstance(node.op, ast.Add) else -sign
        return _add_terms(node.left, sign, terms) + _add_terms(node.right, right, terms)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _add_terms(node.operand, -sign, terms)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return sign * node.value
    text = ast.unparse(node)
    terms[text] = terms.get(text, 0) + sign
    return 0
