"""Handbook: the docstrings and Notes of numgrad's modules, floor by floor, as pages.

A Note stands where its technique is implemented, so the handbook cannot differ from the code.
"""

import ast
import inspect
import re
from pathlib import Path

import numgrad

PACKAGE = Path(numgrad.__file__).parent
FLOORS = {
    "codegen": "Code generation",
    "kernels": "Kernels",
    "core": "Operations and interpreters",
    "operations": "The table of operations",
    "autograd": "Recording and differentiation",
    "tensors": "Tensors",
    "transforms": "Functions of functions",
    "compiler": "The compiler",
}
"""Rooms of the package in the order in which one builds on another, by their titles."""
OTHERS = "Built on gradients"
NOTE = re.compile(r"^Note \[(.+)\]$", re.M)


def pages() -> dict[str, str]:
    """Pages by the names of their files: one a module that has Notes, and their table."""
    written: dict[str, str] = {}
    chapters: dict[str, list[str]] = {title: [] for title in (*FLOORS.values(), OTHERS)}
    for path in sorted(PACKAGE.rglob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text())) or ""
        if not NOTE.search(text):
            continue
        relative = path.relative_to(PACKAGE).with_suffix("")
        name = "-".join(relative.parts)
        written[f"handbook/{name}.rst"] = _page(relative.as_posix(), text)
        chapters[FLOORS.get(relative.parts[0], OTHERS)].append(name)
    written["handbook/index.rst"] = _index(chapters)
    return written


def _page(module: str, text: str) -> str:
    """The docstring of a module, named for its Notes, each of which is a section."""
    title = ", ".join(NOTE.findall(text))
    first, _, rest = inspect.cleandoc(text).partition("\n")
    body = NOTE.sub(lambda m: m[1], rest)
    body = re.sub(r"^(-{4,})$", lambda m: "-" * 80, body, flags=re.M)
    parts = re.split(r"(``.*?``)", f"{first}\n{body}", flags=re.S)
    parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]  # absolute values
    home = f"In ``numgrad/{module}.py``."
    return f"{title}\n{'=' * len(title)}\n\n{home}\n\n{''.join(parts)}\n"


def _index(chapters: dict[str, list[str]]) -> str:
    lines = ["How it works", "============", "", *INTRODUCTION.splitlines(), ""]
    for title, names in chapters.items():
        lines += [title, "-" * len(title), "", ".. toctree::", "   :maxdepth: 1", ""]
        lines += [*(f"   {name}" for name in names), ""]
    return "\n".join(lines)


INTRODUCTION = """\
Each page is the documentation of a module: what it does, and Notes on its techniques, with figures
and references. They go from the bottom up: a room knows only those before it. Where to begin:
:doc:`core-interpreter` says what a call means, :doc:`autograd-versions` what a saved value is, and
:doc:`codegen-nests-terms` how a compiled function is written as loops."""
