"""Loops over ranges: in lanes, with reductions, as they stand, or shared by threads.

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
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from numgrad.codegen.native import arithmetic as do
from numgrad.codegen.native.calls import SMALL, flatten, leave_if_failed, rebuilt
from numgrad.codegen.native.function import FunctionBody
from numgrad.codegen.native.instructions import INSTRUCTIONS
from numgrad.codegen.native.ir import FunctionWriter, Unsupported
from numgrad.codegen.native.neighbours import Neighbours, neighbours
from numgrad.codegen.native.source import PRANGE, library_function
from numgrad.codegen.native.syntax import assigned, calls, is_straight, read_first, reads, uses
from numgrad.codegen.native.values import (
    INT64,
    Array,
    Known,
    Lanes,
    NearParts,
    NotVector,
    Number,
    Value,
    constant,
    in_lanes,
    integer,
    kind_of,
    scalar_type,
)
from numgrad.dataclass import dataclass


@dataclass
class Total:
    """A name that a loop accumulates, as ``name = step(name, value)``.

    Attributes
    ----------
    value
        An expression; the two factors of ``add_product``, whose step is to add.
    step
        Puts two partial results together.
    first
        The value that changes nothing; None if the total before the loop does.
    """

    name: str
    value: ast.expr
    step: Callable[[Number, Number], Number]
    first: Any
    slots: tuple[str, ...] = ()
    dtype: Any = None

    def identity(self, dtype: np.dtype, before: Number) -> Number:
        return before if self.first is None else constant(self.first, dtype)


_AUGMENTED: dict[type, tuple[str, Any]] = {
    ast.Add: ("+", 0), ast.BitOr: ("|", 0), ast.BitXor: ("^", 0), ast.Mult: ("*", 1),
}  # fmt: skip
_INSTRUCTED = {
    "add_any_order": -0.0, "multiply_any_order": 1.0,
    "ordered_maximum": None, "ordered_minimum": None,
}  # fmt: skip
_LIBRARY = {"maximum", "minimum", "larger", "smaller", "either", "both"}
_INTEGERS = {"add": 0, "multiply": 1}


def totals_of(body: FunctionBody, statements: Sequence[ast.stmt]) -> dict[int, Total]:
    """The statements that accumulate; all other names must be made anew in each iteration."""
    changed = set(assigned(statements))
    carried = changed & read_first(statements)
    totals: dict[int, Total] = {}
    for position, statement in enumerate(statements):
        total = _total(body, statement)
        if total is not None and total.name in carried:
            totals[position] = total
    names = [total.name for total in totals.values()]
    if len(set(names)) < len(names) or set(names) != carried:
        raise NotVector("an iteration needs the one before")
    for position, statement in enumerate(statements):
        read = reads(totals[position].value if position in totals else statement)
        if read & carried:
            raise NotVector("an iteration needs the one before")
    private = changed - carried
    if private & body.variables:
        raise NotVector("a name is used outside of its loop")
    return totals


def _total(body: FunctionBody, statement: ast.stmt) -> Total | None:
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        known = _AUGMENTED.get(type(statement.op))
        if known is None:
            return None
        op, first = known
        return Total(
            statement.target.id, statement.value, lambda a, b: do.binary(body.f, op, a, b), first
        )
    if not (
        isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], ast.Name)
        and isinstance(statement.value, ast.Call)
        and len(statement.value.args) in (2, 3)
    ):
        return None
    name = statement.targets[0].id
    first, *values = statement.value.args
    if not (isinstance(first, ast.Name) and first.id == name):
        return None
    called = body.value(statement.value.func)
    function = called.value if isinstance(called, Known) else None
    known = getattr(function, "__name__", "") or getattr(function, "_name", "")
    if len(values) == 2:
        both = ast.Tuple(values, ast.Load())
        plus = INSTRUCTIONS["add_any_order"]
        return Total(name, both, partial(plus, body), -0.0) if known == "add_product" else None
    (value,) = values
    if known in _INSTRUCTED:
        return Total(name, value, lambda a, b: INSTRUCTIONS[known](body, a, b), _INSTRUCTED[known])
    if known in _LIBRARY or known in _INTEGERS:
        library = library_function(function.py_func, False)  # pyright: ignore

        def step(a: Number, b: Number) -> Number:
            return body.as_number(body.call_function(library, [a, b]))

        return Total(name, value, step, _INTEGERS.get(known))
    return None


def start_total(body: FunctionBody, total: Total, count: int) -> None:
    """Give each lane its place, which nothing has been added to."""
    f = body.f
    before = body.as_number(body.get(total.name))
    total.dtype = before.dtype
    integers = total.first in (0, 1) and isinstance(total.first, int)
    if before.dtype.kind == "c" or (integers and before.dtype.kind == "f"):
        raise NotVector("the order of a sum matters")
    first = in_lanes(total.identity(before.dtype, before), count, f)
    kind = kind_of(first)
    slot = f.slot(kind)
    f.effect(f"store {kind} {first.part}, ptr {slot}")
    total.slots = (slot,)


def add_to_total(body: FunctionBody, total: Total, lanes: Lanes) -> None:
    """Run a statement that accumulates, in the lanes of the mask."""
    f = body.f
    kind = f"<{lanes.count} x {scalar_type(total.dtype)}>"
    before = Number(total.dtype, (f.value(f"load {kind}, ptr {total.slots[0]}"),), lanes.count)
    if isinstance(total.value, ast.Tuple):
        factors = [in_lanes(body.number(x), lanes.count, f) for x in total.value.elts]
        after = INSTRUCTIONS["add_product"](body, before, *factors)
    else:
        value = body.number(total.value)
        if value.dtype != total.dtype:
            if value.dtype.kind == "f" or total.dtype.kind == "f":
                raise NotVector("a total of another type")
            value = do.cast(f, value, total.dtype)
        after = do.cast(f, total.step(before, in_lanes(value, lanes.count, f)), total.dtype)
    text = after.part
    if lanes.mask:
        text = f.value(
            f"select <{lanes.count} x i1> {lanes.mask}, {kind} {text}, {kind} {before.part}"
        )
    f.effect(f"store {kind} {text}, ptr {total.slots[0]}")


def end_total(body: FunctionBody, total: Total, count: int) -> None:
    """Put the lanes together in halves, and to what was there before."""
    f = body.f
    scalar = scalar_type(total.dtype)
    vector = f.value(f"load <{count} x {scalar}>, ptr {total.slots[0]}")
    value = do.reduce_halves(f, Number(total.dtype, (vector,), count), total.step)
    before = body.as_number(body.get(total.name))
    body.set(total.name, do.cast(f, total.step(before, value), total.dtype))


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
    """The mask of lanes from an index on that are before the end, and the iterations left."""
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

    def run(position: int) -> None:
        if position in totals:
            add_to_total(body, totals[position], lanes)
        else:
            body.run([node.body[position]])

    if shared is None:
        for position in range(len(node.body)):
            run(position)
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


def write_loop(body: FunctionBody, node: ast.For) -> None:
    """Translate a loop."""
    function, bounds = _range_of(body, node)
    start, stop, step = bounds
    if not isinstance(node.target, ast.Name) or node.orelse:
        raise Unsupported("a loop over something else than a range")
    if function is PRANGE and body.parallel:
        _shared(body, node, bounds)
        return
    if body.f.module.check_bounds:
        pass
    elif step.literal == 1 and is_straight(node.body):
        try:
            write_in_lanes(body, node, start, stop)
            return
        except NearParts as near:
            if _written_in_lanes_where_apart(body, node, start, stop, near):
                return
            body.f.module.scalar_loops.setdefault(node.target.id, str(near))
        except NotVector as reason:
            body.f.module.scalar_loops.setdefault(node.target.id, str(reason))
    _plain(body, node, start, stop, step)


def _range_of(body: FunctionBody, node: ast.For) -> tuple[Any, tuple[Number, Number, Number]]:
    if not isinstance(node.iter, ast.Call):
        raise Unsupported("a loop over something else than a range")
    called = body.value(node.iter.func)
    if not isinstance(called, Known) or called.value not in (range, PRANGE):
        raise Unsupported("a loop over something else than a range")
    given = [do.cast(body.f, body.number(a), INT64) for a in node.iter.args]
    start, stop, step = (
        (integer(0), given[0], integer(1))
        if len(given) == 1
        else (given[0], given[1], given[2] if len(given) == 3 else integer(1))
    )
    if step.literal == 0:
        raise Unsupported("a range of step 0")
    return called.value, (start, stop, step)


# ------------------------------------------------------------------------------------- as it stands


def _plain(body: FunctionBody, node: ast.For, start: Number, stop: Number, step: Number) -> None:
    f = body.f
    counter = f.slot("i64")
    f.effect(f"store i64 {start.part}, ptr {counter}")
    head, inner, following, after = (f.label(x) for x in ("loop", "body", "next", "after"))
    names = dict(body.names)
    with f.repeated(head):
        index = f.value(f"load i64, ptr {counter}")
        f.branch(_goes_on(body, Number(INT64, (index,)), stop, step).part, inner, after)
        f.begin(inner)
        assert isinstance(node.target, ast.Name)
        body.set(node.target.id, Number(INT64, (index,)))
        body.loops.append((following, after))
        body.run(node.body)
        body.loops.pop()
        f.jump(following)
        f.begin(following)
        more = f.value(f"add i64 {index}, {step.part}")
        f.effect(f"store i64 {more}, ptr {counter}")
        f.jump(head)
    body.names = names
    f.begin(after)


def _goes_on(body: FunctionBody, index: Number, stop: Number, step: Number) -> Number:
    """Whether an index is in a range; in one of step 0 none is."""
    f = body.f
    rising = do.compare(f, "<", index, stop)
    if step.literal is not None and step.literal > 0:
        return rising
    falling = do.binary(
        f, "&", do.compare(f, ">", index, stop), do.compare(f, "<", step, integer(0))
    )
    return do.select(f, do.compare(f, ">", step, integer(0)), rising, falling)


# --------------------------------------------------------------------------- in lanes where apart


def _written_in_lanes_where_apart(
    body: FunctionBody, node: ast.For, start: Number, stop: Number, near: NearParts
) -> bool:
    """Write a loop in lanes and as it stands, for rows of an array that are near each other."""
    f = body.f
    known = {a.data for a in body.names.values() if isinstance(a, Array)}
    if not known.issuperset(base for pair in near.distances for base in pair):
        return False
    apart = "true"
    for (a, b), distance in near.distances.items():
        x, y = (f.pure(f"ptrtoint ptr {p} to i64") for p in (a, b))
        difference = f.pure(f"sub i64 {x}, {y}")
        beyond = f.pure(f"add i64 {difference}, {distance - 1}")
        far = f.pure(f"icmp uge i64 {beyond}, {2 * distance - 1}")
        apart = f.pure(f"and i1 {apart}, {far}")
    lanes, plain, after = (f.label(x) for x in ("apart", "near", "after"))
    f.branch(apart, lanes, plain)
    names = dict(body.names)
    f.begin(lanes)
    with f.inside():
        write_in_lanes(body, node, start, stop, apart=True)
        f.jump(after)
    body.names = dict(names)
    f.begin(plain)
    with f.inside():
        _plain(body, node, start, stop, integer(1))
        f.jump(after)
    body.names = names
    f.begin(after)
    return True


# ----------------------------------------------------------------------------------------- threads


def _shared(body: FunctionBody, node: ast.For, bounds: tuple[Number, Number, Number]) -> None:
    """A loop whose iterations are tasks: its body becomes a function of the task's number."""
    f = body.f
    start, stop, step = bounds
    if start.literal != 0 or step.literal != 1:
        raise Unsupported("prange from another number than 0")
    assert isinstance(node.target, ast.Name)
    taken = sorted({name for s in node.body for name in reads(s)})
    changed = set(assigned(node.body))
    if changed & read_first(node.body):
        raise Unsupported("a sum over the iterations of prange")
    given: dict[str, Value] = {}
    for name in taken:
        if name not in changed and (name in body.names or name in body.slots):
            value = body.get(name)
            if isinstance(value, Number | Array):
                given[name] = value
    name = f.module.unique("task")
    operands = [pair for value in given.values() for pair in flatten(value, f)]
    context = "{ ptr" + "".join(f", {kind}" for kind, _ in operands) + " }"
    memory = f.slot(context)
    for k, (kind, text) in enumerate([("ptr", f.failed), *operands]):
        pointer = f.value(f"getelementptr {context}, ptr {memory}, i32 0, i32 {k}")
        f.effect(f"store {kind} {text}, ptr {pointer}")
    _write_task(body, node, name, given, context)
    launch = f.module.declare("numgrad_parallel_for", "i32", ["ptr", "ptr", "i64"])
    f.value(f"call i32 {launch}(ptr @{name}, ptr {memory}, i64 {stop.part})")
    leave_if_failed(body)


def _write_task(
    body: FunctionBody, node: ast.For, name: str, given: dict[str, Value], context: str
) -> None:
    module = body.f.module
    f = FunctionWriter(module, name, [("i64", "%task"), ("ptr", "%context")])
    inner = body.separate_body(f, body.function)
    texts = []
    for value in given.values():
        texts += flatten(value, body.f)
    loaded = []
    for k, kind in enumerate(["ptr", *(kind for kind, _ in texts)]):
        pointer = f.pure(f"getelementptr {context}, ptr %context, i32 0, i32 {k}")
        loaded.append(f.pure(f"load {kind}, ptr {pointer}"))
    f.failed = loaded.pop(0)
    fixed: dict[str, Value] = {
        k: _with_literals(rebuilt(value, loaded), value) for k, value in given.items()
    }
    inner.variables = body.variables - set(fixed)
    inner.names.update(fixed)
    for key, value in body.names.items():
        if isinstance(value, Known | tuple):
            inner.names.setdefault(key, value)
    assert isinstance(node.target, ast.Name)
    inner.set(node.target.id, Number(INT64, ("%task",)))
    inner.run(node.body)
    result, _ = inner.finish()
    if result != "void":
        raise Unsupported("a result of a task")
    module.functions.append(f.text("void"))


def _with_literals(value: Value, like: Value) -> Value:
    """A value whose lengths, where those of a like one are known numbers, are these."""
    if not isinstance(value, Array) or not isinstance(like, Array):
        return like if isinstance(like, Number) and like.literal is not None else value
    pairs = zip(value.shape, like.shape, strict=True)
    shape = tuple([own if n.literal is None else n for own, n in pairs])
    return replace(value, shape=shape)
