"""Tensors on the tape that a function closes over.

Note [Closures]
---------------
An operation has the tape lead to its inputs, and a function that a solver calls may use Tensors
that are none. They are found by recording one call: where its nodes lead to what was there before.
Each such place in the graph becomes a Tensor without numbers, which is one more input. Where one of
them leads to another, the leaves behind are taken in their place, so that no gradient counts twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.autograd.engine.backward import dense_grad
from numgrad.autograd.engine.task import edge_of, reachable
from numgrad.autograd.forward_ad import has_tangent
from numgrad.autograd.graph import GradientEdge
from numgrad.autograd.modes import enable_grad
from numgrad.autograd.node import Node
from numgrad.autograd.variable import Tensor
from numgrad.autograd.versions import next_sequence
from numgrad.errors import NumgradRuntimeError


def captured(
    name: str, function: Callable[[Sequence[Tensor]], Sequence[Tensor]], own: Sequence[Tensor]
) -> list[Tensor]:
    """Tensors with the places of what ``function`` closes over: Note [Closures].

    Raises
    ------
    NumgradRuntimeError
        If forward mode or ``vmap`` follows it, which see values, and no graph.
    """
    start = next_sequence()
    with enable_grad():
        outputs = function(own)
    for out in outputs:
        if type(out) is not Tensor or has_tangent(out):
            how = "forward mode follows" if type(out) is Tensor else "vmap maps over"
            raise NumgradRuntimeError(
                f"{name}: the function closes over a Tensor that {how}, and a solver calls it "
                "outside of that; pass the Tensor in args"
            )
    roots = [y for y in outputs if y.requires_grad]
    if not roots:
        return []
    known = set(map(id, own))
    ends = list(map(edge_of, roots))
    inside = [n for n in reachable(ends).values() if n.sequence > start]
    mapping: dict[Any, Any] = {}
    for edge in (*ends, *(e for n in inside for e in n.edges)):
        node = edge[0] if type(edge) is tuple else edge
        older = type(node) is Node and node.sequence < start
        leaf = isinstance(node, Tensor) and node._requires_grad and id(node) not in known
        if older or leaf:
            mapping[_place(edge)] = edge
    beyond = [e for node in reachable(mapping.values()).values() for e in node.edges]
    if any(_place(e) in mapping for e in beyond):
        mapping = {
            _place(e): e
            for e in (*mapping.values(), *beyond)
            if isinstance(e, Tensor) and e._requires_grad and id(e) not in known
        }
    if not mapping:
        return []
    places = [
        e if isinstance(e, Tensor) else GradientEdge(*(e if type(e) is tuple else (e, 0)))
        for e in mapping.values()
    ]
    weights = [Tensor(np.ones(y.shape, y.dtype)) for y in roots]
    shown = dense_grad(roots, places, weights, True, False, allow_unused=True)
    return [_placed(e, g) for e, g in zip(mapping.values(), shown, strict=True) if g is not None]


def _place(edge: Any) -> Any:
    if isinstance(edge, Tensor):
        return id(edge), -2
    if edge is None:
        return None
    return (edge[0].sequence, edge[1]) if type(edge) is tuple else (edge.sequence, -1)


def _placed(edge: Any, like: Tensor) -> Tensor:
    """A Tensor at a place in the graph, of whose gradient the shape is known."""
    if isinstance(edge, Tensor):
        return edge
    node, slot = (edge[0], edge[1] + 1) if type(edge) is tuple else (edge, 0)
    return Tensor(np.zeros(like.shape, like.dtype), True, node, slot)
