"""Figures of benchmarks in files: JSON, projects of asv, JUnit XML, annotations of GitHub."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from numgrad.benchmark.measure import Measured
from numgrad.benchmark.pairs import MOVED, OPEN, Ratio, enough, unpaired
from numgrad.errors import NumgradValueError

VERSION = 1


def machine() -> dict[str, Any]:
    """Machine and versions behind figures: times of different machines say nothing together."""
    return {"host": platform.node(), "cpu": _processor(), "cpus": os.cpu_count() or 1}


def save(path: Path, source: Path, results: Sequence[Measured]) -> None:
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
        "benchmarks": [asdict(measured) for measured in results],
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
    """Ratios of the new times to the old, for the cases that both have.

    They were not taken together: what seems to have moved is not decided.
    """
    before = {measured.name: measured for measured in old}
    rows = []
    for measured in new:
        was = before.get(measured.name)
        for form, seconds in measured.seconds.items():
            if was is None or form not in was.seconds:
                continue
            ratio = unpaired(seconds, was.seconds[form])
            sure = enough(len(seconds), len(was.seconds[form]))
            open_ = not sure or ratio.moved(threshold) or ratio.open(threshold)
            case, ends = f"{measured.name}, {form}", (min(was.seconds[form]), min(seconds))
            rows.append(ComparedRow(case, *ends, ratio, OPEN if open_ else ""))
    return rows


def _named(machine: dict[str, Any]) -> str:
    return f"{machine['host']} ({machine['cpu']}, {machine['cpus']} CPUs)"


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


EXAMPLE = '''"""Benchmarks for asv: https://asv.readthedocs.io says what its names mean."""

import numpy as np

import numgrad as ng


def loss(x):
    """Put a function of your package here."""
    return np.sum(np.exp(np.tanh(x)) * x)


fast = ng.jit(ng.value_and_grad(loss))


class Gradient:
    """Value and gradient, eager and compiled."""

    params = (100, 100_000)
    param_names = ("n",)

    def setup(self, n):
        self.x = np.linspace(0.0, 1.0, n)
        fast(self.x)  # compiles

    def time_eager(self, n):
        ng.value_and_grad(loss)(self.x)

    def time_compiled(self, n):
        fast(self.x)
'''


def write_asv_project(root: Path) -> list[Path]:
    """Write ``asv.conf.json`` and ``benchmarks/`` into the root of a package's repository.

    What asv puts into ``.asv/`` is ignored by git.

    Raises
    ------
    NumgradValueError
        If one of the files is there already; nothing is written then.
    """
    settings = {
        "version": 1,
        "project": root.name,
        "repo": ".",
        "branches": ["HEAD"],
        "environment_type": "virtualenv",
        "benchmark_dir": "benchmarks",
        "env_dir": ".asv/env",
        "results_dir": ".asv/results",
        "html_dir": ".asv/html",
    }
    made = {
        root / "asv.conf.json": json.dumps(settings, indent=4) + "\n",
        root / ".asv" / ".gitignore": "*\n",  # environments and results of this machine
        root / "benchmarks" / "__init__.py": "",
        root / "benchmarks" / "gradients.py": EXAMPLE,
    }
    there = [str(path.relative_to(root)) for path in made if path.exists()]
    if there:
        raise NumgradValueError(f"bench init: {', '.join(there)} is there already; move it away")
    for path, text in made.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return list(made)


FAILS = ("slower", "any", "undecided", "never")
"""Conditions under which a comparison fails: something is slower, moved at all, or is also not
decided; or none."""


@dataclass(frozen=True)
class ComparedRow:
    """A form of a benchmark, compared.

    Attributes
    ----------
    case
        "name, form".
    base, head
        Seconds of either side.
    ratio
        Of head to base.
    verdict
        MOVED, NOT DECIDED, or nothing.
    """

    case: str
    base: float
    head: float
    ratio: Ratio
    verdict: str

    def fails(self, when: str) -> bool:
        """Whether this makes the comparison fail."""
        if self.verdict == OPEN:
            return when == "undecided"
        slower = self.ratio.value > 1
        return self.verdict == MOVED and when != "never" and (slower or when != "slower")

    @property
    def said(self) -> str:
        """The change in words."""
        change = 100 * (self.ratio.value - 1)
        return f"{abs(change):.1f} % {'slower' if change > 0 else 'faster'}, ratio {self.ratio}"


def write_junit(
    path: Path,
    suite: str,
    rows: Sequence[ComparedRow],
    errors: Mapping[str, str],
    gone: Sequence[str],
    when: str,
) -> None:
    """Write a test for each case: failed if it moved, skipped if it is not decided, or is gone.

    Raises
    ------
    NumgradValueError
        If the file cannot be written.
    """
    root = ElementTree.Element("testsuite", name=suite)
    count = {"tests": len(rows) + len(errors) + len(gone), "failures": 0, "errors": len(errors)}
    count["skipped"] = len(gone)
    for row in rows:
        case = _case(root, suite, row.case, row.head)
        if row.fails(when):
            count["failures"] += 1
            ElementTree.SubElement(case, "failure", message=f"{row.verdict}: {row.said}")
        elif row.verdict == OPEN:
            count["skipped"] += 1
            ElementTree.SubElement(case, "skipped", message=f"{row.verdict}: {row.said}")
        else:
            ElementTree.SubElement(case, "system-out").text = row.said
    for name, text in errors.items():
        ElementTree.SubElement(_case(root, suite, name), "error", message=text)
    for name in gone:
        ElementTree.SubElement(_case(root, suite, name), "skipped", message="is gone")
    root.attrib.update({name: str(number) for name, number in count.items()})
    try:
        ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise NumgradValueError(f"bench: cannot write {path}: {error.strerror}") from error


def _case(
    root: ElementTree.Element, suite: str, name: str, seconds: float = 0.0
) -> ElementTree.Element:
    return ElementTree.SubElement(
        root, "testcase", classname=suite, name=name, time=f"{seconds:.9f}"
    )


def github_lines(
    file: str,
    rows: Sequence[ComparedRow],
    errors: Mapping[str, str],
    gone: Sequence[str],
    when: str,
) -> list[str]:
    """Lines by which GitHub shows what moved, failed, or is gone, beside the file."""
    lines = [
        _annotation("error" if row.fails(when) else "warning", file, row.case, row.said)
        for row in rows
        if row.verdict == MOVED or row.fails(when)
    ]
    lines += [_annotation("error", file, name, text) for name, text in errors.items()]
    return lines + [_annotation("warning", file, name, "is gone") for name in gone]


def _annotation(level: str, file: str, title: str, text: str) -> str:
    escaped = [
        text_of_one.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        for text_of_one in (file, title, text)
    ]
    file, title = (
        text_of_one.replace(":", "%3A").replace(",", "%2C") for text_of_one in escaped[:2]
    )
    return f"::{level} file={file},title={title}::{escaped[2]}"
