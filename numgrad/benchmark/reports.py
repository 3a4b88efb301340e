"""What a comparison found, for programs: JUnit XML, annotations of GitHub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from numgrad.benchmark.intervals import Ratio
from numgrad.benchmark.pairs import MOVED, OPEN
from numgrad.errors import NumgradValueError

FAILS = ("slower", "any", "undecided", "never")
"""When a comparison fails: if something is slower; if it moved at all; also if something is not
decided; or never."""


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
    found = [
        _annotation("error" if row.fails(when) else "warning", file, row.case, row.said)
        for row in rows
        if row.verdict == MOVED or row.fails(when)
    ]
    found += [_annotation("error", file, name, text) for name, text in errors.items()]
    return found + [_annotation("warning", file, name, "is gone") for name in gone]


def _annotation(level: str, file: str, title: str, text: str) -> str:
    escaped = [
        part.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        for part in (file, title, text)
    ]
    file, title = (part.replace(":", "%3A").replace(",", "%2C") for part in escaped[:2])
    return f"::{level} file={file},title={title}::{escaped[2]}"
