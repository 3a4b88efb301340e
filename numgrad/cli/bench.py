"""Time the functions ``bench_*`` of a file: eager, compiled, first call, memory.

``bench init`` writes the files that asv needs to follow a package from commit to commit.
"""

import argparse
import sys
from pathlib import Path

from numgrad.benchmark import history, results
from numgrad.benchmark.declaration import names_of
from numgrad.benchmark.measure import Measured, Session
from numgrad.benchmark.worker import COMPILED, EAGER
from numgrad.errors import NumgradError

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
        "--compare", type=Path, metavar="OLD", help="print ratios to the figures in OLD"
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


def _rounds(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number from 1 is needed, got {text!r}")
    return int(text)


def _percent(text: str) -> float:
    try:
        if 0 <= float(text) < float("inf"):
            return float(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"a percentage from 0 is needed, got {text!r}")


def run(arguments: argparse.Namespace) -> int:
    """Time and print; 1 if a benchmark failed, 2 if the file or the options are wrong."""
    try:
        if arguments.file == "init":
            return _init(Path.cwd())
        return _bench(arguments)
    except NumgradError as error:
        print(error, file=sys.stderr)
        return 2


def _init(root: Path) -> int:
    for path in history.write(root):
        print(f"wrote {path.relative_to(root)}")
    print("next: python -m pip install asv, asv machine --yes, asv run, asv publish, asv preview")
    return 0


def _bench(arguments: argparse.Namespace) -> int:
    path = Path(arguments.file)
    libraries = [name for name in arguments.against.split(",") if name]
    found: list[Measured] = []
    old: list[Measured] = []
    if arguments.compare is not None:
        old = results.load_comparable(arguments.compare, force=arguments.force)
    with Session(path, libraries) as session:
        chosen = names_of(session.counterparts, arguments.only)
        if arguments.list:
            print("\n".join(chosen))
            return 0
        forms = [EAGER, *([] if arguments.eager else [COMPILED]), *libraries]
        _print_header(chosen, forms)
        try:
            for measured in session.measure(chosen, arguments.rounds, compiled=not arguments.eager):
                found.append(measured)
                _print_row(measured, forms, chosen)
        finally:  # what is known is kept, whatever ends the run
            if arguments.json is not None:
                results.save(arguments.json, path, found)
    if arguments.compare is not None:
        print(f"\nratio to {arguments.compare} [99 % interval]")
        for change in results.changes(found, old):
            mark = "  MOVED" if change.ratio.moved(arguments.threshold / 100) else ""
            if not change.sure:
                mark = "  (too few rounds for the interval; 5 or more of both are enough)"
            print(f"{change.name}, {change.form}: {change.ratio}{mark}")
        known = {measured.name for measured in old}
        new = [measured.name for measured in found if measured.name not in known]
        if new:
            print(f"not in {arguments.compare}: {', '.join(new)}")
    return int(any(measured.errors for measured in found))


def _width(chosen: list[str]) -> int:
    return max(len("benchmark"), *map(len, chosen)) + 2


def _print_header(chosen: list[str], forms: list[str]) -> None:
    titles = [*forms, *(f"first {form}" for form in forms[:2] if form in (EAGER, COMPILED))]
    print(
        "benchmark".ljust(_width(chosen)) + "".join(t.rjust(16) for t in [*titles, "memory eager"])
    )


def _print_row(measured: Measured, forms: list[str], chosen: list[str]) -> None:
    cells = []
    for form in forms:
        taken = measured.seconds.get(form)
        cells.append("-" if taken is None else scaled(min(taken), UNITS))
    for form in forms:
        if form in (EAGER, COMPILED):
            first = measured.first.get(form)
            cells.append("-" if first is None else scaled(first, UNITS))
    size = measured.memory.get(EAGER)
    cells.append("-" if size is None else scaled(size, SIZES))
    print(measured.name.ljust(_width(chosen)) + "".join(c.rjust(16) for c in cells), flush=True)
    for form, text in measured.errors.items():
        print(f"    {form}: {text}", file=sys.stderr, flush=True)


def scaled(value: float, units: tuple[tuple[str, float], ...]) -> str:
    """Three digits and a unit."""
    for unit, scale in units:
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / units[-1][1]:.3g} {units[-1][0]}"
