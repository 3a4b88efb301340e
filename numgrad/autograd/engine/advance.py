"""The walk of a backward in machine code, from one node that is out of the ordinary to the next.

Note [Advance]
--------------
Most nodes of most graphs have no hooks, gave one result, kept Tensors, arrays and numbers, and call
one kernel of one thread: ``steps`` of their plan says which (Note [Launches]
in ``codegen.launches``). ``advance`` does such nodes one after the other: unpacks what they kept,
allocates gradients, calls the kernel, frees what was kept, and delivers. It does what the loop of
``walk`` does and nothing else; where it would have to do anything else, it returns the place of the
node to that loop, which sees to it and calls it again. It does so too after ``MOST`` nodes, so that
signals are seen and other threads get their turn.

``advance(waiting, heap, deliver, edges, gradients, owned, passed, retain)`` delivers ``gradients``
along ``edges`` first; the first two are those of the ``Queue``, ``deliver`` adds what it leaves to
Python. It returns ``[node, gradient, owned]``, or None at the end of the walk.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from heapq import heappop, heappush
from typing import Any

import numpy as np

from numgrad.autograd.node import Node
from numgrad.autograd.variable import Parameter, Tensor, Version
from numgrad.codegen import hot, launches
from numgrad.core.axis import AxisPlan
from numgrad.core.elementwise import ElementwisePlan

SMALL = 16384
"""Elements up to which NumPy's addition is faster than choosing among our kernels."""
MOST = 1000
"""Nodes after which Python has its turn."""
_OBJECTS = {
    "TENSOR": Tensor, "PARAMETER": Parameter, "NODE": Node, "ARRAY": np.ndarray, "FLOAT": float,
    "INT": int, "NONE": None, "TRUE": True, "FALSE": False, "TUPLE": tuple, "PUSH": heappush,
    "POP": heappop, "ADD": np.add, "ELEMENTWISE": ElementwisePlan, "AXIS": AxisPlan,
    "VERSION": Version,
}  # fmt: skip
_context = np.array([*map(id, _OBJECTS.values())])


def text() -> str:
    """What ``advance`` does."""
    from numgrad.codegen.native.builtin import offsets
    from numgrad.codegen.native.layout import BYTES, SIZE, TUPLE
    from numgrad.codegen.native.layout import FIELDS as x

    o, v, n = (offsets(cls) for cls in (Tensor, Version, Node))
    steps = {kind: offsets(kind)["steps"] for kind in (ElementwisePlan, AxisPlan)}
    s = {name: 8 * k for k, name in enumerate(launches.STEP)}
    of = {name: 8 * k for k, name in enumerate(launches.OPERAND)}
    known = {name: f"peek(int64, context + {8 * k})" for k, name in enumerate(_OBJECTS)}
    operands, width = 8 * len(launches.STEP), 8 * len(launches.OPERAND)
    return f"""\
from numba import int32, int64
from numgrad.codegen.intrinsics import peek
from numgrad.codegen.objects import poke, scratch, call_packed, keep, release, call_python, new_int
from numgrad.codegen.objects import as_float, error_set, forget_error, no_memory, new_array
from numgrad.codegen.objects import size_of_list, size_of, item_of, listed, set_listed, new_list
from numgrad.codegen.objects import looked_up, put_in, take_out, contains, negative
from numgrad.codegen.objects import as_int, low_bits

def same(x, own, array_type):
    # whether an object is a contiguous array of the dtype and shape that words say
    if x == 0:
        return 0
    if peek(int64, x + {x["type"]}) != array_type:
        return 0
    if peek(int32, x + {x["flags"]}) & 1 == 0:
        return 0
    if peek(int64, x + {x["dtype"]}) != peek(int64, own + {of["dtype"]}):
        return 0
    rank = int64(peek(int32, x + {x["rank"]}))
    if rank != peek(int64, own + {of["rank"]}):
        return 0
    lengths, a = peek(int64, x + {x["lengths"]}), 0
    while a < rank:
        if peek(int64, lengths + 8 * a) != peek(int64, own + {of["length0"]} + 8 * a):
            return 0
        a += 1
    return 1

def unchanged(context, node, version):
    # whether memory that has a version, or is that of a view, is as it was when a node saved it
    if version == 0:
        return 0
    kind = peek(int64, version + {x["type"]})
    if kind == {known["TENSOR"]} or kind == {known["PARAMETER"]}:
        version = peek(int64, version + {o["_memory"]})
        if version == {known["NONE"]}:
            return 1
        if version == 0:
            return 0
    if peek(int64, version + {x["type"]}) != {known["VERSION"]}:
        return 0
    last = peek(int64, version + {v["last"]})
    if last == 0:
        return 0
    written = as_int(last)
    if written > as_int(peek(int64, node + {n["sequence"]})):
        return 0
    return 1

def is_tuple(context, x, size):
    # whether an object, or none where nobody has initialised it, is a tuple of that size
    if x == 0:
        return 0
    if peek(int64, x + {x["type"]}) != {known["TUPLE"]}:
        return 0
    if peek(int64, x + {SIZE}) != size:
        return 0
    return 1

def filled(context, node, g, step, slots):
    # put what goes into a kernel into its slots; 0 if it is not what the kernel is for
    array_type = {known["ARRAY"]}
    own = step + {operands}
    if same(g, own, array_type) == 0:
        return 0
    inputs, saved = peek(int64, step + {s["inputs"]}), peek(int64, node + {n["saved"]})
    if is_tuple(context, saved, inputs - 1) == 0:
        return 0
    if is_tuple(context, peek(int64, node + {n["edges"]}), peek(int64, step + {s["results"]})) == 0:
        return 0
    given = step + {operands} + {width} * (inputs + peek(int64, step + {s["results"]}))
    number, k = peek(int64, step + {s["slots"]}), 0
    while k < number:
        word = peek(int64, given + 8 * k)
        if word != 0:
            poke(word, slots + 8 * k)
        k += 1
    poke(peek(int64, g + {x["data"]}), slots + 8 * peek(int64, own + {of["place"]}))
    k = 1
    while k < inputs:
        value = peek(int64, saved + {TUPLE - 8} + 8 * k)
        own = step + {operands} + {width} * k
        slot = slots + 8 * peek(int64, own + {of["place"]})
        kind = peek(int64, value + {x["type"]})
        if peek(int64, own + {of["kind"]}) == {launches.ARRAY}:
            if kind == {known["TENSOR"]} or kind == {known["PARAMETER"]}:
                if peek(int64, value + {o["_memory"]}) != {known["NONE"]}:
                    if unchanged(context, node, peek(int64, value + {o["_memory"]})) == 0:
                        return 0
                value = peek(int64, value + {o["_array"]})
            if same(value, own, array_type) == 0:
                return 0
            poke(peek(int64, value + {x["data"]}), slot)
        else:
            if kind != {known["FLOAT"]} and kind != {known["INT"]}:
                return 0
            real = as_float(value)
            if real == -1.0:
                if error_set() != 0:
                    forget_error()
                    return 0
            poke(real, slot)
        k += 1
    return 1

def let_go(found, count):
    # give up gradients
    k = 0
    while k < count:
        release(peek(int64, found + 8 * k))
        k += 1
    return 0

def computed(context, node, g, step, found):
    # put gradients into ``found``; bits of those that nobody else holds, -1 where Python is to see
    # to the node, -2 with an error
    none, flags = 0, int32(0)
    slots = scratch({launches.MOST_SLOTS})
    k = 0
    while k < {launches.MOST_SLOTS}:
        poke(none, slots + 8 * k)
        k += 1
    # what is looked at stays so: to make an array starts no collection of garbage
    if filled(context, node, g, step, slots) == 0:
        return -1
    inputs, results = peek(int64, step + {s["inputs"]}), peek(int64, step + {s["results"]})
    owned, bit = 0, 1
    k = 0
    while k < results:
        own = step + {operands} + {width} * (inputs + k)
        kind, result = peek(int64, own + {of["kind"]}), int64(0)
        if kind == {launches.GIVEN_ON}:
            keep(g)
            result = g
        elif kind == {launches.ARRAY}:
            dtype = peek(int64, own + {of["dtype"]})
            keep(dtype)
            rank = int32(peek(int64, own + {of["rank"]}))
            result = new_array(
                {known["ARRAY"]}, dtype, rank, own + {of["length0"]}, none, none, flags, none
            )
            if result == 0:
                let_go(found, k)
                return -2
            place = peek(int64, own + {of["place"]})
            poke(peek(int64, result + {x["data"]}), slots + 8 * place)
            owned += bit
        poke(result, found + 8 * k)
        bit += bit
        k += 1
    packed = peek(int64, step + {s["packed"]})
    if packed != 0:
        if call_packed(packed, slots) != 0:
            let_go(found, results)
            no_memory()
            return -2
    return owned

def step_of(context, node, passed):
    # what is known of the backward of a node in the ordinary, else 0; so too where a slot is empty
    none = {known["NONE"]}
    plan, mask = peek(int64, node + {n["call"]}), peek(int64, node + {n["mask"]})
    if peek(int64, node + {n["sequence"]}) == 0 or plan == 0 or mask == 0:
        return 0
    if peek(int64, node + {n["extras"]}) != none or peek(int64, node + {n["outputs"]}) != none:
        return 0
    if passed != none:
        if contains(passed, peek(int64, node + {n["sequence"]})) != 1:
            return 0
    kind = peek(int64, plan + {x["type"]})
    if kind == {known["ELEMENTWISE"]}:
        steps = peek(int64, plan + {steps[ElementwisePlan]})
    elif kind == {known["AXIS"]}:
        steps = peek(int64, plan + {steps[AxisPlan]})
    else:
        return 0
    if steps == 0:
        return 0
    step = looked_up(steps, mask)
    if step == none:
        return 0
    return step

def listing(node, g, owned):
    # [node, g, owned], whose references it takes over, or 0
    place = new_list(3)
    if place == 0:
        release(node)
        release(g)
        return 0
    keep(owned)
    set_listed(place, 0, node)
    set_listed(place, 1, g)
    set_listed(place, 2, owned)
    return place

def is_small(a, array_type):
    # whether an object is an array with axes and few elements
    if peek(int64, a + {x["type"]}) != array_type:
        return 0
    rank = int64(peek(int32, a + {x["rank"]}))
    total, lengths, k = 1, peek(int64, a + {x["lengths"]}), 0
    while k < rank:
        total = total * peek(int64, lengths + 8 * k)
        k += 1
    if rank == 0 or total > {SMALL}:
        return 0
    return 1

def added(context, place, g, owned):
    # add to what waits at a place; 0 if it went well
    a, given, count = listed(place, 1), scratch(4), 3
    first, second = a, g
    if listed(place, 2) != {known["TRUE"]}:
        if owned == 0:
            count = 2
        else:
            first, second = g, a
    poke(first, given)
    poke(second, given + 8)
    poke(first, given + 16)
    total = call_python({known["ADD"]}, given, count, 0)
    if total == 0:
        return 1
    set_listed(place, 1, total)
    keep({known["TRUE"]})
    set_listed(place, 2, {known["TRUE"]})
    return 0

def delivered(context, args, edge, g, owned):
    # let a gradient, or none at a leaf, wait at the end of an edge; 0 if it went well, and 2 if the
    # walk is then to go on in Python, since hooks may run
    waiting, given, array_type = peek(int64, args), scratch(4), {known["ARRAY"]}
    flag = {known["FALSE"]}
    if owned != 0:
        flag = {known["TRUE"]}
    kind = peek(int64, edge + {x["type"]})
    simple, place, key = 0, int64(0), int64(0)
    if kind == {known["NODE"]}:
        if peek(int64, edge + {n["sequence"]}) != 0:
            simple = 1
    elif kind == {known["TENSOR"]} or kind == {known["PARAMETER"]}:
        if peek(int64, edge + {o["_extra"]}) == {known["NONE"]}:
            simple = 1
    if simple != 0:
        if g == {known["NONE"]}:
            return 0
        if kind == {known["NODE"]}:
            key = negative(peek(int64, edge + {n["sequence"]}))
        else:
            key = new_int(edge)
        if key == 0:
            return 1
        place = looked_up(waiting, key)
        if place != 0:
            simple = is_small(g, array_type) & is_small(listed(place, 1), array_type)
    if simple == 0:
        release(key)
        poke(edge, given)
        poke(g, given + 8)
        poke(flag, given + 16)
        answer = call_python(peek(int64, args + 16), given, 3, 0)
        release(answer)
        if answer == 0:
            return 1
        if answer == {known["TRUE"]}:
            return 2
        return 0
    if place != 0:
        release(key)
        return added(context, place, g, owned)
    keep(edge)
    keep(g)
    place = listing(edge, g, flag)
    failed = int32(1)
    if place != 0:
        failed = put_in(waiting, key, place)
        release(place)
        if failed == 0 and kind == {known["NODE"]}:
            poke(peek(int64, args + 8), given)
            poke(key, given + 8)
            answer = call_python({known["PUSH"]}, given, 2, 0)
            release(answer)
            if answer == 0:
                failed = int32(1)
    release(key)
    return int64(failed)

def noted(only, answer):
    # take note that Python is to go on; 0 if it went well
    if answer == 2:
        poke(1, only + 24)
        return 0
    return answer

def routed(context, args, only, edge, g, owned):
    # send a gradient, which may be none, along an edge; 0 if it went well
    none = {known["NONE"]}
    if edge == none:
        return 0
    kind, waits = peek(int64, edge + {x["type"]}), peek(int64, only)
    if g == none or g == 0:
        if kind == {known["NODE"]} or kind == {known["TUPLE"]}:
            return 0
        return noted(only, delivered(context, args, edge, none, owned))
    if kind == {known["NODE"]} and waits == 0:
        if size_of_list(peek(int64, args + 8)) == 0:
            keep(edge)
            keep(g)
            poke(edge, only)
            poke(g, only + 8)
            poke(owned, only + 16)
            return 0
    if waits != 0:
        if kind == {known["NODE"]} or kind == {known["TUPLE"]}:
            other = peek(int64, only + 8)
            poke(0, only)
            failed = delivered(context, args, waits, other, peek(int64, only + 16))
            release(waits)
            release(other)
            if failed != 0:
                return 1
    return noted(only, delivered(context, args, edge, g, owned))

def begun(context, args, only):
    # send the gradients that the walk has along the edges that it has; 0 if it went well
    edges, gradients = peek(int64, args + 24), peek(int64, args + 32)
    owned, count, k = low_bits(peek(int64, args + 40)), size_of(edges), 0
    if size_of(gradients) < count:
        count = size_of(gradients)
    if count < 0:  # one of them has no length, which is an error by now
        return 1
    while k < count:
        edge, g = item_of(edges, k), item_of(gradients, k)
        failed, mine = int64(1), 0
        if k < 64:  # behind those bits none counts as owned
            mine = owned >> k & 1
        if edge != 0 and g != 0:
            failed = routed(context, args, only, edge, g, mine)
        release(edge)
        release(g)
        if failed != 0:
            return 1
        k += 1
    return 0

def walked(context, args, only, found):
    # the place of a node that is out of the ordinary, None at the end, or 0
    waiting, heap, passed = peek(int64, args), peek(int64, args + 8), peek(int64, args + 48)
    none, given, left = {known["NONE"]}, scratch(2), {MOST}
    while left > 0:
        if peek(int64, only + 24) != 0:
            left = 1
        node, g, mine = peek(int64, only), peek(int64, only + 8), {known["FALSE"]}
        if node == 0:
            if size_of_list(heap) == 0:
                keep(none)
                return none
            poke(heap, given)
            key = call_python({known["POP"]}, given, 1, 0)
            if key == 0:
                return 0
            place = looked_up(waiting, key)
            keep(place)
            take_out(waiting, key)
            release(key)
            node, g = listed(place, 0), listed(place, 1)
            if peek(int64, g + {x["type"]}) != {known["ARRAY"]}:
                return place
            if step_of(context, node, passed) == 0:
                return place
            mine = listed(place, 2)
            keep(node)
            keep(g)
            release(place)
        else:
            poke(0, only)
            if peek(int64, only + 16) != 0:
                mine = {known["TRUE"]}
        step, owned, left = step_of(context, node, passed), int64(-1), left - 1
        if step != 0 and left > 0:
            keep(step)
            owned = computed(context, node, g, step + {BYTES}, found)
            release(step)
        if owned == -1:
            return listing(node, g, mine)
        failed, results = int64(0), int64(0)
        if owned == -2:
            failed = int64(1)
        else:
            edges, saved = peek(int64, node + {n["edges"]}), peek(int64, node + {n["saved"]})
            keep(edges)
            results = peek(int64, edges + {SIZE})
            if peek(int64, args + 56) != {known["TRUE"]} and peek(int64, saved + {SIZE}) != 0:
                keep(none)
                poke(none, node + {n["saved"]})
                release(saved)
        k = 0
        while k < results:
            g_k, edge = peek(int64, found + 8 * k), peek(int64, edges + {TUPLE} + 8 * k)
            if failed == 0:
                failed = routed(context, args, only, edge, g_k, owned >> k & 1)
            release(g_k)
            k += 1
        if owned != -2:
            release(edges)
        release(node)
        release(g)
        if failed != 0:
            return 0
    return 0

def kernel(me, args, count, names):
    context, only = peek(int64, me + {BYTES}), scratch(4)
    found = scratch({launches.MOST_RESULTS})
    poke(0, only)
    poke(0, only + 24)
    answer = int64(0)
    if begun(context, args, only) == 0:
        answer = walked(context, args, only, found)
    if answer == 0 and peek(int64, only) != 0:
        release(peek(int64, only))
        release(peek(int64, only + 8))
    return answer
"""


@cache
def _machine_code() -> Any:
    from numgrad.codegen.native.builtin import Builtin  # LLVM comes with the first kernel

    return Builtin("advance", text())


advance: Callable[..., Any] | None = None
"""The function, when it is in use: Note [Hot paths] in ``codegen.hot``."""


def _install() -> None:
    global advance
    own = launches.Words.of([_context.ctypes.data], _context, _OBJECTS)
    advance = _machine_code().function("advance", own)


hot.waiting.append(hot.HotPath(lambda: _machine_code().cached, _install))
