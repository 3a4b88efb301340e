"""Runs evals of GradBench with numgrad and other tools, and compares: see README.md.

``python perf/gradbench --checkout PATH [EVAL...] [--tools manual,codipack,jax,pytorch,finite]``
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from importlib.util import find_spec
from pathlib import Path

import cpp
from conversation import Figure, converse

HERE = Path(__file__).parent

SIZES: dict[str, list[str]] = {
    "hello": [],
    "ba": ["--max", "3"],
    "det": ["-l", "5", "7", "9"],
    "gmm": ["-d", "2", "10", "32", "-k", "5", "25"],
    "ht": ["--model", "small", "--max", "6"],
    "kmeans": ["-k", "10", "100", "-n", "1000", "10000", "-d", "8"],
    "llsq": ["-n", "16", "512", "16392"],
    "lse": ["-n", "2500", "40000", "160000"],
    "lstm": ["-l", "2", "-c", "1024", "4096"],
    "ode": ["-n", "1000", "10000", "-s", "10", "100"],
    "particle": [],
    "saddle": [],
}
"""Evals, and options that choose a few of GradBench's sizes; ``--full`` takes all."""

CPP = ("manual", "codipack", "finite")
PYTHON = ("jax", "pytorch")


def commands(tools: list[str], checkout: Path) -> dict[str, list[str]]:
    """The command line of each tool that can run here; says why others are left out."""
    run = [sys.executable, str(HERE / "tool/run.py"), "--cpu"]
    known = {"numgrad": run}
    for tool in tools:
        if tool in CPP:
            known[tool] = [sys.executable, str(HERE / "cpp.py"), tool]
            why = cpp.lacking(tool, checkout)
        else:
            known[tool] = [*run, "--peer", tool, "--checkout", str(checkout)]
            package = "torch" if tool == "pytorch" else tool
            why = None if find_spec(package) else f"the package {package} is not installed"
        if why:
            print(f"{tool} is left out: {why}")
            del known[tool]
    return known


def supports(tool: str, name: str, checkout: Path) -> bool:
    """Whether GradBench's own list has the eval for a tool, and expects that it ends well."""
    if tool == "numgrad":
        return True
    listed = (checkout / "tools" / tool / "evals.txt").read_text().splitlines()
    return name in listed  # others have "timeout" or "error" after the name


def seconds(time: float) -> str:
    """A time with a unit, three digits of it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if time >= size:
            return f"{time / size:.3g} {unit}"
    return f"{time / 1e-9:.3g} ns"


def rows(figures: list[Figure]) -> dict[tuple[str, str, str], dict[str, Figure]]:
    """Figures by eval, size and function, and then by tool."""
    table: dict[tuple[str, str, str], dict[str, Figure]] = {}
    for figure in figures:
        key = (figure.eval, figure.size, figure.function)
        table.setdefault(key, {})[figure.tool] = figure
    return table


def line(key: tuple[str, str, str], by_tool: dict[str, Figure]) -> str:
    """One line of the table: numgrad's time, and ratios to others' times."""
    own = by_tool["numgrad"]
    columns = [f"{key[0]:9}{key[1]:24}{key[2]:10}"]
    columns.append(f"{seconds(own.seconds) if own.seconds else '-':>8} {own.verdict:8}")
    for tool, other in by_tool.items():
        if tool != "numgrad":
            both = own.seconds and other.seconds
            ratio = f"{own.seconds / other.seconds:.2f}" if both else other.verdict
            columns.append(
                f"/{tool} {ratio}" + ("" if other.verdict == "valid" or not both else "?")
            )
    return "  ".join(columns)


def chart(table: dict[tuple[str, str, str], dict[str, Figure]], path: Path) -> None:
    """Draw times of tools over numgrad's, on a logarithmic axis; above 1 numgrad is faster."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    tools = [tool for tool in (*CPP, *PYTHON) if any(tool in by for by in table.values())]
    width = 0.8 / max(len(tools), 1)
    figure, axes = plt.subplots(figsize=(max(6.0, 0.35 * len(table)), 5), layout="constrained")
    for k, tool in enumerate(tools):
        bars = [
            (number + k * width, by[tool].seconds / by["numgrad"].seconds)
            for number, by in enumerate(table.values())
            if tool in by and by[tool].seconds and by["numgrad"].seconds
        ]
        axes.bar([b[0] for b in bars], [b[1] - 1 for b in bars], width, bottom=1, label=tool)
    axes.set_yscale("log")
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xticks(range(len(table)), [" ".join(key) for key in table], rotation=90, fontsize=7)
    axes.set_ylabel("time over numgrad's, one thread")
    axes.legend()
    figure.savefig(path, dpi=120)


def main() -> int:
    """Run what is asked for; the status is 1 if a result of numgrad is not valid."""
    parser = argparse.ArgumentParser(prog="python perf/gradbench", description=__doc__)
    parser.add_argument("evals", nargs="*", metavar="EVAL", help=", ".join(SIZES))
    parser.add_argument("--checkout", type=Path, required=True, help="a clone of GradBench")
    parser.add_argument("--tools", default="manual,codipack,jax,pytorch,finite")
    parser.add_argument("--full", action="store_true", help="all sizes of GradBench")
    parser.add_argument("--seconds", type=float, default=0.5, help="of runs of each function")
    parser.add_argument(
        "--patience", type=float, default=60, help="seconds a tool may take to answer"
    )
    parser.add_argument("--json", type=Path, help="write all figures")
    parser.add_argument("--chart", type=Path, help="write a bar chart, a PNG or SVG")
    args = parser.parse_args()
    checkout = args.checkout.resolve()
    for unknown in sorted(set(args.evals) - set(SIZES)):
        parser.error(f"no eval is called {unknown}: there are {', '.join(SIZES)}")
    absent = [name for name in ("pydantic", "dataclasses_json") if not find_spec(name)]
    if absent:
        install = "python -m pip install pydantic dataclasses-json"
        parser.error(f"GradBench's evals import {' and '.join(absent)}: {install}")
    tools = [tool for tool in args.tools.split(",") if tool and tool != "numgrad"]
    for unknown in sorted(set(tools) - {*CPP, *PYTHON}):
        parser.error(f"no tool is called {unknown}: there are {', '.join((*CPP, *PYTHON))}")
    known = commands(tools, checkout)
    if cpp.lacking("manual", checkout):
        print("results are not validated: GradBench compares them with those of its manual tool")
    environment = cpp.environment(checkout)

    figures: list[Figure] = []
    for name in args.evals or SIZES:
        options = [*([] if args.full else SIZES[name])]
        if name != "hello":
            options += ["--min-runs", "5", "--min-seconds", str(args.seconds)]
        cpp.build("manual", name, checkout)
        for tool, command in known.items():
            if supports(tool, name, checkout):
                figures += converse(name, options, tool, command, environment, args.patience)
        for key, by_tool in rows([f for f in figures if f.eval == name]).items():
            print(line(key, by_tool), flush=True)
    if args.json:
        machine = {
            "cpu": cpp.processor(),
            "python": platform.python_version(),
            "cores": os.cpu_count(),
        }
        lines = ",\n".join(f"  {json.dumps(vars(f))}" for f in figures)
        head = json.dumps(machine)[1:-1]
        args.json.write_text(f'{{{head}, "figures": [\n{lines}\n]}}\n')
    if args.chart:
        chart(rows(figures), args.chart)
    own = [f.verdict for f in figures if f.tool == "numgrad"]
    print(f"{own.count('valid')} of {len(own)} results of numgrad are valid; on {cpp.processor()}")
    return int(not own or any(verdict not in ("valid", "unknown") for verdict in own))


if __name__ == "__main__":
    sys.exit(main())
