"""Gradients as arrays or as Tensors: computed, added, and put into ``.grad``.

A walk computes with arrays, by compiled kernels, or with Tensors, by operations on them. The latter
it does with ``create_graph``, when the gradients carry a graph, and under an interpreter (forward
mode, a batch of cotangents), which gives operations another meaning. The walk asks an
``Evaluation`` and need not know which of them it is.

Note [Ownership of buffers]
---------------------------
A gradient array may be written only if a backward kernel made it in this pass for exactly one edge:
``add``, ``reshape`` and views pass the same array on. It is added to, or the backward of the node
that it arrives at writes the next one over it. ``backward`` of a call says which gradients
it owns; a buffer keeps that flag, the first sum of two aliases makes a new owned array, and what is
put into ``.grad`` without being owned is copied. A gradient that a hook has seen, or that is a
result of the walk, is not owned. Tensors never are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from numgrad.autograd.node import Node
from numgrad.autograd.row_sparse_tensor import as_tensor
from numgrad.autograd.variable import Tensor, gradient_of, set_gradient
from numgrad.autograd.versions import mark_written
from numgrad.codegen.locks import GRADIENTS
from numgrad.codegen.memory import Lease
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.plan import CONSUMES
from numgrad.core.row_gradients import RowSparseArray

SMALL = 16384
"""Elements up to which NumPy's addition is faster than choosing among our kernels."""


class Evaluation(ABC):
    """How a walk computes with gradients."""

    recording = False
    """Whether what it computes carries a graph."""

    @abstractmethod
    def evaluate(self, node: Node, g: Any, mine: Any, waiting: dict[int, list]) -> tuple[Any, int]:
        """Gradients of a node's operands, None for some, and as bits which of them are owned.

        ``g`` arrived at the node and is owned if ``mine``, both lists for several outputs;
        ``waiting`` are the walk's gradients that wait elsewhere.
        """

    @abstractmethod
    def added(self, a: Any, owned: bool, b: Any, own: bool) -> tuple[Any, bool]:
        """The sum of two gradients, each owned or not, and whether it is owned."""

    @abstractmethod
    def shown(self, g: Any) -> Any:
        """A gradient, or None, as hooks see it."""

    @abstractmethod
    def taken(self, g: Any) -> Any:
        """A gradient, or None, from what a hook returned."""

    @abstractmethod
    def nonzero(self, gradients: Sequence[Any]) -> Sequence[Any]:
        """Gradients with None for those that are known to be zero."""

    @abstractmethod
    def separate(self, gradients: Iterable[tuple[Any, bool]]) -> list[Any]:
        """Results of a walk, each owned or not, in memory of their own."""


class ArrayEvaluation(Evaluation):
    """Compiled kernels on arrays: a plain backward."""

    def evaluate(self, node: Node, g: Any, mine: Any, waiting: dict[int, list]) -> tuple[Any, int]:
        call = node.call
        if type(g) is list and call.materializes:
            g = [
                np.zeros(m.shape, m.dtype) if grad is None else grad
                for grad, m in zip(g, call.out_metas, strict=True)
            ]
        values = node.unpack() if node.saved != () else ()
        if call.large:
            if call.large is CONSUMES:
                return call.consume(node.mask, g, mine)  # pyright: ignore
            buffers = _owned_buffers(node, waiting)
            if buffers is not None:
                return call.backward_into(node.mask, g, values, buffers)  # pyright: ignore
            consuming = call.consuming(node.mask) if mine else None
            if consuming is not None:
                return consuming(g, *values)
        function = call.functions.get(node.mask)
        if function is not None:
            return function(g, *values)
        gradients, owned = call.backward(node.mask, g, values)
        if call.row_sparse:
            return _sparse_for_leaves(node, gradients, owned, mine)
        return gradients, owned

    def added(self, a: Any, owned: bool, b: Any, own: bool) -> tuple[Any, bool]:
        if not owned:
            if not own:
                return add(a, b), True
            a, b = b, a  # the newcomer may be written instead
        return np.add(a, b, a) if a.size <= SMALL else add_into(a, b), True

    def shown(self, g: Any) -> Any:
        return as_tensor(g)

    def taken(self, g: Any) -> Any:
        return None if g is None else g._array

    def nonzero(self, gradients: Sequence[Any]) -> Sequence[Any]:
        return gradients

    def separate(self, gradients: Iterable[tuple[Any, bool]]) -> list[Any]:
        results = []
        handed: set[int] = set()
        for g, owned in gradients:
            if g is not None and (not owned or id(g) in handed):
                g = g.copy()
            handed.add(id(g))
            results.append(g)
        return results


class TensorEvaluation(Evaluation):
    """Operations on Tensors, which may be recorded or mean something else."""

    def __init__(self, recording: bool) -> None:
        self.recording = recording

    def evaluate(self, node: Node, g: Any, mine: Any, waiting: dict[int, list]) -> tuple[Any, int]:
        return node.gradients(g if type(g) is list else [g]), 0

    def added(self, a: Any, owned: bool, b: Any, own: bool) -> tuple[Any, bool]:
        return a + b, False

    def shown(self, g: Any) -> Any:
        return g

    def taken(self, g: Any) -> Any:
        return g

    def nonzero(self, gradients: Sequence[Any]) -> Sequence[Any]:
        is_zero = state.ground.is_zero
        return [None if g is None or is_zero(g._array) else g for g in gradients]

    def separate(self, gradients: Iterable[tuple[Any, bool]]) -> list[Any]:
        # those of a compiled function share no memory with what came in either
        alone = state.ground.deferred and not self.recording
        results = []
        handed: set[int] = set()
        for g, _ in gradients:
            if type(g) is Tensor and alone and state.interpreters[-1] is state.ground:
                g = Tensor(state.ground.lift(g).copy())
            elif type(g) is Tensor and (alone or id(g) in handed):
                g = OPS["copy"](g)
            handed.add(id(g))
            results.append(g)
        return results


ON_ARRAYS, RECORDED, UNRECORDED = ArrayEvaluation(), TensorEvaluation(True), TensorEvaluation(False)


# -------------------------------------------------------------------------- in the walk's buffers


def add(a: Any, b: Any) -> Any:
    """A new array with the sum of two gradients; row-sparse ones know how ``np.add`` adds them."""
    if a.size > SMALL and type(a) is np.ndarray and type(b) is np.ndarray:
        return OPS["add"].run((a, b), {})[0]
    total = np.add(a, b)
    return total if a.ndim else np.asarray(total)  # NumPy adds 0-d arrays to a scalar


def add_into(buffer: Any, g: Any) -> Any:
    """Add to a buffer the engine owns; the sum, which is the buffer unless that is row-sparse."""
    if (
        buffer.size > SMALL
        and type(buffer) is np.ndarray
        and type(g) is np.ndarray
        and buffer.flags.c_contiguous
        and g.flags.c_contiguous
    ):
        flat = buffer.ravel()
        add_op: Any = OPS["add"]
        add_op.plan((buffer, g)).entry(flat, g.ravel(), flat)
        return buffer
    return np.add(buffer, g, buffer)


def _owned_buffers(node: Node, waiting: dict[int, list]) -> list[np.ndarray | None] | None:
    """For each operand the array its gradient can be added to in place; None if there is none."""
    buffers: list[Any] | None = None
    used: set[int] = set()
    for k, edge in enumerate(node.edges):
        if edge is None or type(edge) is tuple:
            continue
        entry = waiting.get(-edge.sequence if type(edge) is Node else id(edge))
        if entry is None or not entry[2] or id(entry) in used:
            continue
        meta, buffer = node.call.metas[k], entry[1]
        if type(buffer) is RowSparseArray:
            continue
        if buffer.flags.c_contiguous and buffer.shape == meta.shape and buffer.dtype == meta.dtype:
            buffers = buffers or [None] * len(node.edges)
            buffers[k] = buffer
            used.add(id(entry))
    return buffers


def _sparse_for_leaves(
    node: Node, gradients: Sequence[Any], owned: int, mine: Any
) -> tuple[list[Any], int]:
    """Row-sparse gradients made dense unless a leaf takes them; and which gradients are owned.

    Rows may be those of what arrived at the node, so they are owned only if that was ``mine``.
    """
    converted = list(gradients)
    for k, (edge, g) in enumerate(zip(node.edges, gradients, strict=True)):
        if type(g) is RowSparseArray:
            if not isinstance(edge, Tensor):
                converted[k] = g.dense()
            elif mine is not True:
                owned &= ~(1 << k)
    return converted, owned


# ------------------------------------------------------------------------------------- in .grad


def accumulate(arrived: Iterable[Sequence[Any]]) -> None:
    """Add gradients to the ``.grad`` of tensors: ``(tensor, gradient, owned)`` each.

    A gradient is an array, or with ``create_graph`` a Tensor; None is passed over. ``owned`` says
    that nothing else holds the array, so that it can become the ``.grad``. A leaf that was frozen
    after the forward gets none.
    """
    with GRADIENTS:
        for tensor, g, owned in arrived:
            if g is not None and tensor._requires_grad:
                _add_to(tensor, g, owned)


def _add_to(tensor: Tensor, g: Any, owned: bool) -> None:
    if isinstance(g, Tensor):
        present = gradient_of(tensor)
        set_gradient(tensor, OPS["positive"](g) if present is None else present + g)
        return
    present = tensor._grad
    if present is not None:
        total = add_into(present._array, g)
        if total is present._array:
            mark_written(present)  # some node may have saved it
        elif isinstance(total, np.ndarray):
            tensor._grad = Tensor(total)
        else:
            present._array = total
        return
    array = tensor._array
    dtype = array.dtype
    if type(g) is np.ndarray and not array.flags.c_contiguous and g.strides != array.strides:
        like = np.empty_like(array)
        if like.strides == array.strides:  # the layout of a dense leaf
            like[...] = np.real(g) if dtype.kind != "c" else g
            g, owned = like, True
    if not owned or (g.base is not None and type(g.base) is not Lease):
        g = g.copy()
    if g.dtype is not dtype and g.dtype != dtype:
        g = g.astype(dtype)
    tensor._grad = Tensor(g) if type(g) is np.ndarray else as_tensor(g)
