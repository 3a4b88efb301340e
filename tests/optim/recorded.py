"""What PyTorch's schedules and L-BFGS do, for where it is not installed.

``python -m tests.optim.recorded`` writes ``recorded.json``.
"""

from pathlib import Path
from typing import Any

import numpy as np

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


CASES = {
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
