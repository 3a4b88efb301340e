"""Charts of benchmarks, drawn from the stored results of ``perf/vs_peers.py``."""

import json
from pathlib import Path
from typing import Any

TOOLS = {"manual": "C++ by hand", "codipack": "CoDiPack", "jax": "JAX", "pytorch": "PyTorch"}
TOOLS["finite"] = "differences in C++"
"""Tools of GradBench in the order of their columns."""
VALUES = ("primal", "objective", "cost", "square")
"""Functions of its evals that compute no derivative."""

PEERS = {"torch": "PyTorch", "jax": "JAX", "autograd": "HIPS autograd", "numpy": "NumPy, SciPy"}
"""Libraries in the order of their markers."""


def draw(results: Path, target: Path) -> None:
    """Draw, for each case, the time of numgrad over that of every library that has it."""
    from matplotlib.figure import Figure

    rows = [row for row in json.loads(results.read_text())["rows"] if "times" in row]
    figure = Figure(figsize=(6, 0.3 * len(rows) + 1), layout="constrained")
    axes = figure.subplots()
    for number, (peer, label) in enumerate(PEERS.items()):
        points = [(ratio, k) for k, row in enumerate(rows) if (ratio := _ratio(row, peer))]
        if points:
            axes.plot(*zip(*points, strict=True), "oDs^"[number], label=label, markersize=6)
    axes.axvline(1.0, color="0.4", linewidth=1)
    axes.set(xscale="log", xlabel="time of numgrad / time of the other library")
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows])
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="best")
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=150, metadata={"Software": None})


def _ratio(row: dict[str, Any], peer: str) -> float | None:
    times = row["times"]
    return times["numgrad"]["min"] / times[peer]["min"] if peer in times else None


def draw_growth(results: Path, target: Path) -> None:
    """Draw times by size, from the stored results of ``perf/growth.py``: a panel for each size."""
    from matplotlib.figure import Figure

    kinds: dict[str, dict[str, Any]] = {}
    for name, curve in json.loads(results.read_text())["curves"].items():
        kinds.setdefault(name.split(",")[0].split()[-1], {})[name] = curve
    panels = {"elements": "elements", "scan": "steps", "parameters": "parameters"}
    panels["operations"] = "operations"
    figure = Figure(figsize=(9, 7), layout="constrained")
    for axes, (kind, label) in zip(figure.subplots(2, 2).flat, panels.items(), strict=True):
        for name, curve in kinds.get(kind, {}).items():
            text = f"{name.replace(', ', ' ')} (slope {curve['slope']:.2f})"
            axes.plot(*zip(*curve["points"], strict=True), "o-", markersize=4, label=text)
        axes.set(xscale="log", yscale="log", xlabel=label, ylabel="seconds")
        axes.grid(alpha=0.3)
        if kind in kinds:
            axes.legend(fontsize="small")
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=150, metadata={"Software": None})


def gradbench_table(results: Path) -> str:
    """The table of derivatives, from the stored results of ``perf/gradbench``."""
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for figure in json.loads(results.read_text())["figures"]:
        if figure["function"] not in VALUES and figure["seconds"]:
            key = figure["eval"], figure["size"], figure["function"]
            rows.setdefault(key, {})[figure["tool"]] = figure
    lines = ["| eval | size | derivative | numgrad | " + " | ".join(TOOLS.values()) + " |"]
    lines.append("|---" * (len(TOOLS) + 4) + "|")
    for key, by_tool in rows.items():
        own = by_tool["numgrad"]["seconds"]
        time = f"{1e6 * own:.3g} us" if own < 1e-3 else f"{1e3 * own:.3g} ms"
        ratios = [own / by_tool[t]["seconds"] if t in by_tool else None for t in TOOLS]
        texts = ["" if r is None else f"{r:.2g}" if r < 10 else f"{r:.0f}" for r in ratios]
        lines.append(f"| {' | '.join([*key, time, *texts])} |")
    return "\n".join(lines) + "\n"
