"""Which tests concern a mutant: files that say its names, those that go through the table."""

from __future__ import annotations

import ast
import re
import signal
from functools import cache
from pathlib import Path

from tests.mutation.mutants import ROOT, Mutant, text_of

TABLE = [
    "tests/operations/test_table.py",
    "tests/operations/test_table_all.py",
    "tests/operations/test_formulas.py",
    "tests/compiler/test_trace.py",
    "tests/autograd/test_batching.py",
    "tests/autograd/test_nondifferentiable_points.py",
    "tests/autograd/test_forward_ad.py",
]
"""Tests that have a case for each operation, whose name stands in brackets."""

HOMES = {
    "numgrad/operations": TABLE,
    "numgrad/optim/lr_scheduler": [
        "tests/optim/test_lr_scheduler.py",
        "tests/optim/test_lr_scheduler_rules.py",
    ],
    "numgrad/optim": ["tests/optim"],
    "numgrad/nn": ["tests/nn", *TABLE],
    "numgrad/stats": ["tests/stats"],
    "numgrad/compiler/passes": [
        "tests/compiler/test_passes.py",
        "tests/compiler/test_constant_gradients.py",
        "tests/compiler/test_bodies.py",
        "tests/compiler/test_scan.py",
        "tests/compiler/test_index_gradients.py",
        "tests/compiler/test_gradients.py",
        "tests/compiler/test_golden.py",
        "tests/compiler/test_lower_ops.py",
    ],
    "numgrad/autograd/engine": ["tests/autograd"],
    "numgrad/autograd/forward": ["tests/autograd/test_forward_ad.py", "tests/autograd"],
}


def names_of(mutant: Mutant) -> tuple[set[str], set[str]]:
    """The names of the statement that is changed, and all that the file defines."""
    text = text_of(mutant.path)
    near: set[str] = set()
    defined: set[str] = set()
    for node in ast.parse(text).body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        names = _names(node)
        defined |= names
        if first <= mutant.line <= (node.end_lineno or 0):
            near |= names
    return near, {name for name in defined if not name.startswith("_")}


def _names(node: ast.stmt) -> set[str]:
    match node:
        case ast.FunctionDef() | ast.ClassDef():
            decorators = {
                n.value.id
                for d in node.decorator_list
                for n in ast.walk(d)
                if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
            }
            return {node.name, *decorators} - {"np", "ng"}
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return {name}
        case ast.Assign(targets=[ast.Name(id=name)]):
            return {name}
    return set()


@cache
def texts() -> dict[str, str]:
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    return {f.relative_to(ROOT).as_posix(): f.read_text() for f in tests}


def says(text: str, names: set[str]) -> bool:
    """Whether some name stands in a text as a word."""
    return bool(names) and bool(
        re.search(rf"(?<![A-Za-z0-9])({'|'.join(map(re.escape, names))})(?![A-Za-z0-9])", text)
    )


def homes(path: str) -> list[str]:
    """The tests of a folder, of the longest name that fits."""
    fitting = [folder for folder in HOMES if path.startswith(folder + "/")]
    return HOMES[max(fitting, key=len)]


MOST = 100
"""Test files beside the home that say a name, beyond which it is one that all use."""

APART = ("tests/mutation", "tests/cli", "tests/distributed", "tests/benchmark")


def saying_files(names: set[str]) -> list[str]:
    """The test files that say one of some names."""
    return [f for f, text in texts().items() if says(text, names) and not f.startswith(APART)]


def files_for(mutant: Mutant) -> list[str]:
    """Test files to collect for a mutant: its home, and those that say its names or its file's."""
    near, defined = names_of(mutant)
    namesake = f"test_{Path(mutant.path).stem}"
    home = homes(mutant.path)
    others = dict.fromkeys(f for f in texts() if Path(f).stem == namesake)
    # what is part of other operations is in no test, or in that of the table alone: theirs as well
    for names in ({name for name in near if not name.startswith("_")}, defined):
        further = [f for f in saying_files(names) if f not in others]
        if len(others) + len(further) <= MOST:  # not those that say ``backward``
            others |= dict.fromkeys(further)
    others = [f for f in others if not f.startswith(tuple(home))]
    return [*home, *others]


class Order:
    """A plugin of pytest that runs what says the names first; of tables it runs nothing else."""

    def __init__(self, mutant: Mutant, started: Path, patience: float):
        self.started, self.patience = started, patience
        self.near, self.defined = names_of(mutant)
        self.inside_table = mutant.path.startswith("numgrad/operations")
        self.home = tuple(homes(mutant.path))
        self.others = {*files_for(mutant)} - {*self.home}

    def pytest_collection_modifyitems(self, config, items):
        """Sort the tests, and leave out those of other operations."""
        ranks = {item: self._rank(item) for item in items}
        if self.inside_table and not any(r < 2 for i, r in ranks.items() if _of_table(i)):
            chosen = [*items]  # what no test names, a method of a plan, concerns all
        else:
            chosen = [item for item in items if ranks[item] < 3]
        config.hook.pytest_deselected(items=[*({*items} - {*chosen})])
        items[:] = sorted(chosen, key=ranks.__getitem__)

    def pytest_runtest_logstart(self, nodeid):
        """Say which test begins; SIGPROF ends the process after its time."""
        self.started.write_text(nodeid)
        signal.setitimer(signal.ITIMER_PROF, self.patience)

    def _rank(self, item) -> int:
        bracket = _bracket(item)
        if says(bracket, self.near):
            return 0
        if says(bracket, self.defined):
            return 1
        if _of_table(item):
            return 3
        if item.nodeid.startswith(self.home):
            return 1
        name = item.nodeid.split("::")[0]
        return 2 if name in self.others else 3


def _of_table(item) -> bool:
    return bool(_bracket(item)) and item.nodeid.split("::")[0] in TABLE


def _bracket(item) -> str:
    return item.name[len(getattr(item, "originalname", item.name)) :]
