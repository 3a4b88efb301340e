"""Leave out what is never read."""

from __future__ import annotations

from numgrad.compiler.graph.graph import INPUT, Graph


def drop_dead(graph: Graph) -> int:
    """Remove nodes that no result depends on; calls stay, they may have effects."""
    needed = set(graph.roots())
    nodes = []
    for node in reversed(graph.nodes):
        stays = node.op == INPUT or node.has_effects
        if stays or not needed.isdisjoint(node.outputs):
            needed.update(node.inputs)
            nodes.append(node)
    dropped = len(graph.nodes) - len(nodes)
    graph.nodes = nodes[::-1]
    return dropped
