"""What a trace finds around the function: inputs of the graph that are no arguments."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from numgrad.autograd.batching.batch import Batched, refuse
from numgrad.autograd.variable import Tensor
from numgrad.compiler.call.source import Source
from numgrad.compiler.graph.graph import Value
from numgrad.compiler.graph.sizes import Size
from numgrad.compiler.trace.arrays import TracedArray
from numgrad.compiler.trace.builder import GraphBuilder
from numgrad.compiler.trace.shown import ArrayOrigin
from numgrad.compiler.trace.views import to_axes
from numgrad.errors import NumgradTypeError


@dataclass(frozen=True)
class Captured:
    """An input of the graph that is no argument.

    Attributes
    ----------
    value
        The input.
    source
        The Tensor or ndarray it is read from at each call.
    frozen
        Whether ``source`` is an ndarray that plain NumPy made during the trace.
    array
        The array that it was in the trace.
    gradient
        Whether what is read is ``source.grad``.
    made
        Whether ``source`` is an ndarray that numgrad made during the trace.
    place
        Where it is found, if that is no place of ``source`` itself.
    """

    value: Value
    source: Any
    frozen: bool
    array: Any
    gradient: bool = False
    made: bool = False
    place: Source | None = None


class Capturing(GraphBuilder):
    """Turns what the function reads from outside into inputs.

    Parameters
    ----------
    dynamic
        Whether lengths of 2 and more are symbols; else they are numbers of this call.
    source_of
        Gives for an ndarray what was there before the trace and is read at each call, whose memory
        it shows, if any; without it every ndarray is such itself.

    Attributes
    ----------
    captured
        Inputs of the graph after the arguments.
    aliases
        Tensors and arrays over the memory of something captured, by the id of the array.
    owners
        The ids of Tensors and ndarrays that are read at each call.
    viewed
        Those of ndarrays and Tensors of which plain NumPy made a view that is an input.
    looked_at
        Those of ndarrays whose numbers decide what is computed.
    frozen_at
        The user's lines that brought in arrays which are frozen, by the ids of their copies.
    """

    def __init__(
        self,
        *,
        dynamic: bool = True,
        source_of: Callable[[np.ndarray], ArrayOrigin | None] | None = None,
    ) -> None:
        super().__init__(dynamic)
        self.source_of = source_of or _itself
        self.captured: list[Captured] = []
        self.aliases: dict[int, list[Any]] = {}
        self.owners: Collection[int] = ()
        self.viewed: set[int] = set()
        self.looked_at: set[int] = set()
        self._inputs: dict[int, tuple[Any, TracedArray]] = {}
        self._frozen: dict[int, np.ndarray] = {}
        self._alive: list[np.ndarray] = []
        self.frozen_at: dict[int, str | None] = {}

    def lift(self, x: Any, dtype: Any = None) -> TracedArray:
        """Anything as a traced array; a number promotes like one unless a dtype is given."""
        array: Any = x._array if isinstance(x, Tensor) else x
        if type(array) is TracedArray:
            if array.tracer is not self:
                array.check_alive()
            return array
        if isinstance(x, Tensor):
            return self._capture(array, x)
        if isinstance(x, Size):
            value = self.graph.size(x)
            return TracedArray(self, value if dtype is None else self.strong(value, dtype))
        if isinstance(x, np.ndarray):
            return self._capture(x, x)
        if isinstance(x, bool):
            x = np.bool_(x)
        if isinstance(x, int | float | complex | np.generic):
            return TracedArray(self, self.constant(x, dtype))
        array = np.asarray(x)
        if array.dtype.kind not in "biufc":
            raise NumgradTypeError(f"a {type(x).__name__} of dtype {array.dtype} is not numeric")
        return self.freeze(array, made=isinstance(x, range))  # no one can change a range

    def _capture(self, array: np.ndarray, source: Any) -> TracedArray:
        self.lines.current()
        found = self._inputs.get(id(array))
        if found is not None:
            known = self.aliases.setdefault(id(array), [])
            if all(source is not other for other in known):
                known.append(source)
            return found[1]
        if isinstance(source, Batched):  # in the place of one array for all examples
            refuse("the array of a batched tensor")
        if id(source) not in self.owners:
            found = self.source_of(array)
            if found is None and source is array:
                return self.freeze(array)
            if found is not None and found.owner is not source and id(found.owner) in self.owners:
                return self._view_of(found, array)
        value = self.graph.input(self._symbols(array.shape), array.dtype)
        return self._enter_captured(array, value, source, False)

    def _view_of(self, source: ArrayOrigin, array: np.ndarray) -> TracedArray:
        """A view that NumPy made of something around the function."""
        self.viewed.add(id(source.owner))
        if source.axes is None:
            value = self.graph.input(array.shape, array.dtype)
            return self._enter_captured(array, value, array, False, place=source.place)
        whole = self._capture(source.array, source.owner)
        if array is source.array:
            return whole
        traced = whole.view(to_axes(self, whole.value, source.axes))
        self._inputs[id(array)] = (array, traced)
        return traced

    def freeze(self, array: np.ndarray, *, made: bool = False) -> TracedArray:
        """An array of the trace's own, as it is now; it may be written to and used again."""
        if not array.ndim:
            return TracedArray(self, self.constant(array[()]))
        known = self._frozen.get(id(array))
        if known is not None and array.tobytes() == known.tobytes():
            return self._inputs[id(known)][1]
        twin = array.copy()
        self.frozen_at[id(twin)] = self.lines.current()
        self._frozen[id(array)] = twin
        self._alive.append(array)  # so that its id stays its own
        value = self.graph.input(array.shape, array.dtype)
        return self._enter_captured(twin, value, twin, True, made=made)

    def original(self, twin: np.ndarray) -> np.ndarray:
        """The array of which one that was frozen is a copy."""
        return next((x for x in self._alive if self._frozen.get(id(x)) is twin), twin)

    def _enter_captured(
        self,
        array: np.ndarray,
        value: Value,
        source: Any,
        frozen: bool,
        *,
        gradient: bool = False,
        made: bool = False,
        place: Source | None = None,
    ) -> TracedArray:
        self.captured.append(Captured(value, source, frozen, array, gradient, made, place))
        traced = TracedArray(self, value)
        self._inputs[id(array)] = (array, traced)
        return traced

    def look_at(self, value: Value) -> np.ndarray | None:
        """The numbers of an input that is an ndarray in a place around the function."""
        for captured in self.captured:
            source = captured.source
            if captured.value is value and type(source) is np.ndarray and id(source) in self.owners:
                self.looked_at.add(id(source))
                return source.copy()
        return None

    def is_input(self, array: np.ndarray) -> bool:
        """Whether an ndarray is read at each call."""
        return id(array) in self._inputs or self.source_of(array) is not None


def _itself(array: np.ndarray) -> ArrayOrigin:
    return ArrayOrigin(array, array, tuple(range(array.ndim)), None)
