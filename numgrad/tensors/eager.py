"""The eager interpreter: computes at once, with NumPy's arrays and numgrad's kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from operator import itemgetter
from typing import Any

import numpy as np

from numgrad.autograd.batching.batch import Batched
from numgrad.autograd.batching.selected import example_index
from numgrad.autograd.engine.task import edge_of
from numgrad.autograd.function.function_call import run as run_function
from numgrad.autograd.node import Node
from numgrad.autograd.variable import TENSORS, Tensor, refresh
from numgrad.codegen.cpython import hot_paths
from numgrad.codegen.dtypes import convert
from numgrad.codegen.memory import LARGE, copied
from numgrad.core.foreign import is_sparse_kind, refuse_mask
from numgrad.core.interpreter import state
from numgrad.core.op import Op
from numgrad.core.plan import Call
from numgrad.core.primitive import View, checked
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.index import index_array
from numgrad.operations.region import Region
from numgrad.operations.shape import holds_tensors, stacked
from numgrad.operations.write import positions_of
from numgrad.tensors.entries import eager_entry
from numgrad.tensors.labels import check_argument
from numgrad.tensors.recording import RecordingInterpreter, link

_NUMBERS = (float, int, complex)
TOO_LARGE = 2**1024
"""The first integer that no float can hold."""


class EagerInterpreter(RecordingInterpreter):
    """The meaning of operations and arrays where nothing is compiled."""

    def bind(self, op: Op, args: tuple, params: dict[str, Any]) -> Any:
        if isinstance(op, View) and args and type(args[0]) in TENSORS and not state.inference:
            view = self._view(op, args[0], args[1:], params)
            if view is not None:
                return view
        return super().bind(op, args, params)

    def _view(self, op: View, x: Tensor, rest: tuple, params: dict[str, Any]) -> Tensor | None:
        """The result of a view that was asked for before, or the like of it."""
        array = x._array
        known = None if state.anomaly else op.known_view(array, rest, params)
        if known is None:
            return None
        if x._memory is not None:
            refresh(x)
        call, given = known
        out = op.function(array, **given)
        if isinstance(out, np.generic):  # NumPy gives scalars for some 0-d results
            out = np.asarray(out)
        if x._requires_grad and state.grad_enabled and op.differentiable and call.differentiable(0):
            view = Tensor(out, True, Node(call, 1, (edge_of(x),), ()))
        else:
            view = Tensor(out)
        if op.shares(array, out):
            link(view, x, view._slot)
        return view

    def operand(self, op: Op, a: Any) -> tuple[Any, Any]:
        """An argument as it is kept, and as an array or number to compute with."""
        if type(a) is Tensor and a._memory is None:  # most often by far
            return a, a._array
        return _operand(op, a)

    def run(self, op: Op, arrays: list[Any], params: dict[str, Any]) -> tuple[Any, Call]:
        """The result, or several, and the record of the call."""
        if hot_paths.waiting:
            hot_paths.count_call()
        return op.run(arrays, params)

    def run_recorded(
        self, op: Op, operands: list[Any], arrays: list[Any], params: dict[str, Any]
    ) -> tuple[Any, Call]:
        mask = 0
        for k, a in enumerate(operands):
            if isinstance(a, Tensor) and a._requires_grad:
                mask |= 1 << k
        if not mask:
            return self.run(op, arrays, params)
        return op.run_recorded(arrays, params, mask)  # pyright: ignore[reportAttributeAccessIssue]

    def entry(self, op: Op) -> Callable[..., Any]:
        """The function behind ``op(...)``."""
        return eager_entry(op)

    apply_function: Any = staticmethod(run_function)

    # ----------------------------------------------------------------------------------- arrays

    def lift(self, x: Any, dtype: Any = None) -> Any:
        if isinstance(x, Tensor):
            return x._array
        return np.asarray(x, dtype if type(x) in _NUMBERS else None)

    def numbers(self, x: Any) -> Any:
        if isinstance(x, Batched):
            return None  # each example has its own
        return x.numpy(force=True) if isinstance(x, Tensor) else x  # pyright: ignore

    def reads(self, data: Any) -> bool:
        return False

    def made(self, array: Any) -> Any:
        return array

    filled: Any = staticmethod(np.full)
    zeros: Any = staticmethod(np.zeros)
    ones: Any = staticmethod(np.ones)
    empty: Any = staticmethod(np.empty)

    def unit(self, shape: tuple, position: int, dtype: Any) -> Any:
        array = np.zeros(shape, dtype)
        array.flat[position] = 1
        return array

    def units(self, shape: tuple, positions: range, dtype: Any) -> Any:
        return np.eye(len(positions), prod(shape), positions.start, dtype).reshape(-1, *shape)

    def is_zero(self, array: Any) -> bool:
        return False

    def differentiable(self, x: Any) -> Any:
        if isinstance(x, Tensor):
            return x.detach()  # pyright: ignore
        array = copied(x) if type(x) is np.ndarray and x.nbytes >= LARGE else np.array(x)
        if array.dtype.kind in "iu" and not isinstance(x, np.ndarray):
            array = array.astype(np.float64)  # Python numbers: f(3) means f(3.0)
        return Tensor(array)

    # ----------------------------------------------------------------------------------- memory

    def store(self, target: Tensor, value: Any) -> None:
        memory = target._array
        np.copyto(memory, convert(np.asarray(value), memory.dtype, copy=False), casting="unsafe")

    def region(self, owner: Tensor, view: Tensor) -> Region:
        return Region(owner._array, view._array)

    def gradient(self, tensor: Tensor) -> Any:
        return tensor._grad

    def set_gradient(self, tensor: Tensor, value: Any) -> None:
        tensor._grad = value

    # ---------------------------------------------------------------------------------- indices

    def index_part(self, entry: Any, shape: tuple) -> Any:
        index = example_index(entry)
        return index_array(entry, shape) if index is None else index

    def selected_shape(self, operation: str, shape: tuple, index: tuple) -> tuple:
        whole = np.broadcast_to(0, shape)
        return np.shape(checked(operation, whole, itemgetter(index), whole))

    def positions(self, operation: str, shape: tuple, index: tuple) -> np.ndarray:
        self.selected_shape(operation, shape, index)
        return positions_of(shape, itemgetter(index))

    # ------------------------------------------------------------------------------------ calls

    def plan(self, op: Any, x: Tensor, params: dict[str, Any]) -> Call:
        return op.plan(x._array, dict(params))

    def called(
        self, function: Callable[..., tuple], operands: Sequence[Any], results: Sequence[tuple]
    ) -> list[Tensor]:
        return [Tensor(array) for array in function(*map(self.lift, operands))]

    def effect(
        self, function: Callable[..., tuple], operands: Sequence[Any], targets: Sequence[Tensor]
    ) -> None:
        function(*map(self.lift, operands))

    # ---------------------------------------------------------------------------------- numbers

    def drawn(
        self, function: Callable[..., Any], source: Any, operands: Sequence[Any], size: Any,
        dtype: Any, independent: bool = True,
    ) -> Tensor:  # fmt: skip
        arrays = [a._array if isinstance(a, Tensor) else a for a in operands]
        return Tensor(np.asarray(function(*arrays, size)))

    def seed(self) -> int:
        return int(np.random.random_sample() * 2**53)


def _operand(op: Op, a: Any) -> tuple[Any, Any]:
    """An argument as it is kept, and as an array or number to compute with."""
    kind = type(a)
    if kind is Tensor or isinstance(a, Tensor):
        if a._memory is not None:
            refresh(a)
        return a, a._array
    if kind in _NUMBERS:
        if kind is int and abs(a) >= TOO_LARGE:
            raise NumgradValueError(
                f"{op.name}: an integer of {a.bit_length()} bits fits no dtype; give a float"
            )
        return a, a
    if kind is np.ndarray:
        return a, a
    if a is None:
        return None, None
    if isinstance(a, list | tuple):
        try:
            whole = stacked(a) if holds_tensors(a) else None
        except RecursionError:
            raise NumgradValueError(
                f"{op.name}: a {kind.__name__} is nested too deeply, or contains itself"
            ) from None
        if whole is not None:
            return whole, whole._array
    check_array_kind(op.name, a)
    try:
        array = np.asarray(a)
    except (ValueError, TypeError) as error:
        raise NumgradTypeError(f"{op.name}: cannot make an array of {type(a).__name__}") from error
    if array.dtype.kind not in "biufc":
        raise NumgradTypeError(
            f"{op.name}: a {type(a).__name__} of dtype {array.dtype} is not numeric"
        )
    return array, array


def check_array_kind(name: str, value: Any, *, argument: bool = False) -> None:
    """Raise for kinds of arrays that mean something else than their numbers.

    An ``argument`` of a function that is transformed may meet any operator there.

    Raises
    ------
    NumgradTypeError
        If it is a masked array, whose mask would be lost, in a product a matrix, or a sparse one.
    """
    if is_sparse_kind(type(value)):
        raise NumgradTypeError(
            f"{name}: a {type(value).__name__} of scipy.sparse is taken by @ and ng.matmul only; "
            "write it as a product, or give its .toarray()"
        )
    refuse_mask(name, value)
    if argument:
        check_argument(name, value)
    if not isinstance(value, np.ndarray):
        return
    if type(value).__array_ufunc__ is not np.ndarray.__array_ufunc__:
        raise NumgradTypeError(
            f"{name}: {type(value).__name__} is an ndarray with rules of its own, such as units, "
            "which a Tensor would lose; give its numbers with np.asarray"
        )
    if type(value).__name__ == "matrix" and (argument or name in ("multiply", "power")):
        raise NumgradTypeError(
            f"{name}: for a np.matrix operators mean products of matrices; use np.asarray on it, "
            "and @ for such a product"
        )
