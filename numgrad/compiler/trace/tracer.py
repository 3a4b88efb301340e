"""The tracer: what a function computes, written into a graph while the function runs once.

Note [Tracing a function]
-------------------------
Arguments are Tensors over ``TracedArray``s, which know the value of the graph that they are.
Tape, hooks and modes are those of eager code: ``TraceInterpreter`` replaces the computing alone.
So gradients are traced as they are computed, by the formulas. What belongs to nobody in the trace,
Tensors and ndarrays of the world around, is *captured*: an input of the graph, read at each call.
An ndarray that plain NumPy made during the trace is captured too, but *frozen*: there is nothing to
read at the next call, so its content is part of the compiled function.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from math import prod
from typing import Any, Self

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.compiler.graph import evaluate
from numgrad.compiler.graph.graph import CALL, Graph, Node, Shape, Value
from numgrad.compiler.graph.graph import Meta as Result
from numgrad.compiler.graph.shapes import hinted, same_shape, specialised
from numgrad.compiler.graph.sizes import Size
from numgrad.compiler.trace.arrays import TracedArray, user_line
from numgrad.compiler.trace.closure import Place
from numgrad.compiler.trace.cut import extract
from numgrad.compiler.trace.effects import Captured, Effects, GradientWrite
from numgrad.compiler.trace.interpreter import TraceInterpreter
from numgrad.compiler.trace.shown import Source
from numgrad.compiler.trace.views import to_axes, to_shape
from numgrad.core.interpreter import eagerly, state
from numgrad.core.op import OPS, Op, raw
from numgrad.errors import NumgradTypeError


class Tracer(Effects):
    """Records one run of a function as a graph: Note [Tracing a function].

    Parameters
    ----------
    dynamic
        Whether lengths of 2 and more are symbols; else they are numbers of this call.
    source_of
        Gives for an ndarray what was there before the trace and is read at each call, whose memory
        it shows, if any; without it every ndarray is such itself.

    Attributes
    ----------
    graph
        What was recorded.
    captured
        Inputs of the graph after the arguments.
    gradients
        What ``.grad`` of captured tensors holds after each call, where the function changes it.
    without_gradient
        Captured tensors whose ``.grad`` the function found to be None: it relies on that.
    """

    def __init__(
        self,
        *,
        dynamic: bool = True,
        source_of: Callable[[np.ndarray], Source | None] | None = None,
    ) -> None:
        self.graph = Graph()
        self.sizes = self.graph.sizes
        self.sizes.on_number = self._size_as_number
        self.captured: list[Captured] = []
        self.gradients: list[GradientWrite] = []
        self.without_gradient: list[Tensor] = []
        self.dynamic, self.source_of = dynamic, source_of or _itself
        self.ended = False
        self.line: str | None = None
        """Where nodes come from, if not from the line that runs."""
        self.aliases: dict[int, list[Any]] = {}
        """Tensors and arrays over the memory of something captured, by the id of the array."""
        self._inputs: dict[int, tuple[Any, TracedArray]] = {}
        self._frozen: dict[int, np.ndarray] = {}
        self._alive: list[np.ndarray] = []
        self.owners: Collection[int] = ()
        """The ids of Tensors and ndarrays that are read at each call."""
        self.numbers: dict[Value, Any] = {}
        """What arguments are in the call that is traced, if that is known."""
        self.units: dict[Value, int] = {}
        """Arrays that are 1 at one place and else 0, and the place."""
        self.absent: set[Value] = set()
        """Zeros that stand for no dependence."""
        self._gradients: dict[int, tuple[Tensor, Any]] = {}
        self._standins: dict[int, Any] = {}
        self._stored: dict[int, Value] = {}
        self._arguments: list[tuple[Value, TracedArray]] = []
        self._tensors: list[tuple[Value, Tensor]] = []
        self._constants: dict[tuple, Value] = {}
        self._before: dict[str, Any] | None = None

    def __enter__(self) -> Self:
        ground = TraceInterpreter(self)
        self._before = state.set(
            interpreters=(*state.interpreters, ground), ground=ground, anomaly=False
        )
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._before is not None
        state.set(**self._before)
        self._collect_gradients()
        self.ended = True
        if exception[0] is not None:
            return
        captured = [(found.value, self._inputs[id(found.array)][1]) for found in self.captured]
        for target, array in (*self._arguments, *captured):
            if array.value is not self._stored.get(id(array), target):
                self.graph.writes.append((target, array.value))

    # ------------------------------------------------------------------------------- arguments

    def array(
        self,
        shape: Sequence[int],
        dtype: Any,
        requires_grad: bool = False,
        *,
        donated: bool = False,
    ) -> Tensor:
        """An argument that is an array; one that is donated may be written to."""
        value = self.graph.input(self._symbols(shape), np.dtype(dtype))
        array = TracedArray(self, value)
        self._arguments.append((value, array))
        tensor = Tensor(array, requires_grad)  # pyright: ignore
        self._tensors.append((value, tensor))
        if not donated:
            array.locked = (
                "the target is an argument of the compiled function, which belongs to the caller; "
                "clone() it, or say with donate=... that its memory may be used"
            )
        return tensor

    def number(self, value: Any) -> Tensor:
        """An argument that is a Python number of the type of ``value``."""
        dtype = np.dtype(type(value))
        array = TracedArray(self, self.graph.input((), dtype, weak=dtype.kind != "b"))
        self._arguments.append((array.value, array))
        tensor = Tensor(array)  # pyright: ignore
        self._tensors.append((array.value, tensor))
        return tensor

    def _symbols(self, shape: Sequence[int]) -> Shape:
        return tuple(map(self.sizes.axis, shape)) if self.dynamic else tuple(shape)

    # ---------------------------------------------------------------------------------- results

    def value(self, x: Any) -> Value:
        """What stands for a Tensor, array or number in the graph."""
        return self.lift(x).value

    def examples(self, arrays: Sequence[TracedArray]) -> tuple[list[np.ndarray], bool]:
        """What arrays are in the call that is traced, for code that wants numbers.

        Ones, and False, if that depends on effects, or on gradients that arrive in a backward.
        """
        values = [a.value for a in arrays]
        known = self.numbers | {c.value: c.array for c in self.captured}
        part = extract(self.graph, self.graph.inputs, values)
        needed = {v for node in part.nodes for v in node.inputs} | set(part.outputs)
        if any(map(_has_effects, part.nodes)) or any(
            new in needed and old not in known
            for old, new in zip(self.graph.inputs, part.inputs, strict=True)
        ):
            return [np.ones(specialised(v.shape), v.dtype) for v in values], False
        given = [known.get(v) for v in self.graph.inputs]
        given = [np.ones(hinted(v.shape), v.dtype) if x is None else x for v, x in zip(
            self.graph.inputs, given, strict=True)]  # fmt: skip
        with eagerly(raw, grad_enabled=False):
            return list(evaluate.compile_graph(part).run(*given)), True

    def memory(self) -> Iterator[tuple[Value, TracedArray]]:
        """Inputs that are memory of the caller or around the function, and the arrays over it."""
        yield from self._arguments
        for found in self.captured:
            if not (found.frozen or found.gradient):
                yield found.value, self._inputs[id(found.array)][1]

    def given(self, value: Value) -> list[Any]:
        """The Tensors and ndarrays that stand for an input."""
        found = [t for v, t in self._tensors if v is value]
        for captured in self.captured:
            if captured.value is value:
                found += [captured.source, *self.aliases.get(id(captured.array), ())]
        return found

    # --------------------------------------------------------------------------- what is around

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
        return self.freeze(array)

    def _capture(self, array: np.ndarray, source: Any) -> TracedArray:
        found = self._inputs.get(id(array))
        if found is not None:
            known = self.aliases.setdefault(id(array), [])
            if all(source is not other for other in known):
                known.append(source)
            return found[1]
        if id(source) not in self.owners:
            found = self.source_of(array)
            if found is None and source is array:
                return self.freeze(array)
            if found is not None and found.owner is not source and id(found.owner) in self.owners:
                return self._view_of(found, array)
        value = self.graph.input(self._symbols(array.shape), array.dtype)
        return self._enter_captured(array, value, source, False)

    def _view_of(self, source: Source, array: np.ndarray) -> TracedArray:
        """A view that NumPy made of something around the function."""
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
        self._frozen[id(array)] = twin
        self._alive.append(array)  # so that its id stays its own
        value = self.graph.input(array.shape, array.dtype)
        return self._enter_captured(twin, value, twin, True, made=made)

    def is_input(self, array: np.ndarray) -> bool:
        """Whether an ndarray is read at each call."""
        return id(array) in self._inputs or self.source_of(array) is not None

    def _enter_captured(
        self,
        array: np.ndarray,
        value: Value,
        source: Any,
        frozen: bool,
        *,
        gradient: bool = False,
        made: bool = False,
        place: Place | None = None,
    ) -> TracedArray:
        self.captured.append(Captured(value, source, frozen, array, gradient, made, place))
        traced = TracedArray(self, value)
        self._inputs[id(array)] = (array, traced)
        return traced

    def constant(self, number: Any, dtype: Any = None) -> Value:
        """A number of the graph, one node for equal ones."""
        if dtype is not None:
            dtype = np.dtype(dtype)
        key = (type(number), repr(number), dtype)
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self.graph.constant(number, dtype)
        return found

    def filled(self, shape: Shape, number: Any, dtype: Any) -> TracedArray:
        """An array with one number everywhere."""
        value = self.constant(number, dtype)
        if shape:
            shape = tuple(shape)
            op, params = OPS["broadcast_to"], {"shape": shape}
            (value,) = self.add(op, (value,), params, [(shape, value.dtype)])
        return TracedArray(self, value)

    def unit_value(self, shape: tuple[int, ...], place: int, dtype: np.dtype) -> Value:
        """Zeros with a 1 at one place: a stack of constants, so that reading one folds.

        Views of it are known to be such or nothing but zeros.
        """
        numbers = [self.constant(0, dtype), self.constant(1, dtype)]
        if not shape:
            return numbers[1]
        count = prod(shape)
        values = [numbers[k == place] for k in range(count)]
        (value,) = self.add(OPS["stack"], values, {"axis": 0}, [((count,), dtype)])
        if len(shape) > 1:
            (value,) = self.add(OPS["reshape"], (value,), {"shape": shape}, [(shape, dtype)])
        self.units[value] = place
        return value

    def zero_value(self, shape: Shape, dtype: np.dtype) -> Value:
        """Zeros that a gradient does not have to be multiplied with: there is none."""
        value = self.graph.constant(0, dtype)
        if shape:
            op, params = OPS["broadcast_to"], {"shape": shape}
            (value,) = self.add(op, (value,), params, [(shape, dtype)])
        self.absent.add(value)
        return value

    def _size_as_number(self, size: Size) -> Tensor:
        return Tensor(TracedArray(self, self.graph.size(size)))  # pyright: ignore

    def strong(self, value: Value, dtype: Any = None) -> Value:
        """A value that promotes like an array of its dtype."""
        dtype = value.dtype if dtype is None else np.dtype(dtype)
        if not value.weak and value.dtype == dtype:
            return value
        if value.constant is not None:
            return self.constant(value.constant, dtype)
        params = {"dtype": dtype, "copy": True}
        return self.add(OPS["astype"], (value,), params, [(value.shape, dtype)])[0]

    def summed(self, value: Value, shape: Shape) -> Value:
        """The sum over the axes along which ``shape`` was broadcast to that of the value."""
        lengths, lead = self.resolved(value.shape), value.ndim - len(shape)
        axes = (
            *range(lead),
            *[lead + k for k, n in enumerate(shape) if n == 1 and lengths[lead + k] != 1],
        )
        if axes:
            params = {"axis": axes, "dtype": None, "keepdims": False}
            kept = tuple([n for k, n in enumerate(lengths) if k not in axes])
            (value,) = self.add(OPS["sum"], (value,), params, [(kept, value.dtype)])
        return to_shape(self, value, shape)

    # ------------------------------------------------------------------------------------ nodes

    def add(
        self,
        op: Op | str,
        values: Sequence[Value],
        params: dict[str, Any],
        results: Sequence[Result],
        *,
        weak: bool = False,
    ) -> tuple[Value, ...]:
        """Append a node to the graph."""
        line = self.line or user_line()
        return self.graph.add(op, values, params, results, weak=weak, line=line)

    def resolved(self, shape: Shape) -> Shape:
        """A shape with all that is known of its lengths by now."""
        resolve = self.sizes.resolve
        return tuple([n if type(n) is int else resolve(n) for n in shape])

    def same_shape(self, a: Shape, b: Shape) -> bool:
        """Whether two shapes are equal without any guard."""
        return same_shape(self.resolved(a), self.resolved(b))


def _has_effects(node: Node) -> bool:
    return node.op == CALL and node.params["effects"]


def _itself(array: np.ndarray) -> Source:
    return Source(array, array, tuple(range(array.ndim)), None)
