"""Small arrays written out: straight-line functions, none of them long.

Note [Pieces]
-------------
Statements of small arrays that follow one another are a *run*. Its scalars, in the order in which
they are needed, are cut into *pieces*, each a function of its own, so that the time that LLVM takes
grows with the length of a run and not with its square. Values that a later piece needs, elements
that a nest reads, and what a computed index may point to lie in *blocks*, one array of the kernel
for each dtype. A run of one piece stands where it is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from numgrad.codegen.dtypes import numpy_name, type_name
from numgrad.codegen.emitter import Emitter
from numgrad.codegen.nests.polynomial import constant, value_of
from numgrad.codegen.nests.small_arrays import extents
from numgrad.codegen.nests.statements import Bodies, Statement
from numgrad.codegen.nests.terms import Term
from numgrad.codegen.nests.tree import Item
from numgrad.codegen.nests.write import SourceWriter, Storage
from numgrad.codegen.symbols import Symbol, in_order

PIECE = 500
"""Scalar operations of a function."""


@dataclass
class Blocks:
    """Arrays for single numbers and short arrays, one of each dtype."""

    used: dict[np.dtype, int] = field(default_factory=dict)

    def take(self, dtype: np.dtype, length: int) -> tuple[str, int]:
        """A place in a block: its address, and the first element."""
        first = self.used.get(dtype, 0)
        self.used[dtype] = first + length
        return f"s_{dtype.name}", first

    def allocations(self) -> list[str]:
        """Lines that make the blocks."""
        lines = []
        for dtype, length in self.used.items():
            name = f"s_{dtype.name}"
            lines.append(f"    x{name} = np.empty({length}, {numpy_name(dtype)})")
            lines.append(f"    {name} = int64(x{name}.ctypes.data)")
        return lines

    def names(self) -> list[str]:
        """The arrays."""
        return [f"xs_{dtype.name}" for dtype in self.used]


@dataclass(frozen=True)
class StoredElement:
    """An element of a stored term is written to memory."""

    term: Term
    place: int
    value: Symbol


class RunWriter(SourceWriter):
    """Writes one run.

    Attributes
    ----------
    functions
        The lines of the pieces that became functions.
    calls
        The lines that stand in the kernel.
    needed
        The names that they take from the kernel.
    """

    def __init__(
        self,
        bodies: Bodies,
        storage: dict[int, Storage],
        emitter: Emitter,
        blocks: Blocks,
        *,
        first: int = 0,
        counter: int = 0,
    ) -> None:
        super().__init__(bodies, storage, emitter, {})
        self.blocks, self.first, self.counter = blocks, first, counter
        self.functions: list[str] = []
        self.calls: list[str] = []
        self.needed: dict[str, None] = {}
        self._made: dict[tuple[int, int], Symbol] = {}  # elements of this run, by place
        self._piece_of: dict[Symbol, int] = {}
        self._homes: dict[Symbol, StoredElement] = {}
        self._places: dict[Symbol, tuple[str, str]] = {}  # where a later piece finds a value

    def _scope(self, name: str) -> str:
        return "0, 1"  # what runs in order gains nothing from knowing which arrays lie apart

    def write(self, run: Sequence[Statement], *, contract: bool = False) -> None:
        """Write it."""
        pieces = self._cut(run)
        passed = self._passed(pieces)
        for number, piece in enumerate(pieces):
            self.names, self.lines, self.arguments = {}, [], {}
            for step in piece:
                if isinstance(step, StoredElement):
                    self._keep(step)
                else:
                    self._compute(step, step in passed)
            self.needed.update(self.arguments)
            if len(pieces) == 1:
                self.calls = self.lines
                return
            name, given = f"piece_{self.first + number}", ", ".join(self.arguments)
            decorator = self.use("contracted" if contract else "outlined", "codegen.device")
            apart = self.use("no_inline", "codegen.accumulation")
            head = [f"@{decorator}", f"def {name}({given}):", f"    {apart}()"]
            self.functions += [*head, *self.lines, "", ""]
            self.calls.append(f"    {name}({given})")

    # ------------------------------------------------------------------------------------ cutting

    def _cut(self, run: Sequence[Statement]) -> list[list[Symbol | StoredElement]]:
        """The steps of each piece, in order."""
        pieces: list[list[Symbol | StoredElement]] = [[]]
        for statement in run:
            term = statement.term
            memory = self.storage[term.number].memory
            for place, root in enumerate(self.bodies.body(statement).args):
                for symbol in in_order([root], self._piece_of):
                    if symbol.args:
                        if len(pieces[-1]) >= PIECE:
                            pieces.append([])
                        pieces[-1].append(symbol)
                        self._piece_of[symbol] = len(pieces) - 1
                value = self._made[term.number, place] = self._value(root)
                if memory:
                    kept = StoredElement(term, place, value)
                    pieces[-1].append(kept)
                    if self._piece_of.get(value) == len(pieces) - 1:
                        self._homes.setdefault(value, kept)
        return pieces

    def _value(self, symbol: Symbol) -> Symbol:
        """The symbol that computes another, which may be a read of what this run has made."""
        if symbol.op != "load" or symbol.args:
            return symbol
        number, index = symbol.detail
        flat = index[:1] == ("flat",)
        offset = index[1] if flat else self.bodies.terms[number].own_offset(index)
        place = value_of(offset)
        return symbol if place is None else self._made.get((number, place), symbol)

    def _passed(self, pieces: Sequence[Sequence[Symbol | StoredElement]]) -> set[Symbol]:
        """The values that a later piece needs."""
        values: set[Symbol] = set()
        for number, piece in enumerate(pieces[1:], start=1):
            for step in piece:
                for symbol in (step.value,) if isinstance(step, StoredElement) else step.args:
                    value = self._value(symbol)
                    if self._piece_of.get(value, number) < number:
                        values.add(value)
        return values

    # ------------------------------------------------------------------------------------ writing

    def _compute(self, symbol: Symbol, passed: bool) -> None:
        for a in symbol.args:
            self._provide(a)
        (text,) = self.values(1, [symbol])
        if not passed:
            return
        home = self._homes.get(symbol)
        if home is not None:
            self._places[symbol] = self._home(home)
            return
        name, place = self.blocks.take(symbol.dtype, 1)
        self._places[symbol] = name, str(place)
        self._put_away(text, name, str(place))

    def _keep(self, kept: StoredElement) -> None:
        self._provide(kept.value)
        (text,) = self.values(1, [kept.value])
        self._put_away(text, *self._home(kept))

    def _put_away(self, value: str, name: str, place: str) -> None:
        self.arguments[name] = None
        store = self.use("store", "codegen.intrinsics")
        self.put(1, f"{store}({value}, {name}, {place}, {self._scope(name)})")

    def _home(self, kept: StoredElement) -> tuple[str, str]:
        shape = extents(kept.term.shape)
        assert shape is not None
        return self._place(
            kept.term, tuple([constant(int(i)) for i in np.unravel_index(kept.place, shape)])
        )

    def _provide(self, symbol: Symbol) -> None:
        """Have a name for a value that this run may have made."""
        value = self._value(symbol)
        if value not in self.names and value.args:
            name, place = self._places[value]
            self.arguments[name] = None
            self.counter += 1
            here = f"e{self.counter}"
            if value.op == "computed":
                here = self.bodies.name(value)
            load = self.use("load", "codegen.intrinsics")
            kind = type_name(value.dtype)
            self.put(1, f"{here} = {load}({kind}, {name}, {place}, {self._scope(name)})")
            self.names[value] = here
        if value is not symbol:
            if value not in self.names:
                self.values(1, [value])
            self.names[symbol] = self.names[value]


def runs(items: Sequence[Item]) -> list[list[Statement] | Item]:
    """Items of a kernel, with statements of small arrays that follow one another in lists."""
    out: list[list[Statement] | Item] = []
    for item in items:
        if not (isinstance(item, Statement) and item.small):
            out.append(item)
        elif out and isinstance(out[-1], list):
            out[-1].append(item)
        else:
            out.append([item])
    return out
