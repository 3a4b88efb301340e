"""What steps and branches of compiled functions do besides computing is refused, with the line."""

import io
import logging

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradTraceError

X = np.linspace(-1.0, 1.0, 3)
SEEN, COUNTS, KNOWN, STREAM = [], {"steps": 0}, {}, io.StringIO()
TOTAL = 0


def prints(c):
    print("a step")
    return c * 2


def appends(c):
    SEEN.append(1)
    return c * 2


def counts(c):
    COUNTS["steps"] += 1
    return c * 2


def assigns(c):
    global TOTAL
    TOTAL += 1
    return c * 2


def writes(c):
    STREAM.write("a step")
    return c * 2


def logs(c):
    logging.getLogger("steps").warning("a step")
    return c * 2


def closing():
    count, rows = 0, []

    def counting(c):
        nonlocal count
        count += 1
        return c * 2

    def keeping(c):
        rows.extend([c])
        return c * 2

    return counting, keeping


LOOPS = {
    "scan": lambda f: lambda x: ng.scan(lambda c, _: (f(c), None), x, length=2)[0],
    "while_loop": lambda f: (
        lambda x: ng.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, f(s[1])), (0, x))[1]
    ),
    "cond": lambda f: lambda x: ng.cond(x[0] > 0, f, lambda x: x, x),
}
EFFECTS = [prints, appends, counts, assigns, writes, logs, *closing()]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("step", EFFECTS, ids=lambda f: f.__name__)
def test_effects_are_refused(step, loop, capsys):
    with pytest.raises(NumgradTraceError, match="would happen once") as caught:
        ng.jit(LOOPS[loop](step))(X)
    lines = range(step.__code__.co_firstlineno, step.__code__.co_firstlineno + 5)
    assert any(f"{__file__}:{line}:" in str(caught.value) for line in lines)
    assert (SEEN, STREAM.getvalue(), capsys.readouterr().out) == ([], "", "")
    LOOPS[loop](step)(X + 3)  # eager code does as Python does
    SEEN.clear()
    STREAM.truncate(0)
    STREAM.seek(0)


def collects(c):
    """Containers and variables of its own."""
    rows, known, count = [], {}, 0

    def add(x):
        nonlocal count
        count += 1
        rows.append(x)
        known[count] = x

    add(c)
    add(c * 2)
    rows.sort(key=id)
    return sum(known.values()) * count


def remembers(c):
    """What it computed once, of nothing that is traced."""
    if "weights" not in KNOWN:
        KNOWN["weights"] = np.ones(3)
    return c * KNOWN["weights"].sum()


def silent(c):
    if KNOWN.get("verbose"):
        print(c)
    return c * 2


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("step", [collects, remembers, silent], ids=lambda f: f.__name__)
def test_what_is_no_effect_is_not(step, loop):
    f = LOOPS[loop](step)
    np.testing.assert_array_equal(ng.jit(f)(X), f(X))
