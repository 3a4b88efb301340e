"""What PyTorch's schedules and L-BFGS do, for where it is not installed.

``python -m tests.optim.recorded`` writes ``recorded.json``.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from numgrad.optim.lbfgs import Trial, strong_wolfe
from tests import recorded
from tests.optim import schedules
from tests.optim.test_lbfgs import EASY, PROBLEMS, Run, plain
from tests.optim.test_lr_scheduler import PLATEAUS

FILE = Path(__file__).with_name("recorded.json")


def hundred_steps(lib: Any, name: str, kind: str) -> list[Any]:
    """Rates and momenta; then on from a rate that was changed by hand."""
    opt = schedules.optimizer(lib, kind)
    whole = schedules.run(opt, schedules.SCHEDULES[name](lib.optim.lr_scheduler, opt), 100)
    opt = schedules.optimizer(lib, kind)
    schedule = schedules.SCHEDULES[name](lib.optim.lr_scheduler, opt)
    first = schedules.run(opt, schedule, 15)
    opt.param_groups[1]["lr"] *= 3
    return [whole, first, schedules.run(opt, schedule, 40)]


def plateau(lib: Any, number: int) -> list[Any]:
    """Rates, numbers of bad epochs, and whether rates cool down."""
    opt = schedules.optimizer(lib)
    schedule = lib.optim.lr_scheduler.ReduceLROnPlateau(opt, **PLATEAUS[number])
    rows = []
    for loss in schedules.PLATEAU_LOSSES:
        schedule.step(loss)
        rows.append([*schedule.get_last_lr(), schedule.num_bad_epochs, schedule.in_cooldown])
    return [rows]


def restarts(lib: Any, t_mult: int) -> list[Any]:
    """Rates at parts of epochs."""
    opt = schedules.optimizer(lib)
    schedule = lib.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=4, T_mult=t_mult)
    rows = []
    for t in np.arange(0, 50, 0.37):
        schedule.step(float(t))
        rows.append(schedule.get_last_lr())
    schedule.step()
    return [[*rows, schedule.get_last_lr()]]


def lbfgs(lib: Any, problem: str, options: dict[str, Any], search: str | None) -> list[Any]:
    """Losses, the end, and how many steps and evaluations it took."""
    if problem == "rosenbrock" and search is None:
        options = {**options, "lr": 0.01}  # full steps go to infinity, there and here
    run = Run(problem, lib, line_search_fn=search, **options)
    steps = run.steps(3)
    ends = [part for a in run.arrays() for part in (a.real, a.imag)]
    counts = [run.state["n_iter"], run.state["func_evals"]]
    return [steps, run.losses, counts, plain(run.state["t"]), *ends]


LINES: dict[str, Callable[[float], tuple[float, float]]] = {
    "rational": lambda t: (-t / (t * t + 2), (t * t - 2) / (t * t + 2) ** 2),
    "quintic": lambda t: (
        (t + 0.004) ** 5 - 2 * (t + 0.004) ** 4, 5 * (t + 0.004) ** 4 - 8 * (t + 0.004) ** 3
    ),
    "steep": lambda t: (200 * (t - 0.03) ** 2 + 0.1 * t, 400 * (t - 0.03) + 0.1),
    "corner": lambda t: (float(np.hypot(t - 2, 1e-3)), float((t - 2) / np.hypot(t - 2, 1e-3))),
    "waves": lambda t: (float(-t + 3 * np.sin(2 * t) / 2), float(-1 + 3 * np.cos(2 * t))),
    "well": lambda t: (
        float(-np.exp(-((t - 4) ** 2))), float(2 * (t - 4) * np.exp(-((t - 4) ** 2)))
    ),
    "wall": lambda t: (float(np.exp(5 * t) - 20 * t), float(5 * np.exp(5 * t) - 20)),
    "late corner": lambda t: (
        float(-t + 50 * max(t - 7, 0) ** 2), float(-1 + 100 * max(t - 7, 0))
    ),
}  # fmt: skip
"""Losses and slopes along lines, falling at 0 unless the search is to notice."""


def places(lib: Any, line: str) -> list[Any]:
    """Where the line search looks, and what it finds."""
    out = []
    for first in (1e-3, 0.1, 1.0, 3.0, 20.0):
        seen: list[float] = []

        def at(t: float, seen: list[float] = seen) -> tuple[float, float]:
            seen.append(float(t))
            return LINES[line](float(t))

        loss, slope = LINES[line](0.0)
        if slope >= 0:
            continue
        if lib.__name__ == "torch":
            number = lib.tensor
            end = import_module("torch.optim.lbfgs")._strong_wolfe(
                lambda x, t, d: (lambda f, g: (f, number([g])))(*at(t)),  # noqa: B023
                number([0.0]), first, number([1.0]), loss, number([slope]), number(slope),
                tolerance_change=1e-9, max_ls=25,
            )  # fmt: skip
            end = [float(end[0]), float(end[2]), end[3]]
        else:
            trial, count = strong_wolfe(
                lambda t: Trial(t, *at(t), np.zeros(1)),
                Trial(0.0, loss, slope, np.zeros(1)), first, 1.0, 1e-9, 25,
            )  # fmt: skip
            end = [trial.loss, trial.t, count]
        out.append([*seen, *end])
    return out


CASES = {
    **{f"line-{name}": (places, name) for name in LINES},
    **{
        f"{name}-{kind}": (hundred_steps, name, kind)
        for kind, names in (("SGD", schedules.SCHEDULES), ("Adam", schedules.CYCLES))
        for name in names
    },
    **{f"plateau-{k}": (plateau, k) for k in range(len(PLATEAUS))},
    **{f"restarts-{t}": (restarts, t) for t in (1, 2, 3)},
    **{
        f"lbfgs-{problem}-{k}-{search}": (lbfgs, problem, options, search)
        for problem in PROBLEMS
        for k, options in enumerate(({}, EASY, {"lr": 3.0, "max_iter": 9}))
        for search in (None, "strong_wolfe")
        if k < 2 or search
    },
}


def results(lib: Any, name: str) -> list[Any]:
    """The arrays of a case by a library."""
    function, *arguments = CASES[name]
    return function(lib, *arguments)


def write() -> None:
    """Record all cases from the installed PyTorch."""
    import torch

    torch.set_default_dtype(torch.float64)
    recorded.write(FILE, {n: [*map(recorded.sums, results(torch, n))] for n in CASES})


if __name__ == "__main__":
    write()
