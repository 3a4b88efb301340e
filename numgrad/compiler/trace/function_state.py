"""Tensors that a function sets around itself: further results of a compiled function.

Note [State of functions]
-------------------------
A function may keep Tensors between its calls: a hidden state in an attribute, a running average in
a dictionary, the last loss in a variable around it. If its code sets attributes, elements or
variables around it, what it can reach is noted before it is traced and looked at afterwards
(Note [Reach of a step] in ``side_effects``). Traced Tensors that stand there then, in place of what
was there before, are results of the graph. What was there is put back, so that the trace leaves
nothing behind, and each call sets what it computed, from the first one on. This is what functional
languages do by passing a state in and out: P. Wadler, "Comprehending monads", 1990. A key or an
attribute that was not there before is left as it is: whether it is there may decide what the
function does, and no guard says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from types import CodeType, TracebackType
from typing import Any, NamedTuple

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.compiler.call.source import is_atom
from numgrad.compiler.trace.side_effects import SnapshotEntry, StateSnapshot
from numgrad.core.bytecode import facts
from numgrad.core.tree import leaves, map_leaves


class StateWrite(NamedTuple):
    """A place, and the key or attribute there that is set."""

    entry: SnapshotEntry
    key: Any


class FunctionState:
    """Tensors that a function sets around itself: Note [State of functions].

    Parameters
    ----------
    function
        The function.
    codes
        Its code, and that of what it calls.

    Attributes
    ----------
    writes
        Places that it sets, when it was traced inside of a ``with`` block.
    values
        The traced Tensors, or containers of them, that it set there.
    """

    def __init__(self, function: Callable[..., Any], codes: Iterable[CodeType]) -> None:
        self.writes: list[StateWrite] = []
        self.values: list[Any] = []
        self.snapshot: StateSnapshot | None = None
        self._function = function
        if any(_stores(code) for code in codes):
            self.snapshot = StateSnapshot()

    def __enter__(self) -> FunctionState:
        if self.snapshot is not None:
            self.snapshot.look([(self._function, "", "")])
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.snapshot is None:
            return
        known = set()
        for entry, key, value in self.snapshot.stored():
            place, parts = entry.place(key), leaves(value)
            fits = all(isinstance(x, Tensor | np.ndarray) or is_atom(x) for x in parts)
            if fits and place not in known:
                known.add(place)
                self.writes.append(StateWrite(entry, key))
                self.values.append(value)
        for entry, key in self.writes:
            entry.assign(key, entry.before[key])
        self.writes = [StateWrite(replace(e, before=None), key) for e, key in self.writes]
        self.snapshot = None  # which holds the values of before

    def __call__(self, results: tuple[Any, list[Any]]) -> Any:
        """Set the values of a call, the second of its results, and return the first."""
        result, values = results
        self.set(values)
        return result

    def set(self, values: list[Any]) -> None:
        """Let the places hold values."""
        for (entry, key), value in zip(self.writes, values, strict=True):
            entry.assign(key, value if isinstance(value, Tensor) else map_leaves(_tensor, value))

    def now(self) -> list[Any]:
        """The values that the places hold."""
        return [entry.picture()[key] for entry, key in self.writes]


def _tensor(x: Any) -> Any:
    """A Tensor for an ndarray: the value was one while it was traced."""
    return Tensor(np.asarray(x)) if isinstance(x, np.ndarray | np.generic) else x


def _stores(code: CodeType) -> bool:
    has = facts(code)
    return has.sets_attributes or has.sets_elements or has.assigns_outside
