"""``perf/compare.py``: which commits and cases it takes, and what it names as moved."""

import itertools
import json
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest


class WorkerError(RuntimeError):
    """Stands for the one of workers."""


@pytest.fixture
def compare(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "perf"))
    return import_module("compare")


def test_an_unknown_commit_ends_with_the_words_of_git(compare: Any) -> None:
    with pytest.raises(SystemExit, match="rev-parse"):
        compare.main(["no-such-commit", "."])


def test_cases_that_match_nothing_are_an_error(
    compare: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare.main([".", "--only", "no-such-case"]) == 2
    assert "no-such-case" in capsys.readouterr().err


def test_what_moved_in_all_pairs_is_named_and_written(
    compare: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    calls: list[int] = []

    def run_pair(sides: Sequence[Any], chosen: Sequence[Any], turn: int) -> dict[str, Any]:
        calls.append(len(chosen))
        drift = 1 + 0.1 * (len(calls) % 3)  # of the machine: both sides see it
        return {
            case.name: compare.PairedTimes([drift], [drift * now[case.name]]) for case in chosen
        }

    monkeypatch.setattr(compare, "run_pair", run_pair)
    report = tmp_path / "moved.json"
    slower, same, faster = (f"chain/{n}/one thread" for n in (100, 1_000, 100_000))
    now = {slower: 1.1, same: 1.0, faster: 0.8}
    only = [option for name in now for option in ("--only", name)]
    assert compare.main([".", ".", *only, "--json", str(report)]) == 1
    written = json.loads(report.read_text())
    assert written["moved"] == [slower, faster]
    assert list(written["times"]) == list(now)
    assert calls == [3] * 9 + [2] * 8  # once to compile, eight pairs, and again what seems to move
    assert capsys.readouterr().out.count("MOVED") == 2


def test_what_stays_unclear_is_timed_on_and_is_not_decided(
    compare: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    calls: list[int] = []
    clock = itertools.count()  # a second passes at each look

    def run_pair(sides: Sequence[Any], chosen: Sequence[Any], turn: int) -> dict[str, Any]:
        calls.append(len(chosen))
        noise = 0.8 if len(calls) % 2 else 1.2
        return {
            case.name: compare.PairedTimes([1.0], [noise if case.name == noisy else 1.0])
            for case in chosen
        }

    monkeypatch.setattr(compare, "run_pair", run_pair)
    monkeypatch.setattr(compare.time, "monotonic", lambda: next(clock))
    noisy, quiet = "chain/100/one thread", "chain/1000/one thread"
    options = ["--only", noisy, "--only", quiet, "--minutes", "0.5", "--json"]
    assert compare.main([".", ".", *options, str(tmp_path / "open.json")]) == 3
    assert json.loads((tmp_path / "open.json").read_text())["open"] == [noisy]
    assert calls[:9] == [2] * 9
    assert set(calls[9:]) == {1}
    assert len(calls) > 20
    out = capsys.readouterr().out
    assert "NOT DECIDED" in out
    assert "0 of 2 moved by 5 % or more, 1 not decided" in out


class FakeWorker:
    """Answers as a worker of one side would; which side was asked is written down."""

    def __init__(self, side: str, seconds: Callable[[], float], asked: list[str]) -> None:
        self.side, self.seconds, self.asked = side, seconds, asked

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        if do == "prepare" and "order" in request["slot"]:
            return {"missing": True}
        if do == "prepare" and "exp" in request["slot"] and self.side == "B":
            raise WorkerError("ended by a signal")
        if do == "time" and "number" in request:
            self.asked.append(self.side)
        return {"seconds": [self.seconds() for _ in range(request.get("count", 1))]}

    def close(self) -> None:
        pass

    class process:
        pid = 0


def test_sides_take_turns_and_noise_of_both_cancels(
    compare: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    noise = np.random.default_rng(0)
    asked: list[str] = []

    def seconds(ratio: float) -> float:
        clock = 1 + (len(asked) - 1) // 4 % 3  # of the CPU, which changes every other turn
        lucky = 0.2 if noise.random() < 0.02 else 1.0
        return 1e-3 * clock * ratio * lucky * (1 + 0.001 * noise.random())

    monkeypatch.setattr(compare, "WorkerError", WorkerError)
    monkeypatch.setattr(compare, "on_one_cpu", lambda *_: None)
    monkeypatch.setattr(
        compare.Side,
        "worker",
        lambda side: FakeWorker(side.name, partial(seconds, side.tree), asked),
    )
    sides = [compare.Side("A", 1.0, None), compare.Side("B", 1.07, None)]
    names = ("kernel/tanh/float64", "kernel/exp/float64", "order/cumsum")
    chosen = [case for case in compare.cases() if case.name in names]
    found = compare.run_pair(sides, chosen, 0)
    assert list(found) == ["kernel/tanh/float64"]  # another was lost, and one side lacks the third
    assert "ended by a signal" in capsys.readouterr().err
    assert "".join(asked).startswith("ABBAABBA")
    times = found["kernel/tanh/float64"]
    assert times.head[0] / times.base[0] == pytest.approx(1.07, abs=0.002)


def test_what_further_pairs_do_not_confirm_is_not_named(compare: Any) -> None:
    times = compare.PairedTimes([1.0] * 8, [1.2, 1.19, 1.21, 1.18, 1.22, 1.17, 1.23, 1.2])
    times.look(0.05)
    assert times.verdict(0.05) == compare.OPEN
    times.base += [1.0] * 3
    times.head += [1.0] * 3
    times.look(0.05)  # too few to say anything
    assert (times.agreed, times.examined) == (1, 8)
    times.base += [1.0] * 5
    times.head += [1.0, 1.01, 0.99, 1.02, 0.98]
    times.look(0.05)
    assert times.verdict(0.05) != compare.MOVED


def test_a_slower_commit_computes_some_elements_twice(compare: Any) -> None:
    demonstrate = import_module("demonstrate")
    root = Path(demonstrate.__file__).parents[1]
    assert demonstrate.WRITTEN in (root / demonstrate.SOURCE).read_text(encoding="utf-8")
    kernel = "def kernel(x0, y0):\n    for j in range(n0):\n        y0[j] = tanh_f64(x0[j])\n"
    names = {"name": "tanh", "body": kernel}
    exec(textwrap.dedent(demonstrate.AGAIN.format(percent=7)), names)
    again = kernel.partition("\n")[2].replace("n0)", "n0 * 7 // 100)")
    assert names["body"] == kernel + again
