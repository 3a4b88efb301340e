"""Time the functions ``bench_*`` of a file: eager, compiled, first call, memory.

``bench init`` writes the files that asv needs to follow a package from commit to commit.
"""

import argparse
import os
import sys
import time
from pathlib import Path
from statistics import median

from numgrad.benchmark import results
from numgrad.benchmark.declaration import names_of
from numgrad.benchmark.measure import COMPILED, EAGER, Measured, Session
from numgrad.benchmark.pairs import MOVED, OPEN, decide, enough_pairs
from numgrad.benchmark.results import FAILS, ComparedRow, github_lines, write_junit
from numgrad.benchmark.sides import Comparison, cases_of, compared_with
from numgrad.errors import NumgradError, NumgradValueError

HELP = "time functions of your own: eager, compiled, first call, memory"

UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))
SIZES = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``bench``."""
    parser.add_argument("file", help="a Python file with functions bench_*; or: init")
    parser.add_argument("--only", metavar="TEXT", help="benchmarks whose name contains TEXT")
    parser.add_argument("--list", action="store_true", help="print the names of the benchmarks")
    parser.add_argument(
        "--against",
        default="",
        metavar="A,B",
        help="libraries whose counterparts, declared in FILE, are timed too",
    )
    parser.add_argument("--rounds", type=_rounds, default=15, metavar="N", help="(default: 15)")
    parser.add_argument(
        "--eager", action="store_true", help="leave out what ng.jit makes of the functions"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    parser.add_argument(
        "--compare",
        metavar="OLD",
        help="time against OLD by turns: a commit, a checkout, a virtual environment or Python; "
        "or print ratios to the figures in a file, which decide nothing",
    )
    parser.add_argument(
        "--threshold",
        type=_percent,
        default=5.0,
        metavar="P",
        help="percent from which --compare names a change (default: 5)",
    )
    parser.add_argument(
        "--force", action="store_true", help="compare with another machine's figures"
    )
    parser.add_argument(
        "--pairs", type=_pairs, default=8, metavar="N",
        help="pairs of processes of a look at --compare, two looks name a change (default: 8)",
    )  # fmt: skip
    parser.add_argument(
        "--minutes", type=_percent, default=15.0, metavar="M",
        help="after which no further pair begins (default: 15)",
    )  # fmt: skip
    parser.add_argument(
        "--fail-on", choices=FAILS, default="any",
        help="what makes the exit status of --compare 1 (default: any change)",
    )  # fmt: skip
    parser.add_argument(
        "--junit", type=Path, metavar="FILE", help="write what --compare found as JUnit XML"
    )
    parser.add_argument(
        "--github", action="store_true", default=os.environ.get("GITHUB_ACTIONS") == "true",
        help="print what --compare found as annotations of GitHub (there by itself)",
    )  # fmt: skip


def _rounds(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number from 1 is needed, got {text!r}")
    return int(text)


def _pairs(text: str) -> int:
    if not text.isdigit() or not enough_pairs(int(text)):
        raise argparse.ArgumentTypeError(f"a number from 8 is needed, got {text!r}")
    return int(text)


def _percent(text: str) -> float:
    try:
        if 0 <= float(text) < float("inf"):
            return float(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"a number from 0 is needed, got {text!r}")


def run(arguments: argparse.Namespace) -> int:
    """Time and print; 1 if a benchmark failed or moved, 2 if the file or the options are wrong."""
    try:
        if arguments.file == "init":
            return _init(Path.cwd())
        if arguments.compare is not None and not _has_figures(Path(arguments.compare)):
            return _compare(arguments)
        return _bench(arguments)
    except NumgradError as error:
        print(error, file=sys.stderr)
        return 2


def _has_figures(path: Path) -> bool:
    """Whether this names a file of figures, not another version."""
    return path.suffix == ".json" or (path.is_file() and not os.access(path, os.X_OK))


def _init(root: Path) -> int:
    for path in results.write_asv_project(root):
        print(f"wrote {path.relative_to(root)}")
    print("next: python -m pip install asv, asv machine --yes, asv run, asv publish, asv preview")
    return 0


def _bench(arguments: argparse.Namespace) -> int:
    path = Path(arguments.file)
    libraries = [name for name in arguments.against.split(",") if name]
    measurements: list[Measured] = []
    old: list[Measured] = []
    if arguments.compare is not None:
        old = results.load_comparable(Path(arguments.compare), force=arguments.force)
    with Session(path, libraries) as session:
        cases = names_of(session.counterparts, arguments.only)
        if arguments.list:
            print("\n".join(cases))
            return 0
        forms = [EAGER, *([] if arguments.eager else [COMPILED]), *libraries]
        _print_header(cases, forms)
        try:
            for measured in session.measure(cases, arguments.rounds, compiled=not arguments.eager):
                measurements.append(measured)
                _print_row(measured, forms, cases)
        finally:  # what is known is kept, whatever ends the run
            if arguments.json is not None:
                results.save(arguments.json, path, measurements)
    errors = {f"{m.name}, {form}": text for m in measurements for form, text in m.errors.items()}
    if arguments.compare is None:
        return int(bool(errors))
    rows = results.changes(measurements, old, arguments.threshold / 100)
    names = [measured.name for measured in measurements]
    before = [m.name for m in old if arguments.only is None or arguments.only in m.name]
    print(
        f"\nratio to {arguments.compare} [99 % interval]. Figures of another time do not tell a "
        "change of the program from one of the machine; compare with a commit or an environment "
        "to decide"
    )
    return _report(arguments, rows, errors, (before, names))


def _compare(arguments: argparse.Namespace) -> int:
    """Time the file against another version of it, or of what it imports."""
    if arguments.against:
        raise NumgradValueError("bench: --against is without --compare; times are of two versions")
    path = Path(arguments.file)
    if not path.is_file():
        raise NumgradValueError(f"bench {path}: there is no such file")
    began, threshold = time.monotonic(), arguments.threshold / 100
    with compared_with(arguments.compare, path) as sides:
        comparison = Comparison(sides)
        before, names = comparison.names
        matches = names_of(dict.fromkeys([*names, *before]), arguments.only)
        both = [name for name in matches if name in names and name in before]
        if arguments.list:
            print("\n".join(both))
            return 0
        cases = cases_of(both, compiled=not arguments.eager)
        until = began + 60 * arguments.minutes
        times = decide(cases, comparison.run_pair, arguments.pairs, threshold, until)
    rows = [
        ComparedRow(case, median(pair.base), median(pair.head), pair.ratio, pair.verdict(threshold))
        for case, pair in times.items()
        if case not in comparison.errors
    ]
    if arguments.json is not None:
        measurements = {name: Measured(name) for name in both}
        for row in rows:
            name, _, form = row.case.rpartition(", ")
            measurements[name].seconds[form] = times[row.case].head
        results.save(arguments.json, path, list(measurements.values()))
    print(f"CPU time on one thread, ratio to {arguments.compare} [99 % interval]")
    known = [[name for name in side if name in matches] for side in (before, names)]
    return _report(arguments, rows, comparison.errors, (known[0], known[1]))


def _report(
    arguments: argparse.Namespace,
    rows: list[ComparedRow],
    errors: dict[str, str],
    names: tuple[list[str], list[str]],
) -> int:
    """Print and write what was found; the exit status. ``names`` are those before and now."""
    gone = [name for name in names[0] if name not in names[1]]
    new = [name for name in names[1] if name not in names[0]]
    for row in rows:
        ends = f"{scaled(row.base, UNITS)} -> {scaled(row.head, UNITS)}"
        print(f"{row.case}: {ends}, {row.ratio}  {row.verdict}".rstrip())
    for case, text in errors.items():
        print(f"    {case}: {text}", file=sys.stderr)
    said = [sum(row.verdict == verdict for row in rows) for verdict in (MOVED, OPEN)]
    print(f"{said[0]} of {len(rows)} moved by {arguments.threshold:g} % or more, "
          f"{said[1]} not decided")  # fmt: skip
    for what, listed in ((f"not in {arguments.compare}", new), ("gone", gone)):
        if listed:
            print(f"{what}: {', '.join(listed)}")
    when = arguments.fail_on
    if arguments.junit is not None:
        write_junit(arguments.junit, Path(arguments.file).stem, rows, errors, gone, when)
    if arguments.github:
        print("\n".join(github_lines(arguments.file, rows, errors, gone, when)))
    return int(bool(errors) or any(row.fails(when) for row in rows))


def _width(names: list[str]) -> int:
    return max(len("benchmark"), *map(len, names)) + 2


def _print_header(names: list[str], forms: list[str]) -> None:
    titles = [*forms, *(f"first {form}" for form in forms[:2] if form in (EAGER, COMPILED))]
    print(
        "benchmark".ljust(_width(names)) + "".join(t.rjust(16) for t in [*titles, "memory eager"])
    )


def _print_row(measured: Measured, forms: list[str], names: list[str]) -> None:
    cells = []
    for form in forms:
        seconds = measured.seconds.get(form)
        cells.append("-" if seconds is None else scaled(min(seconds), UNITS))
    for form in forms:
        if form in (EAGER, COMPILED):
            first = measured.first.get(form)
            cells.append("-" if first is None else scaled(first, UNITS))
    size = measured.memory.get(EAGER)
    cells.append("-" if size is None else scaled(size, SIZES))
    print(measured.name.ljust(_width(names)) + "".join(c.rjust(16) for c in cells), flush=True)
    for form, text in measured.errors.items():
        print(f"    {form}: {text}", file=sys.stderr, flush=True)


def scaled(value: float, units: tuple[tuple[str, float], ...]) -> str:
    """Three digits and a unit."""
    for unit, scale in units:
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / units[-1][1]:.3g} {units[-1][0]}"
