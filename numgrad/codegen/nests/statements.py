"""Statements: stored terms with their loops, their accesses, loops that belong together.

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

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from numgrad.codegen.dtypes import BOOL, INT64
from numgrad.codegen.nests import indices, terms
from numgrad.codegen.nests.polynomial import Length, divide
from numgrad.codegen.nests.small_arrays import Elements, small_terms
from numgrad.codegen.symbols import Reader, Symbol, in_order

Guard = tuple[indices.Condition, ...]


class Statement:
    """The computation of one stored term.

    Attributes
    ----------
    loops
        A loop for each axis of the result; None for one of length 1.
    reduced
        A loop for each axis that is reduced and longer than 1, by axis of the operand.
    scattered
        The axis of the result along which the place is computed; its loop is opened only to clear.
    scanned
        The loop along which each element takes up the one before.
    small
        Whether it is computed element by element, without loops: Note [Small arrays].
    """

    def __init__(
        self, term: terms.Term, new_loop: Callable[[Length], int], *, small: bool = False
    ) -> None:
        self.term, self.small = term, small
        # loops of its own, which no other statement sees, or none
        whole = small or term.op in terms.CALLS
        self.loops = [None if whole or n == terms.ONE else new_loop(n) for n in term.shape]
        self.reduced: dict[int, int | None] = {}
        self.scattered: int | None = None
        self.scanned = self.loops[term.detail[1]] if term.op == terms.SCAN else None
        gone: Sequence[int] = ()
        if small:
            return
        if term.op == terms.REDUCE:
            gone = term.detail[1]
        elif term.op == terms.SCATTER:
            axis, span = term.detail[1]
            self.scattered = axis
            gone = range(axis, axis + span)
        if gone:
            lengths = term.args[0].shape
            self.reduced = {
                a: None if lengths[a] == terms.ONE else new_loop(lengths[a]) for a in gone
            }

    @property
    def index(self) -> indices.Index:
        """The element of the result that is computed."""
        return tuple(() if loop is None else indices.loop_index(loop) for loop in self.loops)

    @property
    def operand_index(self) -> indices.Index:
        """The element of a reduction's operand that is added."""
        rest = iter([i for a, i in enumerate(self.index) if a != self.scattered])
        return tuple(
            next(rest)
            if a not in self.reduced
            else (() if self.reduced[a] is None else indices.loop_index(self.reduced[a]))  # pyright: ignore
            for a in range(len(self.term.args[0].shape))
        )

    def all_loops(self) -> list[int]:
        """Loops of the result and of what is reduced."""
        made = [loop for a, loop in enumerate(self.loops) if a != self.scattered]
        return [loop for loop in (*made, *self.reduced.values()) if loop is not None]

    def rename(self, find: Callable[[int], int]) -> None:
        """Replace each loop by its representative."""
        self.loops = [None if loop is None else find(loop) for loop in self.loops]
        self.reduced = {a: None if u is None else find(u) for a, u in self.reduced.items()}
        self.scanned = None if self.scanned is None else find(self.scanned)

    def __repr__(self) -> str:
        return f"<statement {self.term} {self.loops} {self.reduced}>"


class Bodies:
    """Reads the bodies of statements as symbols, down to what is stored or in memory.

    A read of memory is the symbol ``load`` with the detail ``(number of the term, index)``. Its
    arguments are the integers in the index that are computed, symbols ``computed``, and in the end
    the condition, if any, without which nothing may be read. Indices themselves are the symbol
    ``index``, whose arguments are the integers in it that are computed.
    """

    def __init__(self, stored: Iterable[terms.Term]) -> None:
        self.stored = {t.number: t for t in stored}
        self.reader = Reader()
        self._symbols: dict[tuple[int, indices.Index, Guard], Symbol] = {}
        self.terms: dict[int, terms.Term] = {}
        self.of_symbol: dict[Symbol, tuple[terms.Term, indices.Index]] = {}
        """The term and index that each symbol is the value of, for expensive terms."""
        self.computed: dict[int, Symbol] = {}
        self._numbers: dict[Symbol, int] = {}
        self._bodies: dict[int, Symbol] = {}
        self._loads: dict[int, list[Symbol]] = {}
        self.elements = Elements(self.reader, self.stored, self.load, self.inside)

    def body(self, statement: Statement) -> Symbol:
        """The value that a statement stores or accumulates; with a second one, ``pair``.

        The second one is the place where a sum is scattered to, or the factor of a recurrence. Of a
        small array all elements are paired.
        """
        number = statement.term.number
        body = self._bodies.get(number)
        if body is None:
            body = self._bodies[number] = self._read(statement)
        return body

    def loads(self, statement: Statement) -> list[Symbol]:
        """The reads of memory in the body of a statement."""
        number = statement.term.number
        reads = self._loads.get(number)
        if reads is None:
            reads = self._loads[number] = loads(self.body(statement))
        return reads

    def accesses(self, statement: Statement) -> list[tuple[int, Any]]:
        """The reads that ``loads`` gives, as numbers of terms and indices; some more than once.

        Functions of single elements make no symbols here, as others need these with other loops.
        """
        term = statement.term
        if term.op == terms.REDUCE:
            stack = [(term.args[0], statement.operand_index)]
        elif term.is_map:
            index = statement.index
            stack = [(x, index[len(index) - len(x.shape) :]) for x in term.args]
        else:
            return [symbol.detail for symbol in self.loads(statement)]
        reads: list[tuple[int, Any]] = []
        seen: set[tuple[int, indices.Index]] = set()
        while stack:
            term, index = stack.pop()
            if terms.ONE in term.shape:
                lengths = zip(term.shape, index, strict=True)
                index = tuple([() if n == terms.ONE else i for n, i in lengths])
            key = (term.number, index)
            if key in seen:
                continue
            seen.add(key)
            if term.in_memory or term.number in self.stored:
                reads.append(key)
            elif term.is_map:
                rank = len(index)
                for x in term.args:
                    own = len(x.shape)
                    stack.append((x, index if own == rank else index[rank - own :]))
            else:
                reads += [symbol.detail for symbol in loads(self.at(term, index))]
        return reads

    def _read(self, statement: Statement) -> Symbol:
        term = statement.term
        if statement.small:
            return self.reader.make("pair", tuple(self.elements.body(term)), term.dtype)
        if term.op == terms.REDUCE:
            return self.at(term.args[0], statement.operand_index)
        if term.op == terms.SCATTER:
            value, positions = (self.at(x, statement.operand_index) for x in term.args)
            return self.reader.make("pair", (value, self.compute(positions)[1]), term.dtype)
        if term.op in terms.CALLS:
            operands = tuple([self.load(x, ((),) * len(x.shape), ()) for x in term.args])
            return self.reader.make("pair", operands, term.dtype)
        if term.op == terms.SCAN:
            parts = tuple([self.at(x, statement.index) for x in term.args])
            return parts[0] if len(parts) == 1 else self.reader.make("pair", parts, term.dtype)
        return self.inside(term, statement.index, ())

    def target(self, statement: Statement, position: Symbol) -> indices.Index:
        """The element that a scattered sum is added to."""
        length = self._computed_length(position)
        return tuple(
            length if a == statement.scattered else i for a, i in enumerate(statement.index)
        )

    def at(self, term: terms.Term, index: indices.Index, guard: Guard = ()) -> Symbol:
        """An element of a term, which may be out of range unless all of ``guard`` holds."""
        if term.op in (terms.CONSTANT, terms.SIZE):
            return self.inside(term, index, ())
        if index:
            index = tuple(
                [() if n == terms.ONE else i for n, i in zip(term.shape, index, strict=True)]
            )
        key = (term.number, index, guard)
        symbol = self._symbols.get(key)
        if symbol is None:
            if term.in_memory or term.number in self.stored:
                symbol = self.load(term, index, guard)
            else:
                symbol = self.inside(term, index, guard)
            self._symbols[key] = symbol
        return symbol

    def load(self, term: terms.Term, index: Any, guard: Guard = ()) -> Symbol:
        """A read of memory."""
        self.terms[term.number] = term
        parts = [index[1]] if index[:1] == ("flat",) else index
        computed = sorted(set().union(*map(indices.computed_in, parts))) if parts else []
        args = [self.computed[k] for k in computed]
        if guard and not computed:
            moving = set().union(*map(indices.loops_in, parts))
            guard = tuple(
                [c for c in guard if not (own := indices.loops_in(c.value)) or own & moving]
            )
        if guard:
            args.append(self.all_hold(guard))
        return self.reader.make("load", tuple(args), term.dtype, (term.number, index))

    def compute(self, value: Symbol) -> tuple[Length, Symbol]:
        """A computed integer as part of an index, and as a symbol."""
        symbol = self.reader.make("computed", (value,), INT64)
        number = self._numbers.setdefault(symbol, len(self._numbers))
        self.computed[number] = symbol
        return self._computed_length(symbol), symbol

    def _number(self, value: Length) -> Symbol:
        """A length or an index as a number."""
        args = tuple([self.computed[k] for k in sorted(indices.computed_in(value))])
        return self.reader.make("index", args, INT64, value)

    def _computed_length(self, symbol: Symbol) -> Length:
        return (((("axis", indices.COMPUTED + self._numbers[symbol]),), 1),)

    def name(self, computed: Symbol) -> str:
        """The variable that holds a computed integer."""
        return f"j{self._numbers[computed]}"

    def all_hold(self, guard: Guard) -> Symbol:
        """Whether conditions hold."""
        make = self.reader.make
        zero = make("const", (), INT64, 0)
        result: Symbol | None = None
        for condition in guard:
            sign = "equal" if condition.sign == "==" else "greater_equal"
            holds = make(sign, (self._number(condition.value), zero), BOOL)
            result = holds if result is None else make("logical_and", (result, holds), BOOL)
        assert result is not None
        return result

    def inside(self, term: terms.Term, index: indices.Index, guard: Guard = ()) -> Symbol:
        """An element of a term as it is computed."""
        if term.op == terms.CONSTANT:
            return self.reader.make("const", (), term.dtype, term.detail)
        if term.op == terms.SIZE:
            return self._number(term.detail)
        if term.op == terms.IOTA:
            axis, divisor = term.detail
            position = terms.ravel(term.shape, index) if axis is None else index[axis]
            return self._number(divide("//", position, divisor))
        if term.op == terms.PART:
            return self.at(term.args[0], index, guard)
        if term.op == terms.CHOOSE:
            return self._chosen(term, index, guard)
        if term.op == terms.GATHER:
            return self._gathered(term, index, guard)
        if term.op == terms.VIEW:
            (x,) = term.args
            if term.detail[0] == "reshape" and (x.in_memory or x.number in self.stored):
                return self.load(x, ("flat", terms.ravel(term.shape, index)), guard)
            return self.at(x, indices.source_index(term, index), guard)
        args = []
        for x in term.args:
            lead = len(index) - len(x.shape)
            args.append(self.at(x, index[lead:], guard))
        symbol = self.reader.make(term.op, tuple(args), term.dtype, term.detail)
        if term.is_expensive:
            self.of_symbol.setdefault(symbol, (term, index))
        return symbol

    def _chosen(self, term: terms.Term, index: indices.Index, guard: Guard) -> Symbol:
        options: list[
            tuple[indices.Alternative, Guard]
        ] = []  # up to the first that is chosen at last
        for option in indices.alternatives(term, index):
            known = {c: c.known() for c in option.conditions}
            if False not in known.values():
                options.append((option, tuple([c for c, holds in known.items() if holds is None])))
                if not options[-1][1]:
                    break
        result: Symbol | None = None
        for option, open_ in reversed(options):
            inner = (*guard, *(c for c in open_ if c not in guard)) if option.inside else guard
            value = self.at(option.term, option.index, inner)
            if result is None:
                result = value
            elif value is not result:
                holds = self.all_hold(open_)
                result = self.reader.make("where", (holds, value, result), term.dtype)
        assert result is not None, "no operand is chosen"
        return result

    def _gathered(self, term: terms.Term, index: indices.Index, guard: Guard) -> Symbol:
        x, positions = term.args
        axis, span = term.detail
        symbol, _ = self.compute(self.at(positions, index, guard))
        return self.at(x, (*index[:axis], symbol, *index[axis + span :]), guard)


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


def alive_terms(
    statements: Sequence[Statement], bodies: Bodies, exported: Collection[int]
) -> set[int]:
    """Numbers of the stored terms that are read, if only by others that are.

    A sum over no element is zero, whatever it would read.
    """
    alive: set[int] = set()
    loads = [(statement.term, bodies.loads(statement)) for statement in statements]
    for term, read in reversed(loads):
        if term.number in exported or term.number in alive or term.op == terms.PART:
            alive.add(term.number)
            alive.update(symbol.detail[0] for symbol in read)
    return alive & bodies.stored.keys()


def expensive(body: Symbol, bodies: Bodies) -> list[tuple[terms.Term, set[int]]]:
    """The expensive terms that a body computes, each with the loops that its element depends on."""
    result = []
    for symbol in in_order([body], {}):
        if symbol in bodies.of_symbol:
            term, index = bodies.of_symbol[symbol]
            result.append((term, set().union(*[loops_behind(entry, bodies) for entry in index])))
    return result


def loops_behind(index: Length, bodies: Bodies) -> frozenset[int]:
    """The loops that an index depends on, by computed integers too."""
    loops = indices.loops_in(index)
    for k in indices.computed_in(index):
        for symbol in in_order([bodies.computed[k]], {}):
            if symbol.op == "index":
                loops |= indices.loops_in(symbol.detail)
            elif symbol.op == "load":
                at = symbol.detail[1]
                parts = [at[1]] if at[:1] == ("flat",) else at
                loops = loops.union(*map(indices.loops_in, parts))
    return loops


class Loops:
    """Loops with their lengths; unified ones have one representative."""

    def __init__(self, hint: Callable[[Length], int]) -> None:
        self.lengths: list[Length] = []
        self._parent: list[int] = []
        self._statements: list[set[int]] = []
        self.hint_of = hint

    def new(self, length: Length) -> int:
        """A new loop."""
        self.lengths.append(length)
        self._parent.append(len(self._parent))
        self._statements.append(set())
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

    def use(self, statement: int, loops: Iterable[int]) -> None:
        """Say which loops a statement has, which then stay apart."""
        for loop in loops:
            self._statements[loop].add(statement)

    def unify(self, a: int, b: int) -> None:
        """Make two loops one, unless a statement has both."""
        a, b = self.find(a), self.find(b)
        if a == b or self.lengths[a] != self.lengths[b]:
            return
        few, many = sorted((self._statements[a], self._statements[b]), key=len)
        if not few.isdisjoint(many):
            return
        many |= few
        self._parent[b], self._statements[a] = a, many


def align(statements: Sequence[Statement], bodies: Bodies, loops: Loops) -> None:
    """Unify loops of statements: Note [Statements]."""
    for k, s in enumerate(statements):
        loops.use(k, s.all_loops())
    of_term = {s.term.number: s for s in statements}
    walks: dict[tuple[int, int], int] = {}
    accesses: list[tuple[int, Any]] = []
    for statement in statements:
        if not statement.small:
            accesses += bodies.accesses(statement)
    for number, index in accesses:
        producer = of_term.get(number)
        if producer is None or index[:1] == ("flat",):
            continue
        for axis, (place, entry) in enumerate(zip(producer.loops, index, strict=True)):
            loop = indices.single_loop(entry)
            if loop is not None and place is not None and axis != producer.scattered:
                loops.unify(place, loop)
    for number, index in accesses:
        if number in of_term or index[:1] == ("flat",):
            continue
        for axis, entry in enumerate(index):
            loop = indices.walking_loop(entry)
            if loop is not None:
                first = walks.setdefault((number, axis), loop)
                loops.unify(first, loop)
    for statement in statements:
        statement.rename(loops.find)


def make_statements(
    stored: Sequence[terms.Term], known: Iterable[terms.Term], hint: Callable[[Length], int]
) -> tuple[list[Statement], Loops]:
    """A statement for each stored term, those it reads first, with loops that belong together.

    What is ``known`` is read from memory, with a statement or without.
    """
    wanted = {t.number for t in stored}
    ordered = [t for t in terms.reachable(stored) if t.number in wanted]
    loops = Loops(hint)
    small = small_terms(stored)
    statements = [Statement(t, loops.new, small=t.number in small) for t in ordered]
    align(statements, Bodies(known), loops)
    return statements, loops
