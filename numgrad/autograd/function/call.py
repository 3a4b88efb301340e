"""The record of a call of a Function: how its node runs the backward that the user wrote."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from numgrad.autograd.engine.task import edge_of
from numgrad.autograd.function.context import FunctionCtx
from numgrad.autograd.hooks import user_code
from numgrad.autograd.node import Node
from numgrad.autograd.row_sparse import RowSparseTensor
from numgrad.autograd.variable import Tensor, constant
from numgrad.core.abstract import zeros
from numgrad.core.formula import Meta
from numgrad.core.interpreter import state
from numgrad.core.op import Op
from numgrad.core.plan import Call, conform
from numgrad.core.row_gradients import RowSparseArray
from numgrad.errors import NumgradRuntimeError, NumgradTypeError


class Definition(Protocol):
    """What is called: a Function, or one that was adapted to a batch."""

    __name__: str

    def run_forward(self, ctx: FunctionCtx, args: tuple, keywords: dict[str, Any]) -> Any:
        """Outputs of the forward."""
        ...

    def run_backward(self, ctx: FunctionCtx, grads: Sequence[Tensor | None]) -> Any:
        """What the backward returns."""
        ...

    def run_jvp(self, ctx: FunctionCtx, tangents: Sequence[Tensor | None]) -> Any:
        """What the jvp returns."""
        ...


NO_TENSOR = Meta((), np.dtype(object))
"""In place of the shape and dtype of an argument or output that is no Tensor."""


def meta_of(value: Any) -> Meta:
    """Shape and dtype of an argument or output."""
    return Meta(value.shape, value.dtype) if isinstance(value, Tensor) else NO_TENSOR


@lru_cache(maxsize=1024)
def _operation(name: str) -> Op:
    """What a node names as its operation."""

    def function() -> None:
        """A Function of the user's."""

    op = Op(function, register=False, internal=True)
    op.name = name
    return op


class FunctionCall(Call):
    """A call of a Function."""

    __slots__ = ("ctx", "definition", "nout", "out_metas", "result", "row_sparse", "saves_tensors")
    # it is a matter of each ctx, and outputs that are no Tensors get None
    materializes = False  # pyright: ignore
    opaque = True

    def __init__(
        self,
        definition: Definition,
        ctx: FunctionCtx,
        args: Sequence[Any],
        outputs: Sequence[Any],
        single: bool,
    ) -> None:
        super().__init__(_operation(definition.__name__), tuple(map(meta_of, args)), {})
        self.definition, self.ctx = definition, ctx
        results = tuple(map(meta_of, outputs))
        self.nout, self.result = len(results), results[0]
        self.out_metas = () if single else results
        self.saves_tensors = bool(ctx._for_backward)
        self.row_sparse = False  # until the backward returns such a gradient

    @property
    def results(self) -> tuple[Meta, ...]:
        return self.out_metas or (self.result,)

    def saves(self, mask: int) -> tuple[str, ...]:
        return ("tensors",) if self.saves_tensors else ()

    def backward(self, mask: int, g: Any, saved: Sequence[Any]) -> tuple[list[Any], int]:
        parts = g if self.out_metas else [g]
        found = self._run([None if part is None else Tensor(part) for part in parts], mask, False)
        arrays: list[Any] = [None if value is None else value._array for value in found]
        for k, meta in enumerate(self.metas):
            if type(arrays[k]) is RowSparseArray:
                self.row_sparse = True
            elif arrays[k] is not None:
                arrays[k] = conform(arrays[k], meta)
        return arrays, 0

    def gradients(self, mask: int, g: Any, values: dict[str, Any]) -> list[Any]:
        parts = g if self.out_metas else [g]
        recording = state.grad_enabled
        found = [
            value.to_dense() if isinstance(value, RowSparseTensor) else value
            for value in self._run(parts, mask, recording)
        ]
        if recording and self.ctx._once:
            return self._dead_ends(parts, found)
        return found

    def _run(self, parts: Sequence[Tensor | None], mask: int, recording: bool) -> list[Any]:
        """Gradients of the inputs in ``mask``, not yet summed to their shapes."""
        if self.ctx._materializes:
            parts = [
                Tensor(zeros(meta.shape, meta.dtype))
                if part is None and meta is not NO_TENSOR
                else part
                for part, meta in zip(parts, self.results, strict=True)
            ]
        with user_code(recording, state.task):
            returned = self.definition.run_backward(self.ctx, parts)
        values = returned if isinstance(returned, tuple) else (returned,)
        self._check_number(values)
        return [
            as_gradient(self.op.name, k, values[k], meta)
            if mask >> k & 1 and values[k] is not None
            else None
            for k, meta in enumerate(self.metas)
        ]

    def _check_number(self, values: tuple) -> None:
        """Raise unless there is a gradient, or None, for each input and none besides."""
        name, count = f"{self.op.name}.backward", len(self.metas)
        if len(values) < count:
            raise NumgradRuntimeError(
                f"{name}: returned {len(values)} gradients, but forward has {count} inputs; return "
                "a tuple with one for each, None where an input has none"
            )
        for position, value in enumerate(values):
            if value is None:
                continue
            if position >= count:
                raise NumgradRuntimeError(
                    f"{name}: returned a gradient at position {position}, but forward has only "
                    f"{count} inputs; leave it out"
                )
            if self.metas[position] is NO_TENSOR:
                raise NumgradRuntimeError(
                    f"{name}: returned a gradient for input {position}, which was no Tensor and so "
                    "has none; return None in its place"
                )

    def _dead_ends(
        self, parts: Sequence[Tensor | None], found: Sequence[Tensor | None]
    ) -> list[Tensor | None]:
        """The gradients, with a graph that leads where theirs would, but cannot be walked."""
        node = None if self.ctx._node is None else self.ctx._node()
        edges = [edge for edge in node.edges if edge is not None] if node is not None else []
        edges += [edge_of(part) for part in parts if part is not None and part.requires_grad]
        call = DeadEnd(self.op.name, found, len(edges))
        dead = Node(call, (1 << len(edges)) - 1, tuple(edges), ())
        return [
            None if value is None else Tensor(value._array, value.dtype.kind in "fc", dead, k + 1)
            for k, value in enumerate(found)
        ]


ONCE = (
    "is marked once_differentiable, and a second derivative leads through it; write it with "
    "operations on Tensors and take the mark away"
)


class DeadEnd(Call):
    """In the graph of a second derivative, a backward that is not to be differentiated."""

    __slots__ = ("function", "nout", "out_metas", "reason")
    materializes = False  # pyright: ignore

    def __init__(
        self, function: str, outputs: Sequence[Any], operands: int, reason: str = ONCE
    ) -> None:
        super().__init__(_operation("once_differentiable"), (NO_TENSOR,) * operands, {})
        self.function, self.reason = function, reason
        self.out_metas = tuple(map(meta_of, outputs))
        self.nout = len(self.out_metas)

    def saves(self, mask: int) -> tuple[str, ...]:
        return ()

    def backward(self, mask: int, g: Any, saved: Sequence[Any]) -> tuple[list[Any], int]:
        raise NumgradRuntimeError(f"{self.function}.backward: {self.reason}")

    def gradients(self, mask: int, g: Any, values: dict[str, Any]) -> list[Any]:
        return self.backward(mask, g, ())[0]


def as_gradient(function: str, position: int, value: Any, meta: Meta) -> Any:
    """What a backward returned for an input, as a Tensor that can be summed to its shape.

    A row-sparse one stays what it is if it has that shape and dtype.

    Raises
    ------
    NumgradTypeError
        If it is no Tensor, array or number.
    NumgradRuntimeError
        If its shape or dtype does not suit the input.
    """
    name = f"{function}.backward"
    if isinstance(value, RowSparseTensor):
        if (value.shape, value.dtype) == (meta.shape, meta.dtype):
            return value
        value = value.to_dense()
    if not isinstance(value, Tensor):
        if not isinstance(value, np.ndarray | np.generic | int | float | complex):
            raise NumgradTypeError(
                f"{name}: returned a {type(value).__name__} as the gradient of input {position}; "
                "return Tensors (arrays, numbers), or None, several of them in a tuple"
            )
        value = constant(value)
    shape = tuple(value.shape)
    lead = len(shape) - len(meta.shape)
    if lead < 0 or any(n not in (1, m) for n, m in zip(meta.shape, shape[lead:], strict=True)):
        raise NumgradRuntimeError(
            f"{name}: returned a gradient of shape {shape} for input {position} of shape "
            f"{meta.shape}; it must have that shape, or one that this broadcasts to"
        )
    if value.dtype.kind == "c" and meta.dtype.kind != "c":
        raise NumgradRuntimeError(
            f"{name}: returned a gradient of dtype {value.dtype} for input {position} of dtype "
            f"{meta.dtype}; take its real part"
        )
    return value
