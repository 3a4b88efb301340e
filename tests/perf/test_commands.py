"""The commands of ``perf/README.md`` name cases, programs and evals that there are."""

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

PERF = Path(__file__).parents[2] / "perf"


@pytest.fixture
def perf(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Imports a module of ``perf``."""
    monkeypatch.syspath_prepend(str(PERF))
    return import_module


def commands() -> list[list[str]]:
    """The words of each command in the table of rows."""
    text = (PERF / "README.md").read_text().split("## Each figure from one command")[1]
    table = text.split("\n## ")[0].split("|---|---|")[1]
    found = [
        [quoted or plain for quoted, plain in re.findall(r"'([^']+)'|(\S+)", command)]
        for command in re.findall(r"`([^`]+)`", table)
    ]
    assert len(found) > 20
    return found


def test_every_row_has_a_case(perf: Callable[[str], Any]) -> None:
    vs_peers = perf("vs_peers")
    names = [case.name for case in vs_peers.cases()]
    names += [*perf("processes").MEASURES, *perf("first_calls").MEASURES]
    known = {
        "vs_peers": lambda pattern: any(vs_peers.selected(name, [pattern]) for name in names),
        "science": lambda program: (PERF / "science" / f"{program}.py").exists(),
        "gradbench": lambda name: f'"{name}":' in (PERF / "gradbench/__main__.py").read_text(),
        "python": lambda path: (PERF.parent / path).exists(),
    }
    for program, *given in commands():
        assert given
        for word in given:
            assert known[program](word), f"perf/README.md: {program} has no {word}"


def test_without_avx512_everything_narrower_stays(perf: Callable[[str], Any]) -> None:
    settings = perf("harness").without_avx512()
    features = settings["NUMBA_CPU_FEATURES"].split(",")
    assert not [name for name in features if name.startswith("+avx512")]
    assert settings["PERF_XLA_FLAGS"] == "--xla_cpu_max_isa=AVX2"
