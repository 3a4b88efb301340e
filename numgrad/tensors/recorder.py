"""Calls of operations that machine code does: what it has to know of plans, and when it is in use.

Its text is ``codegen.cpython.recorded_calls``: Note [Recorder] there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from numgrad.autograd.node import Node
from numgrad.autograd.saved import keep
from numgrad.autograd.variable import Parameter, Tensor
from numgrad.autograd.versions import INFERENCE, Version, mark_written, next_sequence
from numgrad.codegen.cpython import hot_paths, records
from numgrad.codegen.cpython.c_api import ObjectTable, Words
from numgrad.codegen.locks import ENTRIES
from numgrad.core.axis import AxisOp
from numgrad.core.elementwise import Elementwise
from numgrad.core.interpreter import state
from numgrad.core.op import OPS, Op
from numgrad.core.plan import MAX_PLANS, Planned
from numgrad.tensors.conversions import enter_again

MOST_OPERANDS = 3
_COMMON = {
    "TENSOR": Tensor, "PARAMETER": Parameter, "NODE": Node, "VERSION": Version,
    "ARRAY": np.ndarray, "FLOAT": float, "INT": int, "NONE": None, "TRUE": True, "FALSE": False,
    "ZERO": 0, "STATE": state, "MODE": "mode", "RECORDING": 2, "COMPUTING": 1,
    "INFERENCE": INFERENCE, "KEEP": keep, "WRITTEN": mark_written,
    "COUNTER": next_sequence.__self__,  # pyright: ignore
}  # fmt: skip
_watched = False


class CallRecorder:
    """The machine code behind calls, with Tensors or what wraps them.

    Parameters
    ----------
    name
        Its name, for the cache of machine code.
    install
        Puts it behind calls.
    text
        Its text, of a table; by default that of calls of operations.
    objects
        Further objects of the table: Note [Wrapped Tensors] in ``codegen.cpython.recorded_calls``.
    """

    everyone: ClassVar[list[CallRecorder]] = []

    def __init__(
        self,
        name: str,
        install: Callable[[], None],
        text: Callable[[ObjectTable], str] | None = None,
        **objects: Any,
    ) -> None:
        self.name, self._install, self._text = name, install, text
        self.objects = ObjectTable(**_COMMON, **objects)
        self.in_use = False
        self.everyone.append(self)
        hot_paths.waiting.append(hot_paths.HotPath(lambda: self.code.cached, self._use))
        self.switch()

    @cached_property
    def code(self) -> Any:
        """The text's machine code."""
        from numgrad.codegen.cpython import recorded_calls  # LLVM comes with the first kernel
        from numgrad.codegen.cpython.builtin import Builtin

        return Builtin(self.name, (self._text or recorded_calls.text)(self.objects))

    def switch(self) -> None:
        """Let machine code do calls, or not, as the user's setting and watchers have it."""
        self.objects.words[0] = _watched or not hot_paths.enabled()

    def _use(self) -> None:
        self.code.load()  # or it is not in use
        with ENTRIES:
            self.in_use = True
            self._install()


class MachineEntry:
    """The function behind calls of one operation in machine code, and its records of plans.

    Parameters
    ----------
    op
        The operation.
    entry
        The function in Python.
    recorder
        The machine code.
    operands_of
        The operands that the operation's plan is for, of arguments and result; None where a call
        does something else than that plan.
    inplace
        Whether calls write to their first argument, which they return.
    slow
        The function for all other calls, by default ``entry``.

    Attributes
    ----------
    call
        The function.
    """

    def __init__(
        self,
        op: Any,
        entry: Callable[..., Any],
        recorder: CallRecorder,
        operands_of: Callable[[tuple, Any], tuple | None] = lambda args, out: args,
        inplace: bool = False,
        slow: Callable[..., Any] | None = None,
    ) -> None:
        self.op, self.entry, self._operands_of = op, entry, operands_of
        self._inplace, self._slow = inplace, slow or entry
        self._plans: dict[tuple, Any] = op.quick if isinstance(op, AxisOp) else op.plans
        self._records: dict[tuple, Words] = {}
        # what lies there is held, whatever other threads and finalizers forget or learn meanwhile
        self._table: list[Words | None] = [None] * records.PLACES
        own = Words.of(
            recorder.objects, self._slow, self._call_and_learn, self._table, len(op.inputs),
            inplace,
        )  # fmt: skip  # which is held: calls may come when this module is gone, as Python ends
        self.call = recorder.code.function(op.name, own)

    def clear(self) -> None:
        """Forget all plans."""
        self._table[:] = [None] * records.PLACES
        self._records.clear()

    def _call_and_learn(self, place: int, *args: Any) -> Any:
        out = self.entry(*args)
        given = self._operands_of(args, out)
        if given is None:
            if self._slow is not self.entry:
                self._table[place] = left_record([getattr(a, "_tensor", a) for a in args])
            return out
        # looked at once: another thread may give a Tensor another array
        arrays = [a._array if isinstance(a, Tensor) else None for a in given]
        operands = [
            (type(a),) if array is None else (array.dtype, array.shape)
            for a, array in zip(given, arrays, strict=True)
        ]
        key = tuple([field for operand in operands for field in operand])
        plan = self._plans.get(key)
        if plan is not None:
            record = self._records.get(key)
            if record is None:
                if len(self._records) >= MAX_PLANS:
                    self.clear()
                direct = plan.reads_once() if self._inplace else plan.empty is np.empty
                record = self._records[key] = record_of(self.op, plan, operands, direct)
            self._table[place] = record
        return out


def late_method(
    python: Callable[..., Any], recorder: CallRecorder, make: Callable[..., MachineEntry] | None
) -> Callable[..., Any]:
    """The method that calls a function, in machine code once that is in use.

    Parameters
    ----------
    python
        The function in Python.
    recorder, make
        The machine code, and what makes its entry of the function; None if it has none.
    """
    enter = python

    def first(self: Any, *args: Any, **params: Any) -> Any:
        nonlocal enter
        if recorder.in_use and make is not None:
            enter = make(python).call
        return python(self, *args, **params)

    def method(self: Any, *args: Any, **params: Any) -> Any:
        return enter(self, *args, **params)

    if make is not None:
        enter = first
    method.__module__ = python.__module__
    return method


def written_method(op: Op, python: Callable[..., Any]) -> Callable[..., Any]:
    """The method that writes the result of an operation to its first operand."""
    make = partial(_writer, op) if isinstance(op, Elementwise) and takes(op) else None
    return late_method(python, RECORDER, make)


def _writer(op: Op, python: Callable[..., Any]) -> MachineEntry:
    return MachineEntry(op, python, RECORDER, inplace=True)


def recorded_by(op: Op, entry: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind calls of an operation, in machine code if that is in use."""
    if not (RECORDER.in_use and takes(op)):
        return entry
    op.shortcuts = MachineEntry(op, entry, RECORDER)
    return op.shortcuts.call


def takes(op: Op) -> bool:
    """Whether there may be plans of an operation that machine code can call."""
    if isinstance(op, AxisOp):
        return True
    return isinstance(op, Planned) and len(op.inputs) <= MOST_OPERANDS and not op.whole


def stand_aside(watched: bool) -> None:
    """Leave all calls to Python since they are watched, or no longer."""
    global _watched
    _watched = watched
    _switch()


def is_watched() -> bool:
    """Whether all calls are left to Python."""
    return bool(RECORDER.objects.words[0])


def _switch() -> None:
    for recorder in CallRecorder.everyone:
        recorder.switch()


def _install() -> None:
    """Put machine code behind the calls of all operations."""
    for op in list(OPS.values()):
        if op.entered:
            op.enter_by(recorded_by(op, op.entry))
    enter_again()


RECORDER = CallRecorder("recorder", _install)
hot_paths.on_switch(_switch)


def left_record(given: Sequence[Any]) -> Words:
    """The record of operands, Tensors and numbers, that machine code leaves to Python."""
    words: list[Any] = [0] * len(records.CALL)
    for a in given:
        if isinstance(a, Tensor):
            words += records.operand(records.ARRAY, 0, a.dtype, a._array.shape)
        else:
            words += records.operand(records.NUMBER, 0, type(a))
    return Words.of(*words)


def record_of(op: Op, plan: Any, operands: Sequence[tuple], direct: bool) -> Words:
    """The record of a plan for operands: dtype and shape of each, or class.

    If it is not ``direct``, machine code leaves the plan to Python.
    """
    shapes = [operand[1] if len(operand) == 2 else None for operand in operands]
    between = plan.scalars if isinstance(op, AxisOp) else ()
    after = plan.sizes if isinstance(op, AxisOp) else getattr(plan, "dims", ())
    slots = None
    few = all(len(shape or ()) <= records.MOST_AXES for shape in (*shapes, plan.shape))
    few = few and direct
    if few and (plan.floating or not (getattr(op, "check", None) or None in shapes)):
        slots = records.filled(plan.entry, [*shapes, *between, plan.shape, *after])
    head: list[Any] = [plan, *[0] * 6]
    places = [0] * len(operands)
    if slots is not None:
        places = slots.places
        result = places[len(operands) + len(between)]
        head[1:] = [
            slots.packed, len(slots.words), len(plan.shape), plan.dtype, result,
            int(plan.grad_mask),
        ]  # fmt: skip
    lengths = [*plan.shape, *[0] * records.MOST_AXES][: records.MOST_AXES]
    words = [*head, *plan.save_masks, *[0] * (8 - len(plan.save_masks)), *lengths]
    for (kind, *_), shape, position in zip(operands, shapes, places, strict=False):
        if shape is None:
            words += records.operand(records.NUMBER, position, kind)
        else:
            words += records.operand(records.ARRAY, position, kind, shape)
    return Words.of(*words, *([] if slots is None else slots.words))
