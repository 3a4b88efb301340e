"""Reference: a page for every public name, written from its declaration or docstring."""

import functools
import importlib
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from _site.formulas import latex
from _site.testing import tested
from numgrad.core.op import Op

MODULES = {
    "numgrad": "Functions, operations, transforms, loops, solvers",
    "numgrad.nn": "Layers",
    "numgrad.nn.functional": "Layers as functions",
    "numgrad.nn.init": "Starting values of parameters",
    "numgrad.nn.utils": "Parametrizations, clipping, packed sequences",
    "numgrad.nn.parallel": "Layers on several processes",
    "numgrad.optim": "Optimizers",
    "numgrad.optim.lr_scheduler": "Learning rates",
    "numgrad.optim.swa_utils": "Averages of weights",
    "numgrad.data": "Datasets and loaders",
    "numgrad.linalg": "Linear algebra",
    "numgrad.special": "Special functions",
    "numgrad.stats": "Distributions",
    "numgrad.integrate": "Integrals and differential equations",
    "numgrad.interpolate": "Interpolation",
    "numgrad.fft": "Fourier transforms",
    "numgrad.signal": "Signals",
    "numgrad.ndimage": "Images",
    "numgrad.sparse": "Sparse matrices",
    "numgrad.spatial.distance": "Distances",
    "numgrad.random": "Random numbers",
    "numgrad.autograd": "Gradients of what was recorded",
    "numgrad.autograd.forward_ad": "Forward mode",
    "numgrad.autograd.functional": "Functional forms, as in PyTorch",
    "numgrad.autograd.graph": "Graphs, hooks, saved tensors",
    "numgrad.ecosystem": "With other libraries",
    "numgrad.func": "Transforms under PyTorch's names",
    "numgrad.implicit": "Implicit derivatives",
    "numgrad.distributed": "Several processes",
    "numgrad.distributed.checkpoint": "Files of several processes",
    "numgrad.parallel": "Executors and Dask",
    "numgrad.io": "Files",
    "numgrad.testing": "Checks of gradients and values",
    "numgrad.profiler": "Profiles",
    "numgrad.benchmark": "Benchmarks",
    "numgrad.viz": "Drawings of graphs",
    "numgrad.errors": "Errors",
    "numgrad.config": "Settings",
    "numgrad.array_api": "The Array API",
}
"""Public modules in the order of the reference, by what is in them."""

TRACED = ("numgrad.nn", "numgrad.nn.functional", "numgrad.stats")
"""Modules of what is composed of operations; an operation's docstring says its own form."""

_TRACED = (
    "It is traced through: the operations that it consists of are compiled with what calls it, and "
    "where it looks at a number of an argument, tracing raises and names the line."
)
_doc = functools.cache(inspect.getdoc)  # which reads sources for gradient formulas
_EQUIVALENTS = json.loads(Path(__file__).with_name("equivalents.json").read_text())
_STANDS_FOR = re.compile(r"Means what ``([\w.]+)`` does")


def pages() -> dict[str, str]:
    """Pages by the names of their files: one a public name, one a module, their index."""
    written: dict[str, str] = {}
    homes: dict[int, str] = {}
    for module in MODULES:
        rows = []
        for name, value in members(module):
            page = f"{module}.{name}"
            first = homes.setdefault(id(value), page) if _is_documented(value) else page
            rows.append((name, page, _summary(value)))
            written[f"reference/{page}.rst"] = _page(page, value, first)
        written[f"reference/{module}-.rst"] = _listing(module, rows)
    written["reference/index.rst"] = _index()
    return written


def members(module: str) -> Iterator[tuple[str, Any]]:
    """Public names of a module with their values, those of its submodules excepted."""
    home = importlib.import_module(module)
    for name in sorted(n for n in dir(home) if n[0] != "_"):
        value = getattr(home, name)
        if not isinstance(value, ModuleType):
            yield name, value


def typeset(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Typeset the formulas in the section ``Gradient`` of a docstring."""
    if lines and re.fullmatch(r"\w+\(.*\)", lines[0]):
        del lines[0]  # the signature, which stands in the heading
    if "Gradient" not in lines:
        return
    begin = lines.index("Gradient")
    rules = [k for k, line in enumerate(lines) if k > begin + 1 and line.startswith("---")]
    end = rules[0] - 1 if rules else len(lines)
    written = lines[begin : begin + 2]
    for line in lines[begin + 2 : end]:
        if written[-1].startswith("    ") and not line.startswith("    "):
            written.append("")  # ends the code of a formula
        written += _gradient_line(line)
    lines[begin:end] = [*written, ""]


def _gradient_line(line: str) -> list[str]:
    """A line of the section ``Gradient``: the formula for an input, its heading, or text."""
    match = re.fullmatch(r"(\w[\w, ()]*) :(?: ``(.+)``)?", line)
    if not match:
        return ["", line, ""] if " : " in line else [line]
    if not match[2]:  # the lines of a function follow
        return [f"``{match[1]}``::", ""]
    formula = latex(match[2])
    if not formula:
        return [f"``{match[1]}`` : ``{match[2]}``", ""]
    inputs = match[1].replace("_", r"\_").split(", ")
    head = ", ".join(rf"\mathrm{{{name}}}" for name in inputs)
    return [".. math::", "", rf"   {head} :\quad {formula}", ""]


def _is_documented(value: Any) -> bool:
    return inspect.isclass(value) or callable(value)


def _summary(value: Any) -> str:
    """The first sentence of a docstring."""
    if not _is_documented(value):
        return f"``{value!r}``" if len(repr(value)) < 60 else ""
    text = _doc(value) or ""
    blocks = [block for block in text.split("\n\n") if block.strip()]
    if len(blocks) > 1 and re.match(r"[\w.]+\(.*\)$", blocks[0], re.S):
        blocks = blocks[1:]  # the signature
    return re.sub(r" \[\d+\]_", "", " ".join(blocks[0].split())) if blocks else ""


def _titled(title: str) -> list[str]:
    return [title, "=" * len(title), ""]


def _page(page: str, value: Any, first: str) -> str:
    lines = _titled(page)
    if first != page:
        return "\n".join([*lines, f"Another name for :doc:`{first}`.", ""])
    if inspect.isclass(value):
        lines += [f".. autoclass:: {page}", "   :members:", "   :show-inheritance:"]
        if generated := [name for name in vars(value) if re.fullmatch(r"set_\w+_request", name)]:
            # methods that scikit-learn adds, whose text refers to its own site
            lines += [f"   :exclude-members: {', '.join(generated)}"]
    elif _is_documented(value):
        lines += [f".. autofunction:: {page}"]
    else:
        lines += [f".. autodata:: {page}"]
    if page.rpartition(".")[0] in TRACED and not isinstance(value, Op):
        lines += ["", ".. rubric:: Under ng.jit", "", _TRACED]
    elsewhere = [*tested(page, value), "", *_elsewhere(page, value)]
    return "\n".join([*lines, "", *elsewhere, ""])


def _elsewhere(page: str, value: Any) -> list[str]:
    """The same function in other libraries."""
    names = _STANDS_FOR.findall(_doc(value) or "") if _is_documented(value) else []
    names += _EQUIVALENTS.get(page, [])
    if not names:
        return []
    links = ", ".join(f"`{name} <{_address(name)}>`__" for name in dict.fromkeys(names))
    said = f"The same numbers for sample operands, with defaults: {links}."
    return [".. rubric:: Elsewhere", "", said]


def _address(name: str) -> str:
    """The page of a function in another library's documentation."""
    library = name.partition(".")[0]
    return {
        "numpy": "https://numpy.org/doc/stable/reference/generated/{}.html",
        "scipy": "https://docs.scipy.org/doc/scipy/reference/generated/{}.html",
        "torch": "https://docs.pytorch.org/docs/stable/generated/{}.html",
        "jax": "https://docs.jax.dev/en/latest/_autosummary/{}.html",
    }.get(library, "https://pypi.org/search/?q={}").format(name)


def _listing(module: str, rows: list[tuple[str, str, str]]) -> str:
    lines = [*_titled(module), f"{MODULES[module]}.", ""]
    lines += [".. list-table::", "   :widths: 25 75", "   :class: names", ""]
    for name, page, summary in rows:
        lines += [f"   * - :doc:`{name} <{page}>`", f"     - {summary}"]
    lines += ["", ".. toctree::", "   :hidden:", ""]
    return "\n".join([*lines, *(f"   {name} <{page}>" for name, page, _ in rows), ""])


def _index() -> str:
    lines = [*_titled("Reference"), "Every public name has a page.", ""]
    lines += [".. list-table::", "   :class: names", ""]
    for module, title in MODULES.items():
        lines += [f"   * - :doc:`{module} <{module}->`", f"     - {title}"]
    lines += ["", ".. toctree::", "   :hidden:", ""]
    return "\n".join([*lines, *(f"   {module} <{module}->" for module in MODULES), ""])
