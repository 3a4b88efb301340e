"""Counters of fixed programs are the same in every run, and a change of one is found."""

import json
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PERF = Path(__file__).parents[2] / "perf"


@pytest.fixture
def counters(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The module, with a file of its own."""
    monkeypatch.syspath_prepend(str(PERF))
    monkeypatch.delenv("NUMGRAD_UPDATE_GOLDEN", raising=False)
    module = import_module("counters")
    monkeypatch.setattr(module, "FILE", tmp_path / "counters.json")
    return module


ONE = {"launches": 9, "bytes read": 800}


def stub(counters: Any, monkeypatch: Any, found: dict[str, dict[str, int]]) -> None:
    monkeypatch.setattr(counters, "PROGRAMS", dict.fromkeys(found))
    monkeypatch.setattr(counters, "measure", lambda name: dict(found[name]))


def test_a_change_fails_until_it_is_accepted(counters, monkeypatch, capsys):
    stub(counters, monkeypatch, {"a": ONE, "b": ONE})
    assert counters.main(["--check"]) == 1
    assert "a: not accepted yet" in capsys.readouterr().out
    assert counters.main(["--accept"]) == 0
    assert counters.main(["--check"]) == 0
    stub(counters, monkeypatch, {"a": ONE, "b": {**ONE, "launches": 10}})
    assert counters.main(["--check"]) == 1
    out = capsys.readouterr().out
    assert "b: launches 9 -> 10, +11.1 %" in out
    assert "--accept" in out
    assert counters.main(["--check", "--only", "a"]) == 0
    monkeypatch.setenv("NUMGRAD_UPDATE_GOLDEN", "1")
    assert counters.main(["--only", "b"]) == 0
    monkeypatch.delenv("NUMGRAD_UPDATE_GOLDEN")
    assert counters.main(["--check"]) == 0  # what stood there of others stayed
    stub(counters, monkeypatch, {"a": ONE})
    assert counters.main(["--check"]) == 1
    assert "b: is gone" in capsys.readouterr().out


def test_a_program_that_fails_leaves_the_others(counters, monkeypatch, capsys):
    def measure(name: str) -> dict[str, int]:
        if name == "a":
            raise RuntimeError("no kernel")
        return dict(ONE)

    stub(counters, monkeypatch, {"a": ONE, "b": ONE})
    counters.main(["--accept"])
    monkeypatch.setattr(counters, "measure", measure)
    assert counters.main(["--check"]) == 1
    shown = capsys.readouterr()
    assert "a could not be counted: no kernel" in shown.err
    assert "counters are as accepted" in shown.out
    assert counters.main(["--accept"]) == 1
    assert json.loads(counters.FILE.read_text())["programs"] == {"a": ONE, "b": ONE}


def test_allocations_are_those_of_numpy(counters):
    allocations = counters.Allocations()
    x = np.ones(1000)
    assert allocations.of(lambda: None) == 0
    assert allocations.of(lambda: np.empty(3)) == 1
    assert allocations.of(lambda: [x + x, np.zeros(10_000)]) == 2
    assert allocations.of(lambda: x[2:].reshape(2, -1)) == 0
    kept: list[Any] = []
    assert allocations.of(lambda: kept.append(np.zeros(5))) == 1
    kept[0].resize(50, refcheck=False)  # by the handler that it came from
    assert kept[0].sum() == 0


def test_calls_are_those_of_the_package(counters):
    import numgrad as ng

    x = ng.ones(3)
    unique = ng.unique  # looks at numbers, so machine code cannot learn its calls
    unique(x)
    count = counters.calls(lambda: unique(x))
    assert 1 <= count < 50
    assert counters.calls(lambda: [unique(x) for _ in range(3)]) == 3 * count
    assert counters.calls(lambda: np.mean(np.ones(3))) == 0
    assert sys.getprofile() is None


@pytest.mark.parametrize("name", ["chain"])
def test_a_program_counts_as_accepted(name):
    command = [sys.executable, str(PERF / "counters.py"), "--one", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    kept = json.loads((PERF / "counters.json").read_text())
    found = json.loads(done.stdout)
    of_numgrad = ("kernels made", "launches", "operations", "nodes", "bytes read", "bytes written")
    assert {k: found[k] for k in of_numgrad} == {k: kept["programs"][name][k] for k in of_numgrad}


def test_a_counter_that_jitters_is_an_error(counters, monkeypatch):
    import numgrad as ng
    from numgrad.codegen import compile as door

    number = iter(range(100))
    made: Callable[..., Any] = lambda ng: lambda: ng.ones(1) + float(next(number) % 2) * ng.ones(2)  # noqa: E731
    monkeypatch.setattr(counters, "PROGRAMS", {"odd": made})
    monkeypatch.setattr(door, "_load_or_compile", door._load_or_compile)
    monkeypatch.setattr(ng, "set_num_threads", lambda count: None)
    monkeypatch.setattr(counters, "calls", lambda run: next(number))
    with pytest.raises(RuntimeError, match=r"odd: counters jitter.*calls"):
        counters.counted_apart("odd")
