"""Shows what ``compare.py`` finds: ``python perf/demonstrate.py``.

It compares a commit with itself, and with a commit in which one kernel, the hyperbolic tangent of
float64, computes some percent of its elements twice; 20 times each, and prints the counts: runs
that named something where nothing changed, and runs that named the kernel. One other process is
busy meanwhile. ``--only`` chooses cases as in ``compare.py``; the default is few, of different
kinds. Each comparison is written to a file as soon as it is done; who starts again with the same
commit goes on where that ends. The slower commit is in no branch; git forgets it after a while.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import compare
from cases import cases
from harness import busy_cpu
from vs_peers import selected

KERNEL = "kernel/tanh/float64"
SOURCE = "numgrad/codegen/loops.py"
WRITTEN = "    body = writer.kernel()\n"
AGAIN = """\
    loop = body.rpartition("    for j in range(n0):")[2]
    if name == "tanh" and "tanh_f64" in loop:
        body += "    for j in range(n0 * {percent} // 100):" + loop
"""
"""Statements of a slower commit in ``SOURCE`` after ``WRITTEN``."""
ONLY = (KERNEL, "kernel/exp/float64", "no_grad/a*b", "chain/100/one thread")
THRESHOLD = 0.05
SAME, SLOWER = "unchanged", "slower"


@contextmanager
def slowed(commit: str, scratch: Path, percent: int) -> Iterator[compare.Side]:
    """A commit on another, checked out, whose kernel computes so many percent of elements twice."""
    with compare.checked_out(commit, scratch, "slow") as side:
        path = side.tree / SOURCE
        before, line, after = path.read_text(encoding="utf-8").partition(WRITTEN)
        if not line:
            raise SystemExit(f"{SOURCE} has no line {WRITTEN.strip()!r} that says what to change")
        path.write_text(before + line + AGAIN.format(percent=percent) + after, encoding="utf-8")
        author = ["-c", "user.name=perf", "-c", "user.email=perf@localhost"]
        change = ["commit", "--quiet", "--no-verify", "-am", f"Slow {KERNEL} down"]
        subprocess.run(["git", "-C", str(side.tree), *author, *change], check=True)
        yield compare.Side(f"slower by {percent} %", side.tree, side.caches)


class Results:
    """What comparisons found, in a file of a line for each; the first line says what of.

    Raises
    ------
    SystemExit
        If the file is of another commit, or of other options.
    """

    def __init__(self, path: Path, of: dict[str, Any]) -> None:
        self.path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        if lines and json.loads(lines[0]) != of:
            raise SystemExit(f"{path} is of {lines[0]}, not of {json.dumps(of)}; move it away")
        # the last line may have been cut short
        whole = [line for line in lines[1:] if line.endswith("}")]
        self.found: list[dict[str, Any]] = [json.loads(line) for line in whole]
        text = "".join(json.dumps(each) + "\n" for each in (of, *self.found))
        path.write_text(text, encoding="utf-8")

    def add(self, kind: str, times: dict[str, compare.Times], seconds: float) -> None:
        """Note a comparison."""
        said = compare.verdicts(times, THRESHOLD)
        ratios = {name: str(taken.ratio) for name, taken in times.items()}
        found = {
            "kind": kind, "moved": said[compare.MOVED], "open": said[compare.OPEN],
            "ratios": ratios, "seconds": round(seconds, 1),
        }  # fmt: skip
        self.found.append(found)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")

    def count(self, kind: str) -> int:
        """The comparisons of one kind."""
        return sum(each["kind"] == kind for each in self.found)

    @property
    def wrong(self) -> int:
        """Comparisons that named something where nothing changed."""
        return sum(bool(each["moved"]) for each in self.found if each["kind"] == SAME)

    @property
    def right(self) -> int:
        """Comparisons that named the slower kernel."""
        return sum(KERNEL in each["moved"] for each in self.found if each["kind"] == SLOWER)

    def __str__(self) -> str:
        undecided = sum(len(each["open"]) for each in self.found)
        return (
            f"{self.count(SAME)} comparisons without a change, {self.wrong} named something; "
            f"{self.count(SLOWER)} with {KERNEL} slower, {self.right} named it; "
            f"{undecided} cases not decided"
        )


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description="Count what compare.py finds.")
    parser.add_argument("--commit", default="HEAD", help="(default: HEAD)")
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="(default: 20)")
    parser.add_argument(
        "--slower", type=int, default=7, metavar="P",
        help="percent by which the kernel is slower (default: 7)",
    )  # fmt: skip
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN")
    parser.add_argument(
        "--pairs", type=int, default=8, metavar="N", help="as of compare.py (default: 8)"
    )
    parser.add_argument(
        "--minutes", type=float, default=10.0, metavar="M", help="of a comparison (default: 10)"
    )
    parser.add_argument("--quiet", action="store_true", help="without the busy process")
    parser.add_argument(
        "--results", type=Path, metavar="FILE",
        help="where results are written, and gone on with (default: a temporary file)",
    )  # fmt: skip
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Demonstrate; 0 if both counts are as promised: nothing, and nine of ten."""
    options = parse(argv)
    patterns = options.only or ONLY
    chosen = [c for c in cases() if "numgrad" in c.contestants and selected(c.name, patterns)]
    if KERNEL not in {case.name for case in chosen}:
        raise SystemExit(f"--only leaves out {KERNEL}, which is what becomes slower")
    commit = compare.git("rev-parse", "--verify", options.commit + "^{commit}")
    of = {
        "commit": commit, "slower": options.slower, "pairs": options.pairs,
        "busy": not options.quiet,
        "cases": [case.name for case in chosen],
    }  # fmt: skip
    default = Path(tempfile.gettempdir(), f"numgrad-demonstration-{commit[:7]}.jsonl")
    results = Results(options.results or default, of)
    print(f"results are written to {results.path}", flush=True)
    with (
        compare.checkouts() as scratch,
        compare.checked_out(commit, scratch, "base") as base,
        compare.checked_out(commit, scratch, "same") as same,
        slowed(commit, scratch, options.slower) as slow,
        nullcontext() if options.quiet else busy_cpu(),
    ):
        for other in (same, slow):
            compare.run_pair((base, other), chosen, 0)  # compiles
        for number in range(2 * options.runs):
            kind, other = ((SAME, same), (SLOWER, slow))[number % 2]
            if results.count(kind) > number // 2:
                continue
            began = time.monotonic()
            until = began + 60 * options.minutes
            times = compare.compare((base, other), chosen, options.pairs, THRESHOLD, until)
            results.add(kind, times, time.monotonic() - began)
            compare.show((base, other), times, THRESHOLD)
            print(f"; {time.monotonic() - began:.0f} s\n{results}\n", flush=True)
    print(results)
    return int(results.wrong > 0 or results.right < 0.9 * options.runs)


if __name__ == "__main__":
    compare.end_in_order()
    sys.exit(main())
