"""Changes formulas at random and says which changes no test notices.

``python -m tests.mutation --draw 300 --seed 1`` draws mutants, runs for each the tests that concern
it, and lists those that survive; exit status 1 if one does that ``accepted.txt`` does not argue.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from math import ceil
from pathlib import Path

from tests.mutation.mutants import ROOT, Mutant, draw, mutants_of, text_of
from tests.mutation.selection import Order, files_for, texts

ACCEPTED = Path(__file__).with_name("accepted.txt")
PATIENCE = 60
"""Seconds of the CPU for one test; the longest takes a few."""
WAITING = 30
"""How many times its limit of CPU time a mutant may last."""
OUTCOMES = {0: "survived", None: "too slow", -signal.SIGXCPU: "too slow", 5: "untested"}


def accepted() -> set[str]:
    """The keys of mutants that change nothing that can be seen; the lines above say why."""
    lines = ACCEPTED.read_text().splitlines()
    known = {line for line in lines if line and not line.startswith("#")}
    for line in known:
        path, before, _ = line.split(" | ", 2)
        if not (ROOT / path).exists() or before not in text_of(path):
            print(f"{ACCEPTED.name}: no such line any more: {line}")
    return known


def copy_of(root: Path, target: Path) -> Path:
    """A copy of the checkout, which may be changed."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root, capture_output=True, check=True,
    ).stdout.decode()  # fmt: skip
    for name in filter(None, listed.split("\0")):
        if (root / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target / name)
    return target


def run(mutant: Mutant, copy: Path, limit: float, log: Path, *, change: bool = True) -> str:
    """ "killed", "survived", "too slow" or "untested", by a process that is forked for it.

    A single test that takes longer than ``PATIENCE`` kills: the change made it slow, or endless.
    Times are those of the CPU, so that other programs change no outcome; ``WAITING`` bounds those
    that wait.
    """
    changed = copy / mutant.path
    kept, times = changed.read_bytes(), changed.stat()
    if change:
        changed.write_text(mutant.code())
    # else a cached module would do, also that of the run without a change
    stamp = times.st_mtime + 1 + 2 * (hash(mutant) % 10**6) + change
    os.utime(changed, (stamp, stamp))
    begun = started_in(log)
    begun.unlink(missing_ok=True)
    child = os.fork()
    if not child:
        status = 1
        try:
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_CPU, (ceil(limit), ceil(limit) + 10))
            status = _test(mutant, copy, log)
        except BaseException:
            traceback.print_exc()
        finally:  # never back into what the parent has open
            os._exit(status)
    try:
        status = _ended(child, time.monotonic() + WAITING * limit)
    finally:
        changed.write_bytes(kept)
        os.utime(changed, (times.st_mtime, times.st_mtime))
    if status == -signal.SIGPROF:
        log.write_text(f"FAILED {begun.read_text()} - not done after {PATIENCE} s")
    return OUTCOMES.get(status, "killed")


def _ended(child: int, end: float) -> int | None:
    """The exit status of a process, or None where it had to be ended at a time."""
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _test(mutant: Mutant, copy: Path, log: Path) -> int:
    os.chdir(copy)
    os.environ["HYPOTHESIS_PROFILE"] = "unshrunk"
    os.environ["PYTHONPATH"] = str(copy)  # for programs that tests start
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    sys.path[:] = [str(copy), *(p for p in sys.path if p not in ("", str(ROOT)))]
    for name in [n for n in sys.modules if n.split(".")[0] in ("tests", "numgrad")]:
        if not name.startswith("tests.mutation"):
            del sys.modules[name]
    plugin = Order(mutant, started_in(log), PATIENCE)
    tests = files_for(mutant)
    for name in [n for n in sys.modules if n.split(".")[0] == "tests"]:
        del sys.modules[name]
    import pytest

    options = ["-n", "0", "-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=line"]
    return int(pytest.main([*options, *tests], plugins=[plugin]))


def started_in(log: Path) -> Path:
    """The file that names the test which runs, from when it began."""
    return log.with_suffix(".test")


def killer(log: Path) -> str:
    """The test that failed, or how the run of tests ended."""
    lines = log.read_text(errors="replace").splitlines() or [""]
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" - ")[0] if failed else lines[-1][:90]


def main() -> int:
    """Draw, run, report."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--draw", type=int, default=300, help="how many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="a part of the names of files")
    parser.add_argument("--at", help="all mutants of a line, FILE:LINE, in place of a draw")
    parser.add_argument("--limit", type=float, default=600, help="seconds of the CPU for a mutant")
    parser.add_argument("--list", action="store_true", help="say what is drawn, run nothing")
    given = parser.parse_args()
    if given.at:
        path, line = given.at.split(":")
        drawn = [mutant for mutant in mutants_of(ROOT / path) if mutant.line == int(line)]
    else:
        drawn = draw(given.draw, given.seed, given.only)
    if given.list:
        print(*(m.key() for m in drawn), sep="\n")
        return 0
    sys.dont_write_bytecode = False  # the first run compiles the copy's modules for all others
    # what all children need is imported once
    import mpmath  # noqa: F401
    import numba  # noqa: F401
    import pytest  # noqa: F401
    import scipy.stats  # noqa: F401

    texts()  # those of the copy, also if the checkout is edited meanwhile
    known, counts, survivors = accepted(), Counter[str](), []
    with tempfile.TemporaryDirectory() as scratch:
        copy = copy_of(ROOT, Path(scratch, "copy"))
        for mutant in drawn[:1]:
            if run(mutant, copy, 10 * given.limit, Path(scratch, "log"), change=False) == "killed":
                print(Path(scratch, "log").read_text(errors="replace"))
                print("tests fail without any change")
                return 2
        for number, mutant in enumerate(drawn, 1):
            start = _cpu_of_children()
            if mutant.key() in known:
                outcome = "accepted"
            else:
                outcome = run(mutant, copy, given.limit, Path(scratch, "log"))
            spent = _cpu_of_children() - start
            counts[outcome] += 1
            by = killer(Path(scratch, "log")) if outcome == "killed" else ""
            print(
                f"{number:4d} {outcome:9s} {spent:4.0f} s {mutant.path}:{mutant.line} {by}",
                flush=True,
            )
            if outcome in ("survived", "untested", "too slow"):
                survivors.append(mutant)
                print("       ", *mutant.lines(), sep="\n          ", flush=True)
    print(*(f"{count} {outcome}" for outcome, count in counts.most_common()), sep=", ")
    print(*(m.key() for m in survivors), sep="\n")
    return bool(survivors)


if __name__ == "__main__":
    sys.exit(main())
