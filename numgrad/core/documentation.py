"""Pages for ``help`` on operations, written from their declarations.

The author of an operation writes one sentence, an example, and a line for each parameter that
``PARAMETERS`` does not describe. Signature, defaults, dtypes, gradient formulas, points without a
derivative, the NumPy function it stands for, methods and the form under ``ng.jit`` are read from
the declaration. A page is written when it is read, so an import reads no sources.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import operator
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from types import CodeType
from typing import Any, ClassVar

import numpy as np

from numgrad.core.formula import DERIVED, REFUSED
from numgrad.errors import NumgradError


def expression(function: Any) -> str:
    """The body of a function as text, on one line if it is one expression."""
    node = _node(function.__code__)
    if node is None:
        return f"<source of {function.__name__} is not available>"
    if isinstance(node, ast.Lambda):
        return ast.unparse(node.body)
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    if len(body) == 1 and isinstance(body[0], ast.Return) and body[0].value is not None:
        return ast.unparse(body[0].value)
    return "\n".join(ast.unparse(statement) for statement in body)


def _node(code: CodeType) -> ast.Lambda | ast.FunctionDef | None:
    """The syntax tree of a function, found by the line and by its parameters."""
    count = code.co_argcount + code.co_kwonlyargcount
    nodes = [
        node
        for node in _functions(code.co_filename).get(code.co_firstlineno, [])
        if [a.arg for a in (*node.args.args, *node.args.kwonlyargs)]
        == list(code.co_varnames[:count])
        and (isinstance(node, ast.Lambda) == (code.co_name == "<lambda>"))
    ]
    if len(nodes) > 1:  # lambdas side by side on a line
        nodes = [node for node in nodes if _spans(node, code)]
    return nodes[0] if nodes else None


def _spans(node: Any, code: CodeType) -> bool:
    """Whether the instructions of ``code`` lie inside of ``node``."""
    low, high = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
    return all(
        low <= (line, column) and (end, last) <= high
        for line, end, column, last in code.co_positions()
        if line is not None and end is not None and column is not None and column != last
    )


@lru_cache(maxsize=4)
def _functions(path: str) -> dict[int, list[Any]]:
    """The functions and lambdas of a file by their first lines."""
    nodes: dict[int, list[Any]] = {}
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except SyntaxError:  # what runs as a file is not always one
        return nodes
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda | ast.FunctionDef):
            decorators = getattr(node, "decorator_list", ())
            first = min([node.lineno, *(d.lineno for d in decorators)])
            nodes.setdefault(first, []).append(node)
    return nodes


PARAMETERS = {
    "x": ("", "Operand."),
    "a": ("", "First operand."),
    "b": ("", "Second operand."),
    "arrays": ("", "Operands."),
    "inputs": ("", "Operands, one by one or in a sequence."),
    "axis": ("int", "Axis along which it works; negative ones count from the end."),
    "axis=None": ("int", "Axis along which it works; without one, all elements in C order."),
    "keepdims": ("", "Whether the axes stay, with length 1."),
    "dtype=None": ("dtype_like", "Dtype to compute in and to return; by default by that of ``x``."),
    "k": ("int", "Which diagonal: 0 is the main one, those above are positive."),
    "offset": ("int", "Which diagonal: index along the second axis minus that along the first."),
    "axis1": ("int", "First of the two axes."),
    "axis2": ("int", "Second of the two axes."),
    "order": ("{'C', 'F'}", "Whether the last index changes fastest (C) or the first (F)."),
    "shape": ("int or tuple of ints", "Lengths of the axes of the result."),
    "rtol": ("", "Tolerance, relative to the second operand."),
    "atol": ("", "Tolerance, absolute."),
    "equal_nan": ("", "Whether NaN counts as equal to NaN."),
    "ddof": ("", "What is taken off the number of elements, by which it divides."),
    "eps": ("", "What is added to the variance, so that it never divides by zero."),
    "indices": ("array_like of int", "Indices; negative ones count from the end."),
    "index": ("array_like of int", "Indices along the axis; negative ones count from the end."),
    "indices_or_sections": ("int or sequence of ints", "Number of parts, or where parts begin."),
    "n=None": ("int", "Number of points: the operand is cut or filled up with zeros."),
    "s=None": ("sequence of ints", "Numbers of points along the axes, each as ``n`` of one axis."),
    "axes=None": ("sequence of ints", "Axes; by default all, or the last ones if ``s`` is given."),
    "axes=(-2, -1)": ("sequence of ints", "The two axes."),
    "norm=None": (
        "{'backward', 'ortho', 'forward'}",
        "Which direction divides by the number of points; both by its root with ``'ortho'``.",
    ),
    "include_initial": ("", "Whether the result starts with the value of no elements."),
}
"""Type and meaning of parameters that are the same everywhere; ``name=default`` goes first."""

DESCRIBERS: list[Callable[[Any], str | None]] = []
"""Functions that say a sentence about an operation for higher floors, which know more about it."""

DESCRIBING = ("numgrad.compiler.lower.expand",)
"""Modules that add to ``DESCRIBERS``, and might not be imported yet."""

_KINDS = {"bool": "bool", "int64": "integer", "float32": "floating", "complex64": "complex"}

_IMPORTS = {
    "np": "import numpy as np",
    "ng": "import numgrad as ng",
    "F": "from numgrad.nn import functional as F",
}


class Page(str):
    """Docstring of an operation or of its method, written when it is read.

    ``inspect.getdoc``, and with it ``help`` and Jupyter, reads a docstring by ``expandtabs``, and
    ``print`` by ``str``. To all else it is what the author wrote: ``functools.wraps`` copies it
    without a cost. A property would not do: methods must be functions to be called fast.
    """

    __slots__ = ("op", "signed")

    def __new__(cls, op: Any, *, signed: bool = True) -> Page:
        self = super().__new__(cls, op.function.__doc__ or op.name)
        self.op, self.signed = op, signed
        return self

    def __str__(self) -> str:
        return page(self.op) if self.signed else page(self.op).partition("\n\n")[2]

    def expandtabs(self, tabsize: Any = 8) -> str:  # pyright: ignore
        return str(self).expandtabs(tabsize)


class Documented:
    """Base of objects with a page of documentation: families describe their operations there."""

    result = ""
    """Sentences on the shape of the result."""
    in_formulas = ""
    """Meanings of ``g`` and ``y`` in gradient formulas besides what their names say."""
    parameters: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """Parameters that mean something of their own."""
    by_elements = False
    """Whether ``kink`` lists elements rather than whole operands."""
    composed = False
    """Whether its derivatives are those of the operations it is written with."""

    def result_dtype(self, dtype: np.dtype) -> np.dtype | None:
        """The dtype of the result of operands of one dtype, None if that is not known."""
        return None


# ------------------------------------------------------------------------------------------ page


def page(op: Any) -> str:
    """The whole documentation of an operation."""
    written = authored(op)
    first = {"Parameters": _parameters(op), "Returns": _returns(op)}
    last = {
        "Gradient": _gradient(op),
        "Notes": _notes(op),
        "Examples": _with_imports(written.get("Examples", "")),
    }
    sections = {
        **first,
        **{name: written[name] for name in written if name not in last},
        **first,
        **last,
    }
    texts = [f"{op.name}{signature(op)}", sections.pop("", "")]
    texts += [f"{name}\n{'-' * len(name)}\n{text}" for name, text in sections.items() if text]
    return "\n\n".join(filter(None, texts))


def authored(op: Any) -> dict[str, str]:
    """The sections of the docstring in the declaration; what comes before them under ``""``."""
    blocks = re.split(
        r"^(\w[\w ]*)\n-{3,}\n", inspect.cleandoc(op.function.__doc__ or ""), flags=re.M
    )
    sections = {"": blocks[0].strip()}
    sections.update({k: v.strip("\n") for k, v in zip(blocks[1::2], blocks[2::2], strict=True)})
    return {name: text for name, text in sections.items() if text}


def summary(op: Any) -> str:
    """The author's first sentence."""
    return authored(op).get("", "").partition("\n")[0]


def returned(op: Any) -> str:
    """The kind of the result."""
    return _returns(op).partition("\n")[0]


def missing(op: Any) -> list[str]:
    """Parts of the page that the author of an operation has to write still."""
    lacking = [] if summary(op).endswith(".") else ["a summary sentence"]
    if ">>>" not in authored(op).get("Examples", ""):
        lacking.append("an example")
    if _returns(op) == "Tensor":
        lacking.append("a description of the result")
    described = _described(op)
    names = signature(op).parameters
    return lacking + [f"a description of {name}" for name in names if not described[name][1]]


def signature(op: Any) -> inspect.Signature:
    """How an operation is called: what NumPy takes by position may be given so."""
    declared = inspect.signature(op.function).parameters.values()
    parameters = [p.replace(annotation=p.empty) for p in declared if p.name not in op.implied]
    if op.inputs != ("inputs",):
        default = False
        for k, p in enumerate(parameters):
            required, default = p.default is p.empty, default or p.default is not p.empty
            if p.kind is p.KEYWORD_ONLY:
                if p.name not in op.positional or (required and default):
                    break
                parameters[k] = p.replace(kind=p.POSITIONAL_OR_KEYWORD)
    return inspect.Signature(parameters)


def _with_imports(examples: str) -> str:
    """Examples that run by themselves."""
    lines = [line for name, line in _IMPORTS.items() if re.search(rf"\b{name}\.", examples)]
    return "\n".join([*(f">>> {line}" for line in lines), examples])


# ------------------------------------------------------------------------------------ parameters


def _parameters(op: Any) -> str:
    entries = []
    for (kind, text), p in zip(
        _described(op).values(), signature(op).parameters.values(), strict=True
    ):
        head = str(p.replace(default=p.empty)) + (f" : {kind}" if kind else "")
        entries.append(f"{head}\n{_indented(text)}".rstrip())
    return "\n".join(entries)


def _indented(text: str) -> str:
    return textwrap.indent(textwrap.fill(text, 90), "    ")


def _described(op: Any) -> dict[str, tuple[str, str]]:
    """Type and meaning of every parameter in the order of the signature."""
    written = dict(_entries(authored(op).get("Parameters", "")))
    descriptions = {}
    for name, p in signature(op).parameters.items():
        kind, text = written.get(name, ("", ""))
        common = _common(op, name, p.default)
        plain = isinstance(p.default, int | float | str) and not op.by_elements
        if not text:
            kind, text = kind or common[0], common[1]
        kind = kind or ("array_like" if name in op.inputs and not plain else "")
        if p.kind is p.VAR_POSITIONAL:
            kind = kind or "array_like"
        elif p.default is not p.empty:
            kind = _defaulted(kind, p.default)
        descriptions[name] = kind, text
    return descriptions


def _defaulted(kind: str, default: Any) -> str:
    """A type with the default, which says the type if nothing else does."""
    if not kind and default is not None and not isinstance(default, tuple):
        kind = type(default).__name__
    said = "optional" if default is None else f"default {default!r}"
    return f"{kind}, {said}" if kind else said


def _entries(section: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Name, type and text of the entries of a section of the author's."""
    for entry in re.split(r"\n(?=\S)", section):
        head, _, text = entry.partition("\n")
        names, _, kind = head.partition(" : ")
        for name in names.split(","):
            yield name.strip().lstrip("*"), (kind.strip(), " ".join(text.split()))


def _common(op: Any, name: str, default: Any) -> tuple[str, str]:
    """Type and meaning of a parameter that means the same everywhere."""
    for known in (op.parameters, PARAMETERS):
        for key in (f"{name}={default!r}", name):
            if key in known:
                return known[key]
    return "", ""


# --------------------------------------------------------------------------------------- results


def _returns(op: Any) -> str:
    if written := authored(op).get("Returns"):
        return written
    return f"Tensor\n{_indented(f'{op.result} {_dtypes(op)}'.strip())}".rstrip()


def _dtypes(op: Any) -> str:
    """Text on the dtypes that are taken, and on those that come out."""
    dtypes: dict[str, str] = {}
    for name in _KINDS:
        if name == "complex64" and op.real_only:
            continue
        try:
            dtype = op.result_dtype(np.dtype(name))
        except NumgradError:
            continue
        if dtype is None:
            return "Complex operands are refused." if op.real_only else ""
        dtypes[name] = str(dtype)
    if not dtypes:
        return ""
    constant = len(set(dtypes.values())) == 1
    groups: dict[str, list[str]] = {}
    for name, dtype in dtypes.items():
        said = "the same" if dtype == name and not constant else dtype
        if (name, dtype) == ("complex64", "float32"):
            said = "that of a part"
        groups.setdefault(said, []).append(_KINDS[name])
    if len(groups) == 1:
        (only,) = groups
        texts = [
            "Its dtype is that of the operands." if only == "the same" else f"Of dtype {only}."
        ]
    else:
        phrases = [f"{dtype} for {_listed(names)}" for dtype, names in groups.items()]
        texts = [f"Its dtype: {'; '.join(phrases)} operands."]
    refused = [_KINDS[name] for name in _KINDS if name not in dtypes]
    if refused:
        texts.append(f"{_listed(refused).capitalize()} operands are refused.")
    return " ".join(texts)


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


# -------------------------------------------------------------------------------------- gradient


def _gradient(op: Any) -> str:
    if not op.differentiable:
        return "The result takes none."
    texts: dict[str, list[str]] = {}
    for name, formula in op.declared.items():
        if formula.kind == REFUSED:
            continue
        texts.setdefault(expression(formula.function), []).append(name)
    for name, formula in op.complex_formulas.items():
        texts.setdefault(expression(formula.function), []).append(f"{name} (complex)")
    lines = []
    if texts:
        lines.append(f"With ``g``, the gradient of the result ``y``{op.in_formulas}:\n")
        for text, names in texts.items():
            head = f"{', '.join(names)} :"
            if "\n" in text:
                lines += [head, textwrap.indent(text, "    ")]
            else:
                lines.append(f"{head} ``{text}``")
        if op.holomorphic:
            lines.append("\nOf complex operands the conjugate, with that of ``g``.")
    elif op.composed or not op.formulas:
        lines.append("That of the operations it is written with.")
    lines += _undeclared(op)
    points = list(dict.fromkeys(_points(op)))
    if points:
        lines += ["", "Where there is no derivative, or it is a limit, this is used:", ""]
        lines += [f"- {point}" for point in points]
    elif op.smooth:
        lines += ["", "There is a derivative wherever the operation is defined."]
    return "\n".join(lines).strip("\n")


def _undeclared(op: Any) -> list[str]:
    """Lines about inputs without a formula of their own."""
    derived = [name for name, formula in op.formulas.items() if formula.kind == DERIVED]
    refused = [name for name in op.refused if not op.composed or name in op.declared]
    said = {
        "derived from the body": derived,
        "none: asking for it raises": refused,
        "none, it counts as a constant": [name for name in op.inputs if name in op.constants],
    }
    return [f"{', '.join(names)} : {text}" for text, names in said.items() if names]


def _points(op: Any) -> Iterator[str]:
    """Operands declared by ``kink``, and the gradient at each."""
    for kink in op.kinks:
        rows = [kink.points]
        if op.by_elements:
            lists = [v for pair in kink.points.values() for v in pair if isinstance(v, list)]
            rows = [
                {
                    name: [v[i] if isinstance(v, list) else v for v in pair]
                    for name, pair in kink.points.items()
                }
                for i in range(len(lists[0]) if lists else 1)
            ]
        for row in rows:
            at = [f"{name} = {_number(value)}" for name, (value, _) in row.items()]
            at += [f"{name}={value!r}" for name, value in kink.params.items()]
            gradients = {name: _number(g) for name, (_, g) in row.items() if g is not None}
            shown = [f"{name}: {g}" for name, g in gradients.items()]
            yield f"{', '.join(at)}: {', '.join(shown if len(shown) > 1 else gradients.values())}"


def _number(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_number, value))}]"
    return f"{value:.4g}" if isinstance(value, int | float | complex) else repr(value)


# ----------------------------------------------------------------------------------------- notes


def _notes(op: Any) -> str:
    for module in DESCRIBING:
        import_module(module)
    notes = [authored(op).get("Notes"), _reference(op)]
    if op.aliases:
        notes.append(f"Also called {_listed([f'``{name}``' for name in op.aliases])}.")
    if op.dunder:
        same = getattr(operator, f"__{op.dunder}__").__doc__.removesuffix(".")
        notes.append(f"Operator: ``{same.removeprefix('Same as ')}``.")
    if op.method and not op.internal:
        notes.append(f"Method: ``Tensor.{op.name}``.")
    notes += [describe(op) for describe in DESCRIBERS]
    return "\n".join(filter(None, notes))


def _reference(op: Any) -> str | None:
    """The function of NumPy or SciPy that an operation stands for."""
    ref = op.ref
    if ref is None or getattr(ref, "__name__", "") == "<lambda>":
        return None
    if isinstance(ref, str):
        return f"Means what ``{ref}`` does."
    home = getattr(ref, "__module__", None) or "numpy"
    return f"Means what ``{home}.{ref.__name__}`` does."
