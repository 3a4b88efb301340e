"""How a loop is cut into tasks, whatever the number of threads.

Each function has a branch: it is then called, and not written anew for every loop of a kernel.
"""

from numgrad.codegen.device import device

TASK = 4096
"""Innermost iterations of a task, if there are as many."""
MAX_TASKS = 1024
"""Tasks of a loop at most."""
LEAST_ROWS, MOST_ROWS = 32, 64
"""Rows that a task adds up element by element, at least, and at most where they are short."""
LANES = 128
"""Iterations of a loop whose index runs innermost that are computed side by side."""


@device
def least_step(inner, row):
    """Iterations of a task at least, of ``inner`` innermost ones each.

    A task is to be long against putting its ``row`` results together, but each of these is added
    up in order within a task, and long sums lose digits.
    """
    inner = max(inner, 1)
    least = -(-TASK // inner)
    if row > 0:
        least = max(min(least, MOST_ROWS), -(-LEAST_ROWS * row // inner))
    return least


@device
def cut(total, least):
    """Iterations of a task, and the number of tasks."""
    step = max(least, -(-total // MAX_TASKS))
    if total <= step:
        return step, 1
    return step, -(-total // step)


@device
def cut_in_lanes(total, least):
    """The same for loops that run in blocks."""
    step = -(-max(least, -(-total // MAX_TASKS)) // LANES) * LANES
    if total <= step:
        return step, 1
    return step, -(-total // step)
