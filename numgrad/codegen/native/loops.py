"""Loops over ranges: in lanes, as they stand, or shared by threads."""

from __future__ import annotations

import ast
from typing import Any

from numgrad.codegen.native import arithmetic as do
from numgrad.codegen.native.calls import flatten, leave_if_failed, rebuilt
from numgrad.codegen.native.function import FunctionBody
from numgrad.codegen.native.ir import FunctionWriter, Unsupported
from numgrad.codegen.native.lanes import write_in_lanes
from numgrad.codegen.native.source import PRANGE
from numgrad.codegen.native.syntax import assigned, is_straight, read_first, reads
from numgrad.codegen.native.values import (
    INT64,
    Array,
    Known,
    NearParts,
    NotVector,
    Number,
    Value,
    integer,
)


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
        except NotVector:
            pass
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
        place = f.value(f"getelementptr {context}, ptr {memory}, i32 0, i32 {k}")
        f.effect(f"store {kind} {text}, ptr {place}")
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
        place = f.pure(f"getelementptr {context}, ptr %context, i32 0, i32 {k}")
        loaded.append(f.pure(f"load {kind}, ptr {place}"))
    f.failed = loaded.pop(0)
    fixed: dict[str, Value] = {k: rebuilt(value, loaded) for k, value in given.items()}
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
