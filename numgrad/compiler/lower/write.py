"""Values read and stored at addresses: what every part of a kernel is written with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from numgrad.codegen.dtypes import type_name
from numgrad.codegen.emitter import Emitter
from numgrad.codegen.symbols import Symbol, in_order
from numgrad.codegen.tasks import LANES
from numgrad.compiler.graph.polynomial import Terms as Length
from numgrad.compiler.graph.polynomial import add, constant, multiply, text_of
from numgrad.compiler.lower.access import COMPUTED, LOOP, Index, loops_in
from numgrad.compiler.lower.statements import Bodies, Statement
from numgrad.compiler.lower.terms import PART, Term, ravel


@dataclass
class Storage:
    """Where a stored term is kept.

    Attributes
    ----------
    axes
        The axes that memory has; those of loops that are open wherever the term is used are left
        out.
    lanes
        Whether there is a last axis for the iterations side by side.
    whole
        Whether it outlives its nest: an argument or a temporary of the kernel.
    first
        The element of the memory at which it begins.
    """

    name: str
    axes: tuple[int, ...]
    lanes: bool = False
    whole: bool = False
    memory: bool = True
    first: int = 0


def name_of(k: int) -> str:
    """The name of a length, of the index of a loop or of a computed integer."""
    if k >= COMPUTED:
        return f"j{k - COMPUTED}"
    return f"n{k}" if k < LOOP else f"i{k - LOOP}"


def text(length: Length) -> str:
    """An expression of lengths and loop indices."""
    return text_of(length, name_of)


def without(length: Length, zeros: frozenset[int]) -> Length:
    """A length with the indices of some loops at 0."""
    if not zeros:
        return length
    kept = []
    for product, factor in length:
        factors = []
        for atom in product:
            if atom[0] == "axis":
                if atom[1] - LOOP in zeros:
                    break
                factors.append(atom)
            else:
                factors.append((atom[0], without(atom[1], zeros), without(atom[2], zeros)))
        else:
            kept.append((tuple(factors), factor))
    return tuple(kept)


class SourceWriter:
    """Writes values and stores; keeps track of what they need from outside."""

    def __init__(
        self,
        bodies: Bodies,
        storage: dict[int, Storage],
        emitter: Emitter,
        names: dict[Symbol, str],
    ) -> None:
        self.bodies, self.storage, self.emitter = bodies, storage, emitter
        self.names = dict(names)
        self.lines: list[str] = []
        self.zeros: frozenset[int] = frozenset()
        self.arguments: dict[str, None] = {}
        self.scopes: dict[str, int] = {}
        self.counter = 0
        self._depends: dict[Symbol, frozenset[int]] = {}
        self._reads: dict[Symbol, frozenset[int]] = {}

    def use(self, function: str, module: str) -> str:
        """Import a function of the kernel library."""
        self.emitter.imports[function] = f"numgrad.{module}:{function}"
        return function

    def put(self, depth: int, *lines: str) -> None:
        """Append lines."""
        self.lines += ["    " * depth + line for line in lines]

    # ------------------------------------------------------------------------------------ values

    def values(self, depth: int, roots: list[Symbol]) -> list[str]:
        """Write what computes symbols; their texts."""
        for symbol in in_order(roots, self.names):
            if symbol.op == "load":
                self._load(depth, symbol)
            elif symbol.op == "computed":
                (value,) = self._block(depth, symbol.args)
                self.names[symbol] = self.bodies.name(symbol)
                self.put(depth, f"{self.names[symbol]} = int64({value})")
            elif symbol.op == "index":
                place = without(symbol.detail, self.zeros)
                self.need(place)
                self.names[symbol] = f"int64({text(place)})"
        return self._block(depth, roots)

    def _block(self, depth: int, roots: Sequence[Symbol]) -> list[str]:
        if all(symbol in self.names for symbol in roots):
            return [self.names[symbol] for symbol in roots]
        lines, values = self.emitter.block(roots, self.names, slow=True)
        self.put(depth, *lines)
        return values

    def _load(self, depth: int, symbol: Symbol) -> None:
        """Write a read of memory, unless the value is at hand."""
        number, index = symbol.detail
        term = self.bodies.terms[number]
        unguarded = self.names.get(self.bodies.load(term, index))
        if unguarded is not None:
            self.names[symbol] = unguarded
            return
        guard = [a for a in symbol.args if a.op != "computed"]
        self.counter += 1
        name = self.names[symbol] = f"e{self.counter}"
        flags = self._block(depth, guard)
        self.put(depth, f"{name} = {self.read(term, index, *flags)}")

    def depends(self, symbol: Symbol) -> frozenset[int]:
        """The loops that a symbol depends on."""
        return self._gather(symbol, self._depends, self._load_loops)

    def reads(self, symbol: Symbol) -> frozenset[int]:
        """The numbers of the terms that a symbol reads."""
        return self._gather(symbol, self._reads, lambda s: {s.detail[0]} if s.op == "load" else ())

    def _load_loops(self, load: Symbol) -> Iterable[int]:
        if load.op == "index":
            return loops_in(load.detail)
        _, index = load.detail
        parts = [index[1]] if index[:1] == ("flat",) else index
        return {u for part in parts for u in loops_in(part)}

    def _gather(
        self,
        root: Symbol,
        known: dict[Symbol, frozenset[int]],
        of_load: Callable[[Symbol], Iterable[int]],
    ) -> frozenset[int]:
        if root not in known:
            at_hand = all(a in known for a in root.args)
            for symbol in [root] if at_hand else in_order([root], known):
                found = [known[a] for a in symbol.args]
                if symbol.op in ("load", "index"):
                    found.append(frozenset(of_load(symbol)))
                known[symbol] = frozenset().union(*found)
        return known[root]

    # ------------------------------------------------------------------------------------ memory

    def place(self, term: Term, index: Index) -> tuple[str, Length]:
        """Name of the address and offset of an element, of the first lane."""
        place = self.storage[term.number]
        if index[:1] == ("flat",):
            offset: Length = without(index[1], self.zeros)  # pyright: ignore
        else:
            shape = [term.shape[a] for a in place.axes]
            parts = tuple(without(index[a], self.zeros) for a in place.axes)
            offset = term.offset(parts) if term.op == PART else ravel(shape, parts)
        if place.first:
            offset = add(offset, constant(place.first))
        if place.lanes:
            offset = multiply(offset, constant(LANES))
        self.need(offset)
        if place.whole:
            self.arguments[place.name] = None
        return place.name, offset

    def _place(self, term: Term, index: Index) -> tuple[str, str]:
        """Name of the address and text of the offset of an element."""
        name, offset = self.place(term, index)
        if self.storage[term.number].lanes:
            return name, f"{text(offset)} + lane" if offset else "lane"
        return name, text(offset)

    def address(self, term: Term) -> str:
        """Where an array begins that code reads or writes as a whole."""
        place = self.storage[term.number]
        self.arguments[place.name] = None
        return (
            f"({place.name} + {place.first * term.dtype.itemsize})" if place.first else place.name
        )

    def _scope(self, name: str) -> str:
        return f"{self.scopes.setdefault(name, len(self.scopes))}, @SCOPES@"

    def read(self, term: Term, index: Index, flag: str = "") -> str:
        """A read of an element, only if a condition holds, else zero."""
        place = self.storage[term.number]
        if not place.memory:
            self.arguments[place.name] = None
            return place.name
        name, where = self._place(term, index)
        load = self.use("load_if" if flag else "load", "codegen.intrinsics")
        parts = [type_name(term.dtype), flag, name, where, self._scope(name)]
        return f"{load}({', '.join(filter(None, parts))})"

    def store(self, depth: int, s: Statement, value: str, *, index: Index | None = None) -> None:
        """Store an element, that of the loops unless another is given."""
        name, where = self._place(s.term, s.index if index is None else index)
        store = self.use("store", "codegen.intrinsics")
        self.put(depth, f"{store}({value}, {name}, {where}, {self._scope(name)})")

    def need(self, length: Length) -> None:
        """Take the lengths that an expression mentions as arguments."""
        for product, _ in length:
            for atom in product:
                if atom[0] == "axis":
                    if atom[1] < LOOP:
                        self.arguments[f"n{atom[1]}"] = None
                else:
                    self.need(atom[1])
                    self.need(atom[2])
