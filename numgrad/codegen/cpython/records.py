"""Records of launches: what machine code knows in advance to call a kernel again and again.

Note [Launches]
---------------
Calls for operands of known dtypes and shapes give a kernel the same numbers every time, and other
addresses. So its slots (Note [Entries] in ``kernel_entry``) are filled once, and before a call only
addresses of arrays and numbers among the operands are put where they belong. A *place* says where
that is. Operands are compared with what the words were made for first: arrays by ``OPERAND``.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from numgrad.codegen.cpython.c_api import Words

MOST_AXES, MOST_SLOTS = 8, 40
ARRAY, NUMBER, GIVEN_ON, NOTHING = 0, 1, 2, 3
"""Kinds of operands and results: a contiguous array, a Python number, what arrived itself, none."""
OPERAND = ("kind", "dtype", "rank", "place", *(f"length{axis}" for axis in range(MOST_AXES)))
"""Words of an operand or a result."""


class Slots(NamedTuple):
    """The slots of a kernel for given arguments.

    Attributes
    ----------
    packed
        The address of the function that is called with the slots.
    words
        Their contents, 0 for what comes later.
    places
        The first slot of each argument.
    """

    packed: int
    words: list[int]
    places: list[int]


def filled(entry: Any, values: Sequence[Any]) -> Slots | None:
    """The slots of a kernel for given arguments; None if machine code is not to call it so.

    Parameters
    ----------
    entry
        The kernel's Python function.
    given
        Its arguments: a shape for an array, which is contiguous, None for a number that comes
        later, and numbers.
    """
    from numgrad.codegen.cpython import kernel_entry  # LLVM comes with the first kernel

    kernel = kernel_entry.launched(entry)
    if kernel is None or len(kernel.arguments) != len(values):
        return None
    words: list[int] = []
    places = []
    for value, (kind, rank, size, contiguous) in zip(values, kernel.arguments, strict=True):
        places.append(len(words))
        if kind == "a" and type(value) is tuple and rank in (1, len(value)):
            lengths = value if rank == len(value) else (prod(value),)
            words += [0, *lengths]
            if not contiguous:
                words += [size * prod(lengths[axis + 1 :]) for axis in range(rank)]
        elif kind == "f" and type(value) in (float, int, type(None)):
            words += struct.unpack("q", struct.pack("d", 0.0 if value is None else value))
        elif kind == "i" and type(value) is int:
            words.append(value)
        else:
            return None
    return Slots(kernel.packed, words, places) if len(words) + 2 <= MOST_SLOTS else None


def operand(kind: int, position: int = 0, dtype: Any = 0, shape: tuple = ()) -> list[Any]:
    """The words of an operand or a result; ``dtype`` is the class of one that is a number."""
    lengths = (*shape, *(0,) * (MOST_AXES - len(shape)))
    return [kind, dtype, len(shape), position, *lengths]


def computes(record: Words) -> bool:
    """Whether machine code computes what the record of a call says."""
    return struct.unpack_from("q", record, 8 * CALL.index("packed"))[0] != 0


def unsaved(plan: Any) -> Words:
    """The record of a plan that machine code does otherwise, of one operand, which saves nothing.

    It is recorded if there is a plan.
    """
    words = [plan, *[0] * (len(CALL) - 1)]
    words[CALL.index("grad_mask")] = int(plan is not None)
    return Words.of(*words)


PLACES = 256
"""Places for calls of an operation, a power of two."""
CALL = (
    "plan", "packed", "slots", "rank", "dtype", "result", "grad_mask",
    *(f"save_mask{mask}" for mask in range(8)),
    *(f"length{axis}" for axis in range(MOST_AXES)),
)  # fmt: skip
"""Words of a call's record; then come those of each operand, and the slots of the kernel."""
STEP = ("packed", "slots", "inputs", "results")
"""Words of the record of a node's backward; then come those of inputs, results and slots."""
MOST_INPUTS = MOST_RESULTS = 4


def step(
    entry: Any,
    inputs: dict[str, tuple[tuple | None, np.dtype]],
    results: Sequence[Any],
    values: Sequence[Any],
) -> Words | None:
    """Record the launch that computes a backward; None if machine code is not to do that.

    Parameters
    ----------
    entry
        The kernel's Python function; None if there is nothing to compute.
    inputs
        Shape, None for a number, and dtype of ``g`` and of what is saved, by name, in order.
    results
        For each operand None, ``"g"`` if its gradient is ``g`` itself, or shape and dtype of it.
    given
        The kernel's arguments: names of inputs, ``(k,)`` for the gradient of operand ``k``, and
        numbers.
    """
    shapes = [shape for shape, _ in inputs.values()]
    shapes += [result[0] for result in results if type(result) is tuple]
    if (
        len(inputs) > MOST_INPUTS
        or len(results) > MOST_RESULTS
        or any(shape is not None and len(shape) > MOST_AXES for shape in shapes)
    ):
        return None
    slots = Slots(0, [], [])
    if entry is not None:
        arguments = [
            inputs[a][0] if type(a) is str else results[a[0]][0] if type(a) is tuple else a
            for a in values
        ]
        of_entry = filled(entry, arguments)
        if of_entry is None:
            return None
        slots = of_entry
    places = dict(zip(values, slots.places, strict=entry is not None))
    nowhere = len(slots.words)  # a slot that no kernel reads
    words = [slots.packed, len(slots.words), len(inputs), len(results)]
    for name, (shape, dtype) in inputs.items():
        kind = NUMBER if shape is None else ARRAY
        words += operand(kind, places.get(name, nowhere), dtype, shape or ())
    for k, result in enumerate(results):
        if type(result) is tuple:
            shape, dtype = result
            words += operand(ARRAY, places[k,], dtype, shape)
        else:
            words += operand(NOTHING if result is None else GIVEN_ON)
    return Words.of(*words, *slots.words)
