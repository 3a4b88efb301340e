"""Calls with any arguments in machine code, of functions that turned out to be one operation.

Note [Calls with arguments]
---------------------------
A function such as ``x.sum(0)``, ``x.view(-1)`` or ``a.mm(b)`` does the same for Tensors of the
same dtypes, shapes and strides and for arguments that are equal: it reads its arguments, chooses an
operation, and calls that once. So it is run in Python a first time, and once more on Tensors over
the same memory with somebody watching (``tensors.learned_calls``); the *record* of the call says
what was done, in one of four ways:

``KERNEL``
    A plan that the recorder can compute: Note [Recorder] in ``recorded_calls``.
``VIEW``
    A new array over the memory of the one Tensor, at a distance from its beginning.
``CALL``
    The operation is called, by its function in Python, without the work around it.
``FACT``
    The result, a number that follows from dtypes and shapes, is there.

Further calls compare their arguments with those of the records at the place of their hash and at
the one beside it (a table of two ways), and do what the record says. Numbers and tuples are
compared by value, other objects by identity; what has no hash is left to Python, as is everything
that the recorder leaves to it.
"""

from __future__ import annotations

from numgrad.codegen.cpython import offsets, recorded_calls, records
from numgrad.codegen.cpython.c_api import ObjectTable

PYTHON, KERNEL, VIEW, CALL, FACT = range(5)
"""Kinds of records: Note [Calls with arguments]; the first leaves calls to Python."""
TENSOR, EQUAL, SAME, INTEGERS = range(4)
"""How an argument is compared: dtype and layout, by value, as an object, as a tuple of ints."""
MOST_ARGUMENTS = 8
HEAD = (
    "way", "count", "names", "plan", "operands", "positional", "keywords",
    "flags", "rank", "offset",
    *(f"length{axis}" for axis in range(records.MOST_AXES)),
    *(f"stride{axis}" for axis in range(records.MOST_AXES)),
)  # fmt: skip
"""Words of a record: how many arguments, and the names of the last; the record of a plan, or the
result, or the function that is called, with how many operands, of which the last have names; a
view's array, and its flags as far as that of the operand has them."""
ARGUMENT = (
    "how", "object", "rank", "contiguous",
    *(f"length{axis}" for axis in range(records.MOST_AXES)),
    *(f"stride{axis}" for axis in range(records.MOST_AXES)),
)  # fmt: skip
"""Words of an argument, which come next; the object of an array is its dtype."""
OPERAND = ("argument", "object")
"""Words of an operand, last: the number of the argument that it is, or -1 and an object."""


def text(table: ObjectTable) -> str:
    """The text of all functions with records.

    Parameters
    ----------
    table
        That of ``recorded_calls.functions``, with ``WRAP``, which makes what users see of a
        result, the class ``ERROR`` of errors that Python is to say, and ``NO_GRAD_VIEW``.
    """
    o, x = offsets.slots(table.objects["TENSOR"]), offsets.FIELDS
    at, of = ({name: 8 * k for k, name in enumerate(words)} for words in (HEAD, ARGUMENT))
    arguments, width = 8 * len(HEAD), 8 * len(ARGUMENT)
    return f"""\
{recorded_calls.functions(table)}
from numgrad.codegen.cpython.objects import hash_of, equals, is_error

def place_of_call(context, args, count, flags):
    # a place by what the arguments are, or -1; at ``flags`` what ``noted`` leaves
    tensor, parameter = {table["TENSOR"]}, {table["PARAMETER"]}
    bit, k = 1, 0
    cleared(flags)
    while k < count:
        x = peek(int64, args + 8 * k)
        kind = peek(int64, x + {x["type"]})
        if kind == tensor or kind == parameter:
            if noted(context, x, bit, flags, 1) == 0:
                return -1
        else:
            code = hash_of(x)
            if code == -1:
                forget_error()
                return -1
            poke(peek(int64, flags + 16) * 31 + code, flags + 16)
        bit += bit
        k += 1
    return place_at(flags)

def is_call(context, args, count, names, record):
    # whether a record is that of these arguments
    if peek(int64, record + {at["count"]}) != count:
        return 0
    other = peek(int64, record + {at["names"]})
    if names == 0 or other == {table["NONE"]}:
        if names != 0 or other != {table["NONE"]}:
            return 0
    elif equals(names, other, int32(2)) != 1:
        return 0
    tensor, parameter = {table["TENSOR"]}, {table["PARAMETER"]}
    k = 0
    while k < count:
        x = peek(int64, args + 8 * k)
        own = record + {arguments} + {width} * k
        kind, how = peek(int64, x + {x["type"]}), peek(int64, own + {of["how"]})
        held = peek(int64, own + {of["object"]})
        if how == {TENSOR}:
            if kind != tensor and kind != parameter:
                return 0
            array = peek(int64, x + {o["_array"]})
            if peek(int64, array + {x["dtype"]}) != held:
                return 0
            rank = int64(peek(int32, array + {x["rank"]}))
            if rank != peek(int64, own + {of["rank"]}):
                return 0
            contiguous = int64(peek(int32, array + {x["flags"]}) & {offsets.C_CONTIGUOUS})
            if contiguous != peek(int64, own + {of["contiguous"]}):
                return 0
            lengths, a = peek(int64, array + {x["lengths"]}), 0
            strides = peek(int64, array + {x["strides"]})
            while a < rank:
                if peek(int64, lengths + 8 * a) != peek(int64, own + {of["length0"]} + 8 * a):
                    return 0
                if contiguous == 0:
                    if peek(int64, strides + 8 * a) != peek(int64, own + {of["stride0"]} + 8 * a):
                        return 0
                a += 1
        elif x != held:
            if how == {SAME} or kind != peek(int64, held + {x["type"]}):
                return 0
            if equals(x, held, int32(2)) != 1:
                return 0
            if how == {INTEGERS}:  # 1.0 and True are equal to 1
                number, item = peek(int64, x + {offsets.SIZE}), x + {offsets.TUPLE}
                while number > 0:
                    if peek(int64, peek(int64, item) + {x["type"]}) != {table["INT"]}:
                        return 0
                    number -= 1
                    item += 8
        k += 1
    return 1

def operands_of(args, count, record, operands, flags, bits):
    # put the operands of the operation where ``operands`` says, and at ``bits`` those of arguments
    own = record + {arguments} + {width} * count
    number, k = peek(int64, record + {at["operands"]}), 0
    poke(0, bits)
    poke(0, bits + 8)
    while k < number:
        source = peek(int64, own + {8 * len(OPERAND)} * k)
        x = peek(int64, own + {8 * len(OPERAND)} * k + 8)
        if source >= 0:
            x = peek(int64, args + 8 * source)
            poke(peek(int64, bits) | (peek(int64, flags) >> source & 1) << k, bits)
            poke(peek(int64, bits + 8) | (peek(int64, flags + 8) >> source & 1) << k, bits + 8)
        poke(x, operands + 8 * k)
        k += 1
    return number

def viewed(context, x, record):
    # a new array over the memory of a Tensor, or 0
    array = peek(int64, x + {o["_array"]})
    dtype = peek(int64, array + {x["dtype"]})
    flags = peek(int32, array + {x["flags"]}) & int32(peek(int64, record + {at["flags"]}))
    none, rank = 0, int32(peek(int64, record + {at["rank"]}))
    data = peek(int64, array + {x["data"]}) + peek(int64, record + {at["offset"]})
    keep(dtype)
    out = new_array(
        {table["ARRAY"]}, dtype, rank, record + {at["length0"]}, record + {at["stride0"]}, data,
        flags, none
    )
    if out == 0:
        return 0
    base = peek(int64, array + {x["base"]})
    if base == 0:
        base = array
    elif peek(int64, base + {x["type"]}) != {table["ARRAY"]}:
        base = array
    keep(base)
    poke(base, out + {x["base"]})
    return out

def result_of(context, operands, number, record, bits, mode):
    # the result of a plan or of a view; 0 with an error, or without one where it is Python's
    plan = peek(int64, record + {at["plan"]}) + {offsets.BYTES}
    memory, slot, none = {table["NONE"]}, {table["ZERO"]}, int64(0)
    mask, node = peek(int64, bits) & peek(int64, plan + {8 * records.CALL.index("grad_mask")}), none
    if mode != {table["RECORDING"]}:
        mask = none
    if peek(int64, record + {at["way"]}) == {VIEW}:
        base = peek(int64, operands)
        out = viewed(context, base, record)
        memory = peek(int64, base + {o["_memory"]})
        kind = peek(int64, memory + {x["type"]})
        if kind != {table["TENSOR"]} and kind != {table["PARAMETER"]}:
            memory = base
        if mask == 0:
            if mode != {table["RECORDING"]}:
                slot = {table["NO_GRAD_VIEW"]}
            elif equals(peek(int64, base + {o["_slot"]}), {table["NO_GRAD_VIEW"]}, int32(2)) == 1:
                slot = {table["NO_GRAD_VIEW"]}
    else:
        out = computed(context, operands, number, plan, none)
    if out == 0:
        return 0
    if mask != 0:
        node = recorded(context, operands, number, plan, mask, peek(int64, bits + 8), out)
        if node == 0:
            release(out)
            return 0
    return wrapped(context, out, node, memory, slot)

def called(context, operands, number, record):
    # the result of an operation that is called; 0 with an error, or without one where Python is to
    # see to it
    names = peek(int64, record + {at["keywords"]})
    if names == {table["NONE"]}:
        names = 0
    positional = peek(int64, record + {at["positional"]})
    out = call_python(peek(int64, record + {at["plan"]}), operands, positional, names)
    if out == 0:
        if is_error({table["ERROR"]}) != 0:
            forget_error()  # which Python raises again, in the function's words
        return 0
    if peek(int64, out + {x["type"]}) == {table["TENSOR"]}:
        return in_wrapper(context, out)
    given = scratch(2)
    poke(out, given)
    answer = call_python({table["WRAP"]}, given, 1, 0)
    release(out)
    return answer

def kernel(me, args, count, names):
    own = me + {offsets.BYTES}
    context, slow = peek(int64, own), peek(int64, own + 8)
    total, none = count, {table["NONE"]}
    if names != 0:
        total = count + peek(int64, names + {offsets.SIZE})
    if total > {MOST_ARGUMENTS} or peek(int64, context) != 0:
        return call_python(slow, args, count, names)
    mode = attribute({table["STATE"]}, {table["MODE"]})
    if mode == 0:
        return 0
    release(mode)
    if mode != {table["RECORDING"]} and mode != {table["COMPUTING"]}:
        return call_python(slow, args, count, names)
    flags, given = scratch(8), scratch({MOST_ARGUMENTS + 1})
    if unwrapped(context, args, total, given) == 0:
        return call_python(slow, args, count, names)
    place = place_of_call(context, given, total, flags)
    if place < 0:
        return call_python(slow, args, count, names)
    record, matches, ways = none, 0, 2
    while matches == 0 and ways > 0:
        record = listed(peek(int64, own + 24), place ^ (2 - ways))
        if record != none:
            keep(record)
            matches = is_call(context, given, total, names, record + {offsets.BYTES})
            if matches == 0:
                release(record)
        ways -= 1
    if matches == 0:
        number = new_int(place)
        if number == 0:
            return 0
        learned, k = scratch({MOST_ARGUMENTS + 2}), 0
        poke(number, learned)
        while k < total:
            poke(peek(int64, args + 8 * k), learned + 8 + 8 * k)
            k += 1
        answer = call_python(peek(int64, own + 16), learned, count + 1, names)
        release(number)
        return answer
    known = record + {offsets.BYTES}
    way, answer = peek(int64, known + {at["way"]}), int64(0)
    if way == {FACT}:
        answer = peek(int64, known + {at["plan"]})
        keep(answer)
    elif way != {PYTHON}:
        operands, bits = scratch({MOST_ARGUMENTS + 2}), flags + 24
        number = operands_of(given, total, known, operands, flags, bits)
        if way == {CALL}:
            answer = called(context, operands, number, known)
        else:
            answer = result_of(context, operands, number, known, bits, mode)
    release(record)
    if answer == 0:
        if error_set() != 0:
            return 0
        return call_python(slow, args, count, names)
    return answer
"""
