"""``make_dot``: the recorded graph of a tensor as a drawing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from numgrad.autograd.function.function_call import SavedTensors
from numgrad.autograd.node import AccumulateGrad, GraphNode, Node
from numgrad.autograd.saved import Guard, Packed
from numgrad.compiler.graph.graph import Graph
from numgrad.diagrams.diagram import Box, Diagram, Link
from numgrad.errors import NumgradRuntimeError, NumgradTypeError
from numgrad.tensors.tensor import Tensor
from numgrad.viz.drawing import Drawing

FUNCTION, LEAF, OUTPUT, BASE, SAVED = (
    "lightgrey",
    "lightblue",
    "darkolivegreen1",
    "darkolivegreen3",
    "orange",
)


def make_dot(
    output: Tensor | tuple[Tensor, ...] | list[Tensor] | Graph,
    params: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]] | None = None,
    show_attrs: bool = False,
    show_saved: bool = False,
    max_attr_chars: int = 50,
) -> Drawing:
    r"""Draw the graph that was recorded on the way to ``output``.

    Grey boxes are nodes of the graph, arrows lead the way of the computation, so gradients flow
    against them. Light blue is a leaf that requires grad, above its ``AccumulateGrad``; green an
    output; darker green the tensor whose memory an output that is a view shows, with a dotted
    arrow to the view; orange a saved tensor. What several nodes share is drawn once.

    The graph of a jitted function, ``fast.graph(*args)``, is drawn likewise: light blue its
    inputs, grey its operations, green its results. The other arguments do not concern it.

    Parameters
    ----------
    output : Tensor, or tuple or list of Tensors, or graph of a jitted function
        The results; one without history is a box by itself.
    params : mapping or pairs of names and Tensors, optional
        Names for tensors, such as ``model.named_parameters()``.
    show_attrs : bool
        List in each node what it saved and the parameters of its operation.
    show_saved : bool
        Draw the tensors that nodes saved for their backward.
    max_attr_chars : int
        Longer values of attributes are cut; 3 is the least.

    Returns
    -------
    Drawing
        Shows itself in Jupyter; has DOT text as ``source``, ``svg()``, ``render()``, ``view()``.

    Raises
    ------
    NumgradTypeError
        If an output or a value of ``params`` is no Tensor.
    NumgradRuntimeError
        With ``show_saved``, if a backward has freed what a node saved.

    Examples
    --------
    >>> import numgrad as ng
    >>> w = ng.ones(3, requires_grad=True)
    >>> drawing = ng.viz.make_dot((w * 2.0).sum(), params={"w": w})
    >>> print(drawing)
    digraph {
        node [align=left fontname=monospace fontsize=10 height=0.2 shape=box style=filled]
        n0 [label="()" fillcolor=darkolivegreen1]
        n1 [label="SumBackward" fillcolor=lightgrey]
        n2 [label="MultiplyBackward" fillcolor=lightgrey]
        n3 [label="AccumulateGrad" fillcolor=lightgrey]
        n4 [label="w\n(3,)" fillcolor=lightblue]
        n2 -> n1
        n3 -> n2
        n4 -> n3
        n1 -> n0
    }
    <BLANKLINE>
    """
    if isinstance(output, Graph):
        return Drawing(output.diagram())
    outputs = tuple(output) if isinstance(output, tuple | list) else (output,)
    for value in outputs:
        if not isinstance(value, Tensor):
            raise NumgradTypeError(
                "make_dot: draws the graph of a Tensor, or of a tuple or list of them; got "
                f"{type(value).__name__}"
            )
    sketch = _Sketch(_names(params), show_attrs, max(max_attr_chars, 3))
    for value in outputs:
        sketch.add_result(value, OUTPUT)
    if show_saved:
        sketch.add_saved()
    return Drawing(sketch.diagram)


def _names(params: Any) -> dict[str, Tensor]:
    names = dict(params or {})
    for name, value in names.items():
        if not isinstance(value, Tensor):
            raise NumgradTypeError(
                f"make_dot: params gives names to Tensors; {name!r} is a {type(value).__name__}"
            )
    return names


class _Sketch:
    """A diagram in the making; boxes are found again by the identity of what they show."""

    def __init__(self, params: dict[str, Tensor], show_attrs: bool, most: int) -> None:
        self.diagram = Diagram()
        self.names = {id(tensor): name for name, tensor in params.items()}
        self.attributes_of = partial(_attributes, most=most) if show_attrs else None
        self.boxes: dict[Any, int] = {}
        self.leaves: set[int] = set()
        self.nodes: list[GraphNode] = []
        self.alive: list[Any] = [params]  # an identity is one while its object lives

    def add_result(self, tensor: Tensor, fill: str) -> int:
        """The box of an output or of its base, below the nodes that made it."""
        if id(tensor) in self.boxes:
            return self.boxes[id(tensor)]
        number = self._add(tensor, Box(self._label(tensor), fill))
        if tensor.grad_fn is not None:
            self._link(self._add_history(tensor.grad_fn), number)
        if tensor._base is not None:
            self._link(self.add_result(tensor._base, BASE), number, dotted=True)
        return number

    def _add_history(self, end: GraphNode) -> int:
        """The box of a node, with those of all that lead to it."""
        fresh: list[GraphNode] = []
        number = self._node(end, fresh)
        while fresh:
            node = fresh.pop()
            here = self.boxes[id(node)]
            for origin, _ in node.next_functions:
                if origin is not None:
                    self._link(self._node(origin, fresh), here)
            if isinstance(node, AccumulateGrad):
                self._link(self._leaf(node.variable), here)
        return number

    def _node(self, node: GraphNode, fresh: list[GraphNode]) -> int:
        """The box of a node, which is added to ``fresh`` if it had none."""
        if id(node) in self.boxes:
            return self.boxes[id(node)]
        fresh.append(node)
        self.nodes.append(node)
        rows = self.attributes_of(node) if self.attributes_of else []
        lines = _table(node.name(), rows) if rows else (node.name(),)
        return self._add(node, Box(lines, FUNCTION, table=bool(rows)))

    def _leaf(self, leaf: Tensor) -> int:
        if id(leaf) in self.boxes:  # it may be an output as well
            return self.boxes[id(leaf)]
        self.leaves.add(id(leaf))
        return self._add(leaf, Box(self._label(leaf), LEAF))

    def add_saved(self) -> None:
        """Boxes of the tensors that the nodes saved, apart from leaves, which have theirs."""
        for node in self.nodes:
            for name, value in _saved_tensors(node):
                array = value._array if isinstance(value, Tensor) else value
                key = id(value) if id(value) in self.leaves else ("saved", id(array))
                if key not in self.boxes:
                    self._add(value, Box(self._label(value, name), SAVED), key)
                self._link(self.boxes[key], self.boxes[id(node)], arrow=False)

    def _add(self, shown: Any, box: Box, key: Any = None) -> int:
        self.alive.append(shown)
        number = self.boxes[id(shown) if key is None else key] = self.diagram.add(box)
        return number

    def _link(self, tail: int, head: int, *, arrow: bool = True, dotted: bool = False) -> None:
        self.diagram.links.append(Link(tail, head, arrow, dotted))

    def _label(self, value: Any, name: str = "") -> tuple[str, ...]:
        """Name, if there is one, and shape."""
        name = self.names.get(id(value), name)
        return (*([name] if name else []), str(tuple(value.shape)))


# ------------------------------------------------------------------------------ what nodes saved


def _saved(node: Node) -> list[tuple[str, Any]]:
    """Values that a node keeps, by the name of its attribute: Tensors, and what stands for them.

    This looks at what is kept and reads no ``_saved_<name>``, which would run the user's hooks and
    fail where a tensor was changed in place since.
    """
    names = ["result" if name == "y" else name for name in node.call.saves(node.mask)]
    if node.saved is None:
        return [(name, None) for name in names]
    return list(zip(names, node.saved, strict=True))


def _saved_tensors(node: GraphNode) -> Iterator[tuple[str, Any]]:
    """The tensors and arrays among that, those of a tuple one by one."""
    if not isinstance(node, Node):
        return
    for name, saved in _saved(node):
        if saved is None:
            raise NumgradRuntimeError(
                f"make_dot: show_saved draws what the nodes saved, but a backward has freed that "
                f"of {node.name()}; draw before backward(), or call it with retain_graph=True"
            )
        if node.call.opaque:
            saved = tuple(node.saved_tensors)
        parts = saved if isinstance(saved, tuple) else (saved,)
        for k, part in enumerate(parts):
            value = part
            if isinstance(part, Guard):
                value = part.array if part.tensor is None else part.tensor
            if isinstance(value, Tensor | np.ndarray | Packed):
                yield (f"{name}[{k}]" if isinstance(saved, tuple) else name), value


def _attributes(node: GraphNode, most: int) -> list[tuple[str, str]]:
    """Saved values of a node and parameters of its operation, as words of at most ``most``."""
    if not isinstance(node, Node):
        return []
    rows = [(name, _word(saved, node.saved is None)) for name, saved in _saved(node)]
    rows += [(name, " ".join(str(value).split())) for name, value in node.call.params.items()]
    return [(name, word if len(word) <= most else word[: most - 3] + "...") for name, word in rows]


def _word(saved: Any, freed: bool) -> str:
    if freed:
        return "[freed]"
    if isinstance(saved, bool | int | float | complex | np.generic):
        return str(saved)
    return "[saved tensors]" if isinstance(saved, tuple | SavedTensors) else "[saved tensor]"


def _table(name: str, rows: list[tuple[str, str]]) -> tuple[str, ...]:
    """Lines with the name, a rule, and a row for each attribute."""
    left = max(len(attribute) for attribute, _ in rows)
    right = max(len(word) for _, word in rows)
    rule = "-" * max(left + right + 2, len(name))
    return (name, rule, *(f"{attribute:{left}}: {word:>{right}}" for attribute, word in rows))
