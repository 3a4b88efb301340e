"""Giving a tensor the history of what was written to its memory.

See Note [In-place operations] in ``numgrad.tensors.inplace``, and Note [Views] in ``variable``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numgrad.autograd.anomaly import remember_line
from numgrad.autograd.engine.task import edge_of
from numgrad.autograd.hooks import move_retained
from numgrad.autograd.node import Node
from numgrad.autograd.saved import pack
from numgrad.autograd.variable import NO_GRAD_VIEW, Tensor, install_replay, refresh, root
from numgrad.autograd.versions import shared_version
from numgrad.core.formula import Meta
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.plan import Call
from numgrad.core.primitive import View, ViewCall
from numgrad.errors import NumgradRuntimeError


def record(call: Call, mask: int, edges: tuple, saved: tuple) -> Node:
    """A new node, with its saved values packed and its line remembered where that is asked for."""
    if saved and state.saved_hooks:
        saved = pack(saved, state.saved_hooks[-1])
    node = Node(call, mask, edges, saved)
    if state.anomaly:
        remember_line(node)
    return node


def is_recorded_leaf(tensor: Tensor) -> bool:
    """Whether histories begin with the value of this tensor."""
    return tensor._requires_grad and tensor._grad_fn is None


def check_no_leaf(name: str, target: Tensor) -> None:
    """Raise for a leaf that requires grad, and for a view of one."""
    if target._slot == NO_GRAD_VIEW:  # check_view says what is wrong
        return
    if is_recorded_leaf(target) or is_recorded_leaf(root(target)):
        what = "a leaf" if is_recorded_leaf(target) else "a view of a leaf"
        raise NumgradRuntimeError(
            f"{name}: the target of shape {target._array.shape} is {what} that requires grad; its "
            "history begins with its value, so change it under no_grad(), or work on a clone()"
        )


def check_view(name: str, target: Tensor) -> None:
    """Raise for a view whose history cannot be rewritten, and for a view of such a one."""
    owner = root(target)
    if owner is target:
        return
    if target._slot == NO_GRAD_VIEW:
        raise NumgradRuntimeError(
            f"{name}: the target is a view made under no_grad() and is now to be part of the graph;"
            " make the view where operations are recorded, or write under no_grad()"
        )
    several = target._slot > 0
    for edge in _edges_to_root(target):
        node = edge[0] if type(edge) is tuple else edge
        if node is owner._grad_fn:
            break
        if isinstance(node, Tensor):
            if node is not owner and node._requires_grad:
                raise NumgradRuntimeError(
                    f"{name}: the target is a view of a view made under no_grad() that requires "
                    "grad; its history begins with its value, so work on a clone()"
                )
            break
        _check_opaque(name, node)
        several = several or type(edge) is tuple
    if several:
        raise NumgradRuntimeError(
            f"{name}: the target is one of several views that one operation returned (unstack, "
            "split), or a view of one, which cannot be written to; index the base instead"
        )


def _edges_to_root(view: Tensor) -> Iterator[Any]:
    """Edges from a view on, as far as operations only show memory otherwise."""
    owner, edge = root(view), edge_of(view)
    while True:
        yield edge
        node: Any = edge[0] if type(edge) is tuple else edge
        if isinstance(node, Tensor) or node is owner._grad_fn or not isinstance(node.call.op, View):
            return
        edge = node.edges[0]


def follows_root(view: Tensor) -> bool:
    """Whether the history of a view is that of its root, read at a place.

    It is not where a Function of the user's returned it, or it was made under ``no_grad``.
    """
    owner = root(view)
    *_, edge = _edges_to_root(view)
    node = edge[0] if type(edge) is tuple else edge
    if not view._requires_grad:
        return not owner._requires_grad
    return node is owner or (owner._grad_fn is not None and node is owner._grad_fn)


def _check_opaque(name: str, node: Any) -> None:
    if node is not None and node.call.opaque:
        raise NumgradRuntimeError(
            f"{name}: the target is a view that {node.name()} returned, a function of "
            "yours, whose base cannot be written to; return a clone() from forward"
        )


def take_history(target: Tensor, node: Node, slot: int) -> None:
    """Make a root, written as a whole, the output of ``node``."""
    version = shared_version(target)
    version.rebased = version.last
    before, output = target._grad_fn, max(target._slot - 1, 0)
    target._grad_fn, target._slot, target._requires_grad = node, slot, True
    move_retained(target, before, output)


def rebase(target: Tensor, source: Any, value: Meta) -> None:
    """Rewrite history after a write of ``value`` at ``target``; its gradient goes to ``source``."""
    owner = root(target)
    version = shared_version(owner)
    version.rebased = version.last
    where = state.ground.region(owner, target)
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
    if not owner._requires_grad:  # it was detached
        view._grad_fn, view._slot, view._requires_grad = None, 0, False
        return
    _check_opaque("a view whose base was changed in place", view._grad_fn)
    where = state.ground.region(owner, view)
    call = ViewCall(OPS["region"], (where.whole,), {"where": where}, view._array)
    before, output = view._grad_fn, max(view._slot - 1, 0)
    view._grad_fn, view._slot = record(call, 1, (edge_of(owner),), ()), 0
    view._requires_grad = True
    move_retained(view, before, output)


install_replay(_replay)
