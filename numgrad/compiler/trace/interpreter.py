"""Operations and arrays in a trace: nodes of the graph, and the tape as in eager code.

Note [Constants of a trace]
---------------------------
Graphs are differentiated again: steps of loops, and backwards of which a second derivative is
asked. What the tape does not follow, by ``detach`` or in ``no_grad``, is therefore cut off in the
graph as well, by an operation ``detached``, or ``unrecorded``, through which tangents flow as they
do in ``no_grad``. Both are views and take no time. A backward that a user asks for without a graph
is such a constant; one of a transform or of a formula is not, since a trace is to follow it.

Note [Functions in a trace]
---------------------------
Forward and backward are traced through if they consist of operations on Tensors. If they need
numbers (``x.numpy()``, a library of C) they are called back instead, at each call of the compiled
function: the forward with its operands, the backward with these again, for which it runs the
forward once more, so that nothing has to be kept between the two. Shapes and dtypes of the results
are those that the forward has in the call that is traced.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from math import prod
from typing import Any, Protocol, Self

import numpy as np

from numgrad.autograd.batching.selected import example_index
from numgrad.autograd.engine.backward import grad
from numgrad.autograd.engine.task import edge_of
from numgrad.autograd.function.function_call import DeadEnd, Definition, FunctionCtx, meta_of, run
from numgrad.autograd.history import record
from numgrad.autograd.hooks import RemovableHandle
from numgrad.autograd.node import Node
from numgrad.autograd.variable import Tensor, refresh
from numgrad.compiler.graph.graph import Value
from numgrad.compiler.messages import user_line
from numgrad.compiler.trace.arrays import TracedArray, settle
from numgrad.compiler.trace.custom_rules import ending, put_hook, run_ruled
from numgrad.compiler.trace.side_effects import is_watching
from numgrad.compiler.trace.traced_calls import record_call
from numgrad.compiler.trace.tracer import RepeatedValues, Tracer
from numgrad.compiler.trace.views import TracedRegion, canonical_index, fitted, written
from numgrad.core.abstract import AbstractArray, AbstractLength, broadcast_lengths, zeros
from numgrad.core.asides import aside, handlers_aside, runs_aside
from numgrad.core.draws import Draw, Draws
from numgrad.core.formula import Meta
from numgrad.core.interpreter import State, bind, eagerly, state
from numgrad.core.op import OPS, Op
from numgrad.core.plan import Call
from numgrad.core.refusals import Refusals
from numgrad.core.tree import leaves
from numgrad.errors import NumgradError, NumgradIndexError, NumgradTraceError, NumgradTypeError
from numgrad.libraries import is_of_arrays
from numgrad.operations.shape import as_operand, holds_tensors, stacked
from numgrad.tensors.recording import RecordingInterpreter

# ruff: noqa: D102 (the docstrings are those of ``BaseInterpreter``)


_SHARED = (
    "the memory became that of another tensor by .data = ..., and a compiled function tells the "
    "two apart; write to it before, or give .data a clone()"
)


class TraceInterpreter(RecordingInterpreter):
    """Appends what operations compute to the graph of a tracer, in a ``with`` block."""

    deferred = True

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.inner = tracer.inner
        self._before: dict[str, Any] = {}
        self._refusals = Refusals(traced=True)
        self._handlers = ExitStack()

    def __enter__(self) -> Self:
        self._refusals.__enter__()
        try:
            if not self.inner:
                self._handlers.enter_context(handlers_aside())
            stack = (*state.interpreters, self)
            self._before = state.set(interpreters=stack, ground=self, anomaly=False, saved_hooks=())
            return self
        except BaseException:  # such as a signal handler's
            self.__exit__(*sys.exc_info())
            raise

    def __exit__(self, *exception: object) -> None:
        try:
            state.set(**self._before)
            self.tracer.finish(failed=exception[0] is not None)
        finally:
            self._handlers.close()
            self._refusals.__exit__(*exception)  # pyright: ignore

    def bind(self, op: Op, args: tuple, params: dict[str, Any]) -> Any:
        if self._runs_aside(args):
            with aside():
                return bind(op, args, params)
        profile = sys.getprofile()
        if profile is None or not is_watching(profile):
            result = super().bind(op, args, params)
            if self._outermost.promotion is not None:
                self._outermost.promotion.mark(result)
            return result
        sys.setprofile(None)  # the user's code runs elsewhere
        try:
            return super().bind(op, args, params)
        finally:
            sys.setprofile(profile)

    def operand(self, op: Op, a: Any) -> tuple[Any, Any]:
        """An argument as the tape keeps it, and as a traced array or a number."""
        if isinstance(a, Tensor):
            if a._memory is not None:
                refresh(a)
            if state.constant and (a._requires_grad or self.inner):
                return a, self._constant("unrecorded", a)
            return a, self.tracer.lift(a)
        if a is None or type(a) in (int, float, complex):
            return a, a
        if isinstance(a, list | tuple) and holds_tensors(a):
            whole = stacked(a)
            return whole, whole._array
        array = self.tracer.lift(a)
        return Tensor(array), array  # pyright: ignore

    def run(self, op: Op, arrays: list[Any], params: dict[str, Any]) -> tuple[Any, Call]:
        """Append the call to the graph."""
        if op.name in ("index_put", "put"):
            settle(*arrays[:2] if op.name == "index_put" else (arrays[0], arrays[-1]))
        promotion = self._outermost.promotion
        if promotion is not None:
            promotion.check(op, arrays)
        return record_call(self.tracer, op, arrays, params)

    def apply_function(self, function: Any, args: tuple, keywords: dict[str, Any]) -> tuple:
        return traced(self.tracer, function, args, keywords)

    def once(self, message: str) -> None:
        raise NumgradTraceError(f"{user_line() or 'jit'}: {message}")

    def remember_draws(self) -> Any:
        return RepeatedValues(self.tracer)

    def begun(self, generator: Any, like: Any = None) -> None:
        self.tracer.begin(generator, like)

    def wrapped(self, source: Any) -> None:
        tracer = self._outermost
        known = tracer.sources is None or id(source) in (*tracer.sources, *tracer.begun)
        if not known and source is not np.random.get_bit_generator():  # pyright: ignore
            raise NumgradTraceError(
                "random.Generator: NumPy's generator was made while the function is traced, and "
                "not at each call, or is found in no variable around it; make it in the function "
                "with ng.random.default_rng(seed), or hold it outside in a variable"
            )

    def reseeded(self, seed: Any) -> None:
        self.tracer.reseed(seed)

    # ----------------------------------------------------------------------------------- arrays

    def lift(self, x: Any, dtype: Any = None) -> TracedArray:
        return self.tracer.lift(x, dtype)

    def detached(self, x: Any) -> TracedArray:
        return self._constant("detached", x)

    def ask(self, what: str, x: Tensor) -> None:
        frame = sys._getframe(2)  # of who looks at the property
        if not is_of_arrays(frame) and self.follows(x):
            raise NumgradTraceError(
                f"{what}: a compiled loop or branch is the same whether it is differentiated or "
                "not, so its steps cannot ask; decide before the loop, or run it outside of ng.jit"
            )

    def hooked(self, tensor: Tensor, handle: RemovableHandle) -> None:
        put_hook(self.tracer, tensor, handle)

    def saved_hooks(self) -> None:
        if self.inner:
            raise NumgradTraceError(
                "saved_tensors_hooks: a step of a compiled loop or branch saves no tensors, since "
                "its gradient computes them anew; enter the context outside of ng.jit"
            )

    def node_hook(self, hook: Any) -> Any:
        return ending(hook)

    def follows(self, tensor: Tensor) -> bool:
        return self.tracer.follows(tensor)

    def replaced(self, tensor: Tensor, x: Tensor) -> TracedArray:
        old, new = tensor._array, self.tracer.lift(x)
        if type(old) is not TracedArray or old.tracer is not self.tracer:
            raise NumgradTraceError(
                "data: the tensor was made outside of what is compiled, which cannot give it other "
                "memory; write to it, as in tensor.data.copy_(values)"
            )
        if new.place == old.place:
            return old
        if not (self.inner or tensor._requires_grad) or old.dtype.kind not in "fc":
            return new
        if new.shape != old.shape or new.dtype != old.dtype:
            raise NumgradTraceError(
                f"data: values of shape {new.shape} and dtype {new.dtype} for a tensor of shape "
                f"{old.shape} and dtype {old.dtype}, whose gradients are compiled; make a new one"
            )
        made = TracedArray(self.tracer, written(self.tracer, "detached", old.value, new.value))
        made.locked = (new if new.base is None else new.base).locked = _SHARED
        return made

    def _constant(self, name: str, x: Any) -> TracedArray:
        """Note [Constants of a trace]."""
        array = self.tracer.lift(x)
        if array.dtype.kind not in "fc" or array.value.constant is not None:
            return array
        meta = [(array.shape, array.dtype)]
        return array.view(self.tracer.add(OPS[name], (array.value,), {}, meta)[0])

    def numbers(self, x: Any) -> Any:
        if not self._runs_aside((x,)):
            return None
        with aside():
            return state.ground.numbers(x)

    def _runs_aside(self, args: Sequence[Any]) -> bool:
        """Whether a finalizer calls, with values that are not traced: Note [Asides]."""
        arrays = [getattr(a, "_array", a) for a in args]
        if any(isinstance(a, AbstractArray) for a in arrays):
            return False
        return any(isinstance(a, np.ndarray) for a in arrays) and runs_aside(self._refusals.entry)

    def equal(self, a: Any, b: Any) -> bool:
        return _alike(self.tracer.lift(a).value, self.tracer.lift(b).value)

    def reads(self, data: Any) -> bool:
        self.tracer.lines.current()
        parts = leaves(data) if isinstance(data, list | tuple) else (data,)
        return any(
            isinstance(item, Tensor | AbstractLength)
            or (isinstance(item, np.ndarray) and self.tracer.is_input(item))
            for item in parts
        )

    def found(self, array: np.ndarray) -> bool:
        if not isinstance(array, np.ndarray):  # scipy's dok keeps none
            return False
        return self._outermost.is_input(array)

    def look_at(self, array: np.ndarray) -> None:
        """Let the numbers of an ndarray around the function be compared at each call."""
        tracer = self._outermost
        origin = tracer.source_of(array)
        if origin is not None and type(origin.owner) is np.ndarray:
            tracer.looked_at.add(id(origin.owner))

    @property
    def _outermost(self) -> Tracer:
        """The tracer of the whole function."""
        tracer: Any = self.tracer
        while getattr(tracer, "around", None) is not None:
            tracer = tracer.around
        return tracer

    def made(self, array: Any) -> Any:
        if isinstance(array, AbstractArray):
            return array
        if runs_aside(self._refusals.entry):
            return State.ground.made(array)
        return self.tracer.freeze(array, made=True).copy()

    def filled(self, shape: Any, value: Any, dtype: Any = None) -> Any:
        if runs_aside(self._refusals.entry):
            return State.ground.filled(shape, value, dtype)
        lengths = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
        if not all(isinstance(n, int | AbstractLength) for n in lengths):
            return self.made(np.full(shape, value, dtype))
        if isinstance(value, int | float | complex | np.generic):
            number = np.full((), value, dtype)
            return self.tracer.filled(lengths, number.item(), number.dtype)
        array = self.tracer.lift(value)
        kind = array.dtype if dtype is None else np.dtype(dtype)
        return TracedArray(self.tracer, fitted(self.tracer, array.value, lengths, kind))

    def zeros(self, shape: Any, dtype: Any) -> Any:
        return self.filled(shape, 0, dtype)

    def ones(self, shape: Any, dtype: Any) -> Any:
        return self.filled(shape, 1, dtype)

    def empty(self, shape: Any, dtype: Any) -> Any:
        return self.filled(shape, 0, dtype)

    def unit(self, shape: tuple[int, ...], position: int, dtype: np.dtype) -> TracedArray:
        return TracedArray(self.tracer, self.tracer.unit_value(shape, position, dtype))

    def units(self, shape: tuple[int, ...], positions: range, dtype: np.dtype) -> TracedArray:
        # not a stack of numbers: a kernel would compare with the place of each
        whole = OPS["iota"](length=prod(shape))
        rows = OPS["reshape"](
            whole[positions.start : positions.stop], (len(positions), *[1] * len(shape))
        )
        result = OPS["equal"](rows, OPS["reshape"](whole, shape))
        return self.tracer.lift(OPS["astype"](result, dtype))

    def is_zero(self, array: Any) -> bool:
        return type(array) is TracedArray and array.value in self.tracer.absent

    def differentiable(self, x: Any) -> Tensor:
        array = self.tracer.lift(x)
        if array.value.weak:  # a number, which is one of float64, not of its type
            kind = np.float64 if array.dtype.kind in "iu" else array.dtype
            array = TracedArray(self.tracer, self.tracer.strong(array.value, kind))
        return Tensor(array)  # pyright: ignore

    # ----------------------------------------------------------------------------------- memory

    def store(self, target: Tensor, value: Any) -> None:
        array = self.tracer.lift(target)
        array.write(fitted(self.tracer, self.tracer.lift(value).value, array.shape, array.dtype))

    def shows_row(self, whole: Any, row: Any) -> None:
        array, base = (getattr(x, "_array", None) for x in (row, whole))
        if type(array) is TracedArray and type(base) is TracedArray and array.base is None:
            array.row_of = base if base.base is None else base.base

    def region(self, owner: Tensor, view: Tensor) -> TracedRegion:
        whole, shown = self.tracer.lift(owner), self.tracer.lift(view)
        of_whole, of_part = (Meta(a.shape, a.dtype) for a in (whole, shown))
        return TracedRegion(of_whole, of_part, shown.steps[len(whole.steps) :])

    def gradient(self, tensor: Tensor) -> Any:
        return self.tracer.gradient(tensor)

    def lacks_gradient(self, tensor: Tensor) -> None:
        if self.tracer.is_argument(tensor):
            raise NumgradTraceError(
                "grad: what an argument of a compiled function has as .grad is not passed to it; "
                "give the gradient as an argument, or enclose the tensor instead of passing it"
            )

    def set_gradient(self, tensor: Tensor, value: Any) -> None:
        if self.tracer.is_argument(tensor):
            raise NumgradTraceError(
                "grad: a backward, or an assignment, sets .grad of an argument of the compiled "
                "function, which is not passed back; compute the gradient with ng.grad, leave the "
                "argument out by backward(inputs=...), or enclose the tensor instead of passing it"
            )
        array: Any = tensor._array
        if self.inner and not (type(array) is TracedArray and array.tracer is self.tracer):
            raise NumgradTraceError(
                "grad: a step of a compiled loop or branch sets .grad of a tensor outside of it, "
                "as a backward does; compute the gradient with ng.grad, and return it"
            )
        self.tracer.remember_gradient(tensor)
        tensor._grad = value

    # ---------------------------------------------------------------------------------- indices

    def index_part(self, entry: Any, shape: tuple) -> Any:
        """An array of integers is traced, and a mask stays one if its numbers are known.

        A mask that is not can be written to at, since that has a shape without it.
        """
        if isinstance(entry, np.integer):
            return int(entry)
        if isinstance(entry, bool | np.bool_):
            return np.asarray(entry)
        result = example_index(entry)
        if result is not None:
            return result
        if isinstance(entry, list | tuple) and any(isinstance(p, Tensor) for p in entry):
            entry = OPS["stack"](entry)
        if isinstance(entry, list | tuple):
            entry = np.asarray(entry, np.int64 if not entry else None)
            if entry.dtype.kind in "iu":
                return Tensor(self.tracer.freeze(entry, made=True))  # pyright: ignore
        if isinstance(entry, np.ndarray) and not self.tracer.is_input(entry):
            if entry.dtype.kind == "b":
                return entry
            if entry.dtype.kind in "iu" and entry.ndim == 0:
                return int(entry)
        array = self.tracer.lift(entry)
        if array.dtype.kind not in "iub":
            raise NumgradIndexError(
                f"getitem: an index of dtype {array.dtype}; indices are integers, slices, None, "
                "Ellipsis, and arrays of integers or booleans"
            )
        return Tensor(array)  # pyright: ignore

    def selected_shape(self, operation: str, shape: tuple, index: tuple) -> tuple:
        return tuple(canonical_index(operation, shape, index)[1])

    def positions(self, operation: str, shape: tuple, index: tuple) -> Tensor:
        numbered = OPS["reshape"](OPS["iota"](length=prod(shape)), shape)
        return OPS["getitem"](numbered, index)

    # ------------------------------------------------------------------------------------ calls

    def plan(self, op: Op, x: Tensor, params: dict[str, Any]) -> Call:
        return record_call(self.tracer, op, [self.tracer.lift(x)], dict(params))[1]

    def called(
        self, function: Callable[..., tuple], operands: Sequence[Any], results: Sequence[tuple]
    ) -> list[Tensor]:
        return self.tracer.called(function, operands, results)

    def effect(
        self, function: Callable[..., tuple], operands: Sequence[Any], targets: Sequence[Tensor]
    ) -> None:
        self.tracer.effect(function, operands, targets)

    # ---------------------------------------------------------------------------------- numbers

    def drawn(
        self, function: Callable[..., Any], source: Any, operands: Sequence[Any], size: Any,
        dtype: Any, independent: bool = True,
    ) -> Tensor:  # fmt: skip
        operands = [b if isinstance(b, int | float) else as_operand(b) for b in operands]
        if size is None:
            shape = broadcast_lengths(*[getattr(b, "shape", ()) for b in operands])
        else:
            shape = tuple(size) if isinstance(size, tuple | list) else (size,)

        draw = Draw(function, source, tuple(operands), shape, np.dtype(dtype), independent)
        return self.drawn_together(draw)[0]

    def drawn_together(self, draws: Draw | Draws) -> list[Tensor]:
        results = self.tracer.drawn(draws)
        return [Tensor(TracedArray(self.tracer, value)) for value in results]  # pyright: ignore

    def seed(self) -> Tensor:
        source = np.random.get_bit_generator()  # pyright: ignore
        return self.drawn(lambda _: np.random.random_sample() * 2**53, source, (), (), np.int64)


def _alike(a: Value, b: Value, depth: int = 8) -> bool:
    """Whether values are made in the same way of the same ones, up to a depth."""
    if a is b:
        return True
    one, other = a.node, b.node
    return (
        depth > 0
        and isinstance(one.op, Op)
        and one.op is other.op
        and (a.number, one.params) == (b.number, other.params)
        and len(one.inputs) == len(other.inputs) > 0
        and all(_alike(x, y, depth - 1) for x, y in zip(one.inputs, other.inputs, strict=True))
    )


class Recorder(Protocol):
    """The part of the tracer that a call needs."""

    inner: bool

    def lift(self, x: Any, dtype: Any = None) -> Any:
        """Anything as a traced array."""
        ...

    def called(self, function: Any, operands: Any, results: Any) -> list[Tensor]:
        """Results of a Python function that runs at each call."""
        ...

    def examples(self, arrays: Sequence[Any]) -> tuple[list[np.ndarray], bool]:
        """The numbers of arrays in the call that is traced."""
        ...


def traced(
    tracer: Recorder, function: Definition, args: tuple, keywords: dict[str, Any]
) -> tuple[Any, FunctionCtx | None]:
    """Outputs in a trace, and the ctx if the forward was traced: Note [Functions in a trace]."""
    try:
        inputs = tuple([_connected(tracer, a) if isinstance(a, Tensor) else a for a in args])
        with Refusals(traced=True):
            return run_ruled(function, inputs, keywords)
    except NumgradTraceError:
        return _Callback(tracer, function, args, keywords).outputs(), None


def _connected(tracer: Recorder, tensor: Tensor) -> Tensor:
    """A Tensor of the trace in place of a captured one, whose numbers are not to be looked at."""
    array = tracer.lift(tensor)
    return tensor if tensor._array is array else OPS["positive"](tensor)


class _Callback:
    """A Function that runs as Python code at each call of the compiled function."""

    def __init__(
        self, tracer: Recorder, function: Definition, args: tuple, keywords: dict[str, Any]
    ) -> None:
        self.tracer = tracer
        self.function, self.args, self.keywords = function, args, keywords
        self.places = [k for k, a in enumerate(args) if isinstance(a, Tensor)]
        # as they are now: the function may write to them later
        self.operands = [tracer.lift(args[k]).copy() for k in self.places]
        self.single = True

    def _run(self, arrays: Sequence[np.ndarray], mask: int) -> tuple[list[Tensor], list[Tensor]]:
        """Operands and outputs of a call with numbers; operands of the mask require grad."""
        args = list(self.args)
        for k, array in zip(self.places, arrays, strict=True):
            args[k] = Tensor(array, bool(mask >> k & 1))
        with eagerly(inference=False, saved_hooks=(), grad_enabled=mask != 0):
            returned, _ = run(self.function, tuple(args), self.keywords)
        self.single = not isinstance(returned, tuple)
        outputs = [returned] if self.single else list(returned)
        for k, value in enumerate(outputs):
            if not isinstance(value, Tensor):
                raise NumgradTypeError(
                    f"{self.function.__name__}: output {k} is a {type(value).__name__}; a Function "
                    "that a compiled function calls back returns Tensors"
                )
        return [args[k] for k in self.places], outputs

    def outputs(self) -> Any:
        """The outputs that the compiled function goes on with."""
        metas = self._metas()

        def forward(*arrays: np.ndarray) -> tuple:
            return tuple([y._array for y in self._run(arrays, 0)[1]])

        values = self.tracer.called(forward, self.operands, [(m.shape, m.dtype) for m in metas])
        needs = [isinstance(a, Tensor) and a.requires_grad for a in self.args]
        mask = sum(1 << k for k, need in enumerate(needs) if need) * state.grad_enabled
        if mask and any(m.dtype.kind in "fc" for m in metas):
            call = _CallbackCall(self, metas)
            edges = tuple([edge_of(a) if mask >> k & 1 else None for k, a in enumerate(self.args)])
            node = record(call, mask, edges, ())
            for k, value in enumerate(values):
                if value.dtype.kind in "fc":
                    value._grad_fn, value._requires_grad = node, True
                    value._slot = 0 if self.single else k + 1
        return values[0] if self.single else tuple(values)

    def _metas(self) -> list[Meta]:
        """Shapes and dtypes of the outputs, which depend on the lengths of the operands alone."""
        for a in self.operands:
            for n in a.shape:
                int(n)
        examples, real = self.tracer.examples(self.operands)
        try:
            return [meta_of(y) for y in self._run(examples, 0)[1]]
        except Exception as error:
            if real or isinstance(error, NumgradError):
                raise
            raise NumgradTraceError(
                f"{self.function.__name__}: ng.jit called the forward with ones to learn the "
                "shapes of its outputs, since its operands depend on random numbers or other "
                f"effects, and it failed ({type(error).__name__}: {error}); write it with "
                "operations on Tensors, or call the Function outside of the compiled function"
            ) from error

    def gradients(self, mask: int, parts: Sequence[Tensor]) -> list[Tensor | None]:
        """Gradients of the arguments in a mask."""
        count = len(self.places)
        positions = [n for n, k in enumerate(self.places) if mask >> k & 1]

        def backward(*arrays: np.ndarray) -> tuple:
            operands, outputs = self._run(arrays[:count], mask)
            pairs = [
                (y, Tensor(g))
                for y, g in zip(outputs, arrays[count:], strict=True)
                if y.requires_grad
            ]
            ys, gs = zip(*pairs, strict=True)
            targets = [operands[n] for n in positions]
            values = grad(ys, targets, gs, materialize_grads=True)
            return tuple([g._array for g in values])

        results = [(self.operands[n].shape, self.operands[n].dtype) for n in positions]
        values = self.tracer.called(backward, [*self.operands, *parts], results)
        out: list[Tensor | None] = [None] * len(self.args)
        for n, g in zip(positions, values, strict=True):
            out[self.places[n]] = g
        return out


_CALLED_BACK = (
    "needs numbers, so a compiled function calls it back, and a second derivative leads through "
    "it; take that outside of ng.jit, or write it with operations on Tensors"
)


class _CallbackCall(Call):
    """The record of a Function that is called back."""

    __slots__ = ("callback", "nout", "out_metas", "result")
    opaque = True

    def __init__(self, callback: _Callback, results: list[Any]) -> None:
        operation = _Named(callback.function.__name__)
        super().__init__(operation, tuple(map(meta_of, callback.args)), {})  # pyright: ignore
        self.callback = callback
        self.nout, self.result = len(results), results[0]
        self.out_metas = () if callback.single else tuple(results)

    @property
    def results(self) -> tuple:
        return self.out_metas or (self.result,)

    def saves(self, mask: int) -> tuple[str, ...]:
        return ()

    def gradients(self, mask: int, g: Any, values: dict[str, Any]) -> list[Any]:
        parts = g if self.out_metas else [g]
        parts = [
            Tensor(zeros(meta.shape, meta.dtype)) if grad is None else grad
            for grad, meta in zip(parts, self.results, strict=True)
        ]
        result = self.callback.gradients(mask, parts)
        if not state.grad_enabled:
            return result
        # a second derivative would have to go through Python code that knows of none
        sources = [a for a in (*self.callback.args, *parts) if isinstance(a, Tensor)]
        edges = [edge_of(a) for a in sources if a.requires_grad]
        end = DeadEnd(self.op.name, result, len(edges), _CALLED_BACK)
        dead = Node(end, (1 << len(edges)) - 1, tuple(edges), ())
        for k, value in enumerate(result):
            if value is not None:
                value._grad_fn, value._slot, value._requires_grad = dead, k + 1, True
        return result


class _Named:
    """The operation of a node."""

    inputs: tuple[str, ...] = ()
    materializes = True

    def __init__(self, name: str) -> None:
        self.name = name
