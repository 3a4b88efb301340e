"""Primitives that decide what is done by dtypes and shapes, once for all calls of these.

Note [Prepared calls]
---------------------
The body of a prepared operation gets a ``Meta`` for each operand. It raises for what cannot be
computed, and returns a function of the arrays, which returns what the body of a primitive does. So
checks, the dtype to compute in, the kernel, and whether it is worth threads are decided once. They
are kept in a ``PreparedCall``, which is found by dtypes and shapes and stands in all nodes of such
calls: what an operation notes besides its results is kept by the node alone. Backward kernels are
prepared in the same way, one for each mask. What is returned for a shape is kept as long as others
do not take its place, so it holds numbers and kernels, and no arrays as large as its operands.
Parameters that compare equal, such as ``True`` and 1, must mean the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from operator import itemgetter
from typing import Any

import numpy as np

from numgrad.core.axis import exact
from numgrad.core.formula import Meta
from numgrad.core.plan import Call, remember
from numgrad.core.primitive import Primitive, PrimitiveCall, checked


class Prepared(Primitive):
    """A primitive whose body is given shapes and dtypes: Note [Prepared calls].

    Its ``vjp_kernel`` is declared as ``function(call, mask)`` and returns what computes gradients:
    ``(g, *saved) -> gradients, owned``, a list of arrays of the operands' shapes and dtypes, None
    for operands outside of ``mask``, and bits that say which of them are new. It calls kernels and
    NumPy, no operations. ``g`` has any strides. None leaves it to the formulas.
    """

    planned = True

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        super().__init__(function, **options)
        self.plans: dict[tuple, PreparedCall] = {}
        self.quick: dict[tuple, PreparedCall] = {}
        """Plans by how a call was written, for the eager hot path."""

    def forget(self) -> None:
        super().forget()
        for known in (self.plans, self.quick):
            known.clear()

    def plan(self, arrays: Sequence[np.ndarray], params: dict[str, Any]) -> PreparedCall:
        """How it is computed for arrays like these."""
        key: Any = None
        try:
            key = (*[(a.dtype, a.shape) for a in arrays], exact(params))
            prepared_call = self.plans.get(key)
        except TypeError:  # a parameter that is no part of a key
            prepared_call = key = None
        if prepared_call is None:
            metas = tuple([Meta(a.shape, a.dtype) for a in arrays])
            compute = checked(self.name, arrays[0], self.function, *metas, **params)
            prepared_call = PreparedCall(self, metas, params, compute)
            if key is not None:
                remember(self.plans, key, prepared_call)
        return prepared_call

    def results_of(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[tuple, tuple]:
        return self.plan(args, params).computed(args)

    def run(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, PreparedCall]:
        arrays = self.arrays(args)
        plan = self.plan(arrays, params)
        outs, aux = plan.computed(arrays)
        return (outs if self.outputs else outs[0]), plan.with_notes(aux)


class PreparedCall(PrimitiveCall):
    """How a prepared operation is computed for operands of given dtypes and shapes."""

    __slots__ = ("compute", "functions", "grad_mask", "picks", "slots")

    def __init__(
        self, op: Prepared, metas: tuple, params: dict[str, Any], compute: Callable[..., Any]
    ) -> None:
        super().__init__(op, metas, params, (), ())
        self.compute = compute
        """The outcome for arrays, in whatever way the body returns it."""
        self.functions = {}
        self.grad_mask = 0
        """A bit for each operand that may get a gradient; of its first results."""
        self.slots: tuple[int, ...] = ()
        """``Tensor._slot`` of each of several outputs; 0 for those without gradients."""
        self.picks: dict[int, tuple[int, Callable[[tuple], tuple]]] = {}
        """Results of ``pick``, by mask."""

    def computed(self, arrays: Sequence[np.ndarray]) -> tuple[tuple, tuple]:
        """The outputs, and what a backward needs besides."""
        op = self.op
        out = checked(op.name, arrays[0], self.compute, *arrays)
        aux: tuple = ()
        if op.auxiliaries:
            out, aux = out
        outs = out if op.outputs else (out,)
        if not self.nout:
            self._know(outs)
        return outs, aux

    def _know(self, outs: tuple) -> None:
        """Take note of what results are, of the first ones."""
        self.outs = tuple([(o.shape, o.dtype) for o in outs])
        kinds = [o.dtype.kind for o in outs]
        self.floating = "f" in kinds or "c" in kinds
        self.slots = tuple([(k + 1) * (kind in "fc") for k, kind in enumerate(kinds)])
        self.out_metas = self.results if self.op.outputs else ()
        if self.op.differentiable:
            self.grad_mask = sum(1 << k for k in range(len(self.metas)) if self.differentiable(k))
        self.nout = len(outs)

    def with_notes(self, aux: tuple) -> PreparedCall:
        """The record of one call, with what it noted besides its results."""
        if not aux:
            return self
        call = copy(self)
        call.aux = aux
        return call

    def pick(self, mask: int) -> tuple[int, Callable[[tuple], tuple]]:
        """A bit for each operand that a node saves, and what picks all that it saves.

        That takes operands, auxiliaries and the result in one tuple.
        """
        names = (*self.op.inputs, *self.op.auxiliaries, "y")
        positions = [names.index(name) for name in self.saves(mask)]
        keeps = sum(1 << k for k in positions if k < len(self.metas))
        if len(positions) > 1:
            getter: Any = itemgetter(*positions)
        else:  # a slice gives a tuple of one, or of nothing
            first = positions[0] if positions else 0
            getter = itemgetter(slice(first, first + len(positions)))
        self.picks[mask] = keeps, getter
        return keeps, getter

    def backward(self, mask: int, g: Any, saved: Sequence[Any]) -> tuple[Any, int]:
        function = self.functions.get(mask)
        if function is None:
            kernel = self.op.backward_kernel
            function = None if kernel is None else kernel(self, mask)
            if function is None:
                return Call.backward(self, mask, g, saved)
            self.functions[mask] = function
        return function(g, *saved)
