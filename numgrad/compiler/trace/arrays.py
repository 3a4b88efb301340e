"""Arrays of a trace."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from numgrad.compiler.graph.graph import Shape, Value
from numgrad.compiler.graph.shapes import hinted
from numgrad.compiler.messages import user_line
from numgrad.compiler.trace.builder import GraphBuilder
from numgrad.compiler.trace.views import CONSTANTS, Step, shares_memory, steps_between, written
from numgrad.core.abstract import AbstractArray
from numgrad.core.interpreter import state
from numgrad.errors import NumgradRuntimeError, NumgradTraceError


class TracedArray(AbstractArray):
    """An array of a trace: the value of the graph that it is now.

    ``base`` is the array of which it is a view, as for ndarrays: Note [Memory of a trace] in
    ``views``. ``locked`` says why it must not be written to, ``number`` that it stands for one of
    Python's or NumPy's, which is no memory. ``row_of`` is an array of which it
    would be a view if it had not been read at an integer whose number comes later, and ``owed``
    such a row that was written to, which is ``unpaid`` until it is put into the array.
    """

    __slots__ = (
        "_seen", "_value", "base", "contiguous", "locked", "number", "owed", "row_of", "steps",
        "tracer", "unpaid", "version",
    )  # fmt: skip

    def __init__(
        self,
        tracer: GraphBuilder,
        value: Value,
        base: TracedArray | None = None,
        steps: tuple[Step, ...] = (),
        contiguous: bool = True,
    ) -> None:
        self.tracer, self._value, self.base = tracer, value, base
        self.steps, self.contiguous = steps, contiguous
        self.locked: str | None = None if base is None else base.locked
        self.number = False
        self.row_of: TracedArray | None = None
        self.owed: TracedArray | None = None
        self.unpaid = False
        self.version = 0
        """Number of writes to the memory, counted by the array that is no view."""
        self._seen = 0 if base is None else base.version

    @property
    def value(self) -> Value:
        """The value of the graph."""
        owed = (self if self.base is None else self.base).owed
        if owed is not None and owed.unpaid:
            raise NumgradTraceError(
                f"{_at(user_line())}an array was written to in place that was read at an integer "
                "which is known only when the compiled function runs (r = x[i]; r *= 2), so it is "
                "no view of x as in eager code, and x is used afterwards; write x[i] *= 2, or make "
                "a new array (r = r * 2)"
            )
        if self.base is not None and self._seen != self.base.version:
            self._value = self._read()
            self._seen = self.base.version
        return self._value

    def _read(self) -> Value:
        assert self.base is not None
        value = self.base.value
        for step in self.steps:
            value = step.apply(self.tracer, value)
        return value

    def view(self, value: Value) -> TracedArray:
        """An array made of this one by views: one of its base if it shares memory, as NumPy's."""
        tail = steps_between(self.value, value)
        if tail is None:
            return TracedArray(self.tracer, value)
        base = self if self.base is None else self.base
        shares, contiguous = shares_memory(self.contiguous, tail)
        if not shares:
            return TracedArray(self.tracer, value)
        return TracedArray(self.tracer, value, base, (*self.steps, *tail), contiguous)

    def write(self, value: Value) -> None:
        """Replace the elements."""
        base = self.base
        if base is None:
            constant = state.constant and self._value is not value
            old = self._value
            self._value = written(self.tracer, "unrecorded", old, value) if constant else value
            self.version += 1
            if self.row_of is not None:
                self.row_of.owed, self.unpaid = self, True
            return
        seen = [base._value]
        for step in self.steps[:-1]:
            seen.append(step.apply(self.tracer, seen[-1]))
        part = value
        for step, before in zip(reversed(self.steps), reversed(seen), strict=False):
            part = step.put(self.tracer, before, part)
        base.write(part)
        self._value, self._seen = value, base.version

    def stand_for(self, value: Value) -> None:
        """Have a value that is the same in numbers, which is no write."""
        self._value = value

    @property
    def place(self) -> tuple[Any, ...]:
        """The memory that it shows; equal for arrays that differ in what requires grad."""
        base = self if self.base is None else self.base
        return id(base), *[id(step) for step in self.steps if step.name not in CONSTANTS]

    @property
    def immutable(self) -> bool:
        """Whether it stands for a number, or for what Python computes of its numbers."""
        return self.number or self._value.weak

    @property
    def overlaps(self) -> bool:
        """Whether it shows single elements several times."""
        return any(step.name == "broadcast_to" for step in self.steps)

    @property
    def shape(self) -> Shape:
        """Lengths of the axes, simplified by what is known by now."""
        self.check_alive()
        return self.tracer.resolved(self._value.shape)

    @property
    def dtype(self) -> np.dtype:
        """NumPy dtype of the elements."""
        self.check_alive()
        return self._value.dtype

    def copy(self) -> TracedArray:
        """The same value, of which this is no view."""
        base = self if self.base is None else self.base
        owed, base.owed = base.owed, None
        made = TracedArray(self.tracer, self.value)
        made.owed = base.owed = owed
        return made

    def check_writable(self, name: str) -> None:
        """Raise if a write has no meaning or is not allowed."""
        if self.overlaps:
            raise NumgradRuntimeError(
                f"{name}: the target of shape {hinted(self.shape)} shows single elements several "
                "times, as broadcast_to gives them, so a write has no meaning; clone() it first"
            )
        if self.locked is not None:
            raise NumgradTraceError(f"{_at(user_line())}{name}: {self.locked}")

    def check_alive(self) -> None:
        """Raise if the trace is over."""
        if self.tracer.ended:
            raise NumgradTraceError(
                f"{_at(user_line())}a Tensor that belongs to a finished trace was used: the "
                "compiled function stored it somewhere (a global, an attribute, a list) while it "
                "was traced, where it has no numbers; return the value from the function instead"
            )

    def refuse(self, what: str, remedy: str = "") -> NoReturn:
        """Raise: ``what`` needs numbers."""
        self.check_alive()
        raise NumgradTraceError(
            f"{_at(user_line())}{what} needs the numbers of an array of shape "
            f"{hinted(self.shape)} and dtype {self.dtype}, but ng.jit traces the function, where "
            f"arrays have none yet; {remedy}"
        )

    def outside(self, what: str, remedy: str = "") -> np.ndarray:
        """The numbers of an ndarray around the function, compared from now on at each call."""
        result = self.tracer.look_at(self._value)
        if result is None:
            self.refuse(what, remedy)
        return result

    def __repr__(self) -> str:
        value = self._value
        return f"<traced {value.dtype} {value.shape}>"


def settle(array: Any, written: Any) -> None:
    """Note that a row that was written to is put into its array, as ``x[i] *= 2`` does."""
    owed = (array if array.base is None else array.base).owed
    if owed is not None and owed.unpaid and isinstance(written, TracedArray):
        value, row = written.value, owed.value
        while value is not row and value.node.inputs:  # broadcast, reshaped, converted
            value = value.node.inputs[0]
        owed.unpaid = value is not row


def _at(line: str | None) -> str:
    return f"{line}: " if line else ""
