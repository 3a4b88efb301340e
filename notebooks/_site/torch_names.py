"""The page of PyTorch's names: rows of the face's tables, and what each is in numgrad."""

import inspect
import re
from importlib import import_module

from numgrad.torch.calls import ROWS, TableRow
from numgrad.torch.missing import OUT_OF_SCOPE

INTRODUCTION = """\
PyTorch names
=============

The functions of ``numgrad.torch`` that follow from its tables. A row says what a name is in terms of
numgrad; with each function come the method, ``out=``, and where it says so the form in place. Operands
are promoted by PyTorch's rules before: *number* to their common dtype, *float* the same with integers
in the default dtype.
"""


def pages() -> dict[str, str]:
    """The page, by the name of its file."""
    for space in ("", ".fft", ".linalg", ".masked", ".special"):
        import_module(f"numgrad.torch{space}")  # which fills the tables
    lines = [*INTRODUCTION.splitlines(), ""]
    for space, rows in ROWS.items():
        title = f"torch.{space}" if space else "torch"
        lines += [title, "-" * len(title), "", ".. list-table::", "   :header-rows: 1", ""]
        lines += _cells("name", "in numgrad", "operands", "in place")
        for name, row in sorted(rows.items()):
            shown = f"``{name}({_parameters(row)})``"
            body = re.sub(r"\s+", " ", row.body).strip()
            needs = f", needs ``{row.condition}``" if row.condition else ""
            lines += _cells(
                shown, f"``{body}``{needs}", row.kind,
                f"``{name}_``" if "inplace" in row.flags else "",
            )  # fmt: skip
        lines.append("")
    lines += ["Out of scope", "------------", ""]
    for name, text in OUT_OF_SCOPE.items():
        plain = re.sub(r"([_*`])", r"\\\1", text)
        lines.append(f"- ``torch.{name}``: {plain}")
    return {"torch_names.rst": "\n".join([*lines, ""])}


def _parameters(row: TableRow) -> str:
    return str(inspect.signature(row.function))[1:-1]


def _cells(*texts: str) -> list[str]:
    first, *rest = texts
    return [f"   * - {first}", *(f"     - {text}" for text in rest)]
