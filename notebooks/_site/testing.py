"""How each public name was tested, read from what its tests read: declarations, their table, calls.

Statements on an operation follow from its declaration and from the lists in ``tests/operations`` that
the tests of the whole table go through. Of all names the files of tests are listed that use them.
"""

import re
import sys
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

from numgrad.core.axis import AxisOp
from numgrad.core.documentation import expression
from numgrad.core.elementwise import Elementwise
from numgrad.core.op import Op

ROOT = Path(__file__).parent.parent.parent
SOURCE = "https://github.com/numgrad/numgrad/blob/main/"
ALIASES = {"functional": "F", "numgrad": "ng"}
"""Names that tests import modules under."""
FILES = 4  # of tests that are listed, those with most uses


def tested(page: str, value: Any) -> list[str]:
    """The section "How it was tested" of a page, if there is something to say."""
    said = _of_operation(value) if isinstance(value, Op) else []
    files = _files(page)
    if files:
        links = ", ".join(f"`{name} <{SOURCE}{name}>`__" for name in files)
        said.append(f"Tests that use it: {links}.")
    return [".. rubric:: How it was tested", "", *(f"- {text}" for text in said)] if said else []


def _of_operation(op: Op) -> list[str]:
    cases = _tables()
    said = []
    kinds = "float64 and float32" if op.real_only else "float64, float32 and complex numbers"
    if op.ref is not None and isinstance(op, Elementwise | AxisOp):
        low, high = op.domain
        points = f", also at {', '.join(map(_number, op.special))}" if op.special else ""
        said.append(
            f"Values: {_reference(op.ref)} of operands from {_number(low)} to {_number(high)}"
            f"{points}, in {kinds}, and at zeros, infinities and NaN."
        )
    elif op.ref is not None and (op.samples or cases.calls_of(op)):
        said.append(f"Values: {_reference(op.ref)}, in the calls that the tests declare.")
    if op not in cases.TABLE:
        return said
    count = sum(1 for _ in cases.cases(op))
    calls = (
        f" in {count} call{'s' * (count > 1)} of different shapes and parameters" if count else ""
    )
    dtypes = "float64" if op.real_only else "float64 and, where it takes them, of complex numbers"
    said.append(f"First and second derivatives: finite differences of {dtypes}{calls}.")
    said.append(
        "Forward mode, batches (``ng.vmap``), float32, operands in other layouts and empty ones: "
        "the same derivatives. Under ``ng.jit``: those of eager code."
    )
    return said


def _reference(ref: Any) -> str:
    """The function that values are compared with."""
    if isinstance(ref, str):
        return f"``{ref}``"
    if isinstance(ref, FunctionType) and ref.__module__.startswith("numgrad."):
        body = expression(ref) if ref.__name__ == "<lambda>" else ""
        return f"``{body}``" if body and len(body) < 70 else "a formula in plain NumPy"
    return f"``{getattr(ref, '__module__', None) or 'numpy'}.{ref.__name__}``"


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float | int) else str(value)


@cache
def _tables() -> Any:
    """The module with the calls that gradients are checked on."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    from tests.operations import cases

    return cases


@cache
def _uses() -> dict[tuple[str, str], Counter[str]]:
    """Files of tests by the names ``module.name`` in them, with how often."""
    uses: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        for module, attribute in re.findall(r"\b(\w+)\.(\w+)\b", text):
            uses[module, attribute][name] += 1
        for quoted in re.findall(r"\"([A-Z]\w+)\"", text):  # layers that tests look up by name
            uses["nn", quoted][name] += 1
    return uses


def _files(page: str) -> list[str]:
    """Files of tests that use a public name."""
    home, _, name = page.rpartition(".")
    module = home.rpartition(".")[2]
    found: Counter[str] = Counter()
    for alias in {module, ALIASES.get(module, module)}:
        found += _uses()[alias, name]
    return [file for file, _ in found.most_common(FILES)]
