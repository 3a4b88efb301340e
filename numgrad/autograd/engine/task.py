"""What one backward is asked for: roots, targets, and which nodes lie between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from numgrad.autograd.node import AccumulateGrad, Node
from numgrad.autograd.variable import Tensor, refresh


class GradientEdge(NamedTuple):
    """A place in the graph where a gradient arrives: output ``output_nr`` of ``node``.

    It stands for a tensor in ``grad`` and ``backward``, without keeping its data alive.
    """

    node: Any
    output_nr: int
    ownership_token: Any = None


def edge_of(value: Tensor | GradientEdge) -> Any:
    """The edge to a tensor, as nodes store theirs: see ``Node``."""
    if isinstance(value, GradientEdge):
        node = value.node
        if type(node) is AccumulateGrad:
            return node.variable
        return (node, value.output_nr) if node.call.out_metas else node
    if value._memory is not None:
        refresh(value)
    node = value._grad_fn
    if node is None:
        return value
    return (node, value._slot - 1) if value._slot else node


def place_of(edge: Any) -> tuple[int, int]:
    """Identity of the value an edge points to: a node's output, or a leaf."""
    if type(edge) is tuple:
        return edge[0].sequence, edge[1]
    if type(edge) is Node:
        return edge.sequence, 0
    return id(edge), -1


def node_of(edge: Any) -> Node | None:
    """The node an edge leads to, if it leads to none of the leaves."""
    node = edge[0] if type(edge) is tuple else edge
    return node if type(node) is Node else None


class Task:
    """One backward: from the edges ``roots`` to the edges ``targets``, or to all leaves.

    Attributes
    ----------
    needed
        With targets, the sequence numbers of the nodes on a path to one of them.
    wanted
        With targets, their places.
    """

    __slots__ = ("__weakref__", "_reached", "needed", "roots", "targets", "wanted")

    def __init__(self, roots: Sequence[Any], targets: Sequence[Any] | None) -> None:
        self.roots, self.targets = roots, targets
        self._reached: set[tuple[int, int]] | None = None
        self.wanted: set[tuple[int, int]] = set()
        self.needed: set[int] | None = None
        if targets is not None:
            self.wanted = {place_of(edge) for edge in targets}
            self.needed = self._between()

    def _between(self) -> set[int]:
        needed: set[int] = set()
        consumers: dict[int, list[int]] = {}
        for node in reachable(self.roots):
            for edge in node.edges:
                if edge is None:
                    continue
                if place_of(edge) in self.wanted:
                    needed.add(node.sequence)
                child = node_of(edge)
                if child is not None:
                    consumers.setdefault(child.sequence, []).append(node.sequence)
        frontier = list(needed)
        while frontier:
            for consumer in consumers.get(frontier.pop(), ()):
                if consumer not in needed:
                    needed.add(consumer)
                    frontier.append(consumer)
        return needed

    def edges(self) -> Iterator[Any]:
        """The roots, and every edge a gradient may be sent along."""
        yield from self.roots
        for node in reachable(self.roots, self.needed):
            for edge in node.edges:
                if edge is not None:
                    yield edge

    def leaf_counts(self) -> dict[int, int]:
        """How many gradients may be sent to each leaf that has hooks, by ``id``."""
        counts: dict[int, int] = {}
        for edge in self.edges():
            if (
                isinstance(edge, Tensor)
                and edge._extra is not None
                and edge._extra.hooks is not None
            ):
                counts[id(edge)] = counts.get(id(edge), 0) + 1
        return counts

    def reaches(self, node: Any, output: int) -> bool:
        """Whether a gradient arrives at an output of a node, or at a leaf Tensor."""
        if self._reached is None:
            self._reached = {place_of(edge) for edge in self.edges()}
        place = (id(node), -1) if isinstance(node, Tensor) else (node.sequence, output)
        if place not in self._reached:
            return False
        return self.needed is None or place in self.wanted or place[0] in self.needed


def reachable(roots: Sequence[Any], within: set[int] | None = None) -> Iterator[Node]:
    """Every node that edges lead to, once; with ``within`` only through nodes of that set."""
    visited: set[int] = set()
    stack = [node_of(edge) for edge in roots]
    while stack:
        node = stack.pop()
        if node is None or node.sequence in visited:
            continue
        visited.add(node.sequence)
        if within is not None and node.sequence not in within:
            continue
        yield node
        stack.extend(node_of(edge) for edge in node.edges)


def leads_elsewhere(roots: Iterable[Tensor], leaves: Sequence[Tensor]) -> bool:
    """Whether ``roots`` depend on a leaf that requires grad and is none of ``leaves``."""
    edges = [edge_of(root) for root in roots if root.requires_grad]
    known = set(map(id, leaves))
    return any(
        isinstance(edge, Tensor) and edge._requires_grad and id(edge) not in known
        for edge in chain(edges, chain.from_iterable(node.edges for node in reachable(edges)))
    )
