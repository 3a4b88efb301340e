"""Data and fitted curve as lines of text, where matplotlib is not installed."""

import numpy as np

from numgrad.cli.fit import Fit
from numgrad.cli.nist import Problem

WIDTH, HEIGHT = 66, 16


def drawn_as_text(problem: Problem, fit: Fit) -> str:
    """A drawing with ``o`` for data and ``.`` for the curve, and labelled axes.

    Of several predictors the first is drawn, and the model at the data in place of a curve.
    """
    if problem.x.ndim == 1:
        x, label = problem.x, "x"
        curve_x = np.linspace(x.min(), x.max(), 4 * WIDTH)
        curve = problem.model(fit.parameters, curve_x)
    else:
        x, label = problem.x[0], "x1"
        curve_x, curve = x, problem.model(fit.parameters, problem.x)
    low, high = (f(np.concatenate([problem.y, curve])) for f in (np.min, np.max))
    grid = np.full((HEIGHT, WIDTH), " ")
    for mark, at, values in ((".", curve_x, curve), ("o", x, problem.y)):
        columns = np.rint((at - x.min()) / np.ptp(x) * (WIDTH - 1)).astype(int)
        rows = np.rint((high - values) / (high - low) * (HEIGHT - 1)).astype(int)
        grid[rows, columns] = mark
    ends = {0: f"{high:.4g}", HEIGHT - 1: f"{low:.4g}", HEIGHT // 2: "y"}
    lines = [f"{problem.name}: {fit.digits:.1f} digits   (o data, . fit)"]
    lines += [f"{ends.get(k, ''):>10} |{''.join(row)}".rstrip() for k, row in enumerate(grid)]
    left, right = f"{x.min():.4g}", f"{x.max():.4g}"
    lines += [" " * 11 + "+" + "-" * WIDTH]
    middle = label.center(WIDTH - len(left) - len(right))
    lines += [" " * 12 + left + middle + right]
    return "\n".join(lines)
