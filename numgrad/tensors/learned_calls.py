"""Functions of Tensors whose calls machine code learns: each that turns out to be one operation.

Note [Learning of calls]
------------------------
A call without a record is made in Python. Then its function is run again on *twins*, new Tensors
over the same memory, while an interpreter notes which operations are called. If that is one, of all
of the twins and else of constants, and its result is what came out, bit by bit, then a record says
so: Note [Calls with arguments] in ``codegen.cpython.argument_calls``. Functions that look at
numbers, or whose results depend on more than dtypes, shapes and arguments, are not to be learned.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from numgrad.autograd.variable import NO_GRAD_VIEW, TENSORS, Tensor, root
from numgrad.codegen.cpython import argument_calls as words, offsets, records
from numgrad.codegen.cpython.c_api import Words
from numgrad.core.arguments import complete
from numgrad.core.axis import AxisOp
from numgrad.core.elementwise import Elementwise
from numgrad.core.interpreter import Interpreter, ThreadSettings, interpret
from numgrad.core.op import OPS, Op, on_forget
from numgrad.core.primitive import View
from numgrad.errors import NumgradError
from numgrad.tensors.conversions import enter_again
from numgrad.tensors.recorder import CallRecorder, record_of

MOST_CALLS = 1000
"""Calls that are learned of a function; a program with more of them does without."""
_VALUES = (int, float, bool, complex, str, type(None))


class Observer(Interpreter):
    """Notes operations, which it leaves to the ground: operation, operands, parameters, result."""

    def __init__(self) -> None:
        self.calls: list[tuple[Op, tuple, dict[str, Any], Any]] = []

    def bind(self, op: Any, args: tuple, params: dict[str, Any]) -> Any:
        with ThreadSettings(interpreters=()):
            out = interpret(op, args, params)
        self.calls.append((op, args, params, out))
        return out


class LearnedEntry:
    """The function behind calls of a function in machine code.

    Parameters
    ----------
    name
        Its name.
    entry
        The function in Python, as users call it.
    function
        The same of Tensors: of positional arguments and of those by name.
    recorder
        The machine code.
    unwrap
        Makes of an argument what ``function`` gets.
    facts
        Whether results are numbers that follow from dtypes and shapes.
    op
        The operation that it is, if it is one.

    Attributes
    ----------
    call
        The function.
    """

    everyone: ClassVar[list[LearnedEntry]] = []

    def __init__(
        self,
        name: str,
        entry: Callable[..., Any],
        function: Callable[[list[Any], dict[str, Any]], Any],
        recorder: CallRecorder,
        unwrap: Callable[[Any], Any],
        facts: bool = False,
        op: Op | None = None,
    ) -> None:
        self._facts, self._op = facts, op
        self.entry, self._function, self._unwrap, self._left = entry, function, unwrap, MOST_CALLS
        self._table: list[Words | None] = [None] * records.PLACES
        own = Words.of(recorder.objects, entry, self._call_and_learn, self._table)
        self.call = recorder.code.function(name, own)
        self.everyone.append(self)

    def clear(self) -> None:
        """Forget all calls."""
        self._table[:] = [None] * records.PLACES

    def _call_and_learn(self, place: int, *args: Any, **params: Any) -> Any:
        out = self.entry(*args, **params)
        if self._left:
            self._left -= 1
            operand = any(a is out for a in (*args, *params.values()))
            result = None if operand else self._unwrap(out)
            if self._table[place] is not None:
                self._table[place ^ 1] = self._table[place]
            self._table[place] = self._record(args, params, result)
        return out

    def _record(self, args: tuple, params: dict[str, Any], result: Any) -> Words | None:
        """The record of a call; None if its arguments cannot be compared."""
        users = (*args, *params.values())
        given = [self._unwrap(a) for a in users]
        head: list[Any] = [len(given), tuple(params) or None]
        arguments: list[Any] = []
        for a, b in zip(users, given, strict=True):
            described = _described(a, b)
            if described is None:
                return None
            arguments += described
        if self._facts and type(result) in (int, bool):
            known = words.FACT, id(result), [], 0, None, ()
            users += (result,)  # which is held
            given.append(result)
        else:
            known = _one_operation(self._function, given, len(args), params, result)
        if known is None or known[1] is self._op:
            known = words.PYTHON, None, [], 0, None, ()
        way, plan, operands, positional, names, array = known
        shape = list(array) + [0] * (3 + 2 * records.MOST_AXES - len(array))
        head = [way, *head, plan, len(operands), positional, names, *shape]
        pairs = [word for place, value in operands for word in (place, id(value))]
        record = Words.of(*head, *arguments, *pairs)
        constants = [a for a, b in zip(users, given, strict=True) if type(b) not in TENSORS]
        record.referenced += [*constants, operands]  # integers too, which are no words here
        return record


def learned_by(op: Op, entry: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind calls of an operation whose parameters machine code learns."""
    if not (ARGUMENTS.in_use and isinstance(op, View | AxisOp)) or "index" in op.params:
        return entry  # there may be as many indices as calls

    def function(args: list[Any], params: dict[str, Any]) -> Any:
        return entry(*args, **params)

    return LearnedEntry(op.name, entry, function, ARGUMENTS, lambda a: a, op=op).call


def _install() -> None:
    for op in list(OPS.values()):
        if op.entered:
            op.enter_by(learned_by(op, op.entry))
    enter_again()


ARGUMENTS = CallRecorder(
    "arguments", _install, words.text, NO_GRAD_VIEW=NO_GRAD_VIEW, WRAP=None, ERROR=NumgradError
)
"""Machine code behind calls of views, and of operations along axes."""


def forget_calls() -> None:
    """Forget all calls, since they may mean something else now."""
    for entry in LearnedEntry.everyone:
        entry.clear()


on_forget.append(forget_calls)


def _described(a: Any, value: Any) -> list[Any] | None:
    """The words of an argument and of what a function gets of it."""
    nothing = [0] * (2 + 2 * records.MOST_AXES)
    if type(value) in TENSORS:
        array = value._array
        head = words.TENSOR, array.dtype, array.ndim, int(array.flags.c_contiguous)
        return [*head, *_lengths(array.shape), *_lengths(array.strides)]
    if not _is_constant(value):
        return None
    how = words.SAME
    if type(a) in (int, bool, str) or (type(a) is float and a != 0):
        how = words.EQUAL
    elif isinstance(a, tuple) and _is_plain(value):
        how = words.INTEGERS
    return [how, id(a), *nothing]


def _is_constant(value: Any) -> bool:
    return isinstance(value, np.dtype) or type(value) in _VALUES or _is_plain(value)


def _is_plain(value: Any) -> bool:
    """Whether a value is one number or word, or a tuple of integers."""
    if isinstance(value, tuple):
        return all(type(n) is int for n in value)
    return type(value) in (int, bool, str, float)


def _lengths(lengths: Any) -> list[int]:
    return [*lengths, *[0] * (records.MOST_AXES - len(lengths))]


def _one_operation(
    function: Callable[..., Any], given: list[Any], positional: int, params: dict[str, Any],
    result: Any,
) -> tuple | None:  # fmt: skip
    """Describe, for a record, the one operation that a call is, if it is one."""
    if type(result) is not Tensor:
        return None
    twins = [_twin(value) for value in given]
    tensors = [twin for twin in twins if type(twin) is Tensor]
    by_name = dict(zip(params, twins[positional:], strict=True))
    observer = Observer()
    try:
        # what warns is to do so at each call
        with (
            warnings.catch_warnings(action="error"),
            ThreadSettings(interpreters=(observer,), grad_enabled=True),
        ):
            out = function(twins[:positional], by_name)
    except Exception:  # whatever it is that it cannot do here
        return None
    if len(observer.calls) != 1:
        return None
    op, args, options, made = observer.calls[0]
    values = [*args, *options.values()]
    if out is not made or type(out) is not Tensor or not _is_laid_out_as(out, result):
        return None
    if len(values) > words.MOST_ARGUMENTS or any(not _among(t, values) for t in tensors):
        return None
    operands = []
    for value in values:
        place = next((k for k, t in enumerate(twins) if t is value and type(t) is Tensor), -1)
        if place < 0 and not _is_constant(value):
            return None
        operands.append((place, None if place >= 0 else value))
    if out._memory is not None or result._memory is not None:
        return _view(op, operands, tensors, given, out, result)
    if out._array.tobytes() != result._array.tobytes():
        return None
    plan = _plan(op, args, options)
    arrays = [t._array for t in (out, *tensors)]
    if plan is not None and all(array.flags.c_contiguous for array in arrays):
        return words.KERNEL, plan, operands[: 1 if isinstance(op, AxisOp) else None], 0, None, ()
    return words.CALL, op, operands, len(args), tuple(options) or None, ()


def _twin(value: Any) -> Any:
    if type(value) not in TENSORS:
        return value
    array = value._array.view()
    return Tensor(array, array.dtype.kind in "fc")


def _among(tensor: Tensor, values: list[Any]) -> bool:
    return any(value is tensor for value in values)


def _is_laid_out_as(x: Tensor, y: Tensor) -> bool:
    """Whether arrays have the same dtype, layout and flags."""
    a, b = x._array, y._array
    fields = ((c.dtype, c.shape, c.strides, c.flags.writeable) for c in (a, b))
    return next(fields) == next(fields)


def _plan(op: Op, args: tuple, options: dict[str, Any]) -> Words | None:
    """The record of the plan of an operation that machine code can compute."""
    if isinstance(op, AxisOp):
        if not options.keys() <= op.params.keys():  # NumPy's, which has others
            return None
        args, options = complete(op, args, options)
    arrays = [a._array if type(a) is Tensor else a for a in args]
    if isinstance(op, AxisOp):
        plan = op.plan(arrays[0], options) if type(arrays[0]) is np.ndarray else None
        if plan is None or not plan.simple:
            return None
    elif isinstance(op, Elementwise) and not options and len(args) == len(op.inputs):
        if any(type(a) not in (np.ndarray, float, int) for a in arrays):
            return None
        plan = op.plan(arrays)
    else:
        return None
    operands = [(a.dtype, a.shape) if type(a) is np.ndarray else (type(a),) for a in arrays]
    record = record_of(op, plan, operands, plan.empty is np.empty)
    return record if records.computes(record) else None


def _view(
    op: Op, operands: list[tuple], tensors: list[Tensor], given: list[Any], out: Any, result: Any
) -> tuple | None:
    """Describe, for a record, a view of the one Tensor that a call has."""
    if len(tensors) != 1 or not isinstance(op, View):
        return None
    source, array = tensors[0], out._array
    own = next(value for value in given if type(value) in TENSORS)
    if root(result) is not root(own):
        return None
    if array.dtype != source._array.dtype or not array.size or array.ndim > records.MOST_AXES:
        return None
    distances = [y.__array_interface__["data"][0] for y in (source._array, array)]
    real = [y.__array_interface__["data"][0] for y in (own._array, result._array)]
    if distances[1] - distances[0] != real[1] - real[0]:
        return None
    call = None
    if out._grad_fn is not None:
        if out._grad_fn.edges != (source,) or out._grad_fn.saved or out._slot:
            return None
        call = out._grad_fn.call
    plan = records.unsaved(call)
    offset = distances[1] - distances[0]
    flags = offsets.ALIGNED | offsets.WRITEABLE * array.flags.writeable
    laid_out = flags, array.ndim, offset, *_lengths(array.shape), *_lengths(array.strides)
    return words.VIEW, plan, [(0, None)], 0, None, laid_out
