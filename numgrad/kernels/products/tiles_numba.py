"""Numba's definitions of the instructions of ``tiles``: loops on vectors of registers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from numgrad.codegen.intrinsics import HAS_FMA
from numgrad.codegen.native import machine
from numgrad.kernels.products.gemm import VECTOR_BYTES

_I64 = ir.IntType(64)
ALIGNMENT = 64
"""Of what is on the stack, in bytes."""


@contextmanager
def _loop(builder: Any, count: Any) -> Iterator[Any]:
    """A loop over ``range(count)`` that stays as it is: neither unrolled nor vectorised."""
    before = builder.block
    head = builder.append_basic_block("loop")
    body = builder.append_basic_block("loop.body")
    end = builder.append_basic_block("loop.end")
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.phi(_I64)
    builder.cbranch(builder.icmp_signed("<", index, count), body, end)
    builder.position_at_end(body)
    yield index
    following = builder.add(index, _I64(1))
    index.add_incoming(_I64(0), before)
    index.add_incoming(following, builder.block)
    back = builder.branch(head)
    module = builder.module
    hints = [
        module.add_metadata([ir.MetaDataString(module, f"llvm.loop.{hint}"), *values])
        for hint, values in (
            ("unroll.disable", ()),
            ("vectorize.enable", (ir.IntType(1)(0),)),
        )
    ]
    identity = module.add_metadata([*hints])
    if identity.operands[0] is not identity:  # a loop is named by a node that begins with itself
        identity.operands = (identity, *identity.operands)
    back.set_metadata("llvm.loop", identity)
    builder.position_at_end(end)


class _Elements:
    """What the loops do with elements of one dtype, and with vectors of these."""

    def __init__(self, context: Any, builder: Any, dtype: Any, width: int = VECTOR_BYTES) -> None:
        self.builder = builder
        self.bits = dtype.bitwidth
        self.size = dtype.bitwidth // 8
        self.scalar = context.get_value_type(dtype)
        self.width, self.lanes = width, width // self.size
        self.vector = ir.VectorType(self.scalar, self.lanes)

    def load(self, address: Any, kind: Any, offset: int = 0) -> Any:
        return self.builder.load(self._pointer(address, kind, offset), align=self.size)

    def store(self, value: Any, address: Any, offset: int = 0) -> None:
        self.builder.store(value, self._pointer(address, value.type, offset), align=self.size)

    def _pointer(self, address: Any, kind: Any, offset: int) -> Any:
        if offset:
            address = self.builder.add(address, _I64(offset))
        return self.builder.inttoptr(address, kind.as_pointer())

    def along(self, address: Any, index: Any, step: Any) -> Any:
        return self.builder.add(address, self.builder.mul(index, step))

    def spread(self, x: Any) -> Any:
        undefined = ir.Constant(self.vector, ir.Undefined)
        one = self.builder.insert_element(undefined, x, ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), None)
        return self.builder.shuffle_vector(one, undefined, zeros)

    def multiply_add(self, x: Any, y: Any, z: Any) -> Any:
        if not HAS_FMA:
            return self.builder.fadd(self.builder.fmul(x, y), z)
        many = f"v{self.lanes}" if x.type == self.vector else ""
        return self._call(f"llvm.fma.{many}f{self.bits}", x.type, [x, y, z])

    def sum(self, x: Any, start: Any) -> Any:
        """The lanes of a vector, added up in halves, and ``start``."""
        count = self.lanes
        while count > 1:
            half = count // 2
            low, high = (
                self.builder.shuffle_vector(
                    x,
                    ir.Constant(x.type, ir.Undefined),
                    ir.Constant(ir.VectorType(ir.IntType(32), half), [*range(k, k + half)]),
                )
                for k in (0, half)
            )
            x, count = self.builder.fadd(low, high), half
        return self.builder.fadd(start, self.builder.extract_element(x, ir.IntType(32)(0)))

    def turned(self, rows: list[Any]) -> list[Any]:
        """The columns of a square of vectors, by as many interleavings of halves as it has."""
        half, lanes = len(rows) // 2, self.lanes
        orders = [
            ir.Constant(
                ir.VectorType(ir.IntType(32), lanes),
                [x for k in range(first, first + lanes // 2) for x in (k, k + lanes)],
            )
            for first in (0, lanes // 2)
        ]
        for _ in range(half.bit_length()):
            rows = [
                self.builder.shuffle_vector(x, y, order)
                for x, y in zip(rows[:half], rows[half:], strict=True)
                for order in orders
            ]
        return rows

    def _call(self, name: str, kind: Any, args: list[Any], flags: tuple[str, ...] = ()) -> Any:
        signature = ir.FunctionType(kind, [x.type for x in args])
        function = cgutils.get_or_insert_function(self.builder.module, signature, name)
        return self.builder.call(function, args, fastmath=flags)

    def rows(self, address: Any, pitch: Any, count: int, left: Any) -> list[Any]:
        """Addresses of ``count`` rows; the last of those left stands for what lies behind it."""
        found = [address]
        for r in range(1, count):
            there = self.builder.icmp_signed(">", left, _I64(r))
            found.append(self.builder.select(there, self.builder.add(found[-1], pitch), found[-1]))
        return found


def stack(typingctx, size):
    count = size.literal_value

    def codegen(context, builder, signature, args):
        with builder.goto_entry_block():
            place = builder.alloca(ir.ArrayType(ir.IntType(8), count))
            place.align = ALIGNMENT
        return builder.ptrtoint(place, _I64)

    return types.int64(size), codegen


def tile(
    typingctx, like, rows, vectors, width, a, row_a, step_a, b, row_b, count, c, row_c, left, add
):
    given = (a, row_a, step_a, b, row_b, count, c, row_c, left, add)

    def codegen(context, builder, signature, args):
        elements = _Elements(context, builder, like.dtype, width.literal_value)
        _tile(elements, rows.literal_value, vectors.literal_value, *args[4:])
        return context.get_dummy_value()

    return types.void(like, rows, vectors, width, *given), codegen


def _broad() -> int:
    """Bytes of the widest vector of a tile."""
    return max(VECTOR_BYTES, machine.vector_bits() // 8)


def broad_bytes(typingctx):
    return types.int64(), lambda context, builder, signature, args: _I64(2 * _broad())


def broad_tile(typingctx, like, rows, a, row_a, step_a, b, row_b, count, c, row_c, left, add):
    given = (a, row_a, step_a, b, row_b, count, c, row_c, left, add)

    def codegen(context, builder, signature, args):
        elements = _Elements(context, builder, like.dtype, _broad())
        _tile(elements, rows.literal_value, 2, *args[2:])
        return context.get_dummy_value()

    return types.void(like, rows, *given), codegen


def broad_finite(typingctx, like, b, row_b, count):
    def codegen(context, builder, signature, args):
        b, row_b, count = args[1:]
        elements = _Elements(context, builder, like.dtype, _broad())
        bits = ir.VectorType(ir.IntType(elements.bits), elements.lanes)
        found = cgutils.alloca_once_value(builder, ir.Constant(bits, None))
        with _loop(builder, count) as at:
            row = elements.along(b, at, row_b)
            for offset in (0, elements.width):
                x = elements.load(row, elements.vector, offset)
                # zero, all of whose bits are, or NaN
                rest = builder.bitcast(builder.fsub(x, x), bits)
                builder.store(builder.or_(builder.load(found), rest), found)
        name = f"llvm.vector.reduce.or.v{elements.lanes}i{elements.bits}"
        total = elements._call(name, bits.element, [builder.load(found)])
        none = builder.icmp_unsigned("==", total, bits.element(0))
        return builder.zext(none, _I64)

    return types.int64(like, b, row_b, count), codegen


def _tile(
    elements: _Elements, height: int, width: int, a: Any, row_a: Any, step_a: Any, b: Any,
    row_b: Any, count: Any, c: Any, row_c: Any, left: Any, add: Any,
) -> None:  # fmt: skip
    builder = elements.builder
    vector = elements.vector
    sources = elements.rows(a, row_a, height, left)
    targets = elements.rows(c, row_c, height, left)
    offsets = [v * elements.width for v in range(width)]
    places = [(target, offset) for target in targets for offset in offsets]
    sums = [cgutils.alloca_once(builder, vector) for _ in places]
    with builder.if_else(cgutils.as_bool_bit(builder, add)) as (yes, no):
        with yes:
            for total, (target, offset) in zip(sums, places, strict=True):
                builder.store(elements.load(target, vector, offset), total)
        with no:
            for total in sums:
                builder.store(ir.Constant(vector, None), total)
    with _loop(builder, count) as at:
        row = elements.along(b, at, row_b)
        factors = [elements.load(row, vector, offset) for offset in offsets]
        for r, source in enumerate(sources):
            x = elements.load(elements.along(source, at, step_a), elements.scalar)
            x = elements.spread(x)
            for v, factor in enumerate(factors):
                total = sums[r * width + v]
                builder.store(elements.multiply_add(x, factor, builder.load(total)), total)
    for total, (target, offset) in zip(sums, places, strict=True):
        elements.store(builder.load(total), target, offset)


def dots(typingctx, like, rows, a, row_a, x, count, c, row_c, left, add):
    dtype = like.dtype
    height, width = rows.literal_value, 2

    def codegen(context, builder, signature, args):
        a, row_a, x, count, c, row_c, left, add = args[2:]
        elements = _Elements(context, builder, dtype)
        vector, scalar = elements.vector, elements.scalar
        sources = elements.rows(a, row_a, height, left)
        targets = elements.rows(c, row_c, height, left)
        sums = [cgutils.alloca_once(builder, vector) for _ in range(height * width)]
        for total in sums:
            builder.store(ir.Constant(vector, None), total)
        chunk = _I64(width * elements.lanes)
        whole = builder.sdiv(count, chunk)
        with _loop(builder, whole) as at:
            skip = builder.mul(at, _I64(width * VECTOR_BYTES))
            for v in range(width):
                factor = elements.load(builder.add(x, skip), vector, v * VECTOR_BYTES)
                for r, source in enumerate(sources):
                    value = elements.load(builder.add(source, skip), vector, v * VECTOR_BYTES)
                    total = sums[r * width + v]
                    builder.store(elements.multiply_add(value, factor, builder.load(total)), total)
        results = [cgutils.alloca_once(builder, scalar) for _ in range(height)]
        for r, result in enumerate(results):
            both = builder.fadd(builder.load(sums[2 * r]), builder.load(sums[2 * r + 1]))
            builder.store(elements.sum(both, scalar(0)), result)
        done = builder.mul(whole, chunk)
        with _loop(builder, builder.sub(count, done)) as at:
            skip = builder.mul(builder.add(done, at), _I64(elements.size))
            factor = elements.load(builder.add(x, skip), scalar)
            for source, result in zip(sources, results, strict=True):
                value = elements.load(builder.add(source, skip), scalar)
                builder.store(elements.multiply_add(value, factor, builder.load(result)), result)
        with builder.if_then(cgutils.as_bool_bit(builder, add)):
            for target, result in zip(targets, results, strict=True):
                old = elements.load(target, scalar)
                builder.store(builder.fadd(old, builder.load(result)), result)
        for target, result in zip(targets, results, strict=True):
            elements.store(builder.load(result), target)
        return context.get_dummy_value()

    given = (a, row_a, x, count, c, row_c, left, add)
    return types.void(like, rows, *given), codegen


def element(typingctx, like, a, step_a, b, step_b, count, c, add):
    dtype = like.dtype

    def codegen(context, builder, signature, args):
        a, step_a, b, step_b, count, c, add = args[1:]
        elements = _Elements(context, builder, dtype)
        scalar = elements.scalar
        total = cgutils.alloca_once_value(builder, scalar(0))
        with builder.if_then(cgutils.as_bool_bit(builder, add)):
            builder.store(elements.load(c, scalar), total)
        with _loop(builder, count) as at:
            x = elements.load(elements.along(a, at, step_a), scalar)
            y = elements.load(elements.along(b, at, step_b), scalar)
            builder.store(elements.multiply_add(x, y, builder.load(total)), total)
        elements.store(builder.load(total), c)
        return context.get_dummy_value()

    return types.void(like, a, step_a, b, step_b, count, c, add), codegen


def complex_element(typingctx, like, a, step_a, sign_a, b, step_b, sign_b, count, c, add):
    part = like.dtype.underlying_float

    def codegen(context, builder, signature, args):
        a, step_a, sign_a, b, step_b, sign_b, count, c, add = args[1:]
        elements = _Elements(context, builder, part)
        scalar, size = elements.scalar, elements.size
        sign_a, sign_b = (builder.sitofp(sign, scalar) for sign in (sign_a, sign_b))
        real = cgutils.alloca_once_value(builder, scalar(0))
        imag = cgutils.alloca_once_value(builder, scalar(0))
        with builder.if_then(cgutils.as_bool_bit(builder, add)):
            builder.store(elements.load(c, scalar), real)
            builder.store(elements.load(c, scalar, size), imag)
        with _loop(builder, count) as at:
            p, q = elements.along(a, at, step_a), elements.along(b, at, step_b)
            x, u = elements.load(p, scalar), elements.load(q, scalar)
            y = builder.fmul(elements.load(p, scalar, size), sign_a)
            v = builder.fmul(elements.load(q, scalar, size), sign_b)
            minus = builder.fneg(y)
            total = elements.multiply_add(minus, v, builder.load(real))
            builder.store(elements.multiply_add(x, u, total), real)
            total = elements.multiply_add(y, u, builder.load(imag))
            builder.store(elements.multiply_add(x, v, total), imag)
        elements.store(builder.load(real), c)
        elements.store(builder.load(imag), c, size)
        return context.get_dummy_value()

    given = (a, step_a, sign_a, b, step_b, sign_b, count, c, add)
    return types.void(like, *given), codegen


def gather(typingctx, like, source, row, step, rows, columns, target, pitch):
    dtype = like.dtype

    def codegen(context, builder, signature, args):
        source, row, step, rows, columns, target, pitch = args[1:]
        elements = _Elements(context, builder, dtype)
        with _loop(builder, columns) as j:
            first = elements.along(source, j, step)
            place = elements.along(target, j, _I64(elements.size))
            with _loop(builder, rows) as i:
                value = elements.load(elements.along(first, i, row), elements.scalar)
                elements.store(value, elements.along(place, i, pitch))
        return context.get_dummy_value()

    given = (source, row, step, rows, columns, target, pitch)
    return types.void(like, *given), codegen


def gather_rows(typingctx, like, width, source, row, rows, target, pitch):
    dtype, size = like.dtype, width.literal_value

    def codegen(context, builder, signature, args):
        source, row, rows, target, pitch = args[2:]
        elements = _Elements(context, builder, dtype, size)
        with _loop(builder, rows) as at:
            value = elements.load(elements.along(source, at, row), elements.vector)
            elements.store(value, elements.along(target, at, pitch))
        return context.get_dummy_value()

    return types.void(like, width, source, row, rows, target, pitch), codegen


def turn(typingctx, like, width, source, column, rows, target, pitch):
    dtype, size = like.dtype, width.literal_value

    def codegen(context, builder, signature, args):
        source, column, rows, target, pitch = args[2:]
        elements = _Elements(context, builder, dtype, size)
        lanes, unit = _I64(elements.lanes), _I64(elements.size)
        squares = builder.sdiv(rows, lanes)
        done = builder.mul(squares, lanes)
        with _loop(builder, squares) as at:
            given = [elements.along(source, at, _I64(size))]
            place = [elements.along(target, builder.mul(at, lanes), pitch)]
            for _ in range(1, elements.lanes):
                given.append(builder.add(given[-1], column))
                place.append(builder.add(place[-1], pitch))
            turned = elements.turned([elements.load(x, elements.vector) for x in given])
            for row, there in zip(turned, place, strict=True):
                elements.store(row, there)
        first, place = elements.along(source, done, unit), elements.along(target, done, pitch)
        with _loop(builder, lanes) as j:
            given, there = elements.along(first, j, column), elements.along(place, j, unit)
            with _loop(builder, builder.sub(rows, done)) as k:
                value = elements.load(elements.along(given, k, unit), elements.scalar)
                elements.store(value, elements.along(there, k, pitch))
        return context.get_dummy_value()

    return types.void(like, width, source, column, rows, target, pitch), codegen


def clear(typingctx, address, size):
    def codegen(context, builder, signature, args):
        place = builder.inttoptr(args[0], ir.IntType(8).as_pointer())
        cgutils.memset(builder, place, args[1], 0)
        return context.get_dummy_value()

    return types.void(address, size), codegen
