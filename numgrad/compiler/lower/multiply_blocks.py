"""Products of blocks written out: Note [Block products] in ``block_products``."""

from __future__ import annotations

from numgrad.codegen.dtypes import type_name
from numgrad.codegen.symbols import Symbol
from numgrad.codegen.tasks import LANES
from numgrad.compiler.graph.polynomial import Terms as Length
from numgrad.compiler.graph.polynomial import add, constant, multiply
from numgrad.compiler.lower.block_products import BlockProduct, block_product
from numgrad.compiler.lower.hoisting import MOST_ASIDE, InvariantHoisting
from numgrad.compiler.lower.statements import Statement
from numgrad.compiler.lower.terms import ONE
from numgrad.compiler.lower.tree import Loop, coefficient
from numgrad.compiler.lower.write import text, without
from numgrad.kernels.products.blocks import SLACK
from numgrad.kernels.products.gemm import MULTIPLY_NS

Source = tuple[str, Length]
"""Name of an address, and the offset of an element."""


class BlockProducts(InvariantHoisting):
    """Writes products of blocks."""

    def multiply(self, depth: int, loop: Loop, path: list[Loop]) -> bool:
        """Write a loop that is a product; False where its operands or result do not fit."""
        (inner,) = loop.items
        assert isinstance(inner, Loop)
        (s,) = inner.items
        assert isinstance(s, Statement)
        around = [*path, loop, inner]
        found = block_product(s, around, self.bodies, self.hint)
        if found is None or self.storage[s.term.number].lanes == found.across:
            return False
        if not all(self._fits(x, found.other) for x in (found.matrix, found.values)):
            return False
        before = dict(self.names)
        self._write(depth, found)
        self.names = before
        self.account(MULTIPLY_NS[type_name(s.term.dtype)], around)
        return True

    def _fits(self, symbol: Symbol, loop: Loop) -> bool:
        """Whether what is laid side by side stays in a cache."""
        return self.hint(loop.length) * LANES * symbol.dtype.itemsize <= MOST_ASIDE

    def _write(self, depth: int, found: BlockProduct) -> None:
        s, rows, other = found.statement, found.rows, found.other
        if found.across:
            a, b = (
                self._lanes_of(depth, found.matrix, rows),
                self._rows_of(depth, found.values, other),
            )
            step_a, row_b, count, columns = ONE, other.length, "width", text(other.length)
        else:
            number, index = found.matrix.detail
            a = self.place(self.bodies.terms[number], index)
            b = self._lanes_of(depth, found.values, other)
            step_a, row_b = coefficient(a[1], other.loop), coefficient(b[1], other.loop)
            count, columns = text(other.length), "width"
        c = self.place(s.term, s.index)
        size = s.term.dtype.itemsize
        loops = frozenset((rows.loop, other.loop))

        def address(place: Source) -> str:
            name, offset = place
            offset = multiply(without(offset, loops), constant(size))
            return f"{name} + {text(offset)}" if offset else name

        def distance(length: Length | None) -> str:
            assert length
            self.need(length)
            return text(multiply(length, constant(size)))

        for length in (rows.length, other.length):
            self.need(length)
        function = self.use("block_product", "kernels.products.blocks")
        given = [
            type_name(s.term.dtype), str(size),
            address(a), distance(coefficient(a[1], rows.loop)), distance(step_a),
            address(b), distance(row_b), count,
            address(c), distance(coefficient(c[1], rows.loop)),
            text(rows.length), columns, str(int(found.across)),
        ]  # fmt: skip
        self.put(depth, f"{function}({', '.join(given)})")

    def _lanes_of(self, depth: int, symbol: Symbol, loop: Loop) -> Source:
        """Where a value is side by side for all iterations of a loop; else it is laid there."""
        if symbol.op == "load" and not symbol.args and symbol not in self.names:
            number, index = symbol.detail
            if self.storage[number].lanes:
                return self.place(self.bodies.terms[number], index)
        if symbol not in self.names or self.kept.get(symbol, ("",))[0] not in self.names[symbol]:
            self.keep_aside(depth, symbol, [loop])
        return self.kept[symbol]

    def _rows_of(self, depth: int, symbol: Symbol, loop: Loop) -> Source:
        """Where the rows of a value are, one for each lane; they are laid there."""
        name = f"h{len(self.aside)}"
        before = self.names
        # what is side by side there is read from where it came, row by row
        self.names = {x: value for x, value in before.items() if x not in self.kept}
        self.need(loop.length)
        offset = text(loop.length)
        self.put(depth, "for lane in range(width):", f"    i{self.lane} = base + lane")
        self._open(depth + 1, loop, "0", text(loop.length))
        (value,) = self.values(depth + 2, [symbol])
        store, scope = self.use("store", "codegen.intrinsics"), self._scope(name)
        self.put(depth + 2, f"{store}({value}, {name}, lane * ({offset}) + i{loop.loop}, {scope})")
        size = multiply(loop.length, constant(LANES))
        self.aside.append((name, add(size, constant(SLACK)), symbol.dtype))
        self.names = before
        return name, ()
