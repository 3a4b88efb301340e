"""The request of a backward: roots, targets, and which nodes lie between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from numgrad.autograd.hooks import has_hooks
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


class Task:
    """One backward: from the edges ``roots`` to the edges ``targets``, or to all leaves.

    Attributes
    ----------
    outputs
        Which outputs of a node are targets, by its sequence number.
    needed
        With targets, the sequence numbers of the nodes that run: those on a path to one of them,
        and with ``accumulating`` those that made one, so that their hooks run.
    passed
        Those of ``needed`` of which no output is a target.
    """

    __slots__ = ("__weakref__", "_reached", "needed", "outputs", "passed", "roots", "targets")

    def __init__(
        self, roots: Sequence[Any], targets: Sequence[Any] | None = None, accumulating: bool = False
    ) -> None:
        self.roots, self.targets = roots, targets
        self._reached: set[tuple[int, int]] | None = None
        self.outputs: dict[int, set[int]] = {}
        self.needed: set[int] | None = None
        self.passed: set[int] | None = None
        if targets is not None:
            self.needed = self._between(targets)
            self.passed = self.needed.difference(self.outputs) if self.outputs else self.needed
            if accumulating and self.outputs:
                self.needed = self.needed.union(self.outputs)

    def _between(self, targets: Sequence[Any]) -> set[int]:
        leaves: set[int] = set()
        outputs = self.outputs
        for edge in targets:
            kind = type(edge)
            if kind is Node or kind is tuple:
                node, number = edge if kind is tuple else (edge, 0)
                outputs.setdefault(node.sequence, set()).add(number)
            else:
                leaves.add(id(edge))
        needed: set[int] = set()
        nodes = reachable(self.roots)
        for sequence in sorted(nodes):  # nodes behind an edge come first
            for edge in nodes[sequence].edges:
                kind = type(edge)
                if kind is Node:
                    leads = edge.sequence in needed or edge.sequence in outputs
                elif kind is tuple:
                    child = edge[0].sequence
                    leads = child in needed or edge[1] in outputs.get(child, ())
                else:
                    leads = id(edge) in leaves
                if leads:
                    needed.add(sequence)
                    break
        return needed

    def edges(self) -> Iterator[Any]:
        """The roots, and every edge a gradient may be sent along."""
        nodes = reachable(self.roots, self.needed).values()
        return chain(self.roots, chain.from_iterable(node.edges for node in nodes))

    def leaf_counts(self, pending: Iterable[Any]) -> dict[int, int]:
        """How many gradients nodes that are still to run may send to each hooked leaf, by ``id``.

        ``pending`` are those that have got a gradient.
        """
        counts: dict[int, int] = {}
        for node in reachable(pending, self.needed).values():
            for edge in node.edges:
                if isinstance(edge, Tensor) and has_hooks(edge):
                    counts[id(edge)] = counts.get(id(edge), 0) + 1
        return counts

    def reaches(self, node: Any, output: int) -> bool:
        """Whether a gradient arrives at an output of a node, or at a leaf Tensor."""
        if self._reached is None:
            self._reached = {place_of(edge) for edge in self.edges()}
        key = (id(node), -1) if isinstance(node, Tensor) else (node.sequence, output)
        if key not in self._reached:
            return False
        return (
            self.needed is None or key[0] in self.needed or key in map(place_of, self.targets or ())
        )


def reachable(roots: Iterable[Any], within: set[int] | None = None) -> dict[int, Node]:
    """Every node that edges lead to, by sequence number; with ``within`` only through these."""
    nodes: dict[int, Node] = {}
    stack = list(roots)
    while stack:
        edge = stack.pop()
        node = edge[0] if type(edge) is tuple else edge
        if type(node) is not Node or node.sequence in nodes:
            continue
        if within is None or node.sequence in within:
            nodes[node.sequence] = node
            stack.extend(node.edges)
    return nodes


def leads_elsewhere(roots: Iterable[Tensor], leaves: Sequence[Tensor]) -> bool:
    """Whether ``roots`` depend on a leaf that requires grad and is none of ``leaves``."""
    stack = [edge_of(root) for root in roots if root.requires_grad]
    known, nodes = set(map(id, leaves)), set()
    while stack:
        edge = stack.pop()
        node = edge[0] if type(edge) is tuple else edge
        if type(node) is Node:
            if node.sequence not in nodes:
                nodes.add(node.sequence)
                stack += node.edges
        elif isinstance(node, Tensor) and node._requires_grad and id(node) not in known:
            return True
    return False


def depend_on_leaves(roots: Sequence[Tensor]) -> list[bool]:
    """Whether each of ``roots`` depends on a leaf that requires grad."""
    edges = [edge_of(root) if root.requires_grad else None for root in roots]
    nodes = reachable(edges)
    leading: set[int] = set()

    def leads(edge: Any) -> bool:
        if isinstance(edge, Tensor):
            return edge._requires_grad
        node = edge[0] if type(edge) is tuple else edge
        return type(node) is Node and node.sequence in leading

    for sequence in sorted(nodes):  # edges lead to what was recorded before
        if any(map(leads, nodes[sequence].edges)):
            leading.add(sequence)
    return list(map(leads, edges))
