"""Arrays of a trace: computed ones, those captured from around the function, shared results.

Note [Shared results]
---------------------
What a compiled function returns shares memory where the function itself would give the same object
or a view, and nowhere else. So a result that is an argument, or something captured, is handed back
as it came; a view of one, or of another result, is made by the same views of what the caller has
or gets. All else has memory of its own, equal results too. A view that is recorded is an operation
of the tape like any other, behind the compiled call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.lib.array_utils import byte_bounds

from numgrad.autograd.batching.batch import Batched, refuse
from numgrad.autograd.engine.task import edge_of, place_of
from numgrad.autograd.node import Node
from numgrad.autograd.variable import Tensor
from numgrad.compiler.call.captures import Captures
from numgrad.compiler.call.signature import Result
from numgrad.compiler.call.source import Source
from numgrad.compiler.graph.evaluate import parameters
from numgrad.compiler.graph.graph import Shape, Value
from numgrad.compiler.graph.sizes import Size, Sizes, hinted
from numgrad.compiler.messages import user_line
from numgrad.compiler.trace.builder import GraphBuilder
from numgrad.compiler.trace.views import (
    CONSTANTS,
    Step,
    put_at,
    shares_memory,
    steps_between,
    to_axes,
    written,
)
from numgrad.core.abstract import AbstractArray
from numgrad.core.interpreter import ThreadSettings, state
from numgrad.core.op import OPS
from numgrad.core.primitive import View
from numgrad.dataclass import dataclass
from numgrad.errors import NumgradRuntimeError, NumgradTraceError, NumgradTypeError


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
        base = self if self.base is None else self.base
        if tail is None or not (shared := shares_memory(self.contiguous, tail))[0]:
            return TracedArray(self.tracer, value)
        return TracedArray(self.tracer, value, base, (*self.steps, *tail), shared[1])

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
        base.write(put_at(self.tracer, self.steps, base._value, value))
        self._value, self._seen = value, base.version

    def stand_for(self, value: Value) -> None:
        """Take a value that is the same in numbers, which is no write."""
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
        return f"<traced {self._value.dtype} {self._value.shape}>"


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


@dataclass(frozen=True)
class Captured:
    """An input of the graph that is no argument.

    Attributes
    ----------
    value
        The input.
    owner
        The Tensor or ndarray it is read from at each call.
    frozen
        Whether ``owner`` is an ndarray that plain NumPy made during the trace.
    array
        The array that it was in the trace.
    gradient
        Whether what is read is ``owner.grad``.
    made
        Whether ``owner`` is an ndarray that numgrad made during the trace.
    source
        Where it is read, if that is no source of ``owner`` itself.
    """

    value: Value
    owner: Any
    frozen: bool
    array: Any
    gradient: bool = False
    made: bool = False
    source: Source | None = None


class CaptureBuilder(GraphBuilder):
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

    def _capture(self, array: np.ndarray, owner: Any) -> TracedArray:
        self.lines.current()
        cached = self._inputs.get(id(array))
        if cached is not None:
            known = self.aliases.setdefault(id(array), [])
            if all(owner is not other for other in known):
                known.append(owner)
            return cached[1]
        if isinstance(owner, Batched):  # in the place of one array for all examples
            refuse("the array of a batched tensor")
        if id(owner) not in self.owners:
            cached = self.source_of(array)
            if cached is None and owner is array:
                return self.freeze(array)
            if cached is not None and cached.owner is not owner and id(cached.owner) in self.owners:
                return self._view_of(cached, array)
        value = self.graph.input(self._symbols(array.shape), array.dtype)
        return self._enter_captured(array, value, owner, False)

    def _view_of(self, origin: ArrayOrigin, array: np.ndarray) -> TracedArray:
        """A view that NumPy made of something around the function."""
        self.viewed.add(id(origin.owner))
        if origin.axes is None:
            value = self.graph.input(array.shape, array.dtype)
            return self._enter_captured(array, value, array, False, source=origin.source)
        whole = self._capture(origin.array, origin.owner)
        if array is origin.array:
            return whole
        traced = whole.view(to_axes(self, whole.value, origin.axes))
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
        owner: Any,
        frozen: bool,
        *,
        gradient: bool = False,
        made: bool = False,
        source: Source | None = None,
    ) -> TracedArray:
        self.captured.append(Captured(value, owner, frozen, array, gradient, made, source))
        traced = TracedArray(self, value)
        self._inputs[id(array)] = (array, traced)
        return traced

    def look_at(self, value: Value) -> np.ndarray | None:
        """The numbers of an input that is an ndarray in a place around the function."""
        for captured in self.captured:
            owner = captured.owner
            if captured.value is value and type(owner) is np.ndarray and id(owner) in self.owners:
                self.looked_at.add(id(owner))
                return owner.copy()
        return None

    def is_input(self, array: np.ndarray) -> bool:
        """Whether an ndarray is read at each call."""
        return id(array) in self._inputs or self.source_of(array) is not None


def _itself(array: np.ndarray) -> ArrayOrigin:
    return ArrayOrigin(array, array, tuple(range(array.ndim)), None)


# ------------------------------------------------------------------------------------------ shared


@dataclass(frozen=True, eq=False)
class Views:
    """The views by which a result is made of something else, and whether they are recorded."""

    steps: Sequence[Step]
    sizes: Sizes
    recorded: bool

    def __call__(self, owner: Any, lengths: dict[int, int], as_tensor: bool) -> Any:
        """The views of an ndarray or a Tensor."""
        tensor = owner if isinstance(owner, Tensor) else Tensor(owner)
        with ThreadSettings(grad_enabled=state.grad_enabled and self.recorded):
            if not self.recorded:
                tensor = tensor.detach()
            for step in self.steps:
                params = parameters(step, lambda n: self.sizes.evaluate(n, lengths))  # pyright: ignore
                tensor = OPS[step.name](tensor, **params)
        return tensor if as_tensor else tensor._array


def share(tracer: Any, leaves: Sequence[Any], results: Sequence[Result]) -> list[Result]:
    """Note which results share memory; those returned are all that are to be computed or made."""
    inputs = {id(array): value for value, array in tracer.memory()}
    listed = list(results)
    gradients = {id(t._grad): t for t in tracer.with_gradients() if t._grad is not None}
    first_result: dict[int, int] = {}
    groups: dict[int, list[int]] = {}
    for k, leaf in enumerate(leaves):
        if not isinstance(leaf, Tensor | np.ndarray):
            continue
        if id(leaf) in first_result:
            listed[k] = Result(same=first_result[id(leaf)])
            continue
        first_result[id(leaf)] = k
        if id(leaf) in gradients and not _records(leaf):
            listed[k] = Result(gradient_of=gradients[id(leaf)])
            continue
        array = tracer.lift(leaf)
        root = array if array.base is None else array.base
        if id(root) in inputs:
            listed[k] = _of_input(tracer, leaf, array, root, inputs[id(root)]) or listed[k]
        else:
            groups.setdefault(id(root), []).append(k)
    for group in groups.values():
        if len(group) > 1:
            _share_one(tracer, leaves, listed, group)
    return listed


def _of_input(
    tracer: Any, leaf: Any, array: TracedArray, root: TracedArray, value: Value
) -> Result | None:
    """A result that is an input or a view of one; None if it has to be computed."""
    records = isinstance(leaf, Tensor) and leaf.requires_grad
    if records and root.version and leaf._grad_fn is not None:
        return None  # its history was made in the trace
    argument = tracer.given(value)
    if records and not any(_is_history_of(leaf, t) for t in argument if isinstance(t, Tensor)):
        return None
    if any(leaf is t for t in argument):
        return Result(origin=value)
    if not root._value.shape:
        return None
    return Result(origin=value, views=Views(_view_steps(array), tracer.sizes, records))


def _share_one(tracer: Any, leaves: Sequence[Any], listed: list[Result], group: list[int]):
    """Make results that share the memory of one array views of that array."""
    whole = [k for k in group if not _view_steps(tracer.lift(leaves[k]))]
    if not whole:
        return
    base = max(whole, key=lambda k: (_records(leaves[k]), -k))
    if listed[base].value is None or not listed[base].value.shape:  # pyright: ignore
        return
    for k in group:
        if k != base and (not _records(leaves[k]) or _is_history_of(leaves[k], leaves[base])):
            steps = _view_steps(tracer.lift(leaves[k]))
            listed[k] = Result(same=base, views=Views(steps, tracer.sizes, _records(leaves[k])))


def _view_steps(array: TracedArray) -> tuple[Step, ...]:
    """The steps of a view that are more than being a constant, of which ``Views`` knows."""
    return tuple([step for step in array.steps if step.name not in CONSTANTS])


def _is_history_of(view: Tensor, whole: Any) -> bool:
    """Whether gradients flow from a view to what it shows by views alone.

    They do not after ``detach``, through a user's Function, or past hooks, which the trace has.
    """
    if not _records(whole):
        return False
    origin, edge = edge_of(whole), edge_of(view)
    while type(edge) is not type(origin) or place_of(edge) != place_of(origin):
        node = edge[0] if type(edge) is tuple else edge
        if type(node) is not Node or node.extras is not None or not isinstance(node.call.op, View):
            return False
        edge = node.edges[0]
    is_argument = type(whole._array) is TracedArray
    return not (is_argument and whole._grad_fn is None and whole._extra is not None)


def _records(leaf: Any) -> bool:
    return isinstance(leaf, Tensor) and leaf.requires_grad


# ------------------------------------------------------------------------------------------- shown


_Form = tuple[tuple[int, ...], tuple[int, ...], np.dtype]


def _form(array: np.ndarray) -> _Form:
    return array.shape, array.strides, array.dtype


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


@dataclass(frozen=True, eq=False)
class Shown:
    """Where a view lies in an array: ``of`` is the form of that array, ``form`` its own."""

    of: _Form
    form: _Form
    offset: int

    def __call__(self, owner: Any) -> Any:
        """The view of an array, or of that of a Tensor; None if it has another form."""
        array = owner._array if isinstance(owner, Tensor) else owner
        if type(array) is not np.ndarray or _form(array) != self.of:
            return None
        shape, strides, dtype = self.form
        if array.flags.c_contiguous:
            return np.ndarray(shape, dtype, array, self.offset, strides)
        return np.asarray(_Memory(array, shape, strides, dtype, _address(array) + self.offset))


class _Memory:
    """A piece of the memory of an array, which it keeps alive."""

    def __init__(
        self, array: np.ndarray, shape: tuple, strides: tuple, dtype: np.dtype, address: int
    ) -> None:
        self.array = array
        self.__array_interface__ = {
            "shape": shape,
            "strides": strides,
            "typestr": dtype.str,
            "data": (address, not array.flags.writeable),
            "version": 3,
        }


@dataclass(frozen=True)
class ArrayOrigin:
    """The array from which an ndarray is read at each call.

    Attributes
    ----------
    owner
        An ndarray or a Tensor in a place around the function.
    array
        Its memory.
    axes
        By which order of its axes it becomes the ndarray, if by one.
    source
        That of the ndarray itself; None if ``axes`` are given.
    """

    owner: Any
    array: np.ndarray
    axes: tuple[int, ...] | None
    source: Source | None


def source_of(array: np.ndarray, captures: Captures) -> ArrayOrigin | None:
    """The captured array whose memory an ndarray shows; None if it has its own."""
    if id(array) in captures.arrays:
        return ArrayOrigin(array, array, tuple(range(array.ndim)), None)
    owner = _owner(array)
    low, high = byte_bounds(array)
    for source in captures.arrays.values():
        value = source.value
        whole = value._array if isinstance(value, Tensor) else value
        if type(whole) is not np.ndarray or _owner(whole) is not owner:
            continue
        first, last = byte_bounds(whole)
        if first <= low and high <= last:
            return ArrayOrigin(value, whole, *_how(array, whole, source))
    return None


def _owner(array: np.ndarray) -> Any:
    """The object whose memory it is."""
    value: Any = array
    while isinstance(value, np.ndarray) and value.base is not None:
        value = value.base
    return value


def _how(
    array: np.ndarray, whole: np.ndarray, source: Source
) -> tuple[tuple[int, ...] | None, Source | None]:
    """The order of axes that makes one of the other, or where to find it."""
    if array.dtype == whole.dtype and _address(array) == _address(whole):
        left = list(zip(whole.shape, whole.strides, strict=True))
        axes: list[int] = []
        for pair in zip(array.shape, array.strides, strict=True):
            axis = next((k for k, p in enumerate(left) if p == pair and k not in axes), None)
            if axis is None:
                break
            axes.append(axis)
        else:
            if len(axes) == whole.ndim:
                return tuple(axes), None
    shown = Shown(_form(whole), _form(array), _address(array) - _address(whole))
    inner = replace(source, value=array, name=f"{source.name}[...]")
    inner.shown = shown
    return None, inner
