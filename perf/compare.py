"""Time two commits against each other: ``python perf/compare.py BASE HEAD``.

Note [Two commits]
------------------
Both commits are checked out beside each other and timed by the scripts of this checkout, on one
thread, with a kernel cache each. A pair is a process of either commit, which take turns, case by
case and slice by slice, beginning with the one and with the other; each gives its smallest sample,
since noise only adds. Processes differ by some percent for as long as they live, by where memory
happens to lie, so the ratio and its interval come from several pairs (Note [Ratios] of
``numgrad.benchmark.intervals``). What seems to have moved is timed again in as many further pairs,
and is named if all pairs together still say so.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cases import Case, cases
from harness import HERE, ROOT, Worker, WorkerError
from vs_peers import duration, selected

sys.path.insert(0, str(ROOT))

from numgrad.benchmark.intervals import Ratio, paired

CHOSEN = (
    "chain/100/one thread", "chain/1000/one thread", "chain/100000/one thread", "record/*",
    "no_grad/*", "kernel/tanh/*", "kernel/exp/*", "kernel/pow/float64", "elementary/sin/float64",
    "reduce/sum/*/one thread", "reduce/logsumexp/axis=1/one thread", "step/Adam/100 x 64/float64",
    "step/Adadelta/*", "train/MLP 10-32-1/float64", "jit/chain/100", "jit/chain/100000",
    "jit/logistic/*", "jit/mixture/d=10 K=25", "linalg/solve/8 x 8", "linalg/cholesky/200 x 200",
    "order/cumsum",
)  # fmt: skip
"""The cases timed unless others are asked for: a few of every kind, none that takes long."""
SLICES, BUDGET = 4, 0.03
"""Slices of a process for each case, and the seconds of one."""


@dataclass
class Times:
    """The smallest samples of one case, a pair of processes after the other."""

    base: list[float] = field(default_factory=list)
    head: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> Ratio:
        return paired(self.head, self.base)


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


def run_pair(sides: Sequence[Side], chosen: Sequence[Case], turn: int) -> dict[str, Times]:
    """Time the cases in a process of either side; cases that one side lacks are left out."""
    workers = [side.worker() for side in sides]
    found: dict[str, Times] = {}
    try:
        for case in chosen:
            _, kind, params = case.contestants["numgrad"]
            try:
                there = [
                    worker.ask(
                        "prepare", slot=case.name, kind=kind, params=params,
                        threads=1, recording=case.recording,
                    )
                    for worker in workers
                ]  # fmt: skip
            except WorkerError as error:
                print(f"    {case.name}: {error}", file=sys.stderr)
                continue
            if any(reply.get("missing") for reply in there):
                continue
            seconds: list[list[float]] = [[], []]
            for number in range(SLICES):
                for side in ((0, 1), (1, 0))[(number + turn) % 2]:
                    reply = workers[side].ask("time", slot=case.name, budget=BUDGET)
                    seconds[side] += reply["seconds"]
            for worker in workers:
                worker.ask("drop")
            found[case.name] = Times(*([min(taken)] for taken in seconds))
    finally:
        for worker in workers:
            worker.close()
    return found


def run_pairs(
    sides: Sequence[Side], chosen: Sequence[Case], pairs: int, times: dict[str, Times]
) -> None:
    """Time the cases in so many pairs of processes, and add to ``times``."""
    for number in range(pairs):
        for name, taken in run_pair(sides, chosen, number).items():
            times[name].base += taken.base
            times[name].head += taken.head
        print(f"pair {number + 1} of {pairs}, {len(chosen)} cases", file=sys.stderr, flush=True)


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
    parser.add_argument("--pairs", type=int, default=10, metavar="N", help="(default: 10)")
    parser.add_argument(
        "--threshold", type=float, default=5.0, metavar="P",
        help="percent from which a change is named (default: 5)",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure to FILE")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Compare; 0 if nothing moved, 1 if something did, 2 if no case matches."""
    options = parse(argv)
    began = time.monotonic()
    patterns = options.only or CHOSEN
    chosen = [c for c in cases() if "numgrad" in c.contestants and selected(c.name, patterns)]
    if not chosen:
        print(f"no case matches {', '.join(patterns)}", file=sys.stderr)
        return 2
    times: dict[str, Times] = defaultdict(Times)
    threshold = options.threshold / 100
    with (
        tempfile.TemporaryDirectory(prefix="numgrad-compare-") as scratch,
        checked_out(options.base, Path(scratch), "base") as base,
        checked_out(options.head, Path(scratch), "head") as head,
    ):
        sides = (base, head)
        run_pair(sides, chosen, 0)  # compiles
        run_pairs(sides, chosen, options.pairs, times)
        doubtful = [c for c in chosen if c.name in times and times[c.name].ratio.moved(threshold)]
        if doubtful:
            run_pairs(sides, doubtful, options.pairs, times)
    print(f"{'case':<44}{base.name[:20]:>22}{head.name[:20]:>22}  ratio [99 % interval]")
    moved = []
    for name, taken in times.items():
        ratio = taken.ratio
        if ratio.moved(threshold):
            moved.append(name)
        ends = "".join(f"{duration(min(side)):>22}" for side in (taken.base, taken.head))
        print(f"{name:<44}{ends}  {ratio}{'  MOVED' if name in moved else ''}")
    print(f"{len(moved)} of {len(times)} moved by {options.threshold:g} % or more; "
          f"{time.monotonic() - began:.0f} s")  # fmt: skip
    if options.json:
        rows = {name: {"base": t.base, "head": t.head} for name, t in times.items()}
        report = {"base": base.name, "head": head.name, "moved": moved, "times": rows}
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return int(bool(moved))


if __name__ == "__main__":
    sys.exit(main())
