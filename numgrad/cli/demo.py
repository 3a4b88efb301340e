"""Fit NIST's certified regression problems by ``ng.least_squares``.

``demo digits`` trains networks instead.
"""

import argparse
import importlib.util
import json
import sys
import textwrap
import time
from pathlib import Path

from numgrad.cli import digits, nist
from numgrad.cli.fit import (
    Fit,
    drawn_as_text,
    fit_by_differences,
    fit_least_squares,
    fit_minimize,
)
from numgrad.progress import Progress

HELP = "fit real data with certified answers, print a table, draw a plot"
DIGITS_PROMISED = 6.0
DEFAULT_PLOT = Path("numgrad_demo.png")

HEADER = (
    "problem",
    "method",
    "start",
    "parameters",
    "RSS",
    "certified",
    "digits",
    "f/grad",
    "time",
)
WIDTHS = (9, 13, 5, 30, 11, 11, 6, 7, 9)
PARAMETERS_AT = sum(WIDTHS[:3]) + 2 * 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``demo``."""
    parser.add_argument(
        "--problem",
        action="append",
        metavar="NAME",
        help="fit only this problem, in any case; may be repeated (default: all)",
    )
    parser.add_argument("--list", action="store_true", help="list the problems and leave")
    parser.add_argument(
        "--start",
        choices=("1", "2", "both"),
        default="both",
        help="starting values: 1 is far from the solution, 2 is near (default: both)",
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    plot = parser.add_mutually_exclusive_group()
    plot.add_argument(
        "--plot", type=Path, metavar="FILE", help=f"where to draw (default: {DEFAULT_PLOT})"
    )
    plot.add_argument("--no-plot", action="store_true", help="do not draw")
    others = parser.add_subparsers(dest="other", title="other demos", metavar="")
    digits.add_arguments(others.add_parser("digits", help=digits.HELP, description=digits.__doc__))


def run(arguments: argparse.Namespace) -> int:
    """Run the demo; 1 if a least-squares fit misses its digits, 2 for an unknown problem."""
    if arguments.other == "digits":
        return digits.run(arguments)
    if arguments.list:
        _print_list(arguments.json)
        return 0
    by_lowercase = {name.lower(): name for name in nist.names()}
    names = [name.lower() for name in arguments.problem or by_lowercase]
    unknown = [name for name in arguments.problem or () if name.lower() not in by_lowercase]
    if unknown:
        print(f"no problem named {', '.join(unknown)}; there are:", file=sys.stderr)
        print(textwrap.fill(", ".join(nist.names()), 78), file=sys.stderr)
        return 2
    problems = [nist.load(by_lowercase[name]) for name in dict.fromkeys(names)]
    starts = (1, 2) if arguments.start == "both" else (int(arguments.start),)

    began = time.perf_counter()
    fits = _fit_all(problems, starts)
    seconds = time.perf_counter() - began
    if arguments.json:
        report = {"seconds": seconds, "fits": [fit.as_dict() for fit in fits]}
        print(json.dumps(report, indent=2))
    else:
        _print_table(fits, seconds)
    status = 0 if all(map(_good, fits)) else 1
    # JSON is read by programs: they get a plot only when they ask for one.
    if not arguments.no_plot and (arguments.plot or not arguments.json):
        status = max(status, _draw(arguments.plot, problems, fits))
    if not arguments.json:
        print(f"\n{_compared(fits, [fit_by_differences(p, k) for p in problems for k in starts])}")
        print(f"\n{_reached(fits)}")
    return status


def _reached(fits: list[Fit]) -> str:
    """Summary of the fits, in two sentences."""
    fits = [fit for fit in fits if fit.method == "least_squares"]
    good = sum(map(_good, fits))
    lines = [
        f"{good} of {len(fits)} fits by least squares reached {DIGITS_PROMISED:.0f} certified "
        "digits or more in every parameter."
    ]
    for what, key in (("parameters", "digits"), ("standard deviations", "deviation_digits")):
        worst = min(fits, key=lambda fit, key=key: getattr(fit, key))
        lines.append(
            f"Worst of the {what}: {getattr(worst, key):.1f} digits, {worst.problem} from start "
            f"{worst.start}."
        )
    return "\n".join(lines)


def _compared(fits: list[Fit], others: list[Fit]) -> str:
    """Table of the same fits with exact derivatives and with differences."""
    rows = [f"{'derivatives':26}{'6 digits':>9}{'worst':>7}{'model calls':>13}{'seconds':>9}"]
    exact = [fit for fit in fits if fit.method == "least_squares"]
    for name, group in (("numgrad, exact", exact), ("SciPy, differences", others)):
        good = sum(fit.digits >= DIGITS_PROMISED for fit in group)
        calls = sum(fit.function_evaluations + fit.gradient_evaluations for fit in group)
        rows.append(
            f"{name:26}{good:>5} of {len(group)}{min(fit.digits for fit in group):>7.1f}"
            f"{calls:>13}{sum(fit.seconds for fit in group):>9.2f}"
        )
    return "\n".join(rows)


def _good(fit: Fit) -> bool:
    """Whether the fit has the digits promised; the plain ``minimize`` promises none."""
    return fit.digits >= DIGITS_PROMISED or fit.method != "least_squares"


def _fit_all(problems, starts) -> list[Fit]:
    """Least squares from every start, and one plain ``minimize`` on the first problem."""
    work = [(fit_least_squares, problem, start) for problem in problems for start in starts]
    work.insert(len(starts), (fit_minimize, problems[0], starts[-1]))
    fits = []
    with Progress(len(work), "fitting") as progress:
        for solve, problem, start in work:
            progress.step(f"{problem.name} from start {start}")
            fits.append(solve(problem, start))
    return fits


def _print_list(as_json: bool) -> None:
    problems = [nist.load(name) for name in nist.names()]
    if as_json:
        sizes = [
            {
                "problem": p.name,
                "parameters": len(p.certified),
                "observations": len(p.y),
                "model": p.formula,
            }
            for p in problems
        ]
        print(json.dumps(sizes, indent=2))
        return
    for p in problems:
        formula = p.formula.replace("\n", "\n" + 41 * " ")
        print(f"{p.name:9} {len(p.certified)} parameters {len(p.y):4} observations  {formula}")


def _print_table(fits: list[Fit], seconds: float) -> None:
    print(_line(HEADER))
    print(_line(["-" * width for width in WIDTHS]))
    for fit in fits:
        numbers = textwrap.wrap(" ".join(f"{b:.6g}" for b in fit.parameters), WIDTHS[3])
        print(
            _line(
                (
                    fit.problem,
                    fit.method,
                    str(fit.start),
                    numbers[0],
                    f"{fit.rss:.5e}",
                    f"{fit.certified_rss:.5e}",
                    f"{fit.digits:.1f}",
                    f"{fit.function_evaluations}/{fit.gradient_evaluations}",
                    f"{1e3 * fit.seconds:.1f} ms",
                )
            )
        )
        for line in numbers[1:]:
            print(" " * PARAMETERS_AT + line)
    first = sum(fit.first_seconds for fit in fits)
    print(
        f"\ndigits: how many agree with the certified values in the worst parameter, 11 at most.\n"
        f"{len(fits)} fits in {seconds:.2f} s, of which {first:.2f} s in first gradients, where "
        "kernels are\ncompiled or loaded from the cache; the times in the table are without them."
    )
    for fit in fits:
        if fit.digits < DIGITS_PROMISED:
            print(
                f"{fit.problem}, {fit.method}, start {fit.start}: only {fit.digits:.1f} digits "
                f"(the solver says: {' '.join(fit.message.split())})"
            )


def _line(cells) -> str:
    """One line of the table: words to the left, numbers to the right."""
    alignments = ("", "", ">", "", ">", ">", ">", ">", ">")
    columns = (f"{c:{side}{w}}" for c, side, w in zip(cells, alignments, WIDTHS, strict=True))
    return "  ".join(columns).rstrip()


def _draw(path: Path | None, problems, fits: list[Fit]) -> int:
    """Draw data and fits, as text for want of matplotlib; returns a status."""
    best = {fit.problem: fit for fit in fits if fit.method == "least_squares"}
    fitted = [(problem, best[problem.name]) for problem in problems]
    if importlib.util.find_spec("matplotlib") is None:
        if path is None:
            print(f"\n{drawn_as_text(*fitted[0])}")
        print(
            "no picture: it needs matplotlib (python -m pip install 'numgrad-jit[plot]')",
            file=sys.stderr,
        )
        return 0
    plot = importlib.import_module("numgrad.cli.plot")
    path = path or DEFAULT_PLOT
    try:
        plot.draw(path, fitted)
    except (OSError, ValueError) as error:  # unwritable, or a suffix matplotlib does not know
        print(f"no plot: {error}", file=sys.stderr)
        return 1
    print(f"data and fits are drawn in {path}", file=sys.stderr)
    return 0
