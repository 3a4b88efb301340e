"""Time numgrad against NumPy, torch eager, HIPS autograd and JAX jit: ``python perf/vs_peers.py``.

See README.md for the options and the meaning of the columns.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import first_calls
import processes
from cases import FORCED, HANDWRITTEN, LIBRARIES, Case, cases
from harness import Samples, Team, WorkerError, busy_cpu, without_avx512

BUSY = 0.25
"""Share of the CPUs in other hands from which a figure is in doubt."""
PEERS = ("numpy", "torch", "autograd", "jax", HANDWRITTEN)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        description="Time numgrad against other libraries and print the ratios."
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="PATTERN",
        help="cases whose name contains or matches (*, ?) PATTERN; may be repeated",
    )
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--rounds", type=int, default=9, metavar="N", help="(default: 9)")
    parser.add_argument(
        "--threads", type=int, default=2, metavar="N", help="threads for each library (default: 2)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="3 short rounds, without the longest cases"
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=0.0,
        metavar="S",
        help="seconds a case may wait for moments in which the machine rests (default: 0)",
    )
    parser.add_argument(
        "--libraries",
        default=",".join(PEERS),
        metavar="A,B",
        help=f"peers to time besides numgrad (default: {','.join(PEERS)})",
    )
    parser.add_argument(
        "--busy", action="store_true", help="keep one CPU busy with a process that does nothing"
    )
    parser.add_argument("--avx2", action="store_true", help="as on a CPU without AVX-512")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure to FILE")
    return parser.parse_args(argv)


def selected(name: str, patterns: Sequence[str]) -> bool:
    """Whether ``--only`` leaves a case of this name in."""
    return not patterns or any(p in name or fnmatch.fnmatchcase(name, p) for p in patterns)


def duration(seconds: float) -> str:
    """Three digits and a unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.2g} ns"


def judge(case: Case, times: dict[str, Samples]) -> dict[str, Any]:
    """The line of a case: its times, the ratio that counts and whether that is good enough."""
    row: dict[str, Any] = {
        "name": case.name,
        "times": {label: samples.summary() for label, samples in times.items()},
        "target": case.target,
        "ratio": None,
        "ratio_median": None,
        "met": None,
    }
    own = times.get("numgrad")
    others = [times[label] for label in case.against if label in times]
    if own is None or not others or (case.add and len(others) < len(case.against)):
        return row
    combine = sum if case.add else min
    row["ratio"] = own.min / combine(o.min for o in others)
    row["ratio_median"] = own.median / combine(o.median for o in others)
    if case.target is not None:
        row["met"] = row["ratio"] <= case.target
    return row


def mark(met: bool | None, busy: float = 0.0) -> str:
    """How the table says whether a target is met; in doubt where others kept the CPUs busy."""
    text = {True: "yes", False: "NO", None: ""}[met]
    return text + "?" if text and busy > BUSY else text


HEADER = (
    f"{'case':<44}{'numgrad':>9}{'numpy':>9}{'torch':>9}{'autograd':>9}{'jax':>9}"
    f"{'ratio':>8}{'median':>8}{'target':>8}{'busy':>6}  met"
)


def print_row(case: Case, row: dict[str, Any]) -> None:
    """One line of the table, as soon as it is known."""
    cells = [
        duration(row["times"][library]["min"]) if library in row["times"] else "-"
        for library in LIBRARIES
    ]
    ratios = ["-" if row[k] is None else f"{row[k]:.2f}" for k in ("ratio", "ratio_median")]
    target = "" if case.target is None else f"{case.target:.2f}"
    print(
        f"{case.name:<44}{''.join(f'{c:>9}' for c in cells)}{ratios[0]:>8}{ratios[1]:>8}"
        f"{target:>8}{row['busy']:>6.0%}  {mark(row['met'], row['busy'])}",
        flush=True,
    )
    parts = [k for k in row["times"] if k not in LIBRARIES]
    if parts:
        times = (" + " if case.add else ", ").join(
            f"{k} {duration(row['times'][k]['min'])}" for k in parts
        )
        print(f"    against {times}", flush=True)


def complain(text: str) -> None:
    """Say why a figure is missing."""
    print(f"    {text.strip()}", file=sys.stderr, flush=True)


def run_cases(chosen: Sequence[Case], options: argparse.Namespace) -> tuple[list[dict], dict]:
    """Time the cases in worker processes; the lines and the libraries' versions."""
    wanted = {"numgrad", *FORCED, *options.libraries.split(",")}
    used = {library for case in chosen for library, _, _ in case.contestants.values()}
    present = [
        library
        for library in (*LIBRARIES, HANDWRITTEN, *FORCED)
        if library in wanted & used
        and (library in ("numgrad", *FORCED) or importlib.util.find_spec(library) is not None)
    ]
    missing = sorted(wanted & used - set(present))
    if missing:
        print(f"not installed: {', '.join(missing)}")
    team = Team(present, options.threads)
    rows = []
    try:
        print(HEADER)
        for case in chosen:
            times = team.compare(
                case.contestants,
                threads=case.threads or options.threads,
                recording=case.recording,
                rounds=max(1, round(options.rounds * case.rounds)),
                budget=0.03 if options.quick else 0.1,
                patience=options.patience,
                complain=complain,
            )
            row = judge(case, times)
            row["busy"] = sum(team.busy) / max(len(team.busy), 1)
            rows.append(row)
            print_row(case, row)
    finally:
        team.close()
    return rows, team.versions


def main(argv: Sequence[str] | None = None) -> int:
    """Run; 0 whether targets are met or not, 1 if a chosen case has no figure, 2 if none is."""
    options = parse(argv)
    if options.avx2:
        os.environ.update(without_avx512())
    if options.quick:
        options.rounds = min(options.rounds, 3)
    chosen = [c for c in cases() if selected(c.name, options.only)]
    fresh = {**processes.MEASURES, **first_calls.MEASURES}
    measures = {k: m for k, m in fresh.items() if selected(k, options.only)}
    if options.quick:
        chosen = [c for c in chosen if c.name != "chain/10000000"]
        measures.pop("demo", None)
    if not chosen and not measures:
        print(f"no case matches {', '.join(options.only)}; --list names them", file=sys.stderr)
        return 2
    if options.list:
        print("\n".join([*(c.name for c in chosen), *measures]))
        return 0
    began = time.time()
    report: dict[str, Any] = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cpus": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "threads": options.threads,
        "rounds": options.rounds,
        "load_before": os.getloadavg(),
    }
    rows: list[dict[str, Any]] = []
    if chosen:
        with busy_cpu() if options.busy else nullcontext():
            rows, report["versions"] = run_cases(chosen, options)
    failed = [row["name"] for row in rows if not row["times"].get("numgrad")]
    for name, measure in measures.items():
        try:
            found = measure(options.threads, options.rounds)
        except (RuntimeError, WorkerError, TimeoutError) as error:
            complain(f"{name}: {error}")
            failed.append(name)
            continue
        for item in found:
            limit = "" if item.limit is None else f" (limit {item.limit:g})"
            print(
                f"{item.name:<28}{item.text} {item.value:.3f}{limit}  {mark(item.met)}", flush=True
            )
            rows.append(
                {
                    "name": item.name,
                    "value": item.value,
                    "target": item.limit,
                    "met": item.met,
                    "details": item.details,
                }
            )
    judged = [row for row in rows if row["met"] is not None]
    missed = [row["name"] for row in judged if not row["met"]]
    print(f"{len(judged) - len(missed)} of {len(judged)} targets met, {time.time() - began:.0f} s")
    if missed:
        print("missed: " + ", ".join(missed))
    if options.json:
        report |= {"seconds": time.time() - began, "load_after": os.getloadavg(), "rows": rows}
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
