"""``perf/compare.py``: which commits and cases it takes, and what it names as moved."""

import itertools
import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest


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
        return {case.name: compare.Times([drift], [drift * now[case.name]]) for case in chosen}

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
            case.name: compare.Times([1.0], [noise if case.name == noisy else 1.0])
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
