"""Figures of benchmarks in files, and what moved between two of them."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from numgrad.benchmark.intervals import enough, unpaired
from numgrad.benchmark.measure import Measured
from numgrad.benchmark.pairs import OPEN
from numgrad.benchmark.reports import ComparedRow
from numgrad.errors import NumgradValueError

VERSION = 1


def machine() -> dict[str, Any]:
    """What figures depend on and can be told: times of different machines say nothing together."""
    return {"host": platform.node(), "cpu": _processor(), "cpus": os.cpu_count() or 1}


def save(path: Path, source: Path, found: Sequence[Measured]) -> None:
    """Write figures to a file; one that is there is replaced."""
    import numgrad as ng

    report = {
        "version": VERSION,
        "file": source.name,
        "when": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "machine": machine(),
        "versions": {
            "numgrad": ng.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "benchmarks": [asdict(measured) for measured in found],
    }
    text = json.dumps(report, indent=1) + "\n"
    try:
        path.write_text(text)
    except OSError as error:
        raise NumgradValueError(f"bench: cannot write {path}: {error.strerror}") from error


def load(path: Path) -> tuple[dict[str, Any], list[Measured]]:
    """The machine of a file of figures, and the figures.

    Raises
    ------
    NumgradValueError
        If it is no such file.
    """
    try:
        report = json.loads(path.read_text())
        if report["version"] != VERSION:
            raise ValueError(f"its form is version {report['version']}, not {VERSION}")
        return report["machine"], [Measured(**entry) for entry in report["benchmarks"]]
    except OSError as error:
        raise NumgradValueError(f"bench: cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise NumgradValueError(
            f"bench: {path} holds no figures of benchmarks ({error}); --json FILE writes them"
        ) from error


def load_comparable(path: Path, *, force: bool = False) -> list[Measured]:
    """The figures of a file, for comparison with those of this machine.

    Raises
    ------
    NumgradValueError
        If the file cannot be read, or comes from another machine and ``force`` is not set.
    """
    there, old = load(path)
    here = machine()
    if here != there and not force:
        raise NumgradValueError(
            f"bench --compare {path}: its times are of {_named(there)}, these of {_named(here)}; "
            "times of different machines cannot be compared (--force does it all the same)"
        )
    return old


def changes(
    new: Sequence[Measured], old: Sequence[Measured], threshold: float
) -> list[ComparedRow]:
    """What both have, as ratios of the new times to the old.

    They were not taken together: what seems to have moved is not decided.
    """
    before = {measured.name: measured for measured in old}
    found = []
    for measured in new:
        was = before.get(measured.name)
        for form, seconds in measured.seconds.items():
            if was is None or form not in was.seconds:
                continue
            ratio = unpaired(seconds, was.seconds[form])
            sure = enough(len(seconds), len(was.seconds[form]))
            open_ = not sure or ratio.moved(threshold) or ratio.open(threshold)
            case, ends = f"{measured.name}, {form}", (min(was.seconds[form]), min(seconds))
            found.append(ComparedRow(case, *ends, ratio, OPEN if open_ else ""))
    return found


def _named(found: dict[str, Any]) -> str:
    return f"{found['host']} ({found['cpu']}, {found['cpus']} CPUs)"


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
