"""What is stored, and by which loops: statements, their accesses, loops that belong together.

Note [Statements]
-----------------
Some terms are *stored*: results, reductions, operands of code that is not ours, whatever is worth
keeping. The others are computed where they are read. A stored term is computed by one *statement*:
loops over the axes of its result and, for a reduction, over the axes it reduces; the body is the
term at the index of these loops, read down to what is stored or in memory. Loops of different
statements are unified where one statement reads another's result at its own loop index, or where
both walk along the same axis of an array in memory; so ``X @ w`` and ``X.T @ r`` share the loop
over rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from numgrad.jit.lower.terms import CONSTANT, ONE, OPAQUE, REDUCE, SIZE, VIEW, Term
from numgrad.jit.polynomial import Terms as Length
from numgrad.jit.polynomial import add, divide, multiply
from numgrad.kernels.expr import INT64, Reader, Symbol, in_order

Index = tuple[Length, ...]

LOOP = 1_000_000
"""Loops are the axes of ``sizes`` with numbers from here on."""


def loop_index(loop: int) -> Length:
    """The index of a loop as a polynomial."""
    return (((("axis", LOOP + loop),), 1),)


def loops_in(index: Length) -> set[int]:
    """The loops that an index depends on."""
    found: set[int] = set()
    for product, _ in index:
        for atom in product:
            if atom[0] == "axis":
                if atom[1] >= LOOP:
                    found.add(atom[1] - LOOP)
            else:
                found |= loops_in(atom[1]) | loops_in(atom[2])
    return found


def single_loop(index: Length) -> int | None:
    """The loop whose index this is, if it is nothing else."""
    if len(index) == 1 and index[0][1] == 1 and len(index[0][0]) == 1:
        atom = index[0][0][0]
        if atom[0] == "axis" and atom[1] >= LOOP:
            return atom[1] - LOOP
    return None


def source_index(term: Term, index: Index) -> Index:
    """Where a view reads its operand."""
    kind, detail = term.detail
    source = term.args[0].shape
    if kind == "broadcast":
        lead = len(index) - len(source)
        return tuple(() if n == ONE else index[lead + a] for a, n in enumerate(source))
    if kind == "insert":
        return tuple(i for a, i in enumerate(index) if a not in detail)
    if kind == "drop":
        rest = iter(index)
        return tuple(() if a in detail else next(rest) for a in range(len(source)))
    if kind == "permute":
        out: list[Length] = [()] * len(source)
        for a, axis in enumerate(detail):
            out[axis] = index[a]
        return tuple(out)
    if kind == "getitem":
        rest = iter(index)
        return tuple(
            part[0] if len(part) == 1 else add(part[0], multiply(next(rest), part[1]))
            for part in detail
        )
    return unravel(ravel(term.shape, index), source)  # reshape


def ravel(shape: Sequence[Length], index: Index) -> Length:
    """The offset of an element of a C-contiguous array."""
    offset: Length = ()
    stride = ONE
    for n, i in zip(reversed(shape), reversed(index), strict=True):
        if n != ONE:
            offset = add(offset, multiply(i, stride))
            stride = multiply(stride, n)
    return offset


def unravel(offset: Length, shape: Sequence[Length]) -> Index:
    """The index of the element at an offset."""
    out: list[Length] = []
    for a in range(len(shape) - 1, -1, -1):
        if shape[a] == ONE:
            out.append(())
        elif all(n == ONE for n in shape[:a]):
            out.append(offset)
        else:
            out.append(divide("%", offset, shape[a]))
            offset = divide("//", offset, shape[a])
    return tuple(reversed(out))


class Statement:
    """The computation of one stored term.

    Attributes
    ----------
    loops
        A loop for each axis of the result; None for one of length 1.
    reduced
        A loop for each axis that is reduced and longer than 1, by axis of the operand.
    """

    def __init__(self, term: Term, new_loop: Callable[[Length], int]) -> None:
        self.term = term
        self.loops = [None if n == ONE else new_loop(n) for n in term.shape]
        self.reduced: dict[int, int | None] = {}
        if term.op == REDUCE:
            (x,) = term.args
            self.reduced = {
                a: None if x.shape[a] == ONE else new_loop(x.shape[a]) for a in term.detail[1]
            }

    @property
    def index(self) -> Index:
        """The element of the result that is computed."""
        return tuple(() if loop is None else loop_index(loop) for loop in self.loops)

    @property
    def operand_index(self) -> Index:
        """The element of a reduction's operand that is added."""
        rest = iter(self.index)
        return tuple(
            next(rest)
            if a not in self.reduced
            else (() if self.reduced[a] is None else loop_index(self.reduced[a]))  # pyright: ignore
            for a in range(len(self.term.args[0].shape))
        )

    def all_loops(self) -> list[int]:
        """Loops of the result and of what is reduced."""
        return [loop for loop in (*self.loops, *self.reduced.values()) if loop is not None]

    def rename(self, find: Callable[[int], int]) -> None:
        """Put the representative of each loop in its place."""
        self.loops = [None if loop is None else find(loop) for loop in self.loops]
        self.reduced = {a: None if u is None else find(u) for a, u in self.reduced.items()}

    def __repr__(self) -> str:
        return f"<statement {self.term} {self.loops} {self.reduced}>"


class Bodies:
    """Reads the bodies of statements as symbols, down to what is stored or in memory.

    A read of memory is the symbol ``load`` with the detail ``(number of the term, index)``.
    """

    def __init__(self, stored: Iterable[Term]) -> None:
        self.stored = {t.number for t in stored}
        self.reader = Reader()
        self.found: dict[tuple[int, Index], Symbol] = {}
        self.terms: dict[int, Term] = {}
        self.of_symbol: dict[Symbol, tuple[Term, Index]] = {}
        """The term and index that each symbol is the value of, for expensive terms."""

    def body(self, statement: Statement) -> Symbol:
        """The value that a statement stores or accumulates."""
        term = statement.term
        if term.op == REDUCE:
            return self.at(term.args[0], statement.operand_index)
        return self._inside(term, statement.index)

    def at(self, term: Term, index: Index) -> Symbol:
        """An element of a term."""
        if term.op in (CONSTANT, SIZE):
            return self._inside(term, index)
        index = tuple([() if n == ONE else i for n, i in zip(term.shape, index, strict=True)])
        key = (term.number, index)
        found = self.found.get(key)
        if found is None:
            if term.in_memory or term.number in self.stored:
                found = self.load(term, index)
            else:
                found = self._inside(term, index)
            self.found[key] = found
        return found

    def load(self, term: Term, index: Index) -> Symbol:
        """A read of memory."""
        self.terms[term.number] = term
        return self.reader.make("load", (), term.dtype, (term.number, index))

    def _inside(self, term: Term, index: Index) -> Symbol:
        if term.op == CONSTANT:
            return self.reader.make("const", (), term.dtype, term.detail)
        if term.op == SIZE:
            return self.reader.make("index", (), INT64, term.detail)
        if term.op == VIEW:
            (x,) = term.args
            if term.detail[0] == "reshape" and (x.in_memory or x.number in self.stored):
                return self._flat(x, ravel(term.shape, index))
            return self.at(x, source_index(term, index))
        args = []
        for x in term.args:
            lead = len(index) - len(x.shape)
            args.append(self.at(x, index[lead:]))
        symbol = self.reader.make(term.op, tuple(args), term.dtype, term.detail)
        if term.is_expensive:
            self.of_symbol.setdefault(symbol, (term, index))
        return symbol

    def _flat(self, x: Term, offset: Length) -> Symbol:
        self.terms[x.number] = x
        return self.reader.make("load", (), x.dtype, (x.number, ("flat", offset)))


def loads(root: Symbol) -> list[Symbol]:
    """The reads of memory in a body."""
    seen: set[int] = set()
    out, stack = [], [root]
    while stack:
        symbol = stack.pop()
        if id(symbol) in seen:
            continue
        seen.add(id(symbol))
        if symbol.op == "load":
            out.append(symbol)
        stack.extend(symbol.args)
    return out


def expensive(body: Symbol, bodies: Bodies) -> list[tuple[Term, set[int]]]:
    """The expensive terms that a body computes, each with the loops that its element depends on."""
    found = []
    for symbol in in_order([body], {}):
        if symbol in bodies.of_symbol:
            term, index = bodies.of_symbol[symbol]
            found.append((term, set().union(*map(loops_in, index))))
    return found


def first_stored(roots: Iterable[Term]) -> dict[int, Term]:
    """The terms that have to be stored, by number: results, reductions, operands of other code."""
    found: dict[int, Term] = {t.number: t for t in roots}
    for term in reachable(roots):
        if term.op == REDUCE:
            found[term.number] = term
        elif term.op == OPAQUE:
            found.update((a.number, a) for a in term.args)
        elif term.op == VIEW and term.detail[0] == "reshape":
            found[term.args[0].number] = term.args[0]
    return {n: t for n, t in found.items() if not (t.in_memory or t.op in (CONSTANT, SIZE))}


def reachable(roots: Iterable[Term]) -> list[Term]:
    """Terms that roots depend on and the roots, operands first."""
    order: list[Term] = []
    seen: set[int] = set()
    stack = [(t, False) for t in reversed(list(roots))]
    while stack:
        term, expanded = stack.pop()
        if expanded:
            order.append(term)
        elif term.number not in seen:
            seen.add(term.number)
            stack.append((term, True))
            stack.extend((a, False) for a in reversed(term.args))
    return order


class Loops:
    """Loops with their lengths; unified ones have one representative."""

    def __init__(self, hint: Callable[[Length], int]) -> None:
        self.lengths: list[Length] = []
        self._parent: list[int] = []
        self.hint_of = hint

    def new(self, length: Length) -> int:
        """A new loop."""
        self.lengths.append(length)
        self._parent.append(len(self._parent))
        return len(self._parent) - 1

    def find(self, loop: int) -> int:
        """The representative."""
        while self._parent[loop] != loop:
            self._parent[loop] = self._parent[self._parent[loop]]
            loop = self._parent[loop]
        return loop

    def hint(self, loop: int) -> int:
        """The length in the call that was traced."""
        return max(self.hint_of(self.lengths[loop]), 1)

    def unify(self, a: int, b: int, groups: dict[int, set[int]]) -> None:
        """Make two loops one, unless a statement has both: ``groups`` are its loops by statement."""
        a, b = self.find(a), self.find(b)
        if a == b or self.lengths[a] != self.lengths[b]:
            return
        if any(a in group and b in group for group in groups.values()):
            return
        self._parent[b] = a
        for group in groups.values():
            if b in group:
                group.remove(b)
                group.add(a)


def align(statements: Sequence[Statement], bodies: Bodies, loops: Loops) -> None:
    """Unify loops of statements: Note [Statements]."""
    groups = {k: set(s.all_loops()) for k, s in enumerate(statements)}
    of_term = {s.term.number: s for s in statements}
    walks: dict[tuple[int, int], int] = {}
    accesses: list[tuple[int, Any]] = []
    for statement in statements:
        accesses += [symbol.detail for symbol in loads(bodies.body(statement))]
    for number, index in accesses:
        producer = of_term.get(number)
        if producer is None or index[:1] == ("flat",):
            continue
        for place, part in zip(producer.loops, index, strict=True):
            loop = single_loop(part)
            if loop is not None and place is not None:
                loops.unify(place, loop, groups)
    for number, index in accesses:
        if number in of_term or index[:1] == ("flat",):
            continue
        for axis, part in enumerate(index):
            loop = single_loop(tuple([term for term in part if term[0]]))  # shifted or not
            if loop is not None:
                first = walks.setdefault((number, axis), loop)
                loops.unify(first, loop, groups)
    for statement in statements:
        statement.rename(loops.find)


def make_statements(
    stored: Iterable[Term], hint: Callable[[Length], int]
) -> tuple[list[Statement], Loops]:
    """A statement for each stored term, those it reads first, with loops that belong together."""
    stored = list(stored)
    wanted = {t.number for t in stored}
    ordered = [t for t in reachable(stored) if t.number in wanted]
    loops = Loops(hint)
    statements = [Statement(t, loops.new) for t in ordered]
    align(statements, Bodies(stored), loops)
    return statements, loops
