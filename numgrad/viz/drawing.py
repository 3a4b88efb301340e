"""``make_dot``: the recorded graph of a tensor as a drawing, which shows, renders, opens itself."""

from __future__ import annotations

import shutil
import subprocess
import webbrowser
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from numgrad.autograd.function.function_call import SavedTensors
from numgrad.autograd.node import AccumulateGrad, GraphNode, Node
from numgrad.autograd.saved import Guard, Packed
from numgrad.compiler.graph.graph import Graph
from numgrad.diagrams import Box, Diagram, Link, to_dot, to_svg
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.io.files import write_atomically
from numgrad.tensors.tensor import Tensor

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
        items = saved if isinstance(saved, tuple) else (saved,)
        for k, item in enumerate(items):
            value = item
            if isinstance(item, Guard):
                value = item.array if item.tensor is None else item.tensor
            if isinstance(value, Tensor | np.ndarray | Packed):
                yield (f"{name}[{k}]" if isinstance(saved, tuple) else name), value


def _attributes(node: GraphNode, most: int) -> list[tuple[str, str]]:
    """Saved values of a node and parameters of its operation, as words of at most ``most``."""
    if not isinstance(node, Node):
        return []
    rows = [(name, _word(saved, node.saved is None)) for name, saved in _saved(node)]
    rows += [(name, " ".join(str(value).split())) for name, value in node.call.params.items()]
    return [(name, text if len(text) <= most else text[: most - 3] + "...") for name, text in rows]


def _word(saved: Any, freed: bool) -> str:
    if freed:
        return "[freed]"
    if isinstance(saved, bool | int | float | complex | np.generic):
        return str(saved)
    return "[saved tensors]" if isinstance(saved, tuple | SavedTensors) else "[saved tensor]"


def _table(name: str, rows: list[tuple[str, str]]) -> tuple[str, ...]:
    """Lines with the name, a rule, and a row for each attribute."""
    left = max(len(attribute) for attribute, _ in rows)
    right = max(len(text) for _, text in rows)
    rule = "-" * max(left + right + 2, len(name))
    return (name, rule, *(f"{attribute:{left}}: {text:>{right}}" for attribute, text in rows))


TEXT = ("dot", "gv")
"""Formats that are the DOT text itself."""


class Drawing:
    """A graph as DOT text and as a picture; in Jupyter the last value of a cell shows itself.

    SVG is drawn without Graphviz; other formats, such as ``"png"`` and ``"pdf"``, are made by its
    program ``dot`` if that is installed.

    Attributes
    ----------
    format : str
        Format of ``render`` and ``view``, by default ``"svg"``.
    filename : str
        Name of the file with DOT text; ``render`` appends ``.<format>`` for the picture.
    directory : str or path
        Where files go, by default the current directory.

    Examples
    --------
    >>> import numgrad as ng
    >>> w = ng.ones(3, requires_grad=True)
    >>> drawing = ng.viz.make_dot(w.sum(), params={"w": w})
    >>> drawing.svg()[:4]
    '<svg'
    """

    def __init__(self, diagram: Diagram) -> None:
        self._diagram = diagram
        self._svg: str | None = None
        self.source = to_dot(diagram)
        self.format = "svg"
        self.filename = "graph.gv"
        self.directory: str | PathLike[str] = ""

    def __str__(self) -> str:
        return self.source

    def __repr__(self) -> str:
        boxes, links = len(self._diagram.boxes), len(self._diagram.links)
        return f"<Drawing of {boxes} boxes and {links} links>"

    @property
    def format(self) -> str:
        """Format of files and of ``pipe``: ``"svg"``, ``"dot"``, ``"gv"``, or one of Graphviz's."""
        return self._format

    @format.setter
    def format(self, value: str) -> None:
        self._format = _checked(value)

    def svg(self) -> str:
        """The picture as an SVG document, laid out when it is first asked for."""
        if self._svg is None:
            self._svg = to_svg(self._diagram)
        return self._svg

    def pipe(self, format: str | None = None) -> bytes:
        """The content of the file that ``render`` would write.

        Raises
        ------
        NumgradRuntimeError
            If the format needs Graphviz's ``dot`` and that is not installed, or fails.
        """
        kind = self.format if format is None else _checked(format)
        if kind == "svg":
            return self.svg().encode()
        if kind in TEXT:
            return self.source.encode()
        return _by_graphviz(self.source, kind)

    def save(
        self,
        filename: str | PathLike[str] | None = None,
        directory: str | PathLike[str] | None = None,
    ) -> str:
        """Write the DOT text to a file and return its path."""
        path = self._path(filename, directory)
        write_atomically(path, [self.source.encode()])
        return str(path)

    def render(
        self,
        filename: str | PathLike[str] | None = None,
        directory: str | PathLike[str] | None = None,
        view: bool = False,
        cleanup: bool = False,
        format: str | None = None,
    ) -> str:
        """Write the DOT text to ``filename`` and the picture to ``filename.<format>``.

        Parameters
        ----------
        filename, directory, format
            In place of the attributes, which do not change.
        view : bool
            Open the picture in the system's viewer.
        cleanup : bool
            Leave the picture only.

        Returns
        -------
        str
            Path of the picture.

        Raises
        ------
        NumgradRuntimeError
            If the format needs Graphviz's ``dot`` and that is not installed, or fails; nothing is
            written then. With ``view``, if the system has no viewer.
        """
        kind = self.format if format is None else _checked(format)
        content = self.pipe(kind)
        source = self._path(filename, directory)
        picture = source.with_name(f"{source.name}.{kind}")
        if not cleanup:
            write_atomically(source, [self.source.encode()])
        write_atomically(picture, [content])
        if view:
            _open(picture)
        return str(picture)

    def view(
        self,
        filename: str | PathLike[str] | None = None,
        directory: str | PathLike[str] | None = None,
        cleanup: bool = False,
    ) -> str:
        """Render the picture, open it in the system's viewer, and return its path."""
        return self.render(filename, directory, view=True, cleanup=cleanup)

    def _path(
        self, filename: str | PathLike[str] | None, directory: str | PathLike[str] | None
    ) -> Path:
        """Where the DOT text goes; directories on the way are made."""
        folder = self.directory if directory is None else directory
        path = Path(folder, self.filename if filename is None else filename)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_image_svg_xml(self) -> str:
        return self.svg()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None, **_: Any) -> dict:
        bundle = {"image/svg+xml": self.svg(), "text/plain": repr(self)}
        return {
            kind: content
            for kind, content in bundle.items()
            if (include is None or kind in include) and kind not in (exclude or ())
        }


def _checked(format: Any) -> str:
    """``format`` in lower case; it becomes an argument of a program and part of a file's name."""
    if not isinstance(format, str) or not (format.isascii() and format.isalnum()):
        raise NumgradValueError(
            "format: must be a word such as 'svg', 'dot', 'png' or 'pdf', got " + repr(format)
        )
    return format.lower()


def _by_graphviz(source: str, format: str) -> bytes:
    program = shutil.which("dot")
    if program is None:
        raise NumgradRuntimeError(
            f"render: format {format!r} is made by the program dot of Graphviz, which is not on "
            "the PATH; install Graphviz, or choose format 'svg' or 'dot', which need nothing"
        )
    made = subprocess.run(
        [program, f"-T{format}"], input=source.encode(), capture_output=True, check=False
    )
    if made.returncode:
        said = made.stderr.decode(errors="replace").strip()
        raise NumgradRuntimeError(f"render: dot failed to make {format!r}: {said}")
    return made.stdout


def _open(path: Path) -> None:
    if not webbrowser.open(path.absolute().as_uri()):
        raise NumgradRuntimeError(
            f"view: found no program that opens {path}; the file is written, open it by hand"
        )
