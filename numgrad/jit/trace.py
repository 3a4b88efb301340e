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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Self

import numpy as np

from numgrad.autograd.variable import Tensor, refresh
from numgrad.errors import NumgradTypeError
from numgrad.jit.arrays import TracedArray, user_line
from numgrad.jit.graph import Graph, Meta, Shape, Value
from numgrad.jit.interpreter import TraceInterpreter
from numgrad.jit.shapes import same_shape
from numgrad.jit.sizes import Size
from numgrad.op.base import OPS, Op, state


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
    """

    value: Value
    source: Any
    frozen: bool


class Tracer:
    """Records one run of a function as a graph: Note [Tracing a function].

    Parameters
    ----------
    dynamic
        Whether lengths of 2 and more are symbols; else they are numbers of this call.
    is_source
        Says of an ndarray whether it was there before the trace, so that it is read at each call.

    Attributes
    ----------
    graph
        What was recorded.
    captured
        Inputs of the graph after the arguments.
    """

    def __init__(
        self, *, dynamic: bool = True, is_source: Callable[[np.ndarray], bool] | None = None
    ) -> None:
        self.graph = Graph()
        self.sizes = self.graph.sizes
        self.sizes.on_number = self._size_as_number
        self.captured: list[Captured] = []
        self.dynamic, self.is_source = dynamic, is_source or _always
        self.ended = False
        self.line: str | None = None
        """Where nodes come from, if not from the line that runs."""
        self.aliases: dict[Value, list[Any]] = {}
        """Further Tensors and arrays over the memory of something captured."""
        self._inputs: dict[int, tuple[Any, TracedArray]] = {}
        self._frozen: dict[int, np.ndarray] = {}
        self._alive: list[np.ndarray] = []
        self.units: dict[Value, int] = {}
        """Arrays that are 1 at one place and else 0, and the place."""
        self._zeros: set[Value] = set()
        self._constants: dict[tuple, Value] = {}
        self._before: dict[str, Any] | None = None

    def __enter__(self) -> Self:
        self._before = state.set(
            interpreters=(*state.interpreters, TraceInterpreter(self)), tracer=self, anomaly=False
        )
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._before is not None
        state.set(**self._before)
        self.ended = True

    # ------------------------------------------------------------------------------- arguments

    def array(self, shape: Sequence[int], dtype: Any, requires_grad: bool = False) -> Tensor:
        """An argument that is an array."""
        value = self.graph.input(self._symbols(shape), np.dtype(dtype))
        return Tensor(TracedArray(self, value), requires_grad)  # pyright: ignore

    def number(self, value: Any) -> Tensor:
        """An argument that is a Python number of the type of ``value``."""
        dtype = np.dtype(type(value))
        weak = dtype.kind != "b"
        return Tensor(TracedArray(self, self.graph.input((), dtype, weak=weak)))  # pyright: ignore

    def _symbols(self, shape: Sequence[int]) -> Shape:
        return tuple(map(self.sizes.axis, shape)) if self.dynamic else tuple(shape)

    # ---------------------------------------------------------------------------------- results

    def value(self, x: Any) -> Value:
        """What stands for a Tensor, array or number in the graph."""
        return self.lift(x).value

    # --------------------------------------------------------------------------- what is around

    def lift(self, x: Any, dtype: Any = None) -> TracedArray:
        """Anything as a traced array; a number promotes like one unless a dtype is given."""
        if isinstance(x, Tensor):
            if x._memory is not None:
                refresh(x)
            array: Any = x._array
            return array if type(array) is TracedArray else self._capture(array, x)
        if type(x) is TracedArray:
            return x
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
        return self._freeze(array)

    def _capture(self, array: np.ndarray, source: Any) -> TracedArray:
        found = self._inputs.get(id(array))
        if found is not None:
            known = self.aliases.setdefault(found[1].value, [])
            if all(source is not other for other in known):
                known.append(source)
            return found[1]
        if source is array and not self.is_source(array):
            return self._freeze(array)
        value = self.graph.input(self._symbols(array.shape), array.dtype)
        return self._enter_captured(array, value, source, False)

    def _freeze(self, array: np.ndarray) -> TracedArray:
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
        return self._enter_captured(twin, value, twin, True)

    def _enter_captured(
        self, array: np.ndarray, value: Value, source: Any, frozen: bool
    ) -> TracedArray:
        self.captured.append(Captured(value, source, frozen))
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

    def unit(self, shape: tuple[int, ...], place: int, dtype: np.dtype) -> TracedArray:
        """Zeros with a 1 at one place: a stack of constants, so that reading one folds."""
        return TracedArray(self, self.unit_value(shape, place, dtype))

    def unit_value(self, shape: tuple[int, ...], place: int, dtype: np.dtype) -> Value:
        """The value of ``unit``, of which views are known to be such or nothing but zeros."""
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
        self._zeros.add(value)
        return value

    def is_zero(self, array: Any) -> bool:
        """Whether an array is known to be zeros for want of a dependence."""
        return type(array) is TracedArray and array.value in self._zeros

    def differentiable(self, x: Any) -> TracedArray:
        """An argument to be differentiated: a number is one of float64, not of its type."""
        array = self.lift(x)
        if not array.value.weak:
            return array
        kind = np.float64 if array.dtype.kind in "iu" else array.dtype
        return TracedArray(self, self.strong(array.value, kind))

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

    # ------------------------------------------------------------------------------------ nodes

    def add(
        self,
        op: Op | str,
        values: Sequence[Value],
        params: dict[str, Any],
        results: Sequence[Meta],
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


def _always(source: np.ndarray) -> bool:
    return True
