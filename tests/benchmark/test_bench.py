"""``python -m numgrad bench``: what is collected, timed, written, compared, and what is refused."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from numgrad.benchmark import measure, pairs, results, sides
from numgrad.benchmark.declaration import collect
from numgrad.benchmark.measure import Measured
from numgrad.benchmark.pairs import MOVED, OPEN, Ratio
from numgrad.benchmark.results import ComparedRow, github_lines, write_junit
from numgrad.benchmark.sides import Comparison, Side, compared_with
from numgrad.cli import main
from numgrad.errors import NumgradValueError

SOURCE = """
import numpy as np
import numgrad as ng

@ng.benchmark.parametrize("k", [2, 3])
@ng.benchmark.parametrize("n", [4, 5])
@ng.benchmark.setup(lambda n, k: {"x": np.full(n, float(k))})
def bench_total(x):
    return ng.sum(x * x)

@ng.benchmark.against(bench_total, "numpy")
def total_of_arrays(x):
    return np.sum(x * x)

def bench_plain():
    return 1

def bench_broken(x):
    return x

def helper():
    raise AssertionError("no benchmark")
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "speeds.py"
    path.write_text(SOURCE)
    return path


def test_every_combination_of_parameters_is_a_benchmark(source: Path) -> None:
    found = collect(source)
    pairs = [(k, n) for k in (2, 3) for n in (4, 5)]
    assert list(found) == [f"total[k={k}, n={n}]" for k, n in pairs] + ["plain", "broken"]
    for (k, n), benchmark in zip(pairs, found.values(), strict=False):
        assert benchmark.function(**benchmark.arguments()).item() == n * k * k
        assert list(benchmark.declared.counterparts) == ["numpy"]


@pytest.mark.parametrize(
    ("text", "message"),
    [("x = 1", "no function whose name begins"), ("1 / 0", "ZeroDivisionError")],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(text)
    with pytest.raises(NumgradValueError, match=message):
        collect(path)
    with pytest.raises(NumgradValueError, match="no such file"):
        collect(tmp_path / "missing.py")


def test_a_run_keeps_what_works_and_names_what_does_not(source: Path, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "numgrad", "bench", str(source), "--rounds", "2"]
    done = subprocess.run(
        [*command, "--eager", "--only", "r", "--json", str(figures)],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 1
    assert "broken: missing a required argument: 'x'; given is nothing" in done.stderr
    _, (broken,) = results.load(figures)
    assert broken.name == "broken"
    assert list(broken.errors) == ["eager"]
    assert not broken.seconds


WRONG = """
import os
import numgrad as ng

def bench_leaves():
    raise SystemExit(3)

def bench_dies():
    os._exit(0)

def bench_lazy():
    yield 1

@ng.benchmark.setup(lambda: 3)
def bench_unmade(x):
    return x

@ng.benchmark.parametrize("n", [1])
def bench_misnamed(k):
    return k

def bench_makes():
    return lambda: 1

def bench_right():
    return 1
"""


@pytest.mark.slow(cases=0)
def test_whatever_a_benchmark_does_others_are_timed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source, figures = tmp_path / "wrong.py", tmp_path / "figures.json"
    source.write_text(WRONG)
    options = ["--rounds", "1", "--eager", "--json", str(figures)]
    assert main(["bench", str(source), *options]) == 1
    errors = {measured.name: measured.errors.get("eager") for measured in results.load(figures)[1]}
    expected = {
        "leaves": "SystemExit: 3",
        "dies": "its process ended",
        "lazy": "a generator function",
        "makes": "returns a function, which nothing calls",
        "unmade": "setup returned int",
        "misnamed[n=1]": "missing a required argument: 'k'; given is n",
    }
    for name, text in expected.items():
        assert text in (errors.pop(name) or "")
    assert errors == {"right": None}

    capfd.readouterr()
    old = _figures(tmp_path / "old.json", [1.0, 1.1])
    options = ["--rounds", "1", "--eager", "--only", "right", "--compare", str(old)]
    assert main(["bench", str(source), *options]) == 0
    out = capfd.readouterr().out
    assert f"not in {old}: right" in out
    assert "do not tell a change of the program" in out
    for option, value in (
        ("--rounds", "0"),
        ("--threshold", "-1"),
        ("--threshold", "nan"),
        ("--pairs", "7"),
    ):
        with pytest.raises(SystemExit):
            main(["bench", str(source), option, value])
    source.write_text("raise SystemExit(0)")
    assert main(["bench", str(source)]) == 2


def test_forms_and_counterparts_are_timed(
    source: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    figures = tmp_path / "figures.json"
    name = "total[k=2, n=4]"
    options = ["--rounds", "2", "--against", "numpy", "--only", name, "--json", str(figures)]
    assert main(["bench", str(source), *options]) == 0
    _, (found,) = results.load(figures)
    assert set(found.seconds) == {"eager", "compiled", "numpy"}
    assert all(len(taken) == 2 and min(taken) > 0 for taken in found.seconds.values())
    assert set(found.first) == set(found.memory) == {"eager", "compiled"}
    assert found.memory["eager"] >= 8  # the sum
    assert name in capfd.readouterr().out


def _figures(path: Path, seconds: list[float], **machine: Any) -> Path:
    results.save(path, Path("speeds.py"), [Measured("total", {"eager": seconds})])
    report = json.loads(path.read_text())
    report["machine"] |= machine
    path.write_text(json.dumps(report))
    return path


def test_changes_are_ratios_of_what_both_have(tmp_path: Path) -> None:
    old = results.load_comparable(_figures(tmp_path / "old.json", [1.0, 1.1, 1.2] * 4))
    new = [
        Measured("total", {"eager": [2.0, 2.2, 2.4] * 4, "compiled": [1.0]}),
        Measured("other", {"eager": [1.0]}),
    ]
    (row,) = results.changes(new, old, 0.05)
    assert (row.case, row.base, row.head) == ("total, eager", 1.0, 2.0)
    assert row.ratio.value == pytest.approx(2.0)
    assert row.verdict == OPEN  # times that were taken apart decide nothing
    (row,) = results.changes([Measured("total", {"eager": [1.0, 1.1, 1.2] * 4})], old, 0.3)
    assert row.verdict == ""
    (row,) = results.changes([Measured("total", {"eager": [1.0]})], old, 0.3)
    assert row.verdict == OPEN  # too few


def test_another_machine_is_refused_by_name_unless_forced(tmp_path: Path) -> None:
    path = _figures(tmp_path / "old.json", [1.0], host="elsewhere")
    with pytest.raises(NumgradValueError, match=r"elsewhere .*, these of"):
        results.load_comparable(path)
    assert len(results.load_comparable(path, force=True)) == 1


@pytest.mark.parametrize("text", ["", "{}", '{"version": 0}', "[1]"])
def test_a_file_that_holds_no_figures_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "old.json"
    path.write_text(text)
    with pytest.raises(NumgradValueError, match="no figures"):
        results.load(path)


VERSIONED = """
import __main__
import library

__main__.CLOCK = lambda: library.seconds

def bench_work():
    library.work()

def bench_fails():
    raise ValueError("no such row")

def bench_{name}():
    library.work()
"""
WORK = """
seconds = 0.0

def work():
    global seconds
    seconds += {count} * 1e-5
"""
"""A clock of its own, since a busy machine would have pairs timed again."""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A commit, and a checkout whose work is three times as much; a benchmark has another name."""
    folder = tmp_path / "project" / "benchmarks"
    folder.mkdir(parents=True)
    options = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    for count, name in ((10, "old"), (30, "new")):
        (folder / "speeds.py").write_text(VERSIONED.format(name=name))
        (folder / "library.py").write_text(WORK.format(count=count))
        if count == 10:
            for command in (["init", "-q"], ["add", "."], [*options, "commit", "-qm", "x"]):
                done = subprocess.run(["git", *command], cwd=folder.parent, capture_output=True)
                if done.returncode:
                    pytest.skip(f"git {command}: {done.stderr.decode()}")
    return folder.parent


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Few turns, and one process of each side for all pairs."""
    for name, value in (("LAYOUTS", 1), ("TURNS", 2), ("SAMPLES", 1)):
        monkeypatch.setattr(pairs, name, value)
    process, close = sides.Process, sides.Process.close
    started: dict[Side, Any] = {}
    monkeypatch.setattr(
        sides, "Process", lambda side: started.get(side) or started.setdefault(side, process(side))
    )
    monkeypatch.setattr(process, "close", lambda _: None)
    yield
    for one in started.values():
        close(one)


def test_a_commit_is_timed_by_turns_with_what_is_here(
    repository: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], quick: None
) -> None:
    source, junit = repository / "benchmarks" / "speeds.py", tmp_path / "found.xml"
    options = ["--compare", "HEAD", "--eager", "--junit", str(junit), "--github"]
    assert main(["bench", str(source), *options, "--json", str(tmp_path / "head.json")]) == 1
    printed, errors = capfd.readouterr()
    (line,) = [line for line in printed.splitlines() if line.startswith("work, eager")]
    assert line.endswith(MOVED)
    assert "1 of 1 moved by 5 % or more, 0 not decided" in printed
    assert "not in HEAD: new\ngone: old\n" in printed
    assert "fails, eager: ValueError: no such row" in errors
    assert f"::error file={source},title=work%2C eager::" in printed
    assert "title=old::is gone" in printed
    suite = ElementTree.parse(junit).getroot()
    assert [suite.get(k) for k in ("tests", "failures", "errors", "skipped")] == list("3111")
    _, (work, _) = results.load(tmp_path / "head.json")
    assert len(work.seconds["eager"]) == 16
    assert not list(tmp_path.glob("numgrad-bench-*"))


def test_sides_are_commits_checkouts_and_environments(repository: Path, tmp_path: Path) -> None:
    source = (repository / "benchmarks" / "speeds.py").resolve()
    with compared_with("HEAD", source) as (old, new):
        assert old.file.read_text() == VERSIONED.format(name="old")
        assert (new.file, new.folders) == (source, (repository.resolve(),))
        tree = old.file.parents[1]
    assert not tree.exists()
    other = tmp_path / "other"
    (other / "src").mkdir(parents=True)
    with compared_with(str(other), source) as (old, new):
        assert (old.file, old.folders) == (source, (other / "src", other))
    environment = tmp_path / "venv" / "bin"
    environment.mkdir(parents=True)
    (environment / "python").symlink_to(sys.executable)
    for given in (environment.parent, environment / "python"):
        with compared_with(str(given), source) as (old, new):
            assert (old.python, old.file) == (environment / "python", source)
            assert old.folders == new.folders == ()
    message = "no file of figures, directory, Python, or commit"
    with pytest.raises(NumgradValueError, match=message), compared_with("nothing", source):
        pass
    source.write_text("1 / 0")
    with pytest.raises(NumgradValueError, match=r"here cannot be timed: .*ZeroDivisionError"):
        Comparison((Side("here", Path(sys.executable), source),) * 2)


def test_what_fails_a_comparison(tmp_path: Path) -> None:
    def row(case: str, value: float, verdict: str) -> ComparedRow:
        return ComparedRow(case, 1.0, value, Ratio(value, value - 0.01, value + 0.01), verdict)

    slower, faster = row("a, eager", 1.2, MOVED), row("b, eager", 0.8, MOVED)
    unclear, same = row("c, eager", 1.02, OPEN), row("d, eager", 1.0, "")
    rows = [slower, faster, unclear, same]
    fails = {
        "slower": [slower], "any": [slower, faster],
        "undecided": [slower, faster, unclear], "never": [],
    }  # fmt: skip
    path = tmp_path / "found.xml"
    for when, expected in fails.items():
        assert [one for one in rows if one.fails(when)] == expected
        write_junit(path, "speeds", rows, {"e, eager": "A < B"}, ["f"], when)
        suite = ElementTree.parse(path).getroot()
        failed = [c.get("name") for c in suite if c.find("failure") is not None]
        assert failed == [one.case for one in expected]
        assert suite.find("testcase/error").get("message") == "A < B"  # pyright: ignore
        lines = github_lines("a,b.py", rows, {"e, eager": "50 %\nof it"}, [], when)
        assert sum(line.startswith("::error") for line in lines) == len(expected) + 1
        assert "::error file=a%2Cb.py,title=e%2C eager::50 %25%0Aof it" in lines
    assert slower.said == "20.0 % slower, ratio 1.200 [1.190, 1.210]"
    assert "20.0 % faster" in faster.said
    with pytest.raises(NumgradValueError, match="cannot write"):
        write_junit(tmp_path / "no" / "found.xml", "speeds", [], {}, [], "any")


def test_memory_is_without_what_is_made_once(tmp_path: Path) -> None:
    source = tmp_path / "allocates.py"
    source.write_text(
        "import numpy as np\nkept = []\n"
        "def bench_array():\n"
        "    if len(kept) < 2: kept.append(np.ones(1_000_000))\n"  # as what is compiled
        "    return np.ones(1_000).sum()\n"
    )
    measure.read(str(source), {})
    assert 8_000 <= measure.memory("array", "eager") < 20_000


def test_files_for_asv_are_written_once(tmp_path: Path) -> None:
    made = results.write_asv_project(tmp_path)
    assert json.loads((tmp_path / "asv.conf.json").read_text())["benchmark_dir"] == "benchmarks"
    assert (tmp_path / ".asv" / ".gitignore").read_text() == "*\n"
    namespace: dict[str, Any] = {}
    exec(made[-1].read_text(), namespace)
    gradient = namespace["Gradient"]()
    gradient.setup(100)
    gradient.time_eager(100)
    with pytest.raises(NumgradValueError, match="is there already"):
        results.write_asv_project(tmp_path)
