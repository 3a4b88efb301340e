"""Calls of Functions in a function that is being compiled.

Note [Functions in a trace]
---------------------------
Forward and backward are traced through if they consist of operations on Tensors. If they need
numbers (``x.numpy()``, a library of C) they are called back instead, at each call of the compiled
function: the forward with its operands, the backward with these again, for which it runs the
forward once more, so that nothing has to be kept between the two. Shapes and dtypes of the results
are those that the forward has in the call that is traced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from numgrad.autograd.engine.backward import grad
from numgrad.autograd.engine.task import edge_of
from numgrad.autograd.function.function_call import DeadEnd, Definition, FunctionCtx, meta_of, run
from numgrad.autograd.history import record
from numgrad.autograd.node import Node
from numgrad.autograd.variable import Tensor
from numgrad.compiler.trace.custom_rules import run_ruled
from numgrad.core.abstract import zeros
from numgrad.core.formula import Meta
from numgrad.core.interpreter import eagerly, state
from numgrad.core.op import OPS
from numgrad.core.plan import Call
from numgrad.core.refusals import Refusals
from numgrad.errors import NumgradError, NumgradTraceError, NumgradTypeError


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
            Tensor(zeros(meta.shape, meta.dtype)) if part is None else part
            for part, meta in zip(parts, self.results, strict=True)
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
