"""What nobody reads is not computed."""

from __future__ import annotations

from numgrad.compiler.graph.graph import CALL, INPUT, Graph, Node

_EFFECTS = ("require_between",)
"""Operations that are there for the error they may raise."""


def has_effects(node: Node) -> bool:
    """Whether a node is there for more than its results."""
    return node.op == CALL or node.name in _EFFECTS


def drop_dead(graph: Graph) -> int:
    """Remove nodes that no result depends on; calls stay, they may have effects."""
    needed = set(graph.roots())
    kept = []
    for node in reversed(graph.nodes):
        stays = node.op == INPUT or has_effects(node)
        if stays or any(v in needed for v in node.outputs):
            needed.update(node.inputs)
            kept.append(node)
    dropped = len(graph.nodes) - len(kept)
    graph.nodes = kept[::-1]
    return dropped
