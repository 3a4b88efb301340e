"""Drawing that ``make_dot`` returns: it shows, renders and opens itself."""

from __future__ import annotations

import shutil
import subprocess
import webbrowser
from os import PathLike
from pathlib import Path
from typing import Any

from numgrad.diagrams.diagram import Diagram, to_dot
from numgrad.diagrams.svg import to_svg
from numgrad.errors import NumgradRuntimeError, NumgradValueError
from numgrad.io.files import write_atomically

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
