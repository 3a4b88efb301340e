"""Innermost loops in vectors.

Note [Loops in lanes]
---------------------
An innermost loop of statements without branches is written in vectors of a number of lanes that
depends on the text alone, not on the CPU: 64 bytes of its widest type, up to four times that where
it adds up. LLVM cuts them into what the CPU has. So sums have the same bits on every CPU and for
every number of threads: each lane adds up its own elements, then the lanes are put together in
halves. Products and elementary functions have them on every CPU with FMA: Note [Multiply-add
without hardware] in ``intrinsics``. Iterations that are left over run once more through the same
body with a mask, which reads and writes nothing beside them.

A loop stays as it stands if an iteration may need what another one wrote: a name that is not the
total of a reduction, memory that is read at another place than it is written.
"""

from __future__ import annotations

import ast

import numpy as np

from numgrad.codegen.native import arithmetic as do
from numgrad.codegen.native.accesses import Lanes, NotVector
from numgrad.codegen.native.calls import SMALL
from numgrad.codegen.native.function import FunctionBody
from numgrad.codegen.native.ir import FunctionWriter
from numgrad.codegen.native.neighbours import Neighbours, neighbours
from numgrad.codegen.native.source import library_function
from numgrad.codegen.native.syntax import calls, uses
from numgrad.codegen.native.totals import Total, add_to_total, end_total, start_total, totals_of
from numgrad.codegen.native.values import (
    INT64,
    Array,
    Known,
    Number,
    in_lanes,
    integer,
)

LANE_BYTES = 64
"""Bytes that the lanes of a loop's widest type take."""
MOST_TWICE = 200
"""Statements up to which the body of a loop is written twice, for what is left over with a mask."""
SUMS = 4
"""How many times as many lanes a loop has that only adds up one sum, and would wait for itself."""


def write_in_lanes(
    body: FunctionBody, node: ast.For, start: Number, stop: Number, apart: bool = False
) -> None:
    """Write a loop in lanes; where it cannot be, nothing is left of the attempt."""
    f = body.f
    mark, names, slots = f.mark(), dict(body.names), dict(body.slots)
    block, ended = f.block, f.ended
    try:
        _in_lanes(body, node, start, stop, apart)
    except NotVector:
        f.undo(mark)
        f.block, f.ended = block, ended
        body.names, body.slots, body.lanes = names, slots, None
        raise


def _in_lanes(body: FunctionBody, node: ast.For, start: Number, stop: Number, apart: bool) -> None:
    f = body.f
    assert isinstance(node.target, ast.Name)
    if node.target.id in body.variables:
        raise NotVector("the index of a loop is used after it")
    totals = totals_of(body, node.body)
    count = _lane_count(body, node, totals)
    for total in totals.values():
        start_total(body, total, count)
    counter = f.slot("i64")
    f.effect(f"store i64 {start.part}, ptr {counter}")
    some, after = f.label("some"), f.label("after")
    f.branch(do.compare(f, "<", start, stop).part, some, after)
    f.begin(some)
    write = _masked if f.module.long and len(node.body) > MOST_TWICE else _full_and_rest
    with f.inside():
        write(body, node, totals, stop, Lanes(count, apart, f.depth), counter, after)
    f.begin(after)
    for total in totals.values():
        end_total(body, total, count)


def _full_and_rest(
    body: FunctionBody,
    node: ast.For,
    totals: dict[int, Total],
    stop: Number,
    lanes: Lanes,
    counter: str,
    after: str,
) -> None:
    """A loop of whole vectors, and what is left over with a mask."""
    f, count = body.f, lanes.count
    head, full, rest, last = (f.label(x) for x in ("lanes", "full", "rest", "last"))
    names = dict(body.names)
    shared = neighbours(body, node, totals, count)
    with f.inside():
        if shared is not None:
            first = f.label("first")
            index = f.value(f"load i64, ptr {counter}")
            following = f.value(f"add i64 {index}, {count}")
            f.branch(f.value(f"icmp sle i64 {following}, {stop.part}"), first, rest)
            f.begin(first)
            shared.begin(index)
        with f.repeated(head):
            index = f.value(f"load i64, ptr {counter}")
            following = f.value(f"add i64 {index}, {count}")
            f.branch(f.value(f"icmp sle i64 {following}, {stop.part}"), full, rest)
            f.begin(full)
            _body_in_lanes(body, node, totals, lanes, index, shared)
            f.effect(f"store i64 {following}, ptr {counter}")
            f.jump(head)
    body.names = dict(names)
    f.begin(rest)
    index = f.value(f"load i64, ptr {counter}")
    f.branch(f.value(f"icmp slt i64 {index}, {stop.part}"), last, after)
    f.begin(last)
    mask, left = _within(f, index, stop, count)
    _body_in_lanes(body, node, totals, lanes.first(mask, left), index)
    f.jump(after)
    body.names = names


def _masked(
    body: FunctionBody,
    node: ast.For,
    totals: dict[int, Total],
    stop: Number,
    lanes: Lanes,
    counter: str,
    after: str,
) -> None:
    """A long loop, whose body is written once, with a mask for what is beyond its end."""
    f, count = body.f, lanes.count
    head, inner = f.label("lanes"), f.label("masked")
    names = dict(body.names)
    with f.repeated(head):
        index = f.value(f"load i64, ptr {counter}")
        f.branch(f.value(f"icmp slt i64 {index}, {stop.part}"), inner, after)
        f.begin(inner)
        mask, rest = _within(f, index, stop, count)
        whole = f.pure(f"icmp slt i64 {rest}, {count}")
        rest = f.pure(f"select i1 {whole}, i64 {rest}, i64 {count}")
        _body_in_lanes(body, node, totals, lanes.first(mask, rest), index)
        following = f.value(f"add i64 {index}, {count}")
        f.effect(f"store i64 {following}, ptr {counter}")
        f.jump(head)
    body.names = names


def _within(f: FunctionWriter, index: str, stop: Number, count: int) -> tuple[str, str]:
    """Which lanes from an index on are before the end, and how many iterations are left."""
    left = f.value(f"sub i64 {stop.part}, {index}")
    vector = in_lanes(Number(INT64, (left,)), count, f).part
    places = ", ".join(f"i64 {k}" for k in range(count))
    return f.value(f"icmp slt <{count} x i64> <{places}>, {vector}"), left


def _body_in_lanes(
    body: FunctionBody,
    node: ast.For,
    totals: dict[int, Total],
    lanes: Lanes,
    index: str,
    shared: Neighbours | None = None,
) -> None:
    assert isinstance(node.target, ast.Name)
    body.lanes, lanes.block = lanes, body.f.block
    body.names[node.target.id] = Number(INT64, (index,), lanes.count, None, integer(1))

    def run(place: int) -> None:
        if place in totals:
            add_to_total(body, totals[place], lanes)
        else:
            body.run([node.body[place]])

    if shared is None:
        for place in range(len(node.body)):
            run(place)
    else:
        shared.turn(run)
    body.lanes = None
    lanes.check()


def _lane_count(body: FunctionBody, node: ast.For, totals: dict[int, Total]) -> int:
    names = {name for s in node.body for name, _ in uses(s)}
    widest = max((_width(body, name) for name in names), default=1)
    count = max(LANE_BYTES // max(widest, 1), 8)
    if totals and not any(_is_dear(body, n) for s in node.body for n in calls(s)):
        count *= max(SUMS // len(totals), 1)
    return min(count, 64)


def _width(body: FunctionBody, name: str) -> int:
    """Bytes of the type that a name stands for."""
    if name in body.names:
        value = body.names[name]
        if isinstance(value, Array):
            return value.dtype.itemsize // (2 if value.dtype.kind == "c" else 1)
        if isinstance(value, Number) and value.dtype.kind in "fc":
            return value.dtype.itemsize // (2 if value.dtype.kind == "c" else 1)
        return 1
    if name in body.slots:
        return body.slots[name][1].itemsize
    for suffix, size in (("64", 8), ("128", 8), ("32", 4)):
        if name.endswith(suffix):
            return size
    try:
        number = None if name in body.variables else body.function.look_up(name)
    except AttributeError:  # an index
        return 1
    if not isinstance(number, np.inexact):
        return 1
    return number.itemsize // (2 if number.dtype.kind == "c" else 1)


def _is_dear(body: FunctionBody, node: ast.Call) -> bool:
    """Whether a function of the library is called that is no single step."""
    if not isinstance(node.func, ast.Name):
        return False
    try:
        called = body.value(node.func)
    except AttributeError:
        return False
    function = called.value if isinstance(called, Known) else None
    if not hasattr(function, "py_func"):
        return False
    return library_function(function.py_func, False).whole_size > SMALL  # pyright: ignore
