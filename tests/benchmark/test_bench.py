"""``python -m numgrad bench``: what is collected, timed, written, compared, and what is refused."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from numgrad.benchmark import history, results
from numgrad.benchmark.declaration import collect
from numgrad.benchmark.measure import Measured
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
    assert f"not in {old}: right" in capfd.readouterr().out
    for option, value in (("--rounds", "0"), ("--threshold", "-1"), ("--threshold", "nan")):
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
    (change,) = results.changes(new, old)
    assert change.ratio.value == pytest.approx(2.0)
    assert change.ratio.moved(0.05)
    assert change.sure
    (change,) = results.changes([Measured("total", {"eager": [2.0]})], old)
    assert not change.sure


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


def test_files_for_asv_are_written_once(tmp_path: Path) -> None:
    made = history.write(tmp_path)
    assert json.loads((tmp_path / "asv.conf.json").read_text())["benchmark_dir"] == "benchmarks"
    assert (tmp_path / ".asv" / ".gitignore").read_text() == "*\n"
    namespace: dict[str, Any] = {}
    exec(made[-1].read_text(), namespace)
    gradient = namespace["Gradient"]()
    gradient.setup(100)
    gradient.time_eager(100)
    with pytest.raises(NumgradValueError, match="is there already"):
        history.write(tmp_path)
