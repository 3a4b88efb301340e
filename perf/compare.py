"""Time two commits against each other: ``python perf/compare.py BASE HEAD``.

Both commits are checked out beside each other and timed by the scripts of this checkout, on one
thread, with a kernel cache each; how is said in Note [Two sides] of ``numgrad.benchmark.pairs``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from cases import Case, cases
from harness import HERE, ROOT, Worker, WorkerError
from vs_peers import duration, selected

sys.path.insert(0, str(ROOT))

from numgrad.benchmark.pairs import (
    MOVED,
    OPEN,
    SAMPLE_SECONDS,
    PairedTimes,
    decide,
    on_one_cpu,
    take_turns,
    verdicts,
)

CHOSEN = (
    "chain/100/one thread", "chain/1000/one thread", "chain/100000/one thread", "record/*",
    "no_grad/*", "kernel/tanh/*", "kernel/exp/*", "kernel/pow/float64", "elementary/sin/float64",
    "reduce/sum/*/one thread", "reduce/logsumexp/axis=1/one thread", "step/Adam/100 x 64/float64",
    "step/Adadelta/*", "train/MLP 10-32-1/float64", "jit/chain/10[0]", "jit/chain/10000[0]",
    "jit/logistic/10000 x 5[0]", "jit/mixture/d=10 K=2[5]", "linalg/solve/8 x 8",
    "linalg/cholesky/200 x 200", "order/cumsum",
)  # fmt: skip
"""The cases timed unless others are asked for: a few of every kind, none that takes long. Brackets
leave out what goes on behind a name, such as the same statement against other libraries."""
PREFIX = "numgrad-compare-"
"""Begin of the names of directories in which commits are, before the number of the process."""


@dataclass(frozen=True)
class Side:
    """A commit that is checked out."""

    name: str
    tree: Path
    caches: Path

    def worker(self) -> Worker:
        """A process that times this commit."""
        extra = {
            "PYTHONPATH": os.pathsep.join([str(self.tree), str(HERE)]),
            "NUMGRAD_CACHE_DIR": str(self.caches),
        }
        try:
            return Worker("numgrad", 1, extra)
        except WorkerError as error:
            raise SystemExit(f"{self.name} does not start: {error}") from None


def git(*arguments: str) -> str:
    """What git prints; ends the program with git's words where it fails."""
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()


@contextmanager
def checkouts() -> Iterator[Path]:
    """A directory for commits, which is gone afterwards, as are those of runs that were killed."""
    for line in git("worktree", "list", "--porcelain").splitlines():
        tree = Path(line.removeprefix("worktree "))
        owner = tree.parent.name.removeprefix(PREFIX).partition("-")[0]
        if tree.parent.name.startswith(PREFIX) and owner.isdigit() and not _runs(int(owner)):
            git("worktree", "remove", "--force", "--force", str(tree))
            shutil.rmtree(tree.parent, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-") as scratch:
        yield Path(scratch)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True


@contextmanager
def checked_out(commit: str, scratch: Path, label: str) -> Iterator[Side]:
    """A commit in a directory of its own; ``.`` is this checkout as it is."""
    caches = scratch / f"{label}-kernels"
    if commit == ".":
        yield Side("this checkout", ROOT, caches)
        return
    known = git("rev-parse", "--verify", "--short", commit + "^{commit}")
    tree = scratch / label
    git("worktree", "add", "--detach", "--quiet", str(tree), known)
    try:
        yield Side(f"{commit} ({known})", tree, caches)
    finally:
        git("worktree", "remove", "--force", str(tree))


def run_pair(sides: Sequence[Side], chosen: Sequence[Case], number: int) -> dict[str, PairedTimes]:
    """Time the cases in a process of either side; cases that one side lacks are left out."""
    workers: list[Worker] = []
    found: dict[str, PairedTimes] = {}
    try:
        with ThreadPoolExecutor() as pool:  # to start takes longest
            workers += pool.map(Side.worker, sides)
        on_one_cpu([worker.process.pid for worker in workers], number)
        for case in chosen:
            try:
                taken = take_turns([TimedCase(worker, case) for worker in workers], number)
                for worker in workers:
                    worker.ask("drop")
            except WorkerError as error:
                print(f"    {case.name}: {error}", file=sys.stderr)
                continue
            if taken is not None:
                found[case.name] = taken
    finally:
        for worker in workers:
            worker.close()
    return found


@dataclass(frozen=True)
class TimedCase:
    """A case in a worker."""

    worker: Worker
    case: Case

    def prepare(self) -> bool:
        """Make operands anew; False if the commit lacks the case."""
        _, kind, params = self.case.contestants["numgrad"]
        there = self.worker.ask(
            "prepare", slot=self.case.name, kind=kind, params=params,
            threads=1, recording=self.case.recording, clock="cpu",
        )  # fmt: skip
        return not there.get("missing")

    def fastest(self) -> float:
        """The smallest time of an execution in some samples."""
        reply = self.worker.ask("time", slot=self.case.name, budget=4 * SAMPLE_SECONDS)
        return min(reply["seconds"])

    def samples(self, count: int, number: int) -> list[float]:
        """So many samples of so many executions."""
        return self.worker.ask("time", slot=self.case.name, count=count, number=number)["seconds"]


def end_in_order() -> None:
    """Let SIGTERM end the program by an exception, so that nothing stays checked out."""

    def end(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # some who end a program say so twice
        sys.exit(143)

    signal.signal(signal.SIGTERM, end)


def compare(
    sides: Sequence[Side], chosen: Sequence[Case], pairs: int, threshold: float, until: float
) -> dict[str, PairedTimes]:
    """Time cases on two sides that have compiled, until all is decided or time is over."""
    by_name = {case.name: case for case in chosen}

    def run(names: Sequence[str], number: int) -> dict[str, PairedTimes]:
        found = run_pair(sides, [by_name[name] for name in names], number)
        print(f"pair {number + 1} of {pairs}, {len(names)} cases", file=sys.stderr, flush=True)
        return found

    return decide(list(by_name), run, pairs, threshold, until)


def show(sides: Sequence[Side], times: Mapping[str, PairedTimes], threshold: float) -> None:
    """Print a line for each case, and what moved."""
    base, head = sides
    print(f"{'case':<44}{base.name[:20]:>22}{head.name[:20]:>22}  ratio [99 % interval]")
    for name, taken in times.items():
        ends = "".join(f"{duration(median(side)):>22}" for side in (taken.base, taken.head))
        print(f"{name:<44}{ends}  {taken.ratio}  {taken.verdict(threshold)}".rstrip())
    said = verdicts(times, threshold)
    print(f"{len(said[MOVED])} of {len(times)} moved by {100 * threshold:g} % or more"
          + (f", {len(said[OPEN])} not decided" if said[OPEN] else ""), end="")  # fmt: skip


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        description="Time two commits against each other and name what moved."
    )
    parser.add_argument("base", help="a commit, or . for this checkout as it is")
    parser.add_argument("head", nargs="?", default=".", help="the same (default: .)")
    parser.add_argument(
        "--only", action="append", default=[], metavar="PATTERN",
        help="cases of vs_peers.py whose name contains or matches PATTERN; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--pairs", type=int, default=8, metavar="N", help="(default: 8, the fewest that decide)"
    )
    parser.add_argument(
        "--threshold", type=float, default=5.0, metavar="P",
        help="percent from which a change is named (default: 5)",
    )  # fmt: skip
    parser.add_argument(
        "--minutes", type=float, default=9.0, metavar="M",
        help="after which no further pair begins (default: 9)",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure to FILE")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Compare; 0 if nothing moved, 1 if something did, 2 if no case matches, 3 if nothing is known
    to have moved and some cases are not decided.
    """
    options = parse(argv)
    began = time.monotonic()
    patterns = options.only or CHOSEN
    chosen = [c for c in cases() if "numgrad" in c.contestants and selected(c.name, patterns)]
    if not chosen:
        print(f"no case matches {', '.join(patterns)}", file=sys.stderr)
        return 2
    threshold = options.threshold / 100
    with (
        checkouts() as scratch,
        checked_out(options.base, scratch, "base") as base,
        checked_out(options.head, scratch, "head") as head,
    ):
        sides = (base, head)
        run_pair(sides, chosen, 0)  # compiles
        until = began + 60 * options.minutes
        times = compare(sides, chosen, options.pairs, threshold, until)
    show(sides, times, threshold)
    print(f"; {time.monotonic() - began:.0f} s")
    said = verdicts(times, threshold)
    if options.json:
        rows = {name: {"base": t.base, "head": t.head} for name, t in times.items()}
        report = {
            "base": base.name,
            "head": head.name,
            "moved": said[MOVED],
            "open": said[OPEN],
            "times": rows,
        }
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if said[MOVED] else 3 if said[OPEN] or not times else 0


if __name__ == "__main__":
    end_in_order()
    sys.exit(main())
