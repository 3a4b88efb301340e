"""Sums of products in blocks of lanes, as products of small matrices.

Note [Block products]
---------------------
In a loop cut into lanes (Note [Lanes] in ``lanes``) a product of matrices is one of two kinds: a
sum along a loop around the lanes, of a matrix that is the same in all of them with what is
different in each; or a sum along the lanes themselves, of a column with a row that both differ.
Written as loops, each step reads and stores what it adds to. So where all lengths are worth it, the
product is taken out of the loops that it shares with other statements, what it multiplies is laid
side by side where it is not yet, and ``block_product`` multiplies: Note [Products of blocks] in
``kernels.products.blocks``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from numgrad.codegen.dtypes import type_name
from numgrad.codegen.nests.index_set_splitting import MOST_HOISTED, InvariantHoisting
from numgrad.codegen.nests.indices import loops_in
from numgrad.codegen.nests.loop_tree import Loop, coefficient
from numgrad.codegen.nests.polynomial import Length, add, constant, multiply
from numgrad.codegen.nests.statements import Bodies, Statement
from numgrad.codegen.nests.terms import FUSED, ONE, REDUCE
from numgrad.codegen.nests.write import text, without
from numgrad.codegen.symbols import Symbol
from numgrad.codegen.tasks import LANES
from numgrad.dataclass import dataclass

LEAST = 16
"""Rows, columns and terms of a sum from which on a product is taken out of its loops."""


@dataclass(frozen=True)
class ProductCode:
    """Compiled code that multiplies matrices, as the user of the generator hands it over.

    Attributes
    ----------
    blas, blocks
        The modules, below ``numgrad``, of ``gemm`` and ``thread_limit``, and of ``block_product``.
    gemm
        What a kernel that calls ``gemm`` lists among its externals, by name of a dtype.
    multiply_ns
        What a multiplication takes about, by name of a dtype.
    slack
        Elements that ``block_product`` may read beyond its right operand.
    """

    blas: str
    blocks: str
    gemm: Callable[[str], str]
    multiply_ns: Mapping[str, float]
    slack: int


@dataclass(frozen=True)
class BlockProduct:
    """A statement that is a product: ``sum(matrix[row, k] * values[k, column])``.

    Attributes
    ----------
    rows
        The loop over rows.
    other
        The loop that is summed; the one over columns if ``across``.
    across
        Whether the lanes are summed; else they are the columns.
    """

    statement: Statement
    matrix: Symbol
    values: Symbol
    rows: Loop
    other: Loop
    across: bool


def block_product(
    s: Statement, path: list[Loop], bodies: Bodies, hint: Callable[[Length], int]
) -> BlockProduct | None:
    """The product that a statement is in the last two loops of its path, if it is one."""
    if len(path) < 3 or s.term.op != REDUCE or s.term.detail[0] != "sum":
        return None
    body = bodies.body(s)
    if body.detail != FUSED or s.term.dtype.kind != "f":
        return None
    lane, outer, inner = path[0].loop, path[-2], path[-1]
    if any(len(x.merged) > 1 or hint(x.length) < LEAST for x in (outer, inner)):
        return None
    reduced = {u for u in s.reduced.values() if u is not None}
    made = {u for u in s.loops if u is not None}
    for rows, other in ((outer, inner), (inner, outer)):
        across = reduced == {lane} and {rows.loop, other.loop} <= made
        along = reduced == {other.loop} and {rows.loop, lane} <= made
        if not (across or along):
            continue
        for matrix, values in (body.args, body.args[::-1]):
            first, second = _loops_of(matrix), _loops_of(values)
            ours = {rows.loop, other.loop, lane}
            if across:
                fits = first & ours == {rows.loop, lane} and second & ours == {other.loop, lane}
                fits = fits and coefficient(s.term.offset(s.index), other.loop) == ONE
            else:
                fits = first & ours == {rows.loop, other.loop} and _evenly(matrix, first, bodies)
                fits = fits and second & ours == {other.loop, lane}
            if fits:
                return BlockProduct(s, matrix, values, rows, other, across)
    return None


def _loops_of(root: Symbol) -> frozenset[int]:
    """The loops that a value depends on."""
    loops: set[int] = set()
    seen: set[int] = set()
    stack = [root]
    while stack:
        symbol = stack.pop()
        if id(symbol) in seen:
            continue
        seen.add(id(symbol))
        if symbol.op == "index":
            loops |= loops_in(symbol.detail)
        elif symbol.op == "load":
            index = symbol.detail[1]
            for entry in index[1:] if index[:1] == ("flat",) else index:
                loops |= loops_in(entry)
        stack.extend(symbol.args)
    return frozenset(loops)


def _evenly(symbol: Symbol, loops: Collection[int], bodies: Bodies) -> bool:
    """Whether a value is in memory, at places that move evenly with all loops."""
    if symbol.op != "load" or symbol.args:
        return False
    number, index = symbol.detail
    flat = index[:1] == ("flat",)
    offset = index[1] if flat else bodies.terms[number].own_offset(index)
    return all(coefficient(offset, u) for u in loops)


def extract_products(
    top: Loop, bodies: Bodies, hint: Callable[[Length], int], exported: Collection[int]
) -> None:
    """Give products loops of their own, in front of those that they shared: Note [Block products].

    What they wait for is computed before, except in loops further inside: then a product stays.
    """

    def visit(path: list[Loop]) -> None:
        around = path[-1]
        items = []
        for item in around.items:
            if isinstance(item, Loop) and not item.rows:
                visit([*path, item])
                items += products(path, item)
                if not item.items:
                    continue
            items.append(item)
        around.items = items

    def products(path: list[Loop], outer: Loop) -> list[Loop]:
        """Loops of the products in a loop, after one of what these wait for."""
        made = {s.term.number: s for s in outer.statements()}
        done: set[int] = set()
        copies: list[Loop] = []

        def alone(items: Sequence[Loop | Statement], product: bool) -> None:
            new = Loop(outer.loop, outer.length, list(items), outer.merged, product=product)
            copies.append(new)
            done.update(s.term.number for s in new.statements())

        for inner in [x for x in outer.items if isinstance(x, Loop)]:
            for s in [x for x in inner.items if isinstance(x, Statement)]:
                if s.term.number in exported and top.loop in s.loops:
                    continue
                if block_product(s, [*path, outer, inner], bodies, hint) is None:
                    continue
                waits = [x for x in waited_for(s, made) if x.term.number not in done]
                if not all(x in outer.items for x in waits):
                    continue
                first = [x for x in outer.items if x in waits]
                if first:
                    outer.items = [x for x in outer.items if x not in waits]
                    alone(first, product=False)
                inner.items.remove(s)
                alone([Loop(inner.loop, inner.length, [s], inner.merged)], product=True)
            if not inner.items:
                outer.items.remove(inner)
        return copies

    def waited_for(s: Statement, made: dict[int, Statement]) -> list[Statement]:
        """The statements, of some, that one reads, and those that these read."""
        waits: list[Statement] = []
        stack = [s]
        while stack:
            for symbol in bodies.loads(stack.pop()):
                x = made.get(symbol.detail[0])
                if x is not None and x not in waits:
                    waits.append(x)
                    stack.append(x)
        return waits

    visit([top])


Source = tuple[str, Length]
"""Name of an address, and the offset of an element."""


class BlockProducts(InvariantHoisting):
    """Writes products of blocks."""

    def __init__(self, products: ProductCode, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.products = products

    def multiply(self, depth: int, loop: Loop, path: list[Loop]) -> bool:
        """Write a loop that is a product; False where its operands or result do not fit."""
        (inner,) = loop.items
        assert isinstance(inner, Loop)
        (s,) = inner.items
        assert isinstance(s, Statement)
        around = [*path, loop, inner]
        product = block_product(s, around, self.bodies, self.hint)
        if product is None or self.storage[s.term.number].lanes == product.across:
            return False
        if not all(self._fits(x, product.other) for x in (product.matrix, product.values)):
            return False
        before = dict(self.names)
        self._write(depth, product)
        self.names = before
        self.account(self.products.multiply_ns[type_name(s.term.dtype)], around)
        return True

    def _fits(self, symbol: Symbol, loop: Loop) -> bool:
        """Whether what is laid side by side stays in a cache."""
        return self.hint(loop.length) * LANES * symbol.dtype.itemsize <= MOST_HOISTED

    def _write(self, depth: int, product: BlockProduct) -> None:
        s, rows, other = product.statement, product.rows, product.other
        if product.across:
            a, b = (
                self._lanes_of(depth, product.matrix, rows),
                self._rows_of(depth, product.values, other),
            )
            step_a, row_b, count, columns = ONE, other.length, "width", text(other.length)
        else:
            number, index = product.matrix.detail
            a = self.place(self.bodies.terms[number], index)
            b = self._lanes_of(depth, product.values, other)
            step_a, row_b = coefficient(a[1], other.loop), coefficient(b[1], other.loop)
            count, columns = text(other.length), "width"
        c = self.place(s.term, s.index)
        size = s.term.dtype.itemsize
        loops = frozenset((rows.loop, other.loop))

        def address(source: Source) -> str:
            name, offset = source
            offset = multiply(without(offset, loops), constant(size))
            return f"{name} + {text(offset)}" if offset else name

        def distance(length: Length | None) -> str:
            assert length
            self.need(length)
            return text(multiply(length, constant(size)))

        for length in (rows.length, other.length):
            self.need(length)
        function = self.use("block_product", self.products.blocks)
        arguments = [
            type_name(s.term.dtype), str(size),
            address(a), distance(coefficient(a[1], rows.loop)), distance(step_a),
            address(b), distance(row_b), count,
            address(c), distance(coefficient(c[1], rows.loop)),
            text(rows.length), columns, str(int(product.across)),
        ]  # fmt: skip
        self.put(depth, f"{function}({', '.join(arguments)})")

    def _lanes_of(self, depth: int, symbol: Symbol, loop: Loop) -> Source:
        """Where a value is side by side for all iterations of a loop; else it is laid there."""
        if symbol.op == "load" and not symbol.args and symbol not in self.names:
            number, index = symbol.detail
            if self.storage[number].lanes:
                return self.place(self.bodies.terms[number], index)
        if (
            symbol not in self.names
            or self.in_lanes.get(symbol, ("",))[0] not in self.names[symbol]
        ):
            self.store_before(depth, symbol, [loop])
        return self.in_lanes[symbol]

    def _rows_of(self, depth: int, symbol: Symbol, loop: Loop) -> Source:
        """Where the rows of a value are, one for each lane; they are laid there."""
        name = f"h{len(self.hoisted)}"
        before = self.names
        # what is side by side there is read from where it came, row by row
        self.names = {x: value for x, value in before.items() if x not in self.in_lanes}
        self.need(loop.length)
        offset = text(loop.length)
        self.put(depth, "for lane in range(width):", f"    i{self.lane} = base + lane")
        self._open(depth + 1, loop, "0", text(loop.length))
        (value,) = self.values(depth + 2, [symbol])
        store, scope = self.use("store", "codegen.intrinsics"), self._scope(name)
        self.put(depth + 2, f"{store}({value}, {name}, lane * ({offset}) + i{loop.loop}, {scope})")
        size = multiply(loop.length, constant(LANES))
        self.hoisted.append((name, add(size, constant(self.products.slack)), symbol.dtype))
        self.names = before
        return name, ()
