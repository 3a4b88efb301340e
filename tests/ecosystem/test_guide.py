"""Blocks of the guide about other libraries, which the site shows without running them."""

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "notebooks" / "14_other_libraries.py"
CELLS = re.split(r"^# %%.*$", GUIDE.read_text(), flags=re.MULTILINE)
BLOCKS = re.findall(
    r"```python\n(.*?)```", re.sub(r"^# ?", "", CELLS[-1], flags=re.MULTILINE), re.S
)
NEEDS = ("iminuit", "lmfit", "nlopt", "cyipopt", "emcee", "arviz", "dynesty", "nutpie")
OTHERS = {"ng.ecosystem.minuit": "iminuit", "nlopt_problem": "nlopt", "ipopt_problem": "cyipopt"}


def library(block):
    """The library that a block is about."""
    names = [OTHERS[key] for key in OTHERS if key in block]
    return (names or re.findall(r"^import (\w+)", block, re.MULTILINE))[0]


def run_block(name, monkeypatch):
    """Run the first cells of the guide, then the block about a library."""
    monkeypatch.setenv("MPLBACKEND", "Agg")
    space = {}
    described = next(k for k, cell in enumerate(CELLS) if "optimize.minimize(" in cell)
    for cell in CELLS[1 : described + 1]:
        exec(compile(cell, str(GUIDE), "exec"), space)
    by_library = {library(block): block for block in BLOCKS}
    if name == "cyipopt":  # whose constraint the block before it has
        exec(by_library["nlopt"].partition("opt =")[0], space)
    exec(by_library[name], space)


def test_every_library_has_a_block():
    assert sorted(map(library, BLOCKS)) == sorted([*NEEDS, "blackjax", "pymc"])


@pytest.mark.slow(cases=0)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*NEEDS, "pymc"])
def test_block(name, monkeypatch):
    pytest.importorskip(name)
    run_block(name, monkeypatch)


@pytest.mark.slow(cases=0)
@pytest.mark.filterwarnings("ignore")
def test_block_of_blackjax(monkeypatch):
    pytest.importorskip("jax")
    pytest.importorskip("blackjax")
    run_block("blackjax", monkeypatch)
