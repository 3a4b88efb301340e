"""The arrays of a step of an optimizer, read in machine code: ``optim.group_arrays``."""

from __future__ import annotations

from numgrad.codegen.cpython import offsets
from numgrad.codegen.cpython.c_api import ObjectTable


def text(table: ObjectTable) -> str:
    """The text of ``known_arrays(params, state, names, known)``.

    Parameters
    ----------
    table
        With the classes ``TENSOR``, whose slots are found by name, ``PARAMETER`` and ``DICT``, and
        ``NONE``.
    """
    slots = offsets.slots(table.objects["TENSOR"])
    return f"""\
from numba import int64
from numgrad.codegen.intrinsics import peek
from numgrad.codegen.cpython.objects import forget_error, keep, listed, looked_up, new_list
from numgrad.codegen.cpython.objects import release, set_listed, size_of_list

def array_of(context, tensor, parameters):
    # the array of a Tensor, or of a Parameter where that may be one; 0 of anything else
    if tensor == 0:
        return 0
    kind = peek(int64, tensor + {offsets.TYPE})
    if kind != {table["TENSOR"]} and (parameters == 0 or kind != {table["PARAMETER"]}):
        return 0
    return peek(int64, tensor + {slots["_array"]})

def put(arrays, k, array):
    # set an element of a new list; 0 if there is no array
    if array == 0:
        return 0
    keep(array)
    set_listed(arrays, k, array)
    return 1

def stepped(context, args, arrays, t, count, columns, param, grad):
    # 1 if the arrays of the parameter with place t among those with a gradient were put in a list
    if put(arrays, t, array_of(context, param, 1)) == 0:
        return 0
    if put(arrays, count + t, array_of(context, grad, 0)) == 0:
        return 0
    own, known = looked_up(peek(int64, args + 8), param), peek(int64, args + 24)
    if own == 0:
        return 0
    if peek(int64, own + {offsets.TYPE}) != {table["DICT"]}:
        return 0
    names, r = peek(int64, args + 16) + {offsets.TUPLE}, 0
    while r < columns:
        k = r * count + t
        array = array_of(context, looked_up(own, peek(int64, names + 8 * r)), 1)
        if array != listed(known, k):
            return 0
        if put(arrays, 2 * count + k, array) == 0:
            return 0
        r += 1
    return 1

def collected(context, args, arrays, count, columns):
    # 1 if the arrays of all parameters that have a gradient were put into the list
    params, k, t = peek(int64, args), 0, 0
    size = size_of_list(params)
    while k < size:
        param = listed(params, k)
        if array_of(context, param, 1) == 0:
            return 0
        grad = peek(int64, param + {slots["_grad"]})
        if grad != {table["NONE"]}:
            if t == count:
                return 0
            if stepped(context, args, arrays, t, count, columns, param, grad) == 0:
                return 0
            t += 1
        k += 1
    if t != count or size_of_list(peek(int64, args + 24)) != columns * count:
        return 0
    return 1

def kernel(me, args, count, names):
    context, none = peek(int64, me + {offsets.BYTES}), int64(0)
    none = {table["NONE"]}
    columns = peek(int64, peek(int64, args + 16) + {offsets.SIZE})
    if columns > 0:
        count = size_of_list(peek(int64, args + 24)) // columns
        arrays = new_list((2 + columns) * count)
        if arrays == 0:
            return 0
        if collected(context, args, arrays, count, columns) == 1:
            return arrays
        release(arrays)
    forget_error()
    keep(none)
    return none
"""
