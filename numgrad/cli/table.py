"""Print what Tensors do in every function of NumPy, and of SciPy's modules of arrays, or why not.

A screen counts functions by module. With ``--module`` or ``--missing`` there is a line for each
function: the operation behind it; whether there is a gradient, a second and a forward derivative;
what it becomes under ``ng.jit``; or the reason why there is no operation.
"""

import argparse
import html
import importlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from numgrad.compiler.lower.expand import form
from numgrad.core.op import OPS, Op
from numgrad.core.primitive import Composite
from numgrad.operations.lazy_operations import NAMESPACES, declare_all
from numgrad.tensors import missing, numpy_protocol
from numgrad.tensors.numpy_calls import WRITES

HELP = "print which functions of NumPy and SciPy have gradients"
MODULES = (
    "numpy", "numpy.linalg", "numpy.fft", "numpy.lib.stride_tricks", "scipy.special",
    "scipy.linalg", "scipy.fft", "scipy.signal", "scipy.ndimage",
)  # fmt: skip
BESIDE = {"scipy.linalg": "numgrad.linalg", "scipy.fft": "numgrad.fft"}
"""Modules whose functions take no Tensors, and ours with functions of the same names."""
COLUMNS = ("function", "value", "gradient", "second", "forward", "ng.jit", "reason")
_COMPOSED = (
    np.copy, np.linspace, np.logspace, np.geomspace, np.apply_along_axis, np.apply_over_axes,
    np.piecewise, np.full_like,
)  # fmt: skip
"""Functions without an operation of their own that are composed of others."""
_OF_UFUNCS = {
    "scipy.special": ("assoc_laguerre", "h1vp", "h2vp", "ivp", "jvp", "kvp", "softplus", "yvp")
}
"""Functions of SciPy's that only call ufuncs, so that Tensors pass through."""

BY_NUMBERS = (
    "argwhere", "bincount", "extract", "flatnonzero", "intersect1d", "nonzero", "polydiv",
    "setdiff1d", "setxor1d", "trim_zeros", "union1d", "unique", "unique_all", "unique_counts",
    "unique_inverse", "unique_values",
)  # fmt: skip
"""Functions that ``ng.jit`` refuses, since numbers decide on the shape of the result."""
_IN_ONE = {
    "extract": "arr", "full_like": "fill_value", "histogram": "weights", "histogram2d": "weights",
    "histogramdd": "weights", "intersect1d": "ar1", "setdiff1d": "ar1",
}  # fmt: skip
"""The only operand that a result has a derivative by, where others could be taken to have one."""


@dataclass(frozen=True)
class Row:
    """Facts about one function."""

    function: str
    value: str = ""
    gradient: str = ""
    second: str = ""
    forward: str = ""
    jit: str = ""
    reason: str = ""

    @property
    def has_operation(self) -> bool:
        """Whether Tensors are more than arrays to it."""
        return bool(self.value) and self.value != "NumPy's"

    @property
    def cells(self) -> tuple[str, ...]:
        """The columns in order."""
        return (
            self.function, self.value, self.gradient, self.second, self.forward, self.jit,
            self.reason,
        )  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``table``."""
    parser.add_argument("--module", choices=MODULES, help="list the functions of this module")
    parser.add_argument("--missing", action="store_true", help="list those without an operation")
    parser.add_argument("--html", action="store_true", help="write HTML in place of Markdown")
    parser.add_argument("--output", type=Path, help="write the whole table to this file")


def run(arguments: argparse.Namespace) -> int:
    """Print counts, or print or write the lines that are asked for."""
    listed = arguments.module or arguments.missing or arguments.html or arguments.output
    if not listed:
        print(counts())
        return 0
    chosen = [arguments.module] if arguments.module else MODULES
    tables = {
        module: [row for row in rows(module) if not (arguments.missing and row.has_operation)]
        for module in chosen
    }
    text = (_as_html if arguments.html else _as_markdown)(tables)
    if arguments.output:
        arguments.output.write_text(text)
    else:
        print(text, end="")
    return 0


def counts() -> str:
    """A line for each module: functions, those with an operation and a gradient, and the others."""
    names = ("functions", "on Tensors", "gradient", "native in jit", "without, see --missing")
    lines = [f"{'module':24}" + "".join(f"{name:>{len(name) + 3}}" for name in names)]
    for module in MODULES:
        listed = list(rows(module))
        numbers = (
            len(listed),
            sum(row.has_operation for row in listed),
            sum(row.gradient == "yes" for row in listed),
            sum(row.jit not in ("", "refused", "segment") for row in listed),
            sum(not row.has_operation for row in listed),
        )
        cells = (f"{n:>{len(name) + 3}}" for n, name in zip(numbers, names, strict=True))
        lines.append(f"{module:24}{''.join(cells)}")
    return "\n".join(lines)


def _as_markdown(tables: dict[str, list[Row]]) -> str:
    lines = []
    for module, listed in tables.items():
        lines += [f"## {module}", "", f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
        lines += [f"| {' | '.join(row.cells)} |" for row in listed]
        lines.append("")
    return "\n".join(lines)


def _as_html(tables: dict[str, list[Row]]) -> str:
    def line(cells: tuple[str, ...], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

    parts = ["<!doctype html>", '<meta charset="utf-8">', "<title>Functions of numgrad</title>"]
    for module, listed in tables.items():
        parts += [f"<h2>{module}</h2>", "<table>", line(COLUMNS, "th")]
        parts += [*(line(row.cells, "td") for row in listed), "</table>"]
    return "\n".join(parts) + "\n"


def rows(module: str) -> Iterator[Row]:
    """A row for each public function of a module."""
    declare_all()
    home = importlib.import_module(module)
    for name in sorted(dir(home)):
        function = getattr(home, name)
        if name[0] == "_" or isinstance(function, type | ModuleType) or not callable(function):
            continue
        yield _row(module, name, function)


def _row(module: str, name: str, function: Any) -> Row:
    known = numpy_protocol._operation(function) if hasattr(function, "__name__") else None
    op = known or _ours(module, name)
    return _noted(module, _known_row(module, name, function, op))


def _noted(module: str, row: Row) -> Row:
    """Add notes that a declaration does not have."""
    if module != "numpy":
        return row
    notes = [row.reason] if row.reason else []
    if row.function in _IN_ONE:
        notes.append(f"has derivatives with respect to {_IN_ONE[row.function]} alone")
    if row.function in BY_NUMBERS:
        notes.append("ng.jit refuses it: the shape of the result depends on numbers")
        row = replace(row, jit="refused")
    return replace(row, reason="; ".join(notes))


def _known_row(module: str, name: str, function: Any, op: Op | None) -> Row:
    if function in WRITES:
        return Row(name, "in place", "yes", "yes", "yes", "in the loop")
    if op is not None:
        row = _of_operation(name, op)
        notes = filter(None, (row.reason, _of_complex_numbers(function, op)))
        return replace(row, reason="; ".join(notes))
    if name in _OF_UFUNCS.get(module, ""):
        return Row(name, "yes", "yes", "yes", "yes", "its parts")
    if module.startswith("scipy") and callable(_named(module, name)):
        ours = f"yes, by ng.{module.partition('.')[2]}"
        return Row(name, ours, "yes", "yes", "yes", "its parts")
    if function in _COMPOSED:
        return Row(name, "yes", "yes", "yes", "yes", "its parts")
    if function in numpy_protocol._PLAIN:
        return Row(name, "yes", reason="answered from shape and dtype alone")
    dispatched = isinstance(function, np.ufunc) or hasattr(function, "_implementation")
    return Row(name, "NumPy's" if dispatched else "", reason=missing.reason(module, name) or "")


def _ours(module: str, name: str) -> Op | None:
    """Our operation for a function that knows no Tensors: ``ng.special.zeta``."""
    value = _named(module, name)
    if value is None:
        value = next((op for op in OPS.values() if op.ref == f"{module}.{name}"), None)
    return value if isinstance(value, Op) else None


def _named(module: str, name: str) -> Any:
    """Look the name up in the namespace of ours that stands for a module."""
    ours = NAMESPACES.get(module) or BESIDE.get(module)
    return getattr(importlib.import_module(ours), name, None) if ours else None


def _of_complex_numbers(function: Any, op: Op) -> str:
    """Parts of complex operands that are left out, in SciPy's namespaces."""
    kinds = function.types if isinstance(function, np.ufunc) else ()
    if op.real_only and any("D" in kind.partition("->")[0] for kind in kinds):
        return "takes real operands only"
    return ""


def _of_operation(name: str, op: Op) -> Row:
    value = "yes" if name in op.names else f"yes, {op.name}"
    if not op.differentiable:
        return Row(name, value, jit=form(op)[0], reason="has no derivative by its nature")
    refused = () if isinstance(op, Composite) else op.refused  # its parts have the formulas
    if op.inputs and set(refused) == set(op.inputs):
        return Row(name, value, "no", "no", "no", form(op)[0], missing.NO_FORMULA)
    # formulas are written in operations, so what they give has derivatives too; forward mode
    # reads them, or transposes them
    but = f"raises with respect to {', '.join(refused)}" if refused else ""
    return Row(name, value, "yes", "yes", "yes", form(op)[0], but)
