"""In-place operations: a write to memory, and the history of everybody who looks at it.

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

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from numgrad.autograd.hooks import move_retained
from numgrad.autograd.node import Node, mark_written
from numgrad.autograd.saved import keep
from numgrad.autograd.task import edge_of
from numgrad.autograd.variable import (
    INFERENCE,
    NO_GRAD_VIEW,
    Tensor,
    install_replay,
    refresh,
    root,
    shared_version,
    version_of,
)
from numgrad.eager import record
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.op.base import OPS, Meta, Op, state
from numgrad.op.elementwise import Elementwise
from numgrad.ops.region import Region
from numgrad.ops.shape import as_operand

# ---------------------------------------------------------------------------------- what may be


def check_target(name: str, target: Tensor) -> None:
    """Raise unless ``target`` can be written to."""
    if not isinstance(target, Tensor):
        raise NumgradTypeError(f"{name}: the target is a {type(target).__name__}, not a Tensor")
    refresh(target)
    array = target._array
    if _overlaps(array):
        raise NumgradRuntimeError(
            f"{name}: the target of shape {array.shape} shows single elements several times, as "
            "broadcast_to gives them, so a write has no meaning; clone() it first"
        )
    if not array.flags.writeable:
        raise NumgradRuntimeError(
            f"{name}: the memory of the target of shape {array.shape} is read-only; clone() it"
        )
    if version_of(target) is INFERENCE and not state.inference:
        raise NumgradRuntimeError(
            f"{name}: the target was made in inference mode and cannot be changed outside; clone() "
            "it, or do this inside inference_mode"
        )
    if not state.grad_enabled:
        return
    owner = root(target)
    if owner._requires_grad and owner._grad_fn is None and target._requires_grad:
        what = "a leaf" if owner is target else "a view of a leaf"
        raise NumgradRuntimeError(
            f"{name}: the target of shape {array.shape} is {what} that requires grad; its history "
            "begins with its value, so change it under no_grad(), or work on a clone()"
        )


def _overlaps(array: np.ndarray) -> bool:
    """Whether two indices may show the same element."""
    if array.flags.c_contiguous or array.size < 2:
        return False
    reach = array.itemsize
    for stride, n in sorted(zip(map(abs, array.strides), array.shape, strict=True)):
        if n > 1:
            if stride < reach:
                return True
            reach = stride * n
    return False


def _check_view(name: str, target: Tensor) -> None:
    """Raise for a view whose history cannot be rewritten."""
    if target._memory is None or root(target) is target:
        return
    if target._slot == NO_GRAD_VIEW:
        raise NumgradRuntimeError(
            f"{name}: the target is a view made under no_grad() and is now to be part of the graph;"
            " make the view where operations are recorded, or write under no_grad()"
        )
    if target._slot > 0:
        raise NumgradRuntimeError(
            f"{name}: the target is one of several views that one operation returned (unstack, "
            "split), which cannot be written to; index the base instead"
        )
    if target._grad_fn is not None and target._grad_fn.call.opaque:
        raise NumgradRuntimeError(
            f"{name}: the target is a view that {target._grad_fn.name()} returned, a function of "
            "yours, which cannot be written to; return a clone() from forward"
        )


def _check_fits(name: str, target: np.ndarray, shape: tuple[int, ...]) -> None:
    """Raise unless a result of this shape can be stored in ``target``."""
    if shape == target.shape:
        return
    lead = len(shape) - len(target.shape)  # NumPy drops leading axes of length 1 here
    if lead > 0 and set(shape[:lead]) <= {1}:
        shape = shape[lead:]
    try:
        fits = np.broadcast_shapes(shape, target.shape) == target.shape
    except ValueError:
        fits = False
    if not fits:
        raise NumgradValueError(
            f"{name}: a result of shape {shape} does not fit the target of shape {target.shape}; "
            "use the operation that returns a new tensor"
        )


# -------------------------------------------------------------------------------------- history


def rebase(target: Tensor, source: Any, value: Meta) -> None:
    """Rewrite history after a write of ``value`` at ``target``; its gradient goes to ``source``."""
    owner = root(target)
    version = shared_version(owner)
    version.rebased = version.last
    where = Region(owner._array, target._array)
    op: Any = OPS["copy_slices"]
    mask = bool(owner._requires_grad) | (source is not None) << 1
    edges = (edge_of(owner) if mask & 1 else None, source)
    before, output = owner._grad_fn, max(owner._slot - 1, 0)
    owner._grad_fn, owner._slot = record(op.call(value, where), mask, edges, ()), 0
    owner._requires_grad = True
    move_retained(owner, before, output)
    refresh(target)


def _replay(view: Tensor, owner: Tensor) -> None:
    """Give a view the history of its root, read at its place."""
    _, call = OPS["region"].run((owner._array,), {"where": Region(owner._array, view._array)})
    before, output = view._grad_fn, max(view._slot - 1, 0)
    view._grad_fn, view._slot = record(call, 1, (edge_of(owner),), ()), 0
    view._requires_grad = True
    move_retained(view, before, output)


install_replay(_replay)


@contextmanager
def writing(target: Tensor) -> Iterator[None]:
    """Around a write to the memory of ``target``."""
    if state.mutation is not None:
        state.mutation.before_write(target._array)
    yield
    if version_of(target) is not INFERENCE:
        mark_written(target)


def assign(name: str, target: Tensor, value: Any) -> Tensor:
    """Store ``value``, which broadcasts, in ``target``; its gradient goes to ``value``."""
    check_target(name, target)
    value = as_operand(value)
    array = value._array if isinstance(value, Tensor) else np.asarray(value)
    if array.dtype.kind == "c" and target._array.dtype.kind != "c":
        raise NumgradTypeError(
            f"{name}: complex values cannot be stored in a target of dtype {target._array.dtype}; "
            "take the real part, or convert the target with astype first"
        )
    _check_fits(name, target._array, array.shape)
    source = edge_of(value) if isinstance(value, Tensor) and value.requires_grad else None
    recorded = _is_recorded(target, source is not None) and target._array.dtype.kind in "fc"
    if recorded:
        _check_view(name, target)
    if np.may_share_memory(array, target._array):
        array = array.copy()
    with writing(target):
        np.copyto(target._array, array, casting="unsafe")
    if recorded:
        rebase(target, source, Meta(array.shape, array.dtype))
    _tell_interpreters(target, value)
    return target


def _is_recorded(target: Tensor, follows: bool) -> bool:
    return state.grad_enabled and (follows or root(target)._requires_grad)


def _tell_interpreters(target: Tensor, value: Any) -> None:
    """Let forward mode give the target the tangent of what was stored in it."""
    for active in state.interpreters:
        active.assign(target, value)


# ------------------------------------------------------------------------------------ operations


def inplace(op: Op, name: str, target: Tensor, args: tuple, params: dict[str, Any]) -> Tensor:
    """Store the result of ``op(target, *args, **params)`` in ``target``.

    The kernel of an elementwise operation writes there itself if it can. Else the operation
    computes a new tensor from a copy of the target, which is stored.
    """
    check_target(name, target)
    if state.mode and not params and isinstance(op, Elementwise):
        operands = (target, *args, *op.rest((target, *args)))
        if len(operands) == len(op.inputs) and _KernelWrite(op, name, operands).done:
            return target
    twin = Tensor(target._array.copy())
    _copy_place(twin, target)
    twin._extra = target._extra if state.interpreters else None
    result = op(twin, *(twin if a is target else a for a in args), **params)
    if not np.can_cast(result.dtype, target._array.dtype, "same_kind"):
        raise NumgradTypeError(
            f"{name}: a result of dtype {result.dtype} cannot be stored in a target of dtype "
            f"{target._array.dtype}; convert the target with astype first"
        )
    whole = root(target) is target and result._array.shape == target._array.shape
    if not (whole and result._requires_grad and result._array.dtype == target._array.dtype):
        return assign(name, target, result)
    with writing(target):
        np.copyto(target._array, result._array)
    _take_history(target, result._grad_fn, result._slot)
    _tell_interpreters(target, result)
    return target


def _take_history(target: Tensor, node: Node, slot: int) -> None:
    """Make a root, written as a whole, the output of ``node``."""
    version = shared_version(target)
    version.rebased = version.last
    before, output = target._grad_fn, max(target._slot - 1, 0)
    target._grad_fn, target._slot, target._requires_grad = node, slot, True
    move_retained(target, before, output)


def _copy_place(twin: Tensor, original: Any) -> None:
    """Give a copy the place in the graph of what it copies."""
    if isinstance(original, Tensor) and original._requires_grad:
        twin._requires_grad, twin._grad_fn = True, original._grad_fn
        twin._slot = original._slot


class _KernelWrite:
    """An elementwise operation whose kernel writes into its first operand, if it can.

    What shares memory with the target is read, and kept for the backward, as it was before.
    """

    def __init__(self, op: Elementwise, name: str, operands: tuple) -> None:
        self.op, self.operands, self.target = op, operands, operands[0]
        self.done = False
        array = self.target._array
        arrays = [_plain(a) for a in operands]
        if not array.flags.c_contiguous or any(a is None for a in arrays):
            return
        plan = op.plan(arrays)
        if plan.shape != array.shape or plan.dtype != array.dtype or not plan.simple:
            return
        if not plan.reads_once():
            return
        mask = sum(1 << k for k, a in enumerate(operands) if _requires_grad(a)) & plan.records
        mask *= state.grad_enabled
        if not mask and _is_recorded(self.target, False):  # what is written has no gradient
            return
        if op.check is not None and not plan.floating:
            op.check(arrays)
        if mask:
            _check_view(name, self.target)
        edges = tuple(edge_of(a) if mask >> k & 1 else None for k, a in enumerate(operands))
        names = plan.saves(mask) if mask else ()
        kept = {n: self._keep(n, arrays) for n in names if n != "y"}
        arrays = [a if k == 0 else self._apart(a) for k, a in enumerate(arrays)]
        with writing(self.target):
            plan.compute(arrays, array)
        self.done = True
        if mask:
            node = record(plan, mask, edges, tuple(kept.get(n, array) for n in names))
            if "y" in names:
                node.watch_output(0, shared_version(self.target))
            if root(self.target) is self.target:
                _take_history(self.target, node, 0)
            else:
                rebase(self.target, node, Meta(array.shape, array.dtype))

    def _keep(self, name: str, arrays: list[Any]) -> Any:
        """What the node saves of an operand: a copy if the write would change it."""
        k = self.op.inputs.index(name)
        array, operand = arrays[k], self.operands[k]
        if not isinstance(array, np.ndarray) or self._apart(array, always=True) is array:
            return keep(operand)
        twin = Tensor(array.copy())
        _copy_place(twin, operand)
        return twin

    def _apart(self, a: Any, *, always: bool = False) -> Any:
        """An operand that the kernel may read while it writes, element after element."""
        array = self.target._array
        if not isinstance(a, np.ndarray) or not np.may_share_memory(a, array):
            return a
        same = a.strides == array.strides and _address(a) == _address(array)
        return a if same and not always else a.copy()


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _plain(a: Any) -> Any:
    """An operand as kernels take it, or None if it needs converting first."""
    if isinstance(a, Tensor):
        refresh(a)
        return a._array
    return a if type(a) in (np.ndarray, float, int, complex) else None


def _requires_grad(a: Any) -> bool:
    return isinstance(a, Tensor) and a._requires_grad
