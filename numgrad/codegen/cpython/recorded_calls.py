"""Calls of operations in machine code: the hot path without Python's interpreter.

Note [Recorder]
---------------
Most calls are of Tensors of contiguous arrays, and of Python numbers, whose plan calls one kernel
of one thread. The *recorder* does such a call: it finds the plan, allocates the result, calls the
kernel, and makes Node and Tensor. Everything else it leaves to the entry written in Python (Note
[Hot path] in ``tensors.entries``), which says what a call means; calls that are watched are left to
it too.

One text serves all operations. ``self`` of an operation's function says which one it is: it has
the entry, what is called where no record is, and a table with a place for each hash of dtypes and
shapes. There lies a *record*, what the recorder has to know of a plan, or that it is to leave the
plan to Python. Where there is none, or that of another plan, it is put there after the call
(``tensors.recorder``). Calls with parameters have no record, nor have views and operations of
other families. What is to be saved of memory that users can write to unseen goes through ``KEEP``.

Writes in place have functions of their own with the same records: the kernel's result is the memory
of the first operand, if nothing of it is part of a graph and no other operand lies across it.

Note [Wrapped Tensors]
----------------------
Another face of the package (``numgrad.torch``) has objects of a class of its own around Tensors.
Its calls take the same way, with one step before, which reads the Tensors of operands, and one
behind, which makes such an object of the result.
"""

from __future__ import annotations

from numgrad.codegen.cpython import memory_versions, offsets, records
from numgrad.codegen.cpython.c_api import ObjectTable
from numgrad.codegen.cpython.records import CALL, PLACES


def functions(table: ObjectTable) -> str:
    """The functions that calls consist of.

    Parameters
    ----------
    table
        With the classes ``TENSOR``, ``PARAMETER``, ``NODE``, ``VERSION``, whose slots are found by
        name, ``ARRAY``, ``FLOAT``, ``INT``, the objects ``NONE``, ``TRUE``, ``FALSE``, ``ZERO``,
        ``INFERENCE``; the functions ``KEEP``, what a node saves of a Tensor, and ``WRITTEN``, which
        counts a write to one; ``STATE``, whose attribute ``MODE`` says what the thread does,
        ``RECORDING`` and ``COMPUTING`` of what it may say; ``COUNTER``, which gives nodes their
        numbers. All calls are left to Python while the table's first word is not 0. With classes
        ``WRAPPER`` and ``WRAPPED_PARAMETER``: Note [Wrapped Tensors].
    """
    o, n = offsets.slots(table.objects["TENSOR"]), offsets.slots(table.objects["NODE"])
    x, at = offsets.FIELDS, {name: 8 * k for k, name in enumerate(CALL)}
    of = {name: 8 * k for k, name in enumerate(records.OPERAND)}
    operands, width = 8 * len(CALL), 8 * len(records.OPERAND)
    read, wrap = "", "return tensor"
    if "WRAPPER" in table.objects:
        inner = offsets.slots(table.objects["WRAPPER"])["_tensor"]
        read = f"""\
kind = peek(int64, x + {x["type"]})
        if kind == {table["WRAPPER"]} or kind == {table["WRAPPED_PARAMETER"]}:
            x = peek(int64, x + {inner})
            if x == 0:
                return 0
        """
        wrap = f"""\
wrapper = new_object({table["WRAPPER"]}, 0)
    if wrapper == 0:
        release(tensor)
        return 0
    poke(tensor, wrapper + {inner})
    return wrapper"""
    unwrapped = f"""\
def unwrapped(context, args, count, operands):
    # copy the operands, of wrappers their Tensors; 0 if nobody has initialised one
    k = 0
    while k < count:
        x = peek(int64, args + 8 * k)
        {read}poke(x, operands + 8 * k)
        k += 1
    return 1

def in_wrapper(context, tensor):
    # a new wrapper of a Tensor, whose reference it takes over, or 0; the Tensor where there is none
    {wrap}

"""
    return f"""\
from numba import int32, int64
from numgrad.codegen.intrinsics import peek
from numgrad.codegen.cpython.objects import poke, scratch, call_packed, keep, release
from numgrad.codegen.cpython.objects import attribute, call_python, new_object, new_tuple, new_int
from numgrad.codegen.cpython.objects import next_of, as_float, as_int, error_set, forget_error
from numgrad.codegen.cpython.objects import no_memory, new_array, listed

{memory_versions.may_be_saved(table)}
{unwrapped}def noted(context, x, bit, flags, strided):
    # add the dtype and shape of a Tensor to the code behind ``flags``, and its ``bit`` to those of
    # Tensors that require grad, at ``flags``, and that ``KEEP`` saves, behind it; 0 where Python is
    # to see to it, as to what is not contiguous unless it may be ``strided``
    array, memory = peek(int64, x + {o["_array"]}), peek(int64, x + {o["_memory"]})
    if array == 0 or memory == 0:  # nobody has initialised it
        return 0
    if memory != {table["NONE"]}:
        saved = may_be_saved(context, memory)
        if saved == 0:
            return 0
        if saved == {memory_versions.GUARDED}:
            poke(peek(int64, flags + 8) | bit, flags + 8)
    if peek(int64, array + {x["type"]}) != {table["ARRAY"]}:
        return 0
    rank, contiguous = int64(peek(int32, array + {x["rank"]})), 1
    if rank > {records.MOST_AXES}:
        return 0
    if peek(int32, array + {x["flags"]}) & {offsets.C_CONTIGUOUS} == 0:
        contiguous = 0
        if strided == 0:
            return 0
    code, lengths, a = peek(int64, flags + 16), peek(int64, array + {x["lengths"]}), 0
    code = code * 31 + (peek(int64, array + {x["dtype"]}) >> 4)
    while a < rank:
        code = code * 31 + peek(int64, lengths + 8 * a)
        if contiguous == 0:
            code = code * 31 + peek(int64, peek(int64, array + {x["strides"]}) + 8 * a)
        a += 1
    poke(code, flags + 16)
    requires = peek(int64, x + {o["_requires_grad"]})
    if requires == {table["TRUE"]}:
        if peek(int64, x + {o["_slot"]}) != {table["ZERO"]}:
            return 0
        if peek(int64, x + {o["_grad_fn"]}) == 0:
            return 0
        poke(peek(int64, flags) | bit, flags)
    elif requires != {table["FALSE"]}:  # anything else that may be true
        return 0
    return 1

def cleared(flags):
    # begin to note Tensors
    poke(0, flags)
    poke(0, flags + 8)
    poke(0, flags + 16)
    return 0

def place_at(flags):
    # the place for the code of what was noted
    code = peek(int64, flags + 16)
    return (code ^ (code >> 6) ^ (code >> 12)) & {PLACES - 1}

def place_of(context, args, count, flags):
    # a place by the operands' dtypes and shapes, or -1; at ``flags`` what ``noted`` leaves
    tensor, parameter = {table["TENSOR"]}, {table["PARAMETER"]}
    bit, tensors, k = 1, 0, 0
    cleared(flags)
    while k < count:
        x = peek(int64, args + 8 * k)
        kind = peek(int64, x + {x["type"]})
        if kind == tensor or kind == parameter:
            if noted(context, x, bit, flags, 0) == 0:
                return -1
            tensors += 1
        elif kind == {table["FLOAT"]} or kind == {table["INT"]}:
            poke(peek(int64, flags + 16) * 31 + (kind >> 4), flags + 16)
        else:
            return -1
        bit += bit
        k += 1
    if tensors == 0:
        return -1
    return place_at(flags)

def fits(context, args, count, record):
    # whether a record is that of these operands
    k = 0
    while k < count:
        x = peek(int64, args + 8 * k)
        kind = peek(int64, x + {x["type"]})
        own = record + {operands} + {width} * k
        if peek(int64, own + {of["kind"]}) == {records.ARRAY}:
            if kind == {table["FLOAT"]} or kind == {table["INT"]}:
                return 0
            array = peek(int64, x + {o["_array"]})
            rank = int64(peek(int32, array + {x["rank"]}))
            if peek(int64, array + {x["dtype"]}) != peek(int64, own + {of["dtype"]}):
                return 0
            if rank != peek(int64, own + {of["rank"]}):
                return 0
            lengths = peek(int64, array + {x["lengths"]})
            a = 0
            while a < rank:
                if peek(int64, lengths + 8 * a) != peek(int64, own + {of["length0"]} + 8 * a):
                    return 0
                a += 1
        elif kind != peek(int64, own + {of["dtype"]}):
            return 0
        k += 1
    return 1

def bytes_of(array):
    # how many bytes the elements of a contiguous array take
    total = peek(int64, peek(int64, array + {x["dtype"]}) + {offsets.ITEMSIZE})
    rank = int64(peek(int32, array + {x["rank"]}))
    lengths, a = peek(int64, array + {x["lengths"]}), 0
    while a < rank:
        total = total * peek(int64, lengths + 8 * a)
        a += 1
    return total

def target_of(context, args, count, record, flags, mode):
    # the array of the first operand, or 0 where Python is to write to it
    tensor, parameter = {table["TENSOR"]}, {table["PARAMETER"]}
    x = peek(int64, args)
    kind = peek(int64, x + {x["type"]})
    if kind != tensor and kind != parameter:
        return 0
    if mode == {table["RECORDING"]}:
        if peek(int64, flags) != 0:
            return 0
        memory = peek(int64, x + {o["_memory"]})
        kind = peek(int64, memory + {x["type"]})
        if kind == tensor or kind == parameter:
            if peek(int64, memory + {o["_requires_grad"]}) != {table["FALSE"]}:
                return 0
    target = peek(int64, x + {o["_array"]})
    if peek(int32, target + {x["flags"]}) & {offsets.WRITEABLE} == 0:
        return 0
    if peek(int64, target + {x["dtype"]}) != peek(int64, record + {at["dtype"]}):
        return 0
    rank = int64(peek(int32, target + {x["rank"]}))
    if rank != peek(int64, record + {at["rank"]}):
        return 0
    lengths, a = peek(int64, target + {x["lengths"]}), 0
    while a < rank:
        if peek(int64, lengths + 8 * a) != peek(int64, record + {at["length0"]} + 8 * a):
            return 0
        a += 1
    begin, size, k = peek(int64, target + {x["data"]}), bytes_of(target), 1
    while k < count:
        x = peek(int64, args + 8 * k)
        if peek(int64, record + {operands} + {width} * k + {of["kind"]}) == {records.ARRAY}:
            array = peek(int64, x + {o["_array"]})
            other, extent = peek(int64, array + {x["data"]}), bytes_of(array)
            if other < begin + size and begin < other + extent:
                if other != begin or extent != size:
                    return 0
                if peek(int64, array + {x["dtype"]}) != peek(int64, target + {x["dtype"]}):
                    return 0
        k += 1
    return target

def computed(context, args, count, record, target):
    # the array with the result, a new one or ``target``; 0 with an error, or without one where
    # Python is to see to it
    dtype = peek(int64, record + {at["dtype"]})
    rank = int32(peek(int64, record + {at["rank"]}))
    none, flags, out = 0, int32(0), target
    if target == 0:
        keep(dtype)
        out = new_array(
            {table["ARRAY"]}, dtype, rank, record + {at["length0"]}, none, none, flags, none
        )
        if out == 0:
            return 0
    else:
        keep(out)
    slots = scratch({records.MOST_SLOTS})
    given, k = record + {operands} + {width} * count, 0
    number = peek(int64, record + {at["slots"]})
    while k < number:
        poke(peek(int64, given + 8 * k), slots + 8 * k)
        k += 1
    k = 0
    while k < count:
        x = peek(int64, args + 8 * k)
        own = record + {operands} + {width} * k
        slot = slots + 8 * peek(int64, own + {of["place"]})
        if peek(int64, own + {of["kind"]}) == {records.ARRAY}:
            array = peek(int64, x + {o["_array"]})
            poke(peek(int64, array + {x["data"]}), slot)
        else:
            value = as_float(x)
            if value == -1.0:
                if error_set() != 0:
                    forget_error()
                    release(out)
                    return 0
            poke(value, slot)
        k += 1
    poke(peek(int64, out + {x["data"]}), slots + 8 * peek(int64, record + {at["result"]}))
    if call_packed(peek(int64, record + {at["packed"]}), slots) != 0:
        release(out)
        return no_memory()
    return out

def recorded(context, args, count, record, mask, guarded, out):
    # a new node, or 0
    none = {table["NONE"]}
    node = new_object({table["NODE"]}, 0)
    if node == 0:
        return 0
    plan = peek(int64, record + {at["plan"]})
    keep(plan)
    poke(plan, node + {n["call"]})
    keep(none)
    poke(none, node + {n["outputs"]})
    keep(none)
    poke(none, node + {n["extras"]})
    poke(new_int(mask), node + {n["mask"]})
    poke(next_of({table["COUNTER"]}), node + {n["sequence"]})
    edges = new_tuple(count)
    poke(edges, node + {n["edges"]})
    save_mask = peek(int64, record + {at["save_mask0"]} + 8 * mask)
    count_saved = (save_mask & 1) + (save_mask >> 1 & 1) + (save_mask >> 2 & 1)
    saved = new_tuple(count_saved + (save_mask >> 3 & 1))
    poke(saved, node + {n["saved"]})
    if edges == 0 or saved == 0 or peek(int64, node + {n["sequence"]}) == 0:
        release(node)
        return 0
    place, k = saved + {offsets.TUPLE}, 0
    while k < count:
        x = peek(int64, args + 8 * k)
        edge = none
        if mask >> k & 1:
            edge = peek(int64, x + {o["_grad_fn"]})
            if edge == none:
                edge = x
        keep(edge)
        poke(edge, edges + {offsets.TUPLE} + 8 * k)
        if save_mask >> k & 1:
            value = x
            if guarded >> k & 1:
                value = call_python({table["KEEP"]}, args + 8 * k, 1, 0)
                if value == 0:
                    release(node)
                    return 0
            else:
                keep(x)
            poke(value, place)
            place += 8
        k += 1
    if save_mask >> count & 1:
        keep(out)
        poke(out, place)
    return node

def wrapped(context, out, node, memory, slot):
    # a new Tensor, or its wrapper, of an array, whose reference it takes over, with a node or 0
    none = {table["NONE"]}
    tensor = new_object({table["TENSOR"]}, 0)
    if tensor == 0:
        release(out)
        release(node)
        return 0
    poke(out, tensor + {o["_array"]})
    requires = {table["TRUE"]}
    if node == 0:
        keep(none)
        node_ = none
        requires = {table["FALSE"]}
    else:
        node_ = node
    poke(node_, tensor + {o["_grad_fn"]})
    keep(requires)
    poke(requires, tensor + {o["_requires_grad"]})
    keep(slot)
    poke(slot, tensor + {o["_slot"]})
    keep(memory)
    poke(memory, tensor + {o["_memory"]})
    keep(none)
    poke(none, tensor + {o["_grad"]})
    keep(none)
    poke(none, tensor + {o["_extra"]})
    return in_wrapper(context, tensor)
"""


def text(table: ObjectTable) -> str:
    """The text of all operations' functions, of a table as ``functions`` has it."""
    at = {name: 8 * k for k, name in enumerate(CALL)}
    read = ""
    if "WRAPPER" in table.objects:
        read = """given = flags + 64
    if unwrapped(context, args, count, given) == 0:
        return call_python(slow, args, count, names)
    """
    return f"""\
{functions(table)}
def kernel(me, args, count, names):
    own = me + {offsets.BYTES}
    context, slow = peek(int64, own), peek(int64, own + 8)
    if count != peek(int64, own + 32) or names != 0 or peek(int64, context) != 0:
        return call_python(slow, args, count, names)
    mode = attribute({table["STATE"]}, {table["MODE"]})
    if mode == 0:
        return 0
    release(mode)
    if mode != {table["RECORDING"]} and mode != {table["COMPUTING"]}:
        return call_python(slow, args, count, names)
    flags = scratch(12)
    given = args
    {read}place = place_of(context, given, count, flags)
    if place < 0:
        return call_python(slow, args, count, names)
    record, matches = listed(peek(int64, own + 24), place), 0
    if record != {table["NONE"]}:
        matches = fits(context, given, count, record + {offsets.BYTES})
    if matches == 0:
        number = new_int(place)
        if number == 0:
            return 0
        learned, k = flags + 24, 0
        poke(number, learned)
        while k < count:
            poke(peek(int64, args + 8 * k), learned + 8 + 8 * k)
            k += 1
        answer = call_python(peek(int64, own + 16), learned, count + 1, names)
        release(number)
        return answer
    known = record + {offsets.BYTES}
    if peek(int64, known + {at["packed"]}) == 0:
        return call_python(slow, args, count, names)
    target, inplace = int64(0), peek(int64, own + 40)
    if inplace != 0:
        target = target_of(context, given, count, known, flags, mode)
        if target == 0:
            return call_python(slow, args, count, names)
    keep(record)
    out = computed(context, given, count, known, target)
    if out == 0:
        release(record)
        if error_set() != 0:
            return 0
        return call_python(slow, args, count, names)
    if inplace != 0:
        release(record)
        release(out)
        answer = call_python({table["WRITTEN"]}, given, 1, 0)
        if answer == 0:
            return 0
        release(answer)
        keep(peek(int64, args))
        return peek(int64, args)
    mask = peek(int64, flags) & peek(int64, known + {at["grad_mask"]})
    node = int64(0)
    if mask != 0 and mode == {table["RECORDING"]}:
        guarded = peek(int64, flags + 8)
        node = recorded(context, given, count, known, mask, guarded, out)
        if node == 0:
            release(record)
            release(out)
            return 0
    release(record)
    return wrapped(context, out, node, {table["NONE"]}, {table["ZERO"]})
"""
