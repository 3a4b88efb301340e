"""Charts of benchmarks, drawn from the stored results of ``perf/vs_peers.py``."""

import json
from pathlib import Path
from typing import Any

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
