"""Second step of the layout: an order of the vertices of each layer in which few links cross.

Every vertex goes to the mean place of its neighbours on the layer before (its *barycentre*), layer
by layer, down and up in turn: K. Sugiyama, S. Tagawa, M. Toda, Methods for visual understanding of
hierarchical system structures, IEEE Trans. SMC 11 (1981) 109. The best order of all rounds stays.
"""

from __future__ import annotations

from bisect import bisect_right, insort

from numgrad.diagrams.layering import Layered

ROUNDS = 8
"""Down and up again; more seldom improve anything."""

PATIENCE = 2
"""Rounds without improvement after which to stop."""


def order(graph: Layered) -> list[list[int]]:
    """The vertices of each layer from left to right."""
    layers = graph.layers()
    place = _places(layers, len(graph.rank))
    best, fewest, patience = [list(layer) for layer in layers], crossings(graph, layers), PATIENCE
    for _ in range(ROUNDS):
        if not fewest or not patience:
            break
        for layer in layers[1:]:
            _sort(layer, graph.up, place)
        for layer in layers[-2::-1]:
            _sort(layer, graph.down, place)
        found = crossings(graph, layers)
        patience -= 1
        if found < fewest:
            best, fewest, patience = [list(layer) for layer in layers], found, PATIENCE
    return best


def _sort(layer: list[int], neighbours: list[list[int]], place: list[int]) -> None:
    """Sort by barycentres; a vertex without neighbours on that side keeps its place."""
    centre = {}
    for v in layer:
        near = neighbours[v]
        centre[v] = sum([place[u] for u in near]) / len(near) if near else place[v]
    layer.sort(key=centre.__getitem__)
    for k, v in enumerate(layer):
        place[v] = k


def _places(layers: list[list[int]], count: int) -> list[int]:
    place = [0] * count
    for layer in layers:
        for k, v in enumerate(layer):
            place[v] = k
    return place


def crossings(graph: Layered, layers: list[list[int]]) -> int:
    """How many pairs of segments cross each other."""
    place = _places(layers, len(graph.rank))
    total = 0
    for layer in layers[:-1]:
        # With segments in the order of their upper ends, those cross that end left of an earlier.
        ends: list[int] = []
        for v in layer:
            below = sorted([place[w] for w in graph.down[v]])
            for end in below:
                total += len(ends) - bisect_right(ends, end)
            for end in below:
                insort(ends, end)
    return total
