"""Reads and writes of memory, of one element or of one a lane.

Note [Bounds]
-------------
``NUMGRAD_BOUNDSCHECK=1`` has kernels compiled that compare each index of an array with the length
of its axis before they read or write. The first one out of range makes the kernel return as if
memory had run out, and ``NativeCode`` raises the IndexError: it says statement, axis, index and
length. Such kernels have other names on disk. Their loops are not in lanes, so sums may have other
last bits. Where the text gives an address and no array (``load``, ``store``, products), lengths are
not known; sources of compiled functions are run by the tests' emulator, which checks these too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from numgrad.codegen.native.arithmetic import binary, cast, compare, select
from numgrad.codegen.native.ir import FunctionWriter, Unsupported
from numgrad.codegen.native.values import (
    INT64,
    Array,
    LanePlace,
    Lanes,
    NotVector,
    Number,
    in_lanes,
    integer,
    memory_type,
    part_dtype,
)
from numgrad.dataclass import dataclass


@dataclass(frozen=True)
class Element:
    """Where an element is: an operand of type ``ptr`` and, in elements or bytes, an offset."""

    dtype: np.dtype
    base: str
    offset: Number
    root: Any
    in_bytes: bool = False
    metadata: str = ""


FEW_APART = 4
"""Elements of a row of which lanes read one, up to which they read all."""
REPORT = "numgrad_bounds_report"
"""The linker's name of where a statement, an axis, an index and a length are reported."""


def element_of(f: FunctionWriter, array: Array, index: Sequence[Number]) -> Element:
    """An element of an array."""
    if f.module.check_bounds:
        _check_bounds(f, index, array.shape)
    return _element_at(f, array, index)


def _check_bounds(f: FunctionWriter, index: Sequence[Number], lengths: Sequence[Number]) -> None:
    """Leave the function where an index is out of range, after a report: Note [Bounds]."""
    for axis, (position, length) in enumerate(zip(index, lengths, strict=True)):
        within, beyond = f.label("within"), f.label("beyond")
        f.branch(f.pure(f"icmp ult i64 {position.part}, {length.part}"), within, beyond)
        f.begin(beyond)
        f.module.declarations[REPORT] = f"@{REPORT} = external global [4 x i64]"
        text = f.statement.encode()
        escaped = "".join(f"\\{byte:02x}" for byte in text)
        statement = f.module.constant(f'[{len(text) + 1} x i8] c"{escaped}\\00"')
        address = f"ptrtoint (ptr {statement} to i64)"
        for word, number in enumerate((address, str(axis), position.part, length.part)):
            f.effect(f"store i64 {number}, ptr getelementptr (i64, ptr @{REPORT}, i64 {word})")
        f.effect(f"store i8 1, ptr {f.failed}")
        f.fails = True
        f.jump("nothing")
        f.begin(within)


def _element_at(f: FunctionWriter, array: Array, index: Sequence[Number]) -> Element:
    if array.strides is None:
        offset = integer(0)
        for position, length in zip(index, array.shape, strict=True):
            offset = binary(f, "+", binary(f, "*", offset, length), position)
        return Element(array.dtype, array.data, offset, array.root)
    offset = integer(0)
    for position, stride in zip(index, array.strides, strict=True):
        offset = binary(f, "+", offset, binary(f, "*", position, stride))
    return Element(array.dtype, array.data, offset, array.root, in_bytes=True)


def view(f: FunctionWriter, array: Array, index: Sequence[Number | slice]) -> Array:
    """The part of an array that integers, and slices of step 1, give."""
    index = [*index, *([slice(None)] * (len(array.shape) - len(index)))]
    starts = [
        (p.start if isinstance(p, slice) and p.start is not None else integer(0))
        if isinstance(p, slice)
        else p
        for p in index
    ]
    if f.module.check_bounds:
        at = [axis for axis, p in enumerate(index) if not isinstance(p, slice)]
        _check_bounds(f, [starts[axis] for axis in at], [array.shape[axis] for axis in at])
    first = _element_at(f, array, starts)
    kept = [a for a, p in enumerate(index) if isinstance(p, slice)]
    shape = []
    for a in kept:
        component = index[a]
        assert isinstance(component, slice)
        if component.start is None and component.stop is None:
            shape.append(array.shape[a])
            continue
        stop = array.shape[a] if component.stop is None else component.stop
        if component.stop is not None:
            stop = smaller(f, stop, array.shape[a])
        length = binary(f, "-", stop, starts[a])
        shape.append(larger(f, length, integer(0)))
    data = address(f, first)
    if array.strides is not None:
        return Array(
            array.dtype, data, tuple(shape), tuple(array.strides[a] for a in kept), array.root
        )
    whole = [a for a in kept[1:] if index[a] != slice(None)]
    if whole or kept != list(range(len(index) - len(kept), len(index))):
        raise Unsupported("a slice that is not contiguous")
    return Array(array.dtype, data, tuple(shape), None, array.root)


def smaller(f: FunctionWriter, a: Number, b: Number) -> Number:
    """The smaller of two numbers, as Python's ``min``: the first, where the second is not less."""
    if a.literal is not None and b.literal is not None:
        return a if a.literal <= b.literal else b
    return select(f, compare(f, "<", b, a), b, a)


def larger(f: FunctionWriter, a: Number, b: Number) -> Number:
    """The larger of two numbers, as Python's ``max``."""
    if a.literal is not None and b.literal is not None:
        return a if a.literal >= b.literal else b
    return select(f, compare(f, ">", b, a), b, a)


def address(f: FunctionWriter, element: Element) -> str:
    """The address of an element."""
    if element.offset.literal == 0 and not element.offset.lanes:
        return element.base
    return _pointer(f, element, element.offset.part)


def _pointer(f: FunctionWriter, element: Element, offset: str, component: int = 0) -> str:
    kind = "i8" if element.in_bytes else memory_type(element.dtype)
    if element.dtype.kind == "c":
        if element.in_bytes:
            base = f.pure(f"getelementptr i8, ptr {element.base}, i64 {offset}")
            if component:
                base = f.pure(f"getelementptr i8, ptr {base}, i64 {element.dtype.itemsize // 2}")
            return base
        double = f.pure(f"shl i64 {offset}, 1")
        offset = f.pure(f"add i64 {double}, 1") if component else double
    return f.pure(f"getelementptr {kind}, ptr {element.base}, i64 {offset}")


def _size(dtype: np.dtype) -> int:
    return part_dtype(dtype).itemsize


def read(
    f: FunctionWriter, element: Element, lanes: Lanes | None, flag: Number | None = None
) -> Number:
    """The element, or one a lane; where ``flag`` does not hold zero, and memory is not touched."""
    offset = element.offset
    if not offset.lanes and (flag is None or not flag.lanes):
        if lanes is not None:
            lanes.accesses.append(
                (element.root, False, LanePlace(element.base, offset.part, "0", False, False))
            )
            if flag is None and f.block == lanes.block:
                return _read_before(f, element, lanes.around)
        return _read_one(f, element, flag)
    assert lanes is not None
    lanes.accesses.append((element.root, False, _place(element)))
    if flag is not None:
        lanes = masked(f, lanes, flag)
    if offset.step is not None and offset.step.literal == _unit(element):
        return _read_row(f, element, lanes)
    step = None if offset.step is None else offset.step.literal
    if isinstance(step, int) and not lanes.mask and element.dtype.kind != "c":
        step, between = divmod(step, _unit(element))
        if not between and 1 < step <= FEW_APART:
            return _read_columns(f, element, lanes.count, step)
    return _gather(f, element, lanes.count, lanes.mask)


def _read_columns(f: FunctionWriter, element: Element, lanes: int, step: int) -> Number:
    """One of every few elements, of all from the first to the last: gathering takes longer."""
    dtype = element.dtype
    kind = f"<{(lanes - 1) * step + 1} x {memory_type(dtype)}>"
    pointer = _pointer(f, element, element.offset.part)
    row = f.value(f"load {kind}, ptr {pointer}, align {_size(dtype)}{element.metadata}")
    places = ", ".join(f"i32 {k * step}" for k in range(lanes))
    text = f.pure(f"shufflevector {kind} {row}, {kind} poison, <{lanes} x i32> <{places}>")
    return Number(dtype, (_loaded(f, text, dtype, lanes),), lanes)


def _unit(element: Element) -> int:
    return element.dtype.itemsize if element.in_bytes else 1


def _place(element: Element) -> LanePlace:
    offset = element.offset
    if offset.step is None:
        return LanePlace(element.base, offset.part, "", computed=True, row=False)
    row = offset.step.literal == _unit(element)
    return LanePlace(element.base, offset.part, offset.step.part, computed=False, row=row)


def masked(f: FunctionWriter, lanes: Lanes, condition: Number) -> Lanes:
    """The lanes where a condition holds too."""
    mask = in_lanes(condition, lanes.count, f).part
    if lanes.mask:
        mask = f.pure(f"and <{lanes.count} x i1> {lanes.mask}, {mask}")
    return replace(lanes, mask=mask, rest="")


def _loaded(f: FunctionWriter, text: str, dtype: np.dtype, lanes: int) -> str:
    """A value read from memory as a number: bools are bytes there."""
    if dtype.kind != "b":
        return text
    kind = f"<{lanes} x i8>" if lanes else "i8"
    return f.pure(f"icmp ne {kind} {text}, {'zeroinitializer' if lanes else '0'}")


def _stored(f: FunctionWriter, text: str, dtype: np.dtype, lanes: int) -> str:
    if dtype.kind != "b":
        return text
    kinds = (f"<{lanes} x i1>", f"<{lanes} x i8>") if lanes else ("i1", "i8")
    return f.pure(f"zext {kinds[0]} {text} to {kinds[1]}")


def _read_one(f: FunctionWriter, element: Element, flag: Number | None) -> Number:
    dtype, kind = element.dtype, memory_type(element.dtype)
    count = 2 if dtype.kind == "c" else 1
    if flag is None:
        parts = [
            f.value(
                f"load {kind}, ptr {_pointer(f, element, element.offset.part, k)}, "
                f"align {_size(dtype)}{element.metadata}"
            )
            for k in range(count)
        ]
    else:
        zero = "0" if dtype.kind in "biu" else "0.0"
        slots = [f.slot(kind) for _ in range(count)]
        for slot in slots:
            f.effect(f"store {kind} {zero}, ptr {slot}")
        then, after = f.label("read"), f.label("after")
        f.branch(flag.part, then, after)
        f.start(then)
        with f.inside():
            for k, slot in enumerate(slots):
                pointer = _pointer(f, element, element.offset.part, k)
                data = f.value(
                    f"load {kind}, ptr {pointer}, align {_size(dtype)}{element.metadata}"
                )
                f.effect(f"store {kind} {data}, ptr {slot}")
        f.start(after)
        parts = [f.value(f"load {kind}, ptr {slot}") for slot in slots]
    return Number(dtype, tuple(_loaded(f, p, dtype, 0) for p in parts))


def _read_before(f: FunctionWriter, element: Element, around: int) -> Number:
    """An element that all iterations of a loop in lanes read, which none of them writes."""
    dtype, kind = element.dtype, memory_type(element.dtype)
    parts = []
    for k in range(2 if dtype.kind == "c" else 1):
        pointer = _pointer(f, element, element.offset.part, k)
        load = f"load {kind}, ptr {pointer}, align {_size(dtype)}{element.metadata}"
        parts.append(_loaded(f, f.pure(load, around), dtype, 0))
    return Number(dtype, tuple(parts))


def _read_row(f: FunctionWriter, element: Element, lanes: Lanes) -> Number:
    dtype, count = element.dtype, lanes.count
    wide = 2 * count if dtype.kind == "c" else count
    kind = f"<{wide} x {memory_type(dtype)}>"
    pointer = _pointer(f, element, element.offset.part)
    if not lanes.mask:
        row = f.value(f"load {kind}, ptr {pointer}, align {_size(dtype)}{element.metadata}")
    elif _is_copied(f, dtype, lanes):
        slot = f.slot(kind)
        f.effect(f"store {kind} zeroinitializer, ptr {slot}")
        _copy(f, slot, pointer, lanes.rest, dtype)
        row = f.value(f"load {kind}, ptr {slot}")
    else:
        mask = _doubled(f, lanes.mask, count, wide)
        row = _masked_load(f, kind, pointer, mask, _size(dtype), element)
    if dtype.kind != "c":
        return Number(dtype, (_loaded(f, row, dtype, count),), count)
    parts = tuple(
        f.pure(
            f"shufflevector {kind} {row}, {kind} poison, <{count} x i32> "
            f"<{', '.join(f'i32 {2 * k + component}' for k in range(count))}>"
        )
        for component in (0, 1)
    )
    return Number(dtype, parts, count)


def _is_copied(f: FunctionWriter, dtype: np.dtype, lanes: Lanes) -> bool:
    """Whether the first lanes of a row go by way of the stack.

    Where the CPU has no mask for elements so small, LLVM would write a branch for each lane.
    """
    return bool(lanes.rest) and _size(dtype) < f.module.least_masked


def _copy(f: FunctionWriter, to: str, pointer: str, count: str, dtype: np.dtype) -> None:
    size = f.pure(f"mul i64 {count}, {dtype.itemsize}")
    name = f.module.declare("llvm.memcpy.p0.p0.i64", "void", ["ptr", "ptr", "i64", "i1"])
    f.effect(f"call void {name}(ptr {to}, ptr {pointer}, i64 {size}, i1 false)")


def _doubled(f: FunctionWriter, mask: str, lanes: int, wide: int) -> str:
    """A mask of lanes as one of their parts."""
    if wide == lanes:
        return mask
    order = ", ".join(f"i32 {k // 2}" for k in range(wide))
    kind = f"<{lanes} x i1>"
    return f.pure(f"shufflevector {kind} {mask}, {kind} poison, <{wide} x i32> <{order}>")


def _mangled(kind: str) -> str:
    count, scalar = kind[1:-1].split(" x ")
    return f"v{count}{ {'float': 'f32', 'double': 'f64'}.get(scalar, scalar) }"


def _masked_load(
    f: FunctionWriter, kind: str, pointer: str, mask: str, align: int, element: Element
) -> str:
    count = kind[1:-1].split(" x ")[0]
    name = f"llvm.masked.load.{_mangled(kind)}.p0"
    f.module.declare(name, kind, ["ptr", "i32", f"<{count} x i1>", kind])
    return f.value(
        f"call {kind} @{name}(ptr {pointer}, i32 {align}, <{count} x i1> {mask}, "
        f"{kind} zeroinitializer){element.metadata}"
    )


def _places(f: FunctionWriter, element: Element, lanes: int, component: int) -> str:
    """The addresses of one element a lane."""
    offset = in_lanes(element.offset, lanes, f)
    dtype = element.dtype
    kind = "i8" if element.in_bytes else memory_type(dtype)
    text, vector = offset.part, f"<{lanes} x i64>"
    if dtype.kind == "c" and not element.in_bytes:
        text = f.pure(f"shl {vector} {text}, splat (i64 1)")
        text = f.pure(f"add {vector} {text}, splat (i64 1)") if component else text
    elif component:
        text = f.pure(f"add {vector} {text}, splat (i64 {dtype.itemsize // 2})")
    return f.pure(f"getelementptr {kind}, ptr {element.base}, {vector} {text}")


def _selected(f: FunctionWriter, mask: str, places: str, other: str, lanes: int) -> str:
    """Addresses of which those that a mask leaves out are another one.

    A read or write of all lanes has no branches where the CPU has no instruction for it.
    """
    if not mask:
        return places
    kind = f"<{lanes} x ptr>"
    first = f.pure(f"insertelement {kind} poison, ptr {other}, i64 0")
    others = f.pure(f"shufflevector {kind} {first}, {kind} poison, <{lanes} x i32> zeroinitializer")
    return f.pure(f"select <{lanes} x i1> {mask}, {kind} {places}, {kind} {others}")


def _gather(f: FunctionWriter, element: Element, lanes: int, mask: str) -> Number:
    dtype = element.dtype
    kind = f"<{lanes} x {memory_type(dtype)}>"
    name = f"llvm.masked.gather.{_mangled(kind)}.v{lanes}p0"
    f.module.declare(name, kind, [f"<{lanes} x ptr>", "i32", f"<{lanes} x i1>", kind])
    zero = f.module.constant("[16 x i8] zeroinitializer, align 16")
    parts = []
    for component in range(2 if dtype.kind == "c" else 1):
        places = _selected(f, mask, _places(f, element, lanes, component), zero, lanes)
        text = f.value(
            f"call {kind} @{name}(<{lanes} x ptr> {places}, i32 {_size(dtype)}, "
            f"<{lanes} x i1> splat (i1 true), {kind} zeroinitializer){element.metadata}"
        )
        parts.append(_loaded(f, text, dtype, lanes))
    return Number(dtype, tuple(parts), lanes)


def write(f: FunctionWriter, element: Element, value: Number, lanes: Lanes | None) -> None:
    """Set the element, or one a lane."""
    dtype, offset = element.dtype, element.offset
    value = cast(f, value, dtype)
    if not offset.lanes:
        if lanes is not None:
            raise NotVector("iterations write to one place")
        kind = memory_type(dtype)
        for k, component in enumerate(value.parts):
            stored = _stored(f, component, dtype, 0)
            pointer = _pointer(f, element, offset.part, k)
            f.effect(
                f"store {kind} {stored}, ptr {pointer}, align {_size(dtype)}{element.metadata}"
            )
        return
    assert lanes is not None
    lanes.accesses.append((element.root, True, _place(element)))
    value = in_lanes(value, lanes.count, f)
    if offset.step is not None and offset.step.literal == _unit(element):
        _write_row(f, element, value, lanes)
    else:
        _scatter(f, element, value, lanes)


def _write_row(f: FunctionWriter, element: Element, value: Number, lanes: Lanes) -> None:
    dtype, count = element.dtype, lanes.count
    parts = [_stored(f, p, dtype, count) for p in value.parts]
    scalar, row, wide = memory_type(dtype), parts[0], count
    if dtype.kind == "c":
        wide, kind = 2 * count, f"<{count} x {scalar}>"
        order = ", ".join(f"i32 {k // 2 + (k % 2) * count}" for k in range(wide))
        row = f.pure(
            f"shufflevector {kind} {parts[0]}, {kind} {parts[1]}, <{wide} x i32> <{order}>"
        )
    kind = f"<{wide} x {scalar}>"
    pointer = _pointer(f, element, element.offset.part)
    if not lanes.mask:
        f.effect(f"store {kind} {row}, ptr {pointer}, align {_size(dtype)}{element.metadata}")
        return
    if _is_copied(f, dtype, lanes):
        slot = f.slot(kind)
        f.effect(f"store {kind} {row}, ptr {slot}")
        _copy(f, pointer, slot, lanes.rest, dtype)
        return
    mask = _doubled(f, lanes.mask, count, wide)
    name = f"llvm.masked.store.{_mangled(kind)}.p0"
    f.module.declare(name, "void", [kind, "ptr", "i32", f"<{wide} x i1>"])
    f.effect(
        f"call void @{name}({kind} {row}, ptr {pointer}, i32 {_size(dtype)}, "
        f"<{wide} x i1> {mask}){element.metadata}"
    )


def _scatter(f: FunctionWriter, element: Element, value: Number, lanes: Lanes) -> None:
    """One element after the other: of lanes that write to one place the last remains."""
    dtype, count = element.dtype, lanes.count
    kind = f"<{count} x {memory_type(dtype)}>"
    name = f"llvm.masked.scatter.{_mangled(kind)}.v{count}p0"
    f.module.declare(name, "void", [kind, f"<{count} x ptr>", "i32", f"<{count} x i1>"])
    nowhere = f.slot(memory_type(dtype)) if lanes.mask else ""
    for component, text in enumerate(value.parts):
        places = _selected(f, lanes.mask, _places(f, element, count, component), nowhere, count)
        f.effect(
            f"call void @{name}({kind} {_stored(f, text, dtype, count)}, <{count} x ptr> {places}, "
            f"i32 {_size(dtype)}, <{count} x i1> splat (i1 true)){element.metadata}"
        )


def at_address(
    f: FunctionWriter, dtype: np.dtype, address: Number, index: Number, root: Any, metadata: str
) -> Element:
    """The element at a distance from an address."""
    if address.lanes:
        raise NotVector("an address in each lane")
    base = f.pure(f"inttoptr i64 {cast(f, address, INT64).part} to ptr")
    return Element(dtype, base, cast(f, index, INT64), root, metadata=metadata)


def to_address(f: FunctionWriter, array: Array) -> Number:
    """Where an array begins."""
    return Number(INT64, (f.pure(f"ptrtoint ptr {array.data} to i64"),))


def strides_of(f: FunctionWriter, array: Array) -> tuple[Number, ...]:
    """The distances along the axes, in bytes."""
    if array.strides is not None:
        return array.strides
    strides = [integer(array.dtype.itemsize)]
    for length in reversed(array.shape[1:]):
        strides.insert(0, binary(f, "*", strides[0], length))
    return tuple(strides)


def transposed(f: FunctionWriter, array: Array) -> Array:
    """The array with its axes in the reverse order."""
    if len(array.shape) < 2:
        return array
    strides = strides_of(f, array)[::-1]
    return Array(array.dtype, array.data, array.shape[::-1], strides, array.root)


def size_of(f: FunctionWriter, array: Array) -> Number:
    """The number of elements."""
    total = integer(1)
    for length in array.shape:
        total = binary(f, "*", total, length)
    return total


def any_lane(f: FunctionWriter, condition: Number) -> str:
    """Whether a condition holds in any lane."""
    kind = f"<{condition.lanes} x i1>"
    name = f.module.declare(f"llvm.vector.reduce.or.v{condition.lanes}i1", "i1", [kind])
    return f.pure(f"call i1 {name}({kind} {condition.part})")
