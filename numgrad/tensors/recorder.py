"""Calls of operations in machine code: what the hot path does, without Python's interpreter.

Note [Recorder]
---------------
Most calls are of Tensors of contiguous arrays, and of Python numbers, whose plan calls one kernel
of one thread. The *recorder* does such a call: it finds the plan, allocates the result, calls the
kernel, and makes Node and Tensor. Everything else it leaves to the entry written in Python (Note
[Hot path] in ``entries``), which says what a call means; calls that are watched are left to it too.

One text serves all operations. ``self`` of an operation's function says which one it is: it has
the entry, what is called where no record is, and a table with a place for each hash of dtypes and
shapes. There lies a *record*, what the recorder has to know of a plan, or that it is to leave the
plan to Python. Where there is none, or that of another plan, it is put there after the call.
Calls with parameters have no record, nor have views and operations of other families.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from numgrad.autograd.node import Node, next_sequence
from numgrad.autograd.variable import INFERENCE, Parameter, Tensor, Version
from numgrad.codegen import hot, launches
from numgrad.codegen.locks import ENTRIES
from numgrad.core.axis import AxisOp
from numgrad.core.interpreter import state
from numgrad.core.op import OPS, Op
from numgrad.core.plan import MAX_PLANS, Planned
from numgrad.tensors.operators import enter_anew

MOST_OPERANDS = 3
_PLACES = 64
"""Places of a table, a power of two."""
_OBJECTS: dict[str, Any] = {
    "TENSOR": Tensor, "PARAMETER": Parameter, "NODE": Node, "VERSION": Version, "ARRAY": np.ndarray,
    "FLOAT": float, "INT": int, "NONE": None, "TRUE": True, "FALSE": False, "ZERO": 0,
    "STATE": state, "MODE": "mode", "RECORDING": 2, "COMPUTING": 1, "INFERENCE": INFERENCE,
    "COUNTER": next_sequence.__self__,  # pyright: ignore
}  # fmt: skip
_context = np.array([0, *map(id, _OBJECTS.values())])
"""Whether calls are watched, and where the objects are that the text names."""
_RECORD = (
    "plan", "packed", "slots", "rank", "dtype", "result", "grad_mask",
    *(f"save_mask{mask}" for mask in range(8)),
    *(f"length{axis}" for axis in range(launches.MOST_AXES)),
)  # fmt: skip
"""Words of a record; then come those of each operand, and the slots of the kernel."""
_in_use = False


def _text() -> str:
    """What all operations' functions do."""
    from numgrad.codegen.native.builtin import offsets
    from numgrad.codegen.native.layout import BYTES, TUPLE
    from numgrad.codegen.native.layout import FIELDS as x

    o, v, n = (offsets(cls) for cls in (Tensor, Version, Node))
    at = {name: 8 * k for k, name in enumerate(_RECORD)}
    of = {name: 8 * k for k, name in enumerate(launches.OPERAND)}
    known = {name: f"peek(int64, context + {8 * k})" for k, name in enumerate(_OBJECTS, 1)}
    operands, width = 8 * len(_RECORD), 8 * len(launches.OPERAND)
    return f"""\
from numba import int32, int64
from numgrad.codegen.intrinsics import peek
from numgrad.codegen.objects import poke, scratch, call_packed, keep, release, attribute
from numgrad.codegen.objects import call_python, new_object, new_tuple, new_int, next_of, as_float
from numgrad.codegen.objects import as_int, error_set, forget_error, no_memory, new_array, listed

def settled(context, memory):
    # whether a view, or what shares its memory, has the history that it was made with, and may be
    # saved as it is
    kind, version = peek(int64, memory + {x["type"]}), memory
    if kind == {known["TENSOR"]} or kind == {known["PARAMETER"]}:
        version = peek(int64, memory + {o["_memory"]})
        if version == {known["NONE"]}:
            return 1
        if version == 0:
            return 0
        if peek(int64, version + {x["type"]}) != {known["VERSION"]}:
            return 0
        if peek(int64, version + {v["rebased"]}) == 0:
            return 0
        if as_int(peek(int64, version + {v["rebased"]})) >= 0:
            return 0
    if peek(int64, version + {x["type"]}) != {known["VERSION"]}:
        return 0
    if version == {known["INFERENCE"]}:
        return 0
    if peek(int64, version + {v["foreign"]}) != {known["FALSE"]}:
        return 0
    return 1

def found(context, args, count, followed):
    # a place by the operands' dtypes and shapes, or -1; at ``followed`` bits of what requires grad
    tensor, parameter, array_type = {known["TENSOR"]}, {known["PARAMETER"]}, {known["ARRAY"]}
    none = {known["NONE"]}
    mask, code, bit, tensors, k = 0, 0, 1, 0, 0
    while k < count:
        x = peek(int64, args + 8 * k)
        kind = peek(int64, x + {x["type"]})
        if kind == tensor or kind == parameter:
            array, memory = peek(int64, x + {o["_array"]}), peek(int64, x + {o["_memory"]})
            if array == 0 or memory == 0:  # nobody has initialised it
                return -1
            if memory != none:
                if settled(context, memory) == 0:
                    return -1
            if peek(int64, array + {x["type"]}) != array_type:
                return -1
            if peek(int32, array + {x["flags"]}) & 1 == 0:
                return -1
            rank = int64(peek(int32, array + {x["rank"]}))
            if rank > {launches.MOST_AXES}:
                return -1
            lengths = peek(int64, array + {x["lengths"]})
            code = code * 31 + (peek(int64, array + {x["dtype"]}) >> 4)
            a = 0
            while a < rank:
                code = code * 31 + peek(int64, lengths + 8 * a)
                a += 1
            follows = peek(int64, x + {o["_requires_grad"]})
            if follows == {known["TRUE"]}:
                if peek(int64, x + {o["_slot"]}) != {known["ZERO"]}:
                    return -1
                if peek(int64, x + {o["_grad_fn"]}) == 0:
                    return -1
                mask += bit
            elif follows != {known["FALSE"]}:  # anything else that may be true
                return -1
            tensors += 1
        elif kind == {known["FLOAT"]} or kind == {known["INT"]}:
            code = code * 31 + (kind >> 4)
        else:
            return -1
        bit += bit
        k += 1
    poke(mask, followed)
    if tensors == 0:
        return -1
    return (code ^ (code >> 6) ^ (code >> 12)) & {_PLACES - 1}

def fits(context, args, count, record):
    # whether a record is that of these operands
    k = 0
    while k < count:
        x = peek(int64, args + 8 * k)
        kind = peek(int64, x + {x["type"]})
        own = record + {operands} + {width} * k
        if peek(int64, own + {of["kind"]}) == {launches.ARRAY}:
            if kind == {known["FLOAT"]} or kind == {known["INT"]}:
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

def computed(context, args, count, record):
    # a new array with the result; 0 with an error, or without one where Python is to see to it
    dtype = peek(int64, record + {at["dtype"]})
    keep(dtype)
    rank = int32(peek(int64, record + {at["rank"]}))
    none, flags = 0, int32(0)
    out = new_array(
        {known["ARRAY"]}, dtype, rank, record + {at["length0"]}, none, none, flags, none
    )
    if out == 0:
        return 0
    slots = scratch({launches.MOST_SLOTS})
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
        if peek(int64, own + {of["kind"]}) == {launches.ARRAY}:
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

def recorded(context, args, count, record, mask, out):
    # a new node, or 0
    none = {known["NONE"]}
    node = new_object({known["NODE"]}, 0)
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
    poke(next_of({known["COUNTER"]}), node + {n["sequence"]})
    edges = new_tuple(count)
    poke(edges, node + {n["edges"]})
    save_mask = peek(int64, record + {at["save_mask0"]} + 8 * mask)
    count_saved = (save_mask & 1) + (save_mask >> 1 & 1) + (save_mask >> 2 & 1)
    saved = new_tuple(count_saved + (save_mask >> 3 & 1))
    poke(saved, node + {n["saved"]})
    if edges == 0 or saved == 0 or peek(int64, node + {n["sequence"]}) == 0:
        release(node)
        return 0
    place, k = saved + {TUPLE}, 0
    while k < count:
        x = peek(int64, args + 8 * k)
        edge = none
        if mask >> k & 1:
            edge = peek(int64, x + {o["_grad_fn"]})
            if edge == none:
                edge = x
        keep(edge)
        poke(edge, edges + {TUPLE} + 8 * k)
        if save_mask >> k & 1:
            keep(x)
            poke(x, place)
            place += 8
        k += 1
    if save_mask >> count & 1:
        keep(out)
        poke(out, place)
    return node

def wrapped(context, out, node):
    # a new Tensor of an array, whose reference it takes over, with a node or 0
    none = {known["NONE"]}
    tensor = new_object({known["TENSOR"]}, 0)
    if tensor == 0:
        release(out)
        release(node)
        return 0
    poke(out, tensor + {o["_array"]})
    follows = {known["TRUE"]}
    if node == 0:
        keep(none)
        node_ = none
        follows = {known["FALSE"]}
    else:
        node_ = node
    poke(node_, tensor + {o["_grad_fn"]})
    keep(follows)
    poke(follows, tensor + {o["_requires_grad"]})
    zero = {known["ZERO"]}
    keep(zero)
    poke(zero, tensor + {o["_slot"]})
    keep(none)
    poke(none, tensor + {o["_memory"]})
    keep(none)
    poke(none, tensor + {o["_grad"]})
    keep(none)
    poke(none, tensor + {o["_extra"]})
    return tensor

def kernel(me, args, count, names):
    own = me + {BYTES}
    context, slow = peek(int64, own), peek(int64, own + 8)
    if count != peek(int64, own + 32) or names != 0 or peek(int64, context) != 0:
        return call_python(slow, args, count, names)
    mode = attribute({known["STATE"]}, {known["MODE"]})
    if mode == 0:
        return 0
    release(mode)
    if mode != {known["RECORDING"]} and mode != {known["COMPUTING"]}:
        return call_python(slow, args, count, names)
    flags = scratch(6)
    place = found(context, args, count, flags)
    if place < 0:
        return call_python(slow, args, count, names)
    record, matches = listed(peek(int64, own + 24), place), 0
    if record != {known["NONE"]}:
        matches = fits(context, args, count, record + {BYTES})
    if matches == 0:
        number = new_int(place)
        if number == 0:
            return 0
        given, k = flags + 8, 0
        poke(number, given)
        while k < count:
            poke(peek(int64, args + 8 * k), given + 8 + 8 * k)
            k += 1
        answer = call_python(peek(int64, own + 16), given, count + 1, names)
        release(number)
        return answer
    known = record + {BYTES}
    if peek(int64, known + {at["packed"]}) == 0:
        return call_python(slow, args, count, names)
    keep(record)
    out = computed(context, args, count, known)
    if out == 0:
        release(record)
        if error_set() != 0:
            return 0
        return call_python(slow, args, count, names)
    mask = peek(int64, flags) & peek(int64, known + {at["grad_mask"]})
    node = int64(0)
    if mask != 0 and mode == {known["RECORDING"]}:
        node = recorded(context, args, count, known, mask, out)
        if node == 0:
            release(record)
            release(out)
            return 0
    release(record)
    return wrapped(context, out, node)
"""


@cache
def _machine_code() -> Any:
    from numgrad.codegen.native.builtin import Builtin  # LLVM comes with the first kernel

    return Builtin("recorder", _text())


class MachineEntry:
    """The function behind calls of one operation in machine code, and what it knows of plans.

    Attributes
    ----------
    call
        The function.
    """

    def __init__(self, op: Any, entry: Callable[..., Any]) -> None:
        self.op, self.entry = op, entry
        self._plans: dict[tuple, Any] = op.quick if isinstance(op, AxisOp) else op.plans
        self._records: dict[tuple, launches.Words] = {}
        # what lies there is held, whatever other threads and finalizers forget or learn meanwhile
        self._table: list[launches.Words | None] = [None] * _PLACES
        missed = self._call_and_learn
        words = [_context.ctypes.data, id(entry), id(missed), id(self._table)]
        # calls may come when this module is gone, as Python ends
        kept = entry, missed, self._table, _context, _OBJECTS
        own = launches.Words.of([*words, len(op.inputs)], *kept)
        self.call = _machine_code().function(op.name, own)

    def clear(self) -> None:
        """Forget all plans."""
        self._table[:] = [None] * _PLACES
        self._records.clear()

    def _call_and_learn(self, place: int, *args: Any) -> Any:
        out = self.entry(*args)
        # looked at once: another thread may give a Tensor another array
        arrays = [a._array if isinstance(a, Tensor) else None for a in args]
        operands = [
            (type(a),) if array is None else (array.dtype, array.shape)
            for a, array in zip(args, arrays, strict=True)
        ]
        key = tuple([part for operand in operands for part in operand])
        plan = self._plans.get(key)
        if plan is not None:
            record = self._records.get(key)
            if record is None:
                if len(self._records) >= MAX_PLANS:
                    self.clear()
                record = self._records[key] = _record(self.op, plan, operands)
            self._table[place] = record
        return out


def recorded_by(op: Op, entry: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind calls of an operation, in machine code if that is in use."""
    if not (_in_use and takes(op)):
        return entry
    op.shortcuts = MachineEntry(op, entry)
    return op.shortcuts.call


def takes(op: Op) -> bool:
    """Whether there may be plans of an operation that machine code can call."""
    if isinstance(op, AxisOp):
        return True
    return isinstance(op, Planned) and len(op.inputs) <= MOST_OPERANDS and not op.whole


def in_python(op: Op) -> Any:
    """The function behind calls of an operation that is written in Python."""
    return op.entry if op.shortcuts is None else op.shortcuts.entry


def stand_aside(watched: bool) -> None:
    """Leave all calls to Python, or no longer."""
    _context[0] = watched


def is_watched() -> bool:
    """Whether all calls are left to Python."""
    return bool(_context[0])


def _install() -> None:
    """Put machine code behind the calls of all operations."""
    global _in_use
    _machine_code().load()  # or it is not in use
    with ENTRIES:
        _in_use = True
        for op in list(OPS.values()):
            if op.entered:
                op.enter_by(recorded_by(op, op.entry))
        enter_anew()


hot.waiting.append(hot.HotPath(lambda: _machine_code().cached, _install))


def _record(op: Op, plan: Any, operands: Sequence[tuple]) -> launches.Words:
    """What the recorder knows of a plan for operands: dtype and shape of each, or class."""
    shapes = [operand[1] if len(operand) == 2 else None for operand in operands]
    between = plan.scalars if isinstance(op, AxisOp) else ()
    after = plan.sizes if isinstance(op, AxisOp) else getattr(plan, "dims", ())
    slots = None
    few = all(len(shape or ()) <= launches.MOST_AXES for shape in (*shapes, plan.shape))
    if few and (plan.floating or not (getattr(op, "check", None) or None in shapes)):
        slots = launches.filled(plan.entry, [*shapes, *between, plan.shape, *after])
    head = [id(plan), *[0] * 6]
    places = [0] * len(operands)
    if slots is not None:
        places = slots.places
        result = places[len(operands) + len(between)]
        head[1:] = [
            slots.packed, len(slots.words), len(plan.shape), id(plan.dtype), result,
            int(plan.grad_mask),
        ]  # fmt: skip
    lengths = [*plan.shape, *[0] * launches.MOST_AXES][: launches.MOST_AXES]
    words = [*head, *plan.save_masks, *[0] * (8 - len(plan.save_masks)), *lengths]
    for (kind, *_), shape, place in zip(operands, shapes, places, strict=False):
        if shape is None:
            words += [launches.NUMBER, id(kind), *launches.operand(0, place)[2:]]
        else:
            words += launches.operand(launches.ARRAY, place, kind, shape)
    return launches.Words.of([*words, *([] if slots is None else slots.words)], plan, operands)
