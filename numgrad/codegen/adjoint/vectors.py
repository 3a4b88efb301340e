"""Innermost loops of texts, rewritten so that they can be compiled to vectors.

Note [Vector form]
------------------
The native compiler writes an innermost loop in vectors if it runs upwards, each name is made anew
in every iteration or is a sum, and what is written is not read at another place of the same array:
Note [Loops in lanes] in ``codegen.native.loops``. Loops of a backward sweep run downwards and add
to neighbours, ``u__b[i, (j + 1)] += s``; those of a function with two arrays that are exchanged
read and write two parts of one. Dependence analysis of subscripts that are affine in the innermost
index (Allen and Kennedy, "Optimizing Compilers for Modern Architectures", 2001) allows four
changes:

- A loop that runs downwards runs upwards if no iteration reads or overwrites what another one
  writes, and nothing reads a name of the last one; several may add to one element.
- A row ``u[p, i, :]`` gets a name before the loop. The native compiler then compares at run time
  where rows lie, and leaves the loop as it stands where two are near each other.
- *Loop distribution*: of additions to one row at different distances all but the first go to
  loops of their own, after that which stores what they add, for ``STRIP`` iterations at a time.
- A sum of floats is taken in any order. Only cotangents are: of them none is compared.

What a loop adds to an element that is the same in all its iterations is a sum, added at its end.
All of it is proven from the text, where different names of arrays are different memory. What
cannot be proven stays as it is, and the reason is noted.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np

from numgrad.codegen.adjoint.index_sets import Trips, moduli, split_loop
from numgrad.codegen.adjoint.liveness import Liveness
from numgrad.codegen.adjoint.representation import KernelFunction
from numgrad.codegen.adjoint.rotations import distinct_names
from numgrad.codegen.dtypes import numpy_name
from numgrad.codegen.native.syntax import nodes
from numgrad.dataclass import dataclass

STRIP = 256
"""Iterations whose contributions are stored: 4 kB of complex numbers, on the stack."""


class AffineIndex(NamedTuple):
    """``constant + step * index of the loop + the sum of coefficient * invariant``."""

    terms: tuple[tuple[str, int], ...]
    step: int
    constant: int

    @property
    def is_invariant(self) -> bool:
        return self.step == 0

    def differs_from(self, other: AffineIndex) -> bool:
        """Whether two, that no iteration changes, are never equal."""
        same = self.terms == other.terms and self.is_invariant and other.is_invariant
        return same and self.constant != other.constant

    def text(self, index: str) -> str:
        """As an expression, with a text for the index of the loop."""
        parts = [(name, factor) for name, factor in self.terms]
        if self.step and index != "0":
            parts.append((index, self.step))
        out = ""
        for name, factor in parts:
            sign = "-" if factor < 0 else "+"
            word = name if name.isidentifier() else f"({name})"
            word = word if abs(factor) == 1 else f"{abs(factor)} * {word}"
            out += f" {sign} {word}" if out else (f"-{word}" if factor < 0 else word)
        if self.constant or not out:
            sign = "-" if self.constant < 0 else "+"
            out = f"{out} {sign} {abs(self.constant)}" if out else str(self.constant)
        return out


def _sum(a: AffineIndex, b: AffineIndex, sign: int = 1) -> AffineIndex:
    terms = dict(a.terms)
    for name, factor in b.terms:
        terms[name] = terms.get(name, 0) + sign * factor
    kept = tuple(sorted((n, f) for n, f in terms.items() if f))
    return AffineIndex(kept, a.step + sign * b.step, a.constant + sign * b.constant)


def _scaled(a: AffineIndex, factor: int) -> AffineIndex:
    if not factor:
        return AffineIndex((), 0, 0)
    return AffineIndex(
        tuple((n, f * factor) for n, f in a.terms), a.step * factor, a.constant * factor
    )


@dataclass(eq=False)
class ElementAccess:
    """A read or write of an element of an array, in a loop.

    Attributes
    ----------
    kind
        "read", "write" or "add".
    index
        By axis its place; None for what is not affine.
    place
        The number of the statement.
    """

    node: ast.Subscript
    array: str
    kind: str
    index: tuple[AffineIndex | None, ...]
    place: int

    @property
    def row(self) -> tuple[Any, ...] | None:
        """The row that it is in, equal for accesses at known distances; None if it is in none."""
        *outer, last = self.index
        if last is None or last.step != 1 or any(p is None or p.step for p in outer):
            return None
        return (*outer, last.terms)

    @property
    def is_invariant(self) -> bool:
        return all(p is not None and p.is_invariant for p in self.index)

    @property
    def text(self) -> str:
        return ast.unparse(self.node)


class NoVector(Exception):
    """A loop that stays as it is."""


@dataclass
class NameFacts:
    """Properties of a text's names.

    Attributes
    ----------
    distinct
        Pairs of integers that are never equal.
    dtype_of
        The dtype of a number or of an array's elements; None if it is not known.
    """

    distinct: set[frozenset[str]] = field(default_factory=set)
    dtype_of: Callable[[str], np.dtype | None] = lambda name: None


@dataclass(frozen=True)
class ScalarLoop:
    """A loop that is not in vectors.

    ``variable`` is the name of its index in the text, ``reason`` what keeps it from vectors.
    """

    variable: str
    reason: str


class VectorText(NamedTuple):
    """A text with its innermost loops in vector form, and those that stay as they are."""

    source: str
    scalar: list[ScalarLoop]


def vector_form(source: str, facts: NameFacts) -> VectorText:
    """A text with its innermost loops in vector form: Note [Vector form]."""
    tree = ast.parse(source)
    writer = VectorWriter(tree, facts)
    for function in tree.body:
        assert isinstance(function, ast.FunctionDef)
        writer.blocks(function)
    if not writer.changed:
        return VectorText(source, writer.scalar)
    return VectorText(ast.unparse(ast.fix_missing_locations(tree)) + "\n", writer.scalar)


class VectorWriter:
    """Rewrites the innermost loops of a text."""

    def __init__(self, tree: ast.Module, facts: NameFacts) -> None:
        self.facts = facts
        self.count = 0
        self.changed = False
        self.scalar: list[ScalarLoop] = []
        self.views = _views_of(tree)
        self.live: dict[ast.stmt, frozenset[str]] = {}  # names that are read after a loop
        for function in tree.body:
            assert isinstance(function, ast.FunctionDef)
            self.live |= Liveness(function.body).after

    def number(self) -> int:
        self.count += 1
        return self.count

    def blocks(self, node: ast.AST) -> None:
        """Rewrite the loops in all blocks of a statement."""
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if not isinstance(block, list):
                continue
            out: list[ast.stmt] = []
            for s in block:
                if isinstance(s, ast.For) and not any(
                    isinstance(n, ast.For | ast.While) for b in s.body for n in nodes(b)
                ):
                    out += self._split(s, out) or self._loop(s)
                else:
                    self.blocks(s)
                    out.append(s)
            setattr(node, name, out)

    def _split(self, node: ast.For, before: Sequence[ast.stmt]) -> list[ast.stmt] | None:
        """A loop without moduli but at its ends: Note [Index sets] in ``index_sets``.

        None if it has none, or is not in vectors even so.
        """
        if not any(moduli(node.body)):
            return None
        try:
            live = self.live[node]
            loop = InnermostLoop(node, self.facts, self.views, self.number, live)
            trips = loop.trips(before)
            if trips is None:
                return None
            parts = split_loop(node, loop.downwards, loop.high, trips, loop.offset, self.number())
            if parts is None:
                return None
            inner = InnermostLoop(parts.inner, self.facts, self.views, self.number, live)
            lines = inner.lines() or [parts.inner]
        except NoVector:
            return None
        self.changed = True
        return [parts.first, parts.length, *lines, parts.last]

    def _loop(self, node: ast.For) -> list[ast.stmt]:
        assert isinstance(node.target, ast.Name)
        try:
            live = self.live[node]
            lines = InnermostLoop(node, self.facts, self.views, self.number, live).lines()
        except NoVector as reason:
            self.scalar.append(ScalarLoop(node.target.id, str(reason)))
            return [node]
        if lines is None:
            return [node]
        self.changed = True
        return lines


def _views_of(tree: ast.Module) -> set[str]:
    """Names of parts of arrays, and arrays that have such."""
    names: set[str] = set()
    if not any(isinstance(n, ast.Slice) for n in nodes(tree)):
        return names
    for s in nodes(tree):
        if isinstance(s, ast.Assign) and any(isinstance(n, ast.Slice) for n in nodes(s.value)):
            names |= {n.id for n in nodes(s) if isinstance(n, ast.Name)}
    return names


class InnermostLoop:
    """A loop without loops in it: Note [Vector form].

    Attributes
    ----------
    downwards
        Whether it runs from its last iteration to the first.
    live
        The names that are read after it.
    """

    def __init__(
        self,
        node: ast.For,
        facts: NameFacts,
        views: set[str],
        number: Callable[[], int],
        live: frozenset[str],
    ) -> None:
        self.node, self.facts, self.number, self.live = node, facts, number, live
        assert isinstance(node.target, ast.Name)
        self.index = node.target.id
        self.downwards, self.low, self.high = _range_of(node)
        if not all(isinstance(s, ast.Assign | ast.AugAssign) for s in node.body):
            raise NoVector("a branch")
        self.body = [s for s in node.body if isinstance(s, ast.Assign | ast.AugAssign)]
        self.assigned = _assigned(self.body)
        self.affine: dict[str, AffineIndex | None] = {}
        self.accesses = list(self._accesses(views))

    # ------------------------------------------------------------------------------ its iterations

    def trips(self, before: Sequence[ast.stmt]) -> Trips | None:
        """How many iterations it has, as the statement right before it says."""
        match before[-1] if before else None:
            case ast.Assign(
                targets=[ast.Name(id=self.high)],
                value=ast.Call(func=ast.Name(id="max"), args=[ast.Constant(value=0), trips]),
            ) if self.low == "0":
                length = self._affine(trips)
                if length is not None and not length.step and len(length.terms) == 1:
                    ((name, factor),) = length.terms
                    return Trips(name, length.constant) if factor == 1 else None
        return None

    def offset(self, place: ast.expr) -> int | None:
        """The constant of a place that is the loop's index and a constant."""
        index = self._affine(place)
        return index.constant if index is not None and index[:2] == ((), 1) else None

    # --------------------------------------------------------------------------------- subscripts

    def _accesses(self, views: set[str]) -> Iterator[ElementAccess]:
        for place, s in enumerate(self.body):
            target = s.target if isinstance(s, ast.AugAssign) else s.targets[0]
            for node in ast.walk(s):
                if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
                    continue
                if node.value.id in views:
                    raise NoVector(f"{ast.unparse(node)} may be a part of another array")
                kind = "read"
                if node is target:
                    kind = "write"
                    if isinstance(s, ast.AugAssign):
                        if not isinstance(s.op, ast.Add):
                            raise NoVector(f"{ast.unparse(s)} is no addition")
                        kind = "add"
                places = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                index = tuple([self._affine(p) for p in places])
                yield ElementAccess(node, node.value.id, kind, index, place)
            if isinstance(target, ast.Name):
                single = self.assigned.count(target.id) == 1 and isinstance(s, ast.Assign)
                self.affine[target.id] = self._affine(s.value) if single else None

    def _affine(self, node: ast.expr) -> AffineIndex | None:
        """An integer as a sum of the loop's index and of what no iteration changes."""
        match node:
            case ast.Constant(value=int(value)) if not isinstance(value, bool):
                return AffineIndex((), 0, value)
            case ast.Name(id=name):
                if name == self.index:
                    return AffineIndex((), 1, 0)
                if name in self.assigned:
                    return self.affine.get(name)
                return AffineIndex(((name, 1),), 0, 0)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self._affine(operand)
                return None if inner is None else _scaled(inner, -1)
            case ast.BinOp(op=ast.Add() | ast.Sub() as op, left=left, right=right):
                a, b = self._affine(left), self._affine(right)
                if a is None or b is None:
                    return None
                return _sum(a, b, 1 if isinstance(op, ast.Add) else -1)
            case ast.BinOp(op=ast.Mult(), left=left, right=right):
                a, b = self._affine(left), self._affine(right)
                for one, other in ((a, b), (b, a)):
                    if one is not None and other is not None and not (one.terms or one.step):
                        return _scaled(other, one.constant)
        return self._invariant(node)

    def _invariant(self, node: ast.expr) -> AffineIndex | None:
        """An integer of another form, if no iteration changes it."""
        for n in ast.walk(node):
            if isinstance(n, ast.Name) and (n.id == self.index or n.id in self.assigned):
                return None
            if isinstance(n, ast.Subscript) and not isinstance(n.value, ast.Attribute):
                return None
        return AffineIndex(((ast.unparse(node), 1),), 0, 0)

    def _are_apart(self, a: ElementAccess, b: ElementAccess) -> bool:
        """Whether two accesses to an array are never to one element, in whatever iterations."""
        for p, q in zip(a.index, b.index, strict=True):
            if p is None or q is None:
                continue
            if p.differs_from(q):
                return True
            if p.is_invariant and q.is_invariant and p.constant == q.constant:
                names = [n for n, f in _sum(p, q, -1).terms]
                if frozenset(names) in self.facts.distinct and _is_difference(p, q):
                    return True
        return False

    def groups(self) -> list[list[ElementAccess]]:
        """Accesses that may be to one element, of which some are writes."""
        groups: list[list[ElementAccess]] = []
        for access in self.accesses:
            near = [
                g
                for g in groups
                if any(
                    access.array == other.array
                    and not access.kind == other.kind == "read"
                    and not self._are_apart(access, other)
                    for other in g
                )
            ]
            joined = [a for g in near for a in g]
            groups = [g for g in groups if g not in near] + [[*joined, access]]
        return [g for g in groups if any(a.kind != "read" for a in g)]

    # -------------------------------------------------------------------------------- the changes

    def lines(self) -> list[ast.stmt] | None:
        """The loop in vector form; None if it is in that already."""
        groups = self.groups()
        if not self.downwards:
            return self._upward_lines(groups)
        if not self.accesses and not self.body:
            return None
        for group in groups:
            self._check_order(group)
        return self._turned_lines(groups)

    def _check_order(self, group: list[ElementAccess]) -> None:
        """Raise if the iterations depend on each other by way of some elements."""
        first = group[0]
        if all(a.kind == "add" for a in group):
            for a in group:
                if a.row is None and not (a.is_invariant and len(group) == 1):
                    raise NoVector(f"{a.text} is at no fixed distance")
            return
        if any(a.index != first.index for a in group):
            other = next(a for a in group if a.index != first.index)
            raise NoVector(f"{other.text} may be {first.text} of another iteration")
        if first.row is None:
            raise NoVector(f"{first.text} is not along the last axis")

    def _upward_lines(self, groups: list[list[ElementAccess]]) -> list[ast.stmt] | None:
        """The loop with names for the rows that are written and read."""
        chosen = self._in_rows({a.array for g in groups for a in g})
        for a in chosen:
            for b in chosen:
                same = a.array == b.array and a.row == b.row
                if same and a.index != b.index and a.kind != "read":
                    raise NoVector(f"{b.text} may be {a.text} of another iteration")
        if not chosen:
            return None
        number = self.number()
        counter, before = self._zero_based(number)
        rows = NamedRows(chosen, "0" if self.low == "0" else self.low, counter, self.number)
        body = [rows.replaced(s) for s in self.body]
        loop = _parsed(f"for {counter} in range({self._length()}):\n    pass")[0]
        assert isinstance(loop, ast.For)
        loop.body = [*before, *body]
        return [*rows.lines, loop]

    def _zero_based(self, number: int) -> tuple[str, list[ast.stmt]]:
        if self.low == "0":
            return self.index, []
        counter = f"q{number}_"
        return counter, _parsed(f"{self.index} = {self.low} + {counter}")

    def _length(self) -> str:
        return self.high if self.low == "0" else f"{self.high} - ({self.low})"

    def _turned_lines(self, groups: list[list[ElementAccess]]) -> list[ast.stmt]:
        """The loop upwards: rows, strips of contributions, sums."""
        scalars = LoopSums(self)
        last = sorted(self.live.intersection(self.assigned) - scalars.carried)
        if last:
            raise NoVector(f"{last[0]} of its last iteration is read after it")
        number = self.number()
        moved = [a for g in groups for a in _later(g)]
        totals = [a for g in groups for a in g if a.is_invariant]
        outside: list[ast.stmt] = []
        after: list[ast.stmt] = []
        counter, start, length = self.index, "0", self.high
        begin: list[ast.stmt] = []
        if moved:
            counter, start, length = f"q{number}_", f"s{number}_", f"m{number}_"
            begin = _parsed(f"{self.index} = {start} + {counter}")
        chosen = self._in_rows({a.array for g in groups for a in g if a not in totals})
        rows = NamedRows(chosen, start, counter, self.number)
        body: list[ast.stmt] = []
        terms: dict[str, str] = {}
        loops: list[ast.stmt] = []
        for place, s in enumerate(self.body):
            if place in scalars.dropped:
                continue
            if place in scalars.replaced:
                body += [rows.replaced(r) for r in scalars.replaced[place]]
                continue
            own = next((a for a in (*moved, *totals) if a.place == place), None)
            if own is None or not isinstance(s, ast.AugAssign) or own.kind != "add":
                body.append(rows.replaced(s))
            elif own in totals:
                name = f"sum{self.number()}_"
                outside += _parsed(f"{name} = {self._zero(own.array)}")
                value = ast.unparse(rows.replaced(s.value))
                body += _parsed(f"{name} = add_any_order({name}, {value})")
                after += _parsed(f"{own.text} += {name}")
            else:
                value = scalars.origin(ast.unparse(s.value))
                if self.assigned.count(value) != 1:  # it may have changed since
                    terms.pop(value, None)
                if value not in terms:
                    terms[value] = f"terms{self.number()}_"
                    dtype = self._dtype(own.array)
                    outside += _parsed(
                        f"{terms[value]} = np.empty(({STRIP},), {numpy_name(dtype)})"
                    )
                    body += _parsed(f"{terms[value]}[{counter}] = {value}")
                target = ast.unparse(rows.replaced(s.target))
                loops += _parsed(
                    f"for {counter} in range({length}):\n    {target} += {terms[value]}[{counter}]"
                )
        loop = _parsed(f"for {counter} in range({length}):\n    pass")[0]
        assert isinstance(loop, ast.For)
        loop.body = [*begin, *body]
        if not moved:
            return [*outside, *rows.lines, loop, *after]
        strips = _parsed(
            f"for {start} in range(0, {self.high}, {STRIP}):\n"
            f"    {length} = min({STRIP}, {self.high} - {start})"
        )[0]
        assert isinstance(strips, ast.For)
        strips.body += [*rows.lines, loop, *loops]
        return [*outside, strips, *after]

    def _in_rows(self, arrays: set[str]) -> list[ElementAccess]:
        """The accesses that get names of rows: those of arrays that are used at several places."""
        chosen: list[ElementAccess] = []
        for array in sorted(arrays):
            own = [a for a in self.accesses if a.array == array]
            if len({a.index for a in own}) == 1:
                continue
            for a in own:
                if a.row is None:
                    raise NoVector(f"{a.text} is not along the last axis")
            chosen += own
        return chosen

    def _dtype(self, name: str) -> np.dtype:
        dtype = self.facts.dtype_of(name)
        if dtype is None:
            raise NoVector(f"the dtype of {name} is not known")
        return dtype

    def _zero(self, array: str) -> str:
        dtype = self._dtype(array)
        if dtype.kind != "f":
            raise NoVector(f"{array} is a sum of complex numbers")
        return "0.0" if dtype == np.float64 else f"{numpy_name(dtype)}(0.0)"


def _is_difference(p: AffineIndex, q: AffineIndex) -> bool:
    """Whether ``p - q`` is the difference of two names."""
    return sorted(f for _, f in _sum(p, q, -1).terms) == [-1, 1]


def _later(group: list[ElementAccess]) -> list[ElementAccess]:
    """Additions to a row at another distance than the first one."""
    if any(a.kind != "add" for a in group):
        return []
    first: dict[Any, ElementAccess] = {}
    return [a for a in group if first.setdefault(a.row, a).index != a.index]


class NamedRows:
    """Rows of arrays with names of their own.

    Attributes
    ----------
    lines
        Assign the names, before the loop.
    """

    def __init__(
        self, accesses: Sequence[ElementAccess], start: str, counter: str, number: Callable[[], int]
    ) -> None:
        self.lines: list[ast.stmt] = []
        self.names: dict[str, ast.Subscript] = {}
        names: dict[Any, str] = {}
        for a in accesses:
            key = (a.array, a.index)
            if key not in names:
                names[key] = f"row{number()}_"
                *outer, last = [p.text(start) for p in a.index if p is not None]
                places = ", ".join([*outer, f"{last}:"])
                self.lines += _parsed(f"{names[key]} = {a.array}[{places}]")
            node = ast.parse(f"{names[key]}[{counter}]", mode="eval").body
            assert isinstance(node, ast.Subscript)
            self.names[a.text] = node

    def replaced(self, node: Any) -> Any:
        """A statement with elements of rows by their new names."""
        names = self.names

        class Replace(ast.NodeTransformer):
            def visit_Subscript(self, node: ast.Subscript) -> Any:
                own = names.get(ast.unparse(node))
                if own is None:
                    return node
                return ast.Subscript(own.value, own.slice, node.ctx)

        return Replace().visit(copy.deepcopy(node))  # the loop may be left as it is


class LoopSums:
    """Names that a loop carries: sums, and values that it does not change.

    Attributes
    ----------
    carried
        Names that an iteration reads before it assigns them: sums, and unchanged ones.
    replaced, dropped
        By number, statements that take a sum in any order, and statements that change nothing.
    """

    def __init__(self, loop: InnermostLoop) -> None:
        self.loop = loop
        self.replaced: dict[int, list[ast.stmt]] = {}
        self.dropped: set[int] = set()
        self.alias: dict[str, str] = {}
        body = loop.body
        carried = _read_first(body)
        self.carried = frozenset(carried)
        for place, s in enumerate(body):
            if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name):
                name = s.targets[0].id
                origin = self.origin(ast.unparse(s.value))
                if name in carried and origin == name:
                    self.dropped.add(place)
                    carried.discard(name)
                elif (
                    loop.assigned.count(name) == 1
                    and origin.isidentifier()
                    and (loop.assigned.count(origin) <= 1)
                ):
                    self.alias[name] = origin
        for name in carried:
            self._sum(name)

    def origin(self, text: str) -> str:
        """The name that a text is a copy of, or the text."""
        return self.alias.get(text, text)

    def _sum(self, name: str) -> None:
        loop, body = self.loop, self.loop.body
        dtype = loop.facts.dtype_of(name)
        steps = [k for k, s in enumerate(body) if name in _assigned([s])]
        reads = [k for k, s in enumerate(body) if name in _names_read(s)]
        is_sum = dtype is not None and dtype.kind == "f" and set(reads) <= set(steps)
        values = [self._added(body[k], name) for k in steps]
        if not is_sum or "__b" not in name or None in values:
            raise NoVector(f"{name} is that of the iteration before")
        for k, value in zip(steps, values, strict=True):
            self.replaced[k] = _parsed(f"{name}_sum {'=' if k == steps[0] else '+='} {value}")
        if len(steps) == 1:
            self.replaced[steps[0]] = _parsed(f"{name} = add_any_order({name}, {values[0]})")
        else:
            self.replaced[steps[-1]] += _parsed(f"{name} = add_any_order({name}, {name}_sum)")

    @staticmethod
    def _added(s: ast.stmt, name: str) -> str | None:
        if not isinstance(s, ast.AugAssign) or not isinstance(s.op, ast.Add):
            return None
        if name in {n.id for n in ast.walk(s.value) if isinstance(n, ast.Name)}:
            return None
        return ast.unparse(s.value)


def _parsed(text: str) -> list[ast.stmt]:
    return ast.parse(text).body


def _range_of(node: ast.For) -> tuple[bool, str, str]:
    """Whether a loop runs downwards, and its least index and what is beyond the greatest."""
    call = node.iter
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range":
        match call.args:
            case [high]:
                return False, "0", ast.unparse(high)
            case [low, high] | [low, high, ast.Constant(value=1)]:
                return False, ast.unparse(low), ast.unparse(high)
            case [
                ast.BinOp(op=ast.Sub(), left=high, right=ast.Constant(value=1)),
                ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1)),
                ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1)),
            ]:
                return True, "0", ast.unparse(high)
    raise NoVector("its range")


def _assigned(body: Sequence[ast.stmt]) -> list[str]:
    """The names that statements assign, as often as they do."""
    return [
        n.id
        for s in body
        for n in ast.walk(s)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    ]


def _names_read(s: ast.stmt) -> set[str]:
    names = {n.id for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name):
        names.add(s.target.id)
    return names


def _read_first(body: Sequence[ast.stmt]) -> set[str]:
    """Names that an iteration reads before it assigns them, and assigns."""
    assigned = set(_assigned(body))
    done: set[str] = set()
    carried: set[str] = set()
    for s in body:
        carried |= _names_read(s) & assigned - done
        done |= set(_assigned([s]))
    return carried


_SUFFIXES = re.compile(r"(__[bdo])+(_end)?$")


def facts_of(function: KernelFunction) -> NameFacts:
    """Properties of the names in texts of a function."""

    def dtype_of(name: str) -> np.dtype | None:
        for own in (name, _SUFFIXES.sub("", name)):
            if own in function.arrays:
                return function.arrays[own].dtype
            if own in function.dtypes:
                return function.dtypes[own]
        return None

    return NameFacts(distinct_names(function), dtype_of)
