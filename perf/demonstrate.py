"""Shows what ``compare.py`` finds: ``python perf/demonstrate.py``.

It compares HEAD with itself, and with a commit in which one kernel, the hyperbolic tangent of
float64, does some multiplications too many; 20 times each, and prints the counts: runs that named
something where nothing changed, and runs that named the kernel. One other process is busy
meanwhile. ``--only`` chooses cases as in ``compare.py``; the default is few, which takes about half
an hour on a machine that does nothing else. The commit is in no branch, and git forgets it after
a while.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import compare
from harness import busy_cpu

KERNEL = "kernel/tanh/float64"
SOURCE = "numgrad/kernels/vmath/hyperbolic.py"
ONLY = (KERNEL, "kernel/exp/float64", "kernel/pow/float64", "no_grad/a*b", "chain/100/one thread")


def slowed(times: int) -> str:
    """A commit on HEAD whose kernel multiplies so many times too often."""
    with (
        tempfile.TemporaryDirectory(prefix="numgrad-slow-") as scratch,
        compare.checked_out("HEAD", Path(scratch), "slow") as side,
    ):
        path = side.tree / SOURCE
        text = path.read_text(encoding="utf-8")
        end = text.index("    return", text.index("def tanh_f64"))
        lines = "    rest = rest * SLOWER\n" * times
        constant = "\nSLOWER = np.float64(1.0 + 2.0**-52)\n"
        start = text.index("\nTINY = ")
        text = text[:start] + constant + text[start:end] + lines + text[end:]
        path.write_text(text, encoding="utf-8")
        git = [
            "git",
            "-C",
            str(side.tree),
            "-c",
            "user.name=perf",
            "-c",
            "user.email=perf@localhost",
        ]
        commit = [*git, "commit", "--quiet", "--no-verify", "-am", f"Slow {KERNEL} down"]
        subprocess.run(commit, check=True)
        found = subprocess.run(
            [*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
        )
        return found.stdout.strip()


def once(base: str, head: str, only: Sequence[str], minutes: float) -> dict[str, Any]:
    """What one comparison of a commit with another found."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch, "report.json")
        patterns = [word for pattern in only for word in ("--only", pattern)]
        with contextlib.redirect_stdout(io.StringIO()) as said:
            options = ["--minutes", str(minutes), "--json", str(report)]
            compare.main([base, head, *patterns, *options])
        print(said.getvalue(), flush=True)
        return json.loads(report.read_text())


def main(argv: Sequence[str] | None = None) -> int:
    """Demonstrate; 0 if both counts are as promised: nothing, and nine of ten."""
    parser = argparse.ArgumentParser(description="Count what compare.py finds.")
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="(default: 20)")
    parser.add_argument(
        "--slower", type=int, default=2, metavar="K",
        help="multiplications too many (default: 2, about 8 %% of the kernel)",
    )  # fmt: skip
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN")
    parser.add_argument(
        "--minutes", type=float, default=10.0, metavar="M", help="of a comparison (default: 10)"
    )
    parser.add_argument("--quiet", action="store_true", help="without the busy process")
    options = parser.parse_args(argv)
    only = options.only or ONLY
    base, slow = compare.git("rev-parse", "HEAD"), slowed(options.slower)
    wrong = found = undecided = 0
    with nullcontext() if options.quiet else busy_cpu():
        for number in range(1, options.runs + 1):
            same = once(base, base, only, options.minutes)
            other = once(base, slow, only, options.minutes)
            wrong += bool(same["moved"])
            found += KERNEL in other["moved"]
            undecided += len(same["open"]) + len(other["open"])
            print(
                f"{number} runs: without a change {wrong} named something; {found} found {KERNEL} "
                f"slower; {undecided} cases not decided",
                flush=True,
            )
    return int(wrong > 0 or found < 0.9 * options.runs)


if __name__ == "__main__":
    compare.end_in_order()
    sys.exit(main())
