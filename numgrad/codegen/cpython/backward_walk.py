"""The walk of a backward in machine code, from one node that Python has to see to to the next.

Note [Advance]
--------------
Most nodes of most graphs have no hooks, gave one result, kept Tensors, arrays and numbers, and call
one kernel of one thread: ``steps`` of their plan says which (Note [Launches] in ``records``).
``advance`` does such nodes one after the other: unpacks what they kept, allocates gradients, calls
the kernel, frees what was kept, and delivers. It does what the loop of ``autograd.engine.walk``
does and nothing else; where it would have to do anything else, it returns the place of the node to
that loop, which sees to it and calls it again. It does so too after ``MOST`` nodes, so that signals
are seen and other threads get their turn.

``advance(waiting, heap, deliver, edges, gradients, owned, passed, retain)`` delivers ``gradients``
along ``edges`` first; the first two are those of the ``Queue``, ``deliver`` adds what it leaves to
Python. It returns ``[node, gradient, owned]``, or None at the end of the walk.
"""

from __future__ import annotations

from numgrad.codegen.cpython import memory_versions, offsets, records
from numgrad.codegen.cpython.c_api import ObjectTable

MOST = 1000
"""Nodes after which Python has its turn."""


def text(table: ObjectTable, small: int) -> str:
    """The text of ``advance``.

    Parameters
    ----------
    table
        With the classes ``TENSOR``, ``PARAMETER``, ``NODE``, ``VERSION``, and ``ELEMENTWISE`` and
        ``AXIS`` of plans, whose slots are found by name, ``ARRAY``, ``FLOAT``, ``INT``, ``TUPLE``;
        the objects ``NONE``, ``TRUE``, ``FALSE``; the functions ``PUSH`` and ``POP`` of a heap, and
        ``ADD`` of arrays.
    small
        Elements up to which ``ADD`` adds gradients; others are left to Python.
    """
    o, n = offsets.slots(table.objects["TENSOR"]), offsets.slots(table.objects["NODE"])
    elementwise, axis = (offsets.slots(table.objects[k])["steps"] for k in ("ELEMENTWISE", "AXIS"))
    x, s = offsets.FIELDS, {name: 8 * k for k, name in enumerate(records.STEP)}
    of = {name: 8 * k for k, name in enumerate(records.OPERAND)}
    operands, width = 8 * len(records.STEP), 8 * len(records.OPERAND)
    return f"""\
from numba import int32, int64
from numgrad.codegen.intrinsics import peek
from numgrad.codegen.cpython.objects import poke, scratch, call_packed, keep, release
from numgrad.codegen.cpython.objects import call_python, new_int, as_float, as_int, low_bits
from numgrad.codegen.cpython.objects import error_set, forget_error, no_memory, new_array
from numgrad.codegen.cpython.objects import size_of_list, size_of, item_of, listed
from numgrad.codegen.cpython.objects import set_listed, new_list, looked_up, put_in, take_out
from numgrad.codegen.cpython.objects import contains, negative

def same(x, own, array_type):
    # whether an object is a contiguous array of the dtype and shape that words say
    if x == 0:
        return 0
    if peek(int64, x + {x["type"]}) != array_type:
        return 0
    if peek(int32, x + {x["flags"]}) & {offsets.C_CONTIGUOUS} == 0:
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

{memory_versions.is_current(table)}
def is_tuple(context, x, size):
    # whether an object, or none where nobody has initialised it, is a tuple of that size
    if x == 0:
        return 0
    if peek(int64, x + {x["type"]}) != {table["TUPLE"]}:
        return 0
    if peek(int64, x + {offsets.SIZE}) != size:
        return 0
    return 1

def filled(context, node, g, step, slots):
    # put what goes into a kernel into its slots; 0 if it is not what the kernel is for
    array_type = {table["ARRAY"]}
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
        value = peek(int64, saved + {offsets.TUPLE - 8} + 8 * k)
        own = step + {operands} + {width} * k
        slot = slots + 8 * peek(int64, own + {of["place"]})
        kind = peek(int64, value + {x["type"]})
        if peek(int64, own + {of["kind"]}) == {records.ARRAY}:
            if kind == {table["TENSOR"]} or kind == {table["PARAMETER"]}:
                if peek(int64, value + {o["_memory"]}) != {table["NONE"]}:
                    if is_current(context, node, peek(int64, value + {o["_memory"]})) == 0:
                        return 0
                value = peek(int64, value + {o["_array"]})
            if same(value, own, array_type) == 0:
                return 0
            poke(peek(int64, value + {x["data"]}), slot)
        else:
            if kind != {table["FLOAT"]} and kind != {table["INT"]}:
                return 0
            real = as_float(value)
            if real == -1.0:
                if error_set() != 0:
                    forget_error()
                    return 0
            poke(real, slot)
        k += 1
    return 1

def release_all(gradients, count):
    # give up gradients
    k = 0
    while k < count:
        release(peek(int64, gradients + 8 * k))
        k += 1
    return 0

def computed(context, node, g, step, gradients):
    # put what is computed into ``gradients``; bits of those that nobody else holds, -1 where Python
    # is to see to the node, -2 with an error
    none, flags = 0, int32(0)
    slots = scratch({records.MOST_SLOTS})
    k = 0
    while k < {records.MOST_SLOTS}:
        poke(none, slots + 8 * k)
        k += 1
    # making an array starts no collection of garbage, so these values stay
    if filled(context, node, g, step, slots) == 0:
        return -1
    inputs, results = peek(int64, step + {s["inputs"]}), peek(int64, step + {s["results"]})
    owned, bit = 0, 1
    k = 0
    while k < results:
        own = step + {operands} + {width} * (inputs + k)
        kind, result = peek(int64, own + {of["kind"]}), int64(0)
        if kind == {records.GIVEN_ON}:
            keep(g)
            result = g
        elif kind == {records.ARRAY}:
            dtype = peek(int64, own + {of["dtype"]})
            keep(dtype)
            rank = int32(peek(int64, own + {of["rank"]}))
            result = new_array(
                {table["ARRAY"]}, dtype, rank, own + {of["length0"]}, none, none, flags, none
            )
            if result == 0:
                release_all(gradients, k)
                return -2
            place = peek(int64, own + {of["place"]})
            poke(peek(int64, result + {x["data"]}), slots + 8 * place)
            owned += bit
        poke(result, gradients + 8 * k)
        bit += bit
        k += 1
    packed = peek(int64, step + {s["packed"]})
    if packed != 0:
        if call_packed(packed, slots) != 0:
            release_all(gradients, results)
            no_memory()
            return -2
    return owned

def step_of(context, node, passed):
    # the record of a node's backward; 0 where it is no common case, or a slot is empty
    none = {table["NONE"]}
    plan, mask = peek(int64, node + {n["call"]}), peek(int64, node + {n["mask"]})
    if peek(int64, node + {n["sequence"]}) == 0 or plan == 0 or mask == 0:
        return 0
    if peek(int64, node + {n["extras"]}) != none or peek(int64, node + {n["outputs"]}) != none:
        return 0
    if passed != none:
        if contains(passed, peek(int64, node + {n["sequence"]})) != 1:
            return 0
    kind = peek(int64, plan + {x["type"]})
    if kind == {table["ELEMENTWISE"]}:
        steps = peek(int64, plan + {elementwise})
    elif kind == {table["AXIS"]}:
        steps = peek(int64, plan + {axis})
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
    if rank == 0 or total > {small}:
        return 0
    return 1

def added(context, place, g, owned):
    # add to what waits at a place; 0 if it went well
    a, given, count = listed(place, 1), scratch(4), 3
    first, second = a, g
    if listed(place, 2) != {table["TRUE"]}:
        if owned == 0:
            count = 2
        else:
            first, second = g, a
    poke(first, given)
    poke(second, given + 8)
    poke(first, given + 16)
    total = call_python({table["ADD"]}, given, count, 0)
    if total == 0:
        return 1
    set_listed(place, 1, total)
    keep({table["TRUE"]})
    set_listed(place, 2, {table["TRUE"]})
    return 0

def delivered(context, args, edge, g, owned):
    # let a gradient, or none at a leaf, wait at the end of an edge; 0 if it went well, and 2 if the
    # walk is then to go on in Python, since hooks may run
    waiting, given, array_type = peek(int64, args), scratch(4), {table["ARRAY"]}
    flag = {table["FALSE"]}
    if owned != 0:
        flag = {table["TRUE"]}
    kind = peek(int64, edge + {x["type"]})
    simple, place, key = 0, int64(0), int64(0)
    if kind == {table["NODE"]}:
        if peek(int64, edge + {n["sequence"]}) != 0:
            simple = 1
    elif kind == {table["TENSOR"]} or kind == {table["PARAMETER"]}:
        if peek(int64, edge + {o["_extra"]}) == {table["NONE"]}:
            simple = 1
    if simple != 0:
        if g == {table["NONE"]}:
            return 0
        if kind == {table["NODE"]}:
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
        if answer == {table["TRUE"]}:
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
        if failed == 0 and kind == {table["NODE"]}:
            poke(peek(int64, args + 8), given)
            poke(key, given + 8)
            answer = call_python({table["PUSH"]}, given, 2, 0)
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
    none = {table["NONE"]}
    if edge == none:
        return 0
    kind, waits = peek(int64, edge + {x["type"]}), peek(int64, only)
    if g == none or g == 0:
        if kind == {table["NODE"]} or kind == {table["TUPLE"]}:
            return 0
        return noted(only, delivered(context, args, edge, none, owned))
    if kind == {table["NODE"]} and waits == 0:
        if size_of_list(peek(int64, args + 8)) == 0:
            keep(edge)
            keep(g)
            poke(edge, only)
            poke(g, only + 8)
            poke(owned, only + 16)
            return 0
    if waits != 0:
        if kind == {table["NODE"]} or kind == {table["TUPLE"]}:
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

def walked(context, args, only, gradients):
    # the place of a node that is left to Python, None at the end, or 0
    waiting, heap, passed = peek(int64, args), peek(int64, args + 8), peek(int64, args + 48)
    none, given, left = {table["NONE"]}, scratch(2), {MOST}
    while left > 0:
        if peek(int64, only + 24) != 0:
            left = 1
        node, g, mine = peek(int64, only), peek(int64, only + 8), {table["FALSE"]}
        if node == 0:
            if size_of_list(heap) == 0:
                keep(none)
                return none
            poke(heap, given)
            key = call_python({table["POP"]}, given, 1, 0)
            if key == 0:
                return 0
            place = looked_up(waiting, key)
            keep(place)
            take_out(waiting, key)
            release(key)
            node, g = listed(place, 0), listed(place, 1)
            if peek(int64, g + {x["type"]}) != {table["ARRAY"]}:
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
                mine = {table["TRUE"]}
        step, owned, left = step_of(context, node, passed), int64(-1), left - 1
        if step != 0 and left > 0:
            keep(step)
            owned = computed(context, node, g, step + {offsets.BYTES}, gradients)
            release(step)
        if owned == -1:
            return listing(node, g, mine)
        failed, results = int64(0), int64(0)
        if owned == -2:
            failed = int64(1)
        else:
            edges, saved = peek(int64, node + {n["edges"]}), peek(int64, node + {n["saved"]})
            keep(edges)
            results = peek(int64, edges + {offsets.SIZE})
            retain = peek(int64, args + 56)
            if retain != {table["TRUE"]} and peek(int64, saved + {offsets.SIZE}) != 0:
                keep(none)
                poke(none, node + {n["saved"]})
                release(saved)
        k = 0
        while k < results:
            g_k, edge = peek(int64, gradients + 8 * k), peek(int64, edges + {offsets.TUPLE} + 8 * k)
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
    context, only = peek(int64, me + {offsets.BYTES}), scratch(4)
    gradients = scratch({records.MOST_RESULTS})
    poke(0, only)
    poke(0, only + 24)
    answer = int64(0)
    if begun(context, args, only) == 0:
        answer = walked(context, args, only, gradients)
    if answer == 0 and peek(int64, only) != 0:
        release(peek(int64, only))
        release(peek(int64, only + 8))
    return answer
"""
