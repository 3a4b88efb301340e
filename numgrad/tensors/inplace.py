"""Writes to the memory of Tensors, and the methods that write: ``add_``, ``+=``, ``x[i] = v``, ...

Note [In-place operations]
--------------------------
The in-place form of an operation computes what the operation computes and stores it in the target.
What an earlier node saved is caught by its version. The *root*, the tensor that owns the memory,
gets a new history: written as a whole, it is the result of the operation; written through a view,
of ``copy_slices``, which sends the gradient of that place to what was written and the rest to the
old history. Views find theirs again when somebody looks (``refresh``): a view is the root, read at
a place (``region``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from numgrad.autograd.batching.batch import Batched
from numgrad.autograd.batching.selected import Selected
from numgrad.autograd.engine.task import edge_of
from numgrad.autograd.history import (
    check_no_leaf,
    check_view,
    is_recorded_leaf,
    rebase,
    record,
    take_history,
)
from numgrad.autograd.row_sparse_tensor import RowSparseTensor
from numgrad.autograd.saved import keep
from numgrad.autograd.variable import TENSORS, Tensor, refresh, root
from numgrad.autograd.versions import INFERENCE, mark_written, shared_version, version_of
from numgrad.codegen.cpython import hot_paths
from numgrad.core.abstract import AbstractArray
from numgrad.core.documentation import DESCRIBERS
from numgrad.core.elementwise import Elementwise
from numgrad.core.foreign import labelled_kind
from numgrad.core.formula import Meta
from numgrad.core.interpreter import above_ground, state
from numgrad.core.op import OPS, Op
from numgrad.core.primitive import checked
from numgrad.errors import NumgradError, NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.operations.index import is_basic, is_basic_part
from numgrad.operations.region import overlaps
from numgrad.operations.shape import as_operand
from numgrad.tensors.eager import TOO_LARGE, check_array_kind
from numgrad.tensors.labels import IndexedTensor, Places, check_written, index_of
from numgrad.tensors.recorder import written_method

# ---------------------------------------------------------------------------------- what may be


def check_target(name: str, target: Tensor) -> None:
    """Raise unless ``target`` can be written to."""
    if not isinstance(target, Tensor):
        raise NumgradTypeError(f"{name}: the target is a {type(target).__name__}, not a Tensor")
    refresh(target)
    array = state.ground.lift(target)
    if isinstance(array, AbstractArray):
        array.check_writable(name)
    elif overlaps(array):
        raise NumgradRuntimeError(
            f"{name}: the target of shape {array.shape} shows single elements several times, as "
            "broadcast_to gives them, so a write has no meaning; clone() it first"
        )
    elif not array.flags.writeable:
        raise NumgradRuntimeError(
            f"{name}: the memory of the target of shape {array.shape} is read-only; clone() it"
        )
    check_history(name, target)


def check_history(name: str, target: Tensor) -> None:
    """Raise if ``target`` may not become something else in place."""
    if version_of(target) is INFERENCE and not state.inference:
        raise NumgradRuntimeError(
            f"{name}: the target was made in inference mode and cannot be changed outside; clone() "
            "it, or do this inside inference_mode"
        )
    if state.grad_enabled:
        check_no_leaf(name, target)


def _may_share(a: Any, b: Any) -> bool:
    """Whether a write to one array may change the other; values of a trace never change."""
    if isinstance(a, AbstractArray) or isinstance(b, AbstractArray):
        return False
    return np.may_share_memory(a, b)


def as_values(name: str, value: Any, dtype: np.dtype) -> Any:
    """``value`` as a Tensor or ndarray, if it can be converted to the dtype of a target."""
    try:
        value = as_operand(value)
        check_array_kind(name, value)
        value = value if isinstance(value, Tensor) else np.asarray(value)
    except NumgradError:
        raise
    except ValueError as error:
        raise NumgradValueError(f"{name}: cannot make an array of the values: {error}") from None
    if value.dtype.kind not in "biufc":
        raise NumgradTypeError(f"{name}: values of dtype {value.dtype} are not numeric")
    if value.dtype.kind == "c" and dtype.kind != "c":
        raise NumgradTypeError(
            f"{name}: complex values cannot be stored in a target of dtype {dtype}; take the real "
            "part, or convert the target with astype first"
        )
    return value


def _fitted(name: str, value: Any, target: Any) -> Any:
    """``value`` without leading axes of length 1 too many, if it broadcasts to ``target``."""
    shape = tuple(value.shape)
    surplus = max(len(shape) - target.ndim, 0)
    lengths = shape[surplus:]
    matches = all(
        n in (1, m) for n, m in zip(reversed(lengths), reversed(target.shape), strict=False)
    )
    if not matches or any(n != 1 for n in shape[:surplus]):
        raise NumgradValueError(
            f"{name}: values of shape {shape} do not broadcast to the target's shape "
            f"{target.shape}; their axes, matched from the right, must be equal to it or 1"
        )
    return OPS["reshape"](value, lengths) if surplus else value


# --------------------------------------------------------------------------------------- writing


def before_writing(targets: Iterable[Tensor]) -> None:
    """Let graphs that may keep old values of Tensors copy them, before kernels write to these."""
    if state.mutation is not None:
        for target in targets:
            state.mutation.before_write(target._array)


@contextmanager
def writing(target: Tensor) -> Iterator[None]:
    """Around a write to the memory of ``target``."""
    before_writing((target,))
    yield
    if version_of(target) is not INFERENCE:
        mark_written(target)


def assign(name: str, target: Tensor, value: Any, *, part_of: Tensor | None = None) -> Tensor:
    """Store ``value``, which broadcasts, in ``target``; its gradient goes to ``value``.

    If ``target`` was made for this write only, ``part_of`` is the tensor that the user writes to.
    """
    if state.mode and _written_plainly(target, value):
        return target
    if state.interpreters:
        if isinstance(target, Batched):
            target.write(partial(assign, name), value, target.shape)
            return target
        _check_shared(name, value)
    check_target(name, target)
    if type(target) is not Tensor:
        check_written(name, target, value)
    memory = state.ground.lift(target)
    value = _fitted(name, as_values(name, value, memory.dtype), memory)
    array = state.ground.lift(value) if isinstance(value, Tensor) else value
    source = edge_of(value) if isinstance(value, Tensor) and value.requires_grad else None
    recorded = _is_recorded(target, source is not None) and target._array.dtype.kind in "fc"
    if recorded:
        check_view(name, target if part_of is None else part_of)
    if _may_share(array, memory):
        array = array.copy()
    with writing(target):
        state.ground.store(target, array)
    if recorded:
        rebase(target, source, Meta(array.shape, array.dtype))
    _tell_interpreters(target, value)
    return target


def _written_plainly(target: Tensor, value: Any) -> bool:
    """Store an array of the target's dtype and shape, or a number, where nothing is recorded.

    It is the most common case of ``assign``, without what others need.
    """
    if type(target) not in TENSORS:
        return False
    array, source, requires_grad = target._array, value, root(target)._requires_grad
    if type(value) in TENSORS:
        source, requires_grad = value._array, requires_grad or value._requires_grad
    if type(source) is np.ndarray:
        if source.dtype != array.dtype or source.shape != array.shape:
            return False
    elif not (type(source) in (int, float) and array.dtype.kind == "f" and -1e37 < source < 1e37):
        return False
    flags = array.flags
    if not (flags.c_contiguous and flags.writeable) or (requires_grad and state.grad_enabled):
        return False
    if version_of(target) is INFERENCE:
        return False
    if target._memory is not None:
        refresh(target)
    array[...] = source
    mark_written(target)
    return True


def _is_recorded(target: Tensor, follows: bool) -> bool:
    return state.grad_enabled and (follows or root(target)._requires_grad)


def _tell_interpreters(target: Tensor, value: Any) -> None:
    """Let forward mode give the target the tangent of what was stored in it."""
    if state.interpreters:  # those below a trace have no part in it
        for active in state.interpreters[above_ground() :]:
            active.assign(target, value)


# ------------------------------------------------------------------------------------ operations


def inplace(op: Op, name: str, target: Tensor, args: tuple, params: dict[str, Any]) -> Tensor:
    """Store the result of ``op(target, *args, **params)`` in ``target``.

    The kernel of an elementwise operation writes there itself if it can. Else the operation
    computes a new tensor from a copy of the target, which is stored.
    """
    if state.interpreters:
        if isinstance(target, Batched):
            memory = root_of_batch(target)
            arrays = [
                OPS["copy"](a) if isinstance(a, Batched) and root_of_batch(a) is memory else a
                for a in (target, *args)  # what is saved of them is what they are before
            ]
            result = op(*arrays, **params)
            _check_result(name, target, result)
            return assign(name, target, result)
        for value in args:
            _check_shared(name, value)
    check_target(name, target)
    if type(target) is not Tensor and isinstance(op, Elementwise):
        check_written(name, target, *args)
    if state.mode and not params and isinstance(op, Elementwise):
        if hot_paths.waiting:
            hot_paths.count_call()
        operands = (target, *args, *op.rest((target, *args)))
        if len(operands) == len(op.inputs) and _written_by_kernel(op, name, operands):
            return target
    twin = as_before(target)
    before = partial(_before_write, target, twin)
    result = op(twin, *map(before, args), **{k: before(value) for k, value in params.items()})
    _check_result(name, target, result)
    same = root(target) is target and result.dtype == target._array.dtype
    if not (same and result._requires_grad):
        return assign(name, target, result)
    with writing(target):
        state.ground.store(target, result._array)
    take_history(target, result._grad_fn, result._slot)
    _tell_interpreters(target, result)
    return target


def root_of_batch(x: Tensor) -> Tensor:
    """The Tensor whose memory an operation on ``x``, batched or not, writes to."""
    while isinstance(x, Batched):
        x = x.value
    return root(x)


def _check_shared(name: str, value: Any) -> None:
    """Raise if what differs by example is to be written to an array that all examples share."""
    if isinstance(value, Batched):
        raise NumgradRuntimeError(
            f"{name}: the values are a batched tensor, which differs by example, and the target is "
            "an array that all examples share; make that of an example, as with np.zeros_like(x)"
        )


def _check_result(name: str, target: Tensor, result: Any) -> None:
    """Raise unless the result of an operation can be stored in a target."""
    if tuple(result.shape) != tuple(target.shape):
        raise NumgradValueError(
            f"{name}: a result of shape {tuple(result.shape)} does not fit the target of shape "
            f"{tuple(target.shape)}; use the operation that returns a new tensor"
        )
    if not np.can_cast(result.dtype, target.dtype, "same_kind"):
        raise NumgradTypeError(
            f"{name}: a result of dtype {result.dtype} cannot be stored in a target of dtype "
            f"{target.dtype}; convert the target with astype first"
        )


def as_before(tensor: Tensor) -> Tensor:
    """A copy that an operation reads and saves in place of a tensor that is about to change."""
    if state.grad_enabled and is_recorded_leaf(tensor):
        return OPS["copy"](tensor)  # the gradient is to reach the leaf itself
    twin = Tensor(
        state.ground.lift(tensor).copy(),
        tensor._requires_grad,
        tensor._grad_fn,
        max(tensor._slot, 0),
    )
    if state.interpreters:
        for active in state.interpreters[above_ground() :]:
            active.duplicate(tensor, twin)
    return twin


def _before_write(target: Tensor, twin: Tensor, value: Any) -> Any:
    """An argument as it is before ``target``, of which ``twin`` is a copy, is written to."""
    if value is target:
        return twin
    if isinstance(value, Tensor) and (
        root(value) is root(target)  # in a trace values never change, versions do
        or _may_share(value._array, target._array)
    ):
        refresh(value)
        return as_before(value)
    return value


def _written_by_kernel(op: Elementwise, name: str, operands: tuple) -> bool:
    """Let the kernel of an elementwise operation write into its first operand, if it can.

    What shares memory with the target is read, and kept for the backward, as it was before.
    """
    target = operands[0]
    array = target._array
    arrays = [_plain(a) for a in operands]
    if not array.flags.c_contiguous or any(a is None for a in arrays):
        return False
    plan = op.plan(arrays)
    if plan.shape != array.shape or plan.dtype != array.dtype or not plan.simple:
        return False
    if not plan.reads_once():
        return False
    mask = sum(1 << k for k, a in enumerate(operands) if _requires_grad(a)) & plan.grad_mask
    mask *= state.grad_enabled
    if not mask and _is_recorded(target, False):  # what is written has no gradient
        return False
    if op.check is not None and not plan.floating:
        op.check(arrays)
    if mask:
        check_view(name, target)
    edges = tuple(edge_of(a) if mask >> k & 1 else None for k, a in enumerate(operands))
    names = plan.saves(mask) if mask else ()
    values = {n: _kept(operands[op.inputs.index(n)], target) for n in names if n != "y"}
    arrays = [array, *(_apart(a, array) for a in arrays[1:])]
    with writing(target):
        plan.compute(arrays, array)
    if mask:
        node = record(plan, mask, edges, tuple(values.get(n, array) for n in names))
        if "y" in names:
            node.watch_output(0, shared_version(target))
        if root(target) is target:
            take_history(target, node, 0)
        else:
            rebase(target, node, Meta(array.shape, array.dtype))
    return True


def _kept(operand: Any, target: Tensor) -> Any:
    """Keep an operand for a node: a copy if the write to ``target`` would change it."""
    array = _plain(operand)
    shares = isinstance(array, np.ndarray) and np.may_share_memory(array, target._array)
    if operand is not target and not shares:
        return keep(operand)
    return as_before(operand) if isinstance(operand, Tensor) else array.copy()


def _apart(a: Any, array: np.ndarray) -> Any:
    """An operand that the kernel may read while it writes ``array``, element after element."""
    if not isinstance(a, np.ndarray) or not np.may_share_memory(a, array):
        return a
    layouts = [(x.__array_interface__["data"], x.shape, x.strides) for x in (a, array)]
    return a if layouts[0] == layouts[1] else a.copy()


def _plain(a: Any) -> Any:
    """An operand as kernels take it, or None if it needs converting first."""
    if isinstance(a, Tensor):
        refresh(a)
        return a._array
    if type(a) is int:
        return a if abs(a) < TOO_LARGE else None
    return a if type(a) in (np.ndarray, float, complex) else None


def _requires_grad(a: Any) -> bool:
    return isinstance(a, Tensor) and a._requires_grad


def positions_by_example(x: Tensor, index: Any) -> Any:
    """Positions in C order of what an index selects; None if it is the same for all examples."""
    if not any(isinstance(entry, Batched) for entry in tensors_of_index(index)):
        return None
    return OPS["reshape"](OPS["iota"](length=x.size), x.shape)[index]


def tensors_of_index(index: Any) -> list[Tensor]:
    """Tensors in brackets."""
    return [i for i in (index if type(index) is tuple else (index,)) if isinstance(i, Tensor)]


# ------------------------------------------------------------------------------------------ methods


OTHERS = (
    "clip", "round", "nan_to_num", "deg2rad", "rad2deg", "cumsum", "cumprod", "tril", "triu",
    "index_add", "index_copy", "index_fill", "index_put", "scatter", "scatter_add", "masked_fill",
    "masked_scatter", "put",
)  # fmt: skip
"""Operations besides the elementwise ones whose result has the shape of their first operand."""


TORCH_NAMES = {
    "multiply": "mul", "divide": "div", "subtract": "sub", "negative": "neg", "power": "pow",
    "clip": "clamp", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
    "equal": "eq", "not_equal": "ne",
}  # fmt: skip
"""PyTorch's short names, which in-place methods have too."""


def inplace_names(op: Op) -> tuple[str, ...]:
    """Names of the methods that store an operation's result in its first operand."""
    names = (*op.names, *([TORCH_NAMES[op.name]] if op.name in TORCH_NAMES else []))
    return tuple(f"{name}_" for name in names)


def has_inplace_form(op: Op) -> bool:
    """Whether there is a method that stores the operation's result in its first operand."""
    return (isinstance(op, Elementwise) and op.method and not op.internal) or op.name in OTHERS


def inplace_method(op: Op, name: str) -> Callable[..., Tensor]:
    """The method ``name`` of the in-place form of an operation."""

    def write(self: Tensor, *args: Any, **params: Any) -> Tensor:
        return inplace(op, name, self, args, params)

    method = written_method(op, write)
    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"In-place form of ``{op.name}``; returns the tensor."
    return method


def _describe(op: Op) -> str | None:
    if not has_inplace_form(op):
        return None
    names = dict.fromkeys(inplace_names(op))
    return f"In place: {', '.join(f'``Tensor.{name}``' for name in names)}."


DESCRIBERS.append(_describe)


def augmented(op: Op, acceptable: Callable[[Any], bool]) -> Callable[..., Any]:
    """The method behind ``a <op>= b``."""
    name = f"{op.dunder}_"

    def write(self: Tensor, other: Any) -> Any:
        if not acceptable(other):
            if (labelled_kind(type(other)) or "").startswith("xarray."):
                raise NumgradTypeError(
                    f"{name}: the result has the labels of xarray's operand, which the memory of a "
                    "Tensor cannot take; write t = t + x, or give x.data"
                )
            if not isinstance(other, RowSparseTensor):
                return NotImplemented
            other = other.to_dense()  # Python would make ``a = a + b`` of it
        if isinstance(self._array, AbstractArray) and self._array.immutable:
            return op(self, other)
        return inplace(op, name, self, (other,), {})

    return written_method(op, write)


def matmul_augmented(self: Tensor, other: Any) -> Tensor:
    """``self @= other``."""
    return inplace(OPS["matmul"], "matmul_", self, (other,), {})


def setitem(self: Tensor, index: Any, value: Any) -> None:
    """``self[index] = value`` for any index of NumPy's."""
    at = self
    if isinstance(self, IndexedTensor):
        index, at = self.places(index), Places(self)
    index = tuple(map(_as_int, index)) if type(index) is tuple else _as_int(index)
    parts = index if type(index) is tuple else (index,)
    if type(value) is Selected:
        self[...] = value.placed(self, index)
    elif is_basic(index) or all(map(is_basic_part, parts)):
        assign("setitem", at[index], value, part_of=self)
    else:
        if at is not self and index_of(value) is not None:
            check_written("setitem", at[index], value)
        value = as_values("setitem", value, self._array.dtype)
        if value.dtype != self._array.dtype:
            value = OPS["astype"](value, dtype=self._array.dtype)
        inplace(OPS["index_put"], "setitem", self, (value,), {"index": index})


def _as_int(entry: Any) -> Any:
    """A part of an index, with NumPy's integers as Python's, so that it counts as basic."""
    return int(entry) if isinstance(entry, np.integer) else entry


def copy_(self: Tensor, source: Any) -> Tensor:
    """Store ``source``, which broadcasts to the tensor's shape and is converted to its dtype.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.zeros(2).copy_(ng.tensor([1, 2]))
    tensor([1., 2.])
    """
    return assign("copy_", self, source)


def fill_(self: Tensor, value: Any) -> Tensor:
    """Store one number (or 0-d tensor) everywhere.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.zeros(2).fill_(3)
    tensor([3., 3.])
    """
    if np.ndim(value) > 0:
        raise NumgradValueError(
            f"fill_: takes a number or a 0-d tensor, got shape {np.shape(value)}; use copy_"
        )
    return assign("fill_", self, value)


def zero_(self: Tensor) -> Tensor:
    """Store zeros.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.ones(2).zero_()
    tensor([0., 0.])
    """
    return assign("zero_", self, 0)


def fill_diagonal_(self: Tensor, value: Any, wrap: bool = False) -> Tensor:
    """Store numbers where all indices are equal, as ``np.fill_diagonal``; returns the tensor.

    ``wrap`` goes on below the square part of a matrix with more rows than columns.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.zeros((2, 3)).fill_diagonal_(5.0)
    tensor([[5., 0., 0.],
            [0., 5., 0.]])
    """
    mask = np.zeros(self.shape, bool)
    checked("fill_diagonal_", mask, np.fill_diagonal, mask, True, wrap)
    return inplace(OPS["put"], "fill_diagonal_", self, (np.flatnonzero(mask), value), {})


def detach_(self: Tensor) -> Tensor:
    """Cut the tensor off from the graph that made it: it becomes a leaf.

    Raises
    ------
    NumgradRuntimeError
        If the tensor is a view.

    Examples
    --------
    >>> import numgrad as ng
    >>> y = ng.ones(2, requires_grad=True) * 2
    >>> y.detach_().is_leaf
    True
    """
    if root(self) is not self:
        raise NumgradRuntimeError(
            "detach_: the tensor is a view, whose base would stay in the graph; use detach() for a "
            "new tensor"
        )
    if isinstance(self, Batched):
        self.value = self.value.detach()
        return self
    self._array = state.ground.detached(self)
    self._grad_fn, self._slot, self._requires_grad = None, 0, False
    if self._extra is not None and self._extra.tangents is not None:
        self._extra.tangents.clear()
    return self
