"""Every Python block of the README runs, in order, in one process: the reader's session."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import numgrad as ng

README = Path(__file__).parents[1] / "README.md"
GUIDES = sorted((README.parent / "notebooks").glob("[0-9]*.py"))
TEXT = README.read_text()
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def python_blocks():
    return [m.group(2) for m in BLOCK.finditer(TEXT) if m.group(1) == "python"]


def test_every_block_runs(tmp_path):
    # A file: what it shows of an operation's formula comes from inspect.getsource. Lines are those
    # of the README, for tracebacks. Its operations stay out of this process's table.
    lines = [""] * len(TEXT.splitlines())
    for match in BLOCK.finditer(TEXT):
        if match.group(1) == "python":
            first = TEXT[: match.start(2)].count("\n")
            block = match.group(2).splitlines()
            lines[first : first + len(block)] = block
    script = tmp_path / "README.py"
    script.write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=README.parent,
        env={**os.environ, "PYTHONPATH": str(README.parent)},  # also where it is not installed
    )
    assert done.returncode == 0, done.stderr
    x = np.array([0.5, 1.0, 1.5])
    printed = done.stdout.partition("tensor([")[2].partition("]")[0]
    expected = np.exp(-x) * (np.cos(x) - np.sin(x))  # what the first block's comment says
    np.testing.assert_allclose(np.fromstring(printed, sep=","), expected, rtol=1e-7)


def test_the_two_commands_come_before_the_ten_lines():
    first = python_blocks()[0]
    code = [line for line in first.splitlines() if line.strip()]
    assert len(code) <= 10
    for shown in ("requires_grad=True", "backward()", "ng.value_and_grad(", "jac=True", "np.sum("):
        assert shown in first
    start = TEXT.index(first)
    for command in (
        "python -m pip install . && python -m numgrad demo",
        "python -m pip install '.[test]' && python -m pytest",
    ):
        assert TEXT.index(command) < start
    assert TEXT[:start].count("\n") < 30  # a screen


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", TEXT))
def test_links_lead_somewhere(link):
    assert link.startswith("https://") or (README.parent / link).exists()


def test_every_guide_is_linked():
    for guide in GUIDES:
        assert f"(notebooks/{guide.name})" in TEXT, guide.name


def test_files_that_guides_name_exist():
    texts = [TEXT, *(guide.read_text() for guide in GUIDES)]
    for path in re.findall(r"`((?:notebooks|perf)/[\w/.]+|\d\d_\w+\.py)`", "\n".join(texts)):
        home = README.parent / "notebooks" if path[0].isdigit() else README.parent
        assert (home / path).exists() or path in ("perf/results", "perf/html"), path


def test_operations_that_the_guide_lists_exist():
    guide = (README.parent / "notebooks" / "10_for_scipy_users.py").read_text()
    section = guide.split("# ## Operations\n")[1].split("Each is a function")[0]
    names = re.findall(r"`(\w+)`", section)
    assert len(names) > 40
    assert not [name for name in names if name not in ng.ops and not hasattr(ng, name)]


def test_files_that_the_map_names_exist():
    root = README.parent
    text = (root / "CONTRIBUTING.md").read_text()
    homes = [root, root / "numgrad", root / "numgrad" / "compiler"]
    named = set(re.findall(r"`([\w.]+/[\w/.]*)`", text))
    assert len(named) > 30
    missing = [path for path in named if not any((home / path).exists() for home in homes)]
    assert missing == []
