"""The native compiler's definitions of the instructions of ``blas``: tiles in registers, calls."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from numgrad.codegen.linker import external_symbol
from numgrad.codegen.native import arithmetic as do, machine
from numgrad.codegen.native.instructions import InstructionContext
from numgrad.codegen.native.values import (
    BOOL,
    FLOAT64,
    INT32,
    INT64,
    Array,
    Known,
    NotVector,
    Number,
    constant,
    integer,
    kind_of,
    part_dtype,
    scalar_type,
    splat,
)
from numgrad.kernels.products.blas import BLAS, lapack_external
from numgrad.kernels.products.gemm import VECTOR_BYTES

ALIGNMENT = 64
"""Bytes by which what is on the stack is aligned."""


class _Code:
    """Writer of the instructions, for elements of one dtype and vectors of these.

    Addresses and distances are int64, sums are in memory of the stack while a loop runs, which LLVM
    turns into registers.
    """

    def __init__(
        self, body: InstructionContext, dtype: np.dtype = FLOAT64, width: int = VECTOR_BYTES
    ) -> None:
        if body.lanes is not None:
            raise NotVector("an instruction with effects")
        self.f, self.has_fma, self.dtype = body.f, body.has_fma, dtype
        self.size = dtype.itemsize
        self.width, self.lanes = width, width // self.size

    def number(self, text: str, lanes: int = 0) -> Number:
        return Number(self.dtype, (text,), lanes)

    def zero(self, lanes: int = 0) -> Number:
        x = constant(0, self.dtype)
        return self.number(splat(x.part, kind_of(x), lanes, self.f) if lanes else x.part, lanes)

    def add(self, x: Number, y: Number) -> Number:
        return do.binary(self.f, "+", x, y)

    def along(self, address: Number, index: Number, step: Number) -> Number:
        return self.add(address, do.binary(self.f, "*", index, step))

    def load(self, address: Number, lanes: int = 0, offset: int = 0) -> Number:
        kind, pointer = kind_of(self.number("", lanes)), self._pointer(address, offset)
        return self.number(self.f.value(f"load {kind}, ptr {pointer}, align {self.size}"), lanes)

    def store(self, x: Number, address: Number, offset: int = 0) -> None:
        pointer = self._pointer(address, offset)
        self.f.effect(f"store {kind_of(x)} {x.part}, ptr {pointer}, align {self.size}")

    def _pointer(self, address: Number, offset: int) -> str:
        return self.f.pure(f"inttoptr i64 {self.add(address, integer(offset)).part} to ptr")

    def spread(self, x: Number) -> Number:
        return self.number(splat(x.part, kind_of(x), self.lanes, self.f), self.lanes)

    def multiply_add(self, x: Number, y: Number, z: Number) -> Number:
        if self.has_fma:
            return do.call_intrinsic(self.f, "llvm.fma", x, y, z)
        return do.apply(
            self.f, "fadd", do.apply(self.f, "fmul", x, y, dtype=x.dtype), z, dtype=x.dtype
        )

    def sum(self, x: Number) -> Number:
        """The lanes of a vector, added up in halves."""
        return do.reduce_halves(self.f, x, self.add)

    def turned(self, rows: list[Number]) -> list[Number]:
        """The columns of a square of vectors, by as many interleavings of halves as it has."""
        half, lanes = len(rows) // 2, self.lanes
        low, high = ([*range(k, k + lanes // 2)] for k in (0, lanes // 2))
        orders = [[x for k in operands for x in (k, k + lanes)] for operands in (low, high)]
        for _ in range(half.bit_length()):
            rows = [
                self.shuffled(x, y, order)
                for x, y in zip(rows[:half], rows[half:], strict=True)
                for order in orders
            ]
        return rows

    def shuffled(self, x: Number, y: Number, order: list[int]) -> Number:
        kind = kind_of(x)
        indices = ", ".join(f"i32 {k}" for k in order)
        pattern = f"<{len(order)} x i32> <{indices}>"
        text = f"shufflevector {kind} {x.part}, {kind} {y.part}, {pattern}"
        return self.number(self.f.pure(text), x.lanes)

    def slot(self, first: Number) -> tuple[str, int]:
        """Where a sum lies while a loop runs."""
        slot = self.f.slot(kind_of(first)), first.lanes
        self.put(slot, first)
        return slot

    def get(self, slot: tuple[str, int]) -> Number:
        name, lanes = slot
        return self.number(
            self.f.value(f"load {kind_of(self.number('', lanes))}, ptr {name}"), lanes
        )

    def put(self, slot: tuple[str, int], x: Number) -> None:
        self.f.effect(f"store {kind_of(x)} {x.part}, ptr {slot[0]}")

    def rows(self, address: Number, pitch: Number, count: int, left: Number) -> list[Number]:
        """Addresses of ``count`` rows; the last of those left stands for what lies behind it."""
        rows = [address]
        for r in range(1, count):
            there = do.compare(self.f, ">", left, integer(r))
            rows.append(do.select(self.f, there, self.add(rows[-1], pitch), rows[-1]))
        return rows

    @contextmanager
    def where(self, condition: Number) -> Iterator[None]:
        """Statements that run only if a number is not zero."""
        f, truth = self.f, do.truth(self.f, condition)
        then, after = f.label("then"), f.label("after")
        f.branch(truth.part, then, after)
        f.begin(then)
        with f.inside():
            yield
            f.jump(after)
        f.begin(after)

    @contextmanager
    def loop(self, count: Number) -> Iterator[Number]:
        """A loop over ``range(count)`` that stays as it is: neither unrolled nor vectorised."""
        f = self.f
        head, inner, after = f.label("loop"), f.label("body"), f.label("after")
        before = f.block
        with f.repeated(head):
            index, following = f.fresh(), f.fresh()
            back = f.label("next")
            f.define(index, f"phi i64 [ 0, %{before} ], [ {following}, %{back} ]")
            f.branch(f.value(f"icmp slt i64 {index}, {count.part}"), inner, after)
            f.begin(inner)
            yield Number(INT64, (index,))
            f.start(back)
            f.define(following, f"add i64 {index}, 1")
            f.effect(f"br label %{head}, !llvm.loop {self._as_it_is()}")
            f.ended = True
        f.begin(after)

    def _as_it_is(self) -> str:
        node, number = self.f.module.node, len(self.f.module.metadata)
        node(f"distinct !{{!{number}, !{number + 1}, !{number + 2}}}")
        node('!{!"llvm.loop.unroll.disable"}')
        node('!{!"llvm.loop.vectorize.enable", i1 false}')
        return f"!{number}"


def stack(body: InstructionContext, size: Number) -> Number:
    slot = body.f.slot(f"[{size.literal} x i8], align {ALIGNMENT}")
    return Number(INT64, (body.f.pure(f"ptrtoint ptr {slot} to i64"),))


def tile(
    body: InstructionContext, like: Known, rows: Number, vectors: Number, width: Number,
    *arguments: Number,
) -> None:  # fmt: skip
    assert rows.literal is not None
    assert vectors.literal is not None
    _tile(
        _Code(body, body.dtype_of(like), width.literal), rows.literal, vectors.literal, *arguments
    )


def _broad() -> int:
    """Bytes of the widest vector of a tile."""
    return max(VECTOR_BYTES, machine.vector_bits() // 8)


def broad_bytes(body: InstructionContext) -> Number:
    return integer(2 * _broad())


def broad_tile(body: InstructionContext, like: Known, rows: Number, *arguments: Number) -> None:
    assert rows.literal is not None
    _tile(_Code(body, body.dtype_of(like), _broad()), rows.literal, 2, *arguments)


def broad_finite(
    body: InstructionContext, like: Known, b: Number, row_b: Number, count: Number
) -> Number:
    code = _Code(body, body.dtype_of(like), _broad())
    f, bits = code.f, np.dtype(f"i{code.size}")
    kind = kind_of(Number(bits, ("",), code.lanes))
    all_bits = code.slot(Number(bits, ("zeroinitializer",), code.lanes))
    with code.loop(count) as at:
        row = code.along(b, at, row_b)
        for offset in (0, code.width):
            x = code.load(row, code.lanes, offset)
            # zero, all of whose bits are, or NaN
            rest = do.apply(f, "fsub", x, x, dtype=x.dtype)
            one = f.pure(f"bitcast {kind_of(x)} {rest.part} to {kind}")
            all_ = f.value(f"load {kind}, ptr {all_bits[0]}")
            code.put(all_bits, Number(bits, (f.pure(f"or {kind} {all_}, {one}"),), code.lanes))
    name, scalar = f"llvm.vector.reduce.or.v{code.lanes}i{8 * code.size}", f"i{8 * code.size}"
    function = f.module.declare(name, scalar, [kind])
    all_ = f.value(f"load {kind}, ptr {all_bits[0]}")
    total = f.pure(f"call {scalar} {function}({kind} {all_})")
    return do.cast(f, Number(BOOL, (f.pure(f"icmp eq {scalar} {total}, 0"),)), INT64)


def _tile(
    code: _Code, height: int, width: int, a: Number, row_a: Number, step_a: Number, b: Number,
    row_b: Number, count: Number, c: Number, row_c: Number, left: Number, add: Number,
) -> None:  # fmt: skip
    def steps(at: Number) -> tuple[Number, Number]:
        return do.binary(code.f, "*", at, step_a), do.binary(code.f, "*", at, row_b)

    sources = code.rows(a, row_a, height, left)
    _sum_tile(code, width, sources, steps, b, count, c, row_c, left, add)


def table_tile(
    body: InstructionContext, like: Known, rows: Number, vectors: Number, width: Number, a: Number,
    places: Number, terms: Number, b: Number, count: Number, c: Number, row_c: Number,
    left: Number, add: Number,
) -> None:  # fmt: skip
    assert rows.literal is not None
    assert vectors.literal is not None
    code, table = _Code(body, body.dtype_of(like), width.literal), _Code(body, INT64)

    def steps(at: Number) -> tuple[Number, Number]:
        pair = code.along(terms, at, integer(16))
        return table.load(pair), table.load(pair, offset=8)

    entries = table.rows(places, integer(16), rows.literal, left)
    sources = [code.add(a, table.load(entry)) for entry in entries]
    _sum_tile(code, vectors.literal, sources, steps, b, count, c, row_c, left, add)


def _sum_tile(
    code: _Code, width: int, sources: list[Number],
    steps: Callable[[Number], tuple[Number, Number]], b: Number, count: Number, c: Number,
    row_c: Number, left: Number, add: Number,
) -> None:  # fmt: skip
    """Add up a tile whose factors lie ``steps(l)`` bytes behind their first elements."""
    lanes, height = code.lanes, len(sources)
    targets = code.rows(c, row_c, height, left)
    offsets = [v * code.width for v in range(width)]
    targets_of_sums = [(target, offset) for target in targets for offset in offsets]
    sums = [code.slot(code.zero(lanes)) for _ in targets_of_sums]
    with code.where(add):
        for total, (target, offset) in zip(sums, targets_of_sums, strict=True):
            code.put(total, code.load(target, lanes, offset))
    with code.loop(count) as at:
        step_a, step_b = steps(at)
        row = code.add(b, step_b)
        factors = [code.load(row, lanes, offset) for offset in offsets]
        for r, source in enumerate(sources):
            x = code.spread(code.load(code.add(source, step_a)))
            for v, factor in enumerate(factors):
                total = sums[r * width + v]
                code.put(total, code.multiply_add(x, factor, code.get(total)))
    for total, (target, offset) in zip(sums, targets_of_sums, strict=True):
        code.store(code.get(total), target, offset)


def dots(
    body: InstructionContext, like: Known, rows: Number, a: Number, row_a: Number, x: Number,
    count: Number, c: Number, row_c: Number, left: Number, add: Number,
) -> None:  # fmt: skip
    code = _Code(body, body.dtype_of(like))
    height, width, lanes = rows.literal, 2, code.lanes
    sources = code.rows(a, row_a, height, left)
    targets = code.rows(c, row_c, height, left)
    sums = [code.slot(code.zero(lanes)) for _ in range(height * width)]
    chunk = integer(width * lanes)
    whole = do.apply(code.f, "sdiv", count, chunk, dtype=INT64)
    with code.loop(whole) as at:
        skip = do.binary(code.f, "*", at, integer(width * VECTOR_BYTES))
        for v in range(width):
            factor = code.load(code.add(x, skip), lanes, v * VECTOR_BYTES)
            for r, source in enumerate(sources):
                value = code.load(code.add(source, skip), lanes, v * VECTOR_BYTES)
                total = sums[r * width + v]
                code.put(total, code.multiply_add(value, factor, code.get(total)))
    results = [
        code.slot(code.sum(code.add(code.get(sums[2 * r]), code.get(sums[2 * r + 1]))))
        for r in range(height)
    ]
    done = do.binary(code.f, "*", whole, chunk)
    with code.loop(do.binary(code.f, "-", count, done)) as at:
        skip = do.binary(code.f, "*", code.add(done, at), integer(code.size))
        factor = code.load(code.add(x, skip))
        for source, result in zip(sources, results, strict=True):
            value = code.load(code.add(source, skip))
            code.put(result, code.multiply_add(value, factor, code.get(result)))
    with code.where(add):
        for target, result in zip(targets, results, strict=True):
            code.put(result, code.add(code.load(target), code.get(result)))
    for target, result in zip(targets, results, strict=True):
        code.store(code.get(result), target)


def element(
    body: InstructionContext, like: Known, a: Number, step_a: Number, b: Number, step_b: Number,
    count: Number, c: Number, add: Number,
) -> None:  # fmt: skip
    code = _Code(body, body.dtype_of(like))
    total = code.slot(code.zero())
    with code.where(add):
        code.put(total, code.load(c))
    with code.loop(count) as at:
        x, y = code.load(code.along(a, at, step_a)), code.load(code.along(b, at, step_b))
        code.put(total, code.multiply_add(x, y, code.get(total)))
    code.store(code.get(total), c)


def complex_element(
    body: InstructionContext, like: Known, a: Number, step_a: Number, sign_a: Number, b: Number,
    step_b: Number, sign_b: Number, count: Number, c: Number, add: Number,
) -> None:  # fmt: skip
    code = _Code(body, part_dtype(body.dtype_of(like)))
    f, size = code.f, code.size
    sign_a, sign_b = (do.cast(f, sign, code.dtype) for sign in (sign_a, sign_b))
    real, imag = code.slot(code.zero()), code.slot(code.zero())
    with code.where(add):
        code.put(real, code.load(c))
        code.put(imag, code.load(c, offset=size))
    with code.loop(count) as at:
        p, q = code.along(a, at, step_a), code.along(b, at, step_b)
        x, u = code.load(p), code.load(q)
        y = do.binary(f, "*", code.load(p, offset=size), sign_a)
        v = do.binary(f, "*", code.load(q, offset=size), sign_b)
        total = code.multiply_add(do.negate(f, y), v, code.get(real))
        code.put(real, code.multiply_add(x, u, total))
        total = code.multiply_add(y, u, code.get(imag))
        code.put(imag, code.multiply_add(x, v, total))
    code.store(code.get(real), c)
    code.store(code.get(imag), c, size)


def gather(
    body: InstructionContext, like: Known, source: Number, row: Number, step: Number, rows: Number,
    columns: Number, target: Number, pitch: Number,
) -> None:  # fmt: skip
    code = _Code(body, body.dtype_of(like))
    with code.loop(columns) as j:
        first = code.along(source, j, step)
        goal = code.along(target, j, integer(code.size))
        with code.loop(rows) as i:
            code.store(code.load(code.along(first, i, row)), code.along(goal, i, pitch))


def gather_rows(
    body: InstructionContext, like: Known, width: Number, source: Number, row: Number,
    rows: Number, target: Number, pitch: Number,
) -> None:  # fmt: skip
    code = _Code(body, body.dtype_of(like), width.literal)
    with code.loop(rows) as at:
        value = code.load(code.along(source, at, row), code.lanes)
        code.store(value, code.along(target, at, pitch))


def turn(
    body: InstructionContext, like: Known, width: Number, source: Number, column: Number,
    rows: Number, target: Number, pitch: Number,
) -> None:  # fmt: skip
    code = _Code(body, body.dtype_of(like), width.literal)
    lanes = integer(code.lanes)
    squares = do.apply(code.f, "sdiv", rows, lanes, dtype=INT64)
    done = do.binary(code.f, "*", squares, lanes)
    with code.loop(squares) as at:
        sources = [code.along(source, at, integer(width.literal))]
        addresses = [code.along(target, do.binary(code.f, "*", at, lanes), pitch)]
        for _ in range(1, code.lanes):
            sources.append(code.add(sources[-1], column))
            addresses.append(code.add(addresses[-1], pitch))
        turned = code.turned([code.load(each, code.lanes) for each in sources])
        for row, there in zip(turned, addresses, strict=True):
            code.store(row, there)
    size = integer(code.size)
    first, addresses = code.along(source, done, size), code.along(target, done, pitch)
    with code.loop(lanes) as j:
        sources, there = code.along(first, j, column), code.along(addresses, j, size)
        with code.loop(do.binary(code.f, "-", rows, done)) as k:
            code.store(code.load(code.along(sources, k, size)), code.along(there, k, pitch))


def clear(body: InstructionContext, address: Number, size: Number) -> None:
    if body.lanes is not None:
        raise NotVector("an instruction with effects")
    f = body.f
    function = f.module.declare("llvm.memset.p0.i64", "void", ["ptr", "i8", "i64", "i1"])
    pointer = f.pure(f"inttoptr i64 {address.part} to ptr")
    f.effect(f"call void {function}(ptr {pointer}, i8 0, i64 {size.part}, i1 false)")


def lapack(
    body: InstructionContext, like: Known, name: Known, *arguments: Array | Number | Known
) -> None:
    if body.lanes is not None:
        raise NotVector("a native function")
    f = body.f

    def address(value: Array | Number | Known) -> str:
        if isinstance(value, Array):
            return value.data
        if isinstance(value, Known):
            return f.module.constant(f'[1 x i8] c"{value.value}"')
        slot = f.slot("i32")
        f.effect(f"store i32 {do.cast(f, value, INT32).part}, ptr {slot}")
        return slot

    addresses = [address(value) for value in arguments]
    symbol = external_symbol(lapack_external(name.value, body.dtype_of(like)))
    function = f.module.declare(symbol, "void", ["ptr"] * len(addresses))
    f.effect(f"call void {function}({', '.join(f'ptr {slot}' for slot in addresses)})")


def blas_gemm(
    body: InstructionContext, like: Known, bits: Number, trans_a: Number, trans_b: Number,
    m: Number,
    n: Number, k: Number, a: Number, lda: Number, b: Number, ldb: Number, c: Number, ldc: Number,
    add: Number,
) -> None:  # fmt: skip
    if body.lanes is not None:
        raise NotVector("a native function")
    f, dtype = body.f, body.dtype_of(like)
    codes = f.module.constant('[3 x i8] c"NTC"')

    def code(trans: Number) -> str:
        return f.pure(f"getelementptr i8, ptr {codes}, i64 {trans.part}")

    def number(x: Number) -> str:
        kind = f"i{bits.literal}"
        text = x.part if bits.literal == 64 else f.pure(f"trunc i64 {x.part} to {kind}")
        slot = f.slot(kind)
        f.effect(f"store {kind} {text}, ptr {slot}")
        return slot

    def known(value: int) -> str:
        kind = scalar_type(dtype)
        elements = constant(value, dtype).parts
        return f.module.constant(
            f"[{len(elements)} x {kind}] [{', '.join(f'{kind} {element}' for element in elements)}]"
        )

    def address(x: Number) -> str:
        return f.pure(f"inttoptr i64 {x.part} to ptr")

    one = known(1)
    beta = f.pure(f"select i1 {do.truth(f, add).part}, ptr {one}, ptr {known(0)}")
    # a row-major matrix is the transpose of a column-major one: c.T = op(b).T @ op(a).T
    arguments = (
        code(trans_b), code(trans_a), number(n), number(m), number(k), one,
        address(b), number(ldb), address(a), number(lda), beta, address(c), number(ldc),
    )  # fmt: skip
    function = f.module.declare(external_symbol(BLAS[dtype.name]), "void", ["ptr"] * len(arguments))
    f.effect(f"call void {function}({', '.join(f'ptr {text}' for text in arguments)})")
