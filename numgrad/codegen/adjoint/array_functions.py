"""NumPy's functions of whole arrays as loops, which are read and not run.

Note [Folds]
------------
A function of all elements is written for a rank when it is first used: its loops, one in the other,
with a start and a step. NumPy raises where a maximum is one of no elements; so does a call, if
lengths follow from its arguments; else it is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from numgrad.codegen.adjoint.scopes import TEXT

MOST_RANKS = 6
_FIRST = "total = a[{zeros}] if a.size > 0 else a.dtype.type(0)"
_FOLDS: dict[str, tuple[str, str, str]] = {
    "sum": ("total = 0", "total = total + {x}", "total"),
    "prod": ("total = 1", "total = total * {x}", "total"),
    "mean": ("total = 0", "total = total + {x}", "total / a.size"),
    "max": (_FIRST, "total = np.maximum(total, {x})", "total"),
    "min": (_FIRST, "total = np.minimum(total, {x})", "total"),
    "any": ("total = False", "total = total or {x} != 0", "total"),
    "all": ("total = True", "total = total and {x} != 0", "total"),
    "count_nonzero": ("total = 0", "total += int({x} != 0)", "total"),
    "norm": ("total = 0.0", "total += abs({x}) ** 2", "math.sqrt(total)"),
    "var": (
        "middle = {mean}(a)\ntotal = 0.0",
        "away = {x} - middle\ntotal += (away * np.conj(away)).real",
        "total / a.size",
    ),
    "argmax": (f"{_FIRST}\nplace = 0\nk = 0",
               "if {x} > total:\n    total = {x}\n    place = k\nk += 1", "place"),
    "argmin": (f"{_FIRST}\nplace = 0\nk = 0",
               "if {x} < total:\n    total = {x}\n    place = k\nk += 1", "place"),
}  # fmt: skip
"""By NumPy's name what stands before the loops, in them, and what is returned."""
_SAME = {"amax": "max", "amin": "min", "product": "prod"}
READ_ONCE = ("sum", "prod", "mean", "max", "min", "amax", "amin", "any", "all", "count_nonzero",
             "norm")  # fmt: skip
"""Reductions that read each element once, so that nothing keeps those of an expression."""
SUMS = ("sum", "prod", "mean", "product")
OF_SOME = ("max", "min", "argmax", "argmin", "ptp")
"""Reductions that NumPy refuses for arrays without elements."""


def _written(name: str, text: str, **more: Any) -> Callable[..., Any]:
    """A function of a text that reading finds."""
    space: dict[str, Any] = {"np": np, "math": math, **more}
    exec(text, space)
    setattr(space[name], TEXT, text)
    return space[name]


def _loops(rank: int, of: str, body: str) -> str:
    """Loops over all elements of an array, with a body."""
    lines = ["    " * (k + 1) + f"for i{k} in range({of}.shape[{k}]):" for k in range(rank)]
    pad = "    " * (rank + 1)
    return "\n".join([*lines, *(pad + line for line in body.split("\n"))])


def constant(x):
    """A number without its derivative."""
    return x


def tie_count(count, x, limit):
    """``count``, with one more where ``x`` is the limit, be both NaN."""
    return count + float(x == limit or (x != x and limit != limit))


def tie_share(total, x, limit, count):
    """``total``; its derivative has that of ``x`` over ``count`` where ``x`` is the limit."""
    return total


OF_EXTREMES = {"constant": constant, "tie_count": tie_count, "tie_share": tie_share}
"""Operations that reductions are written with, which have rules in the table but no entry."""


def _shared(name: str, rank: int) -> Callable[..., Any]:
    """An extreme of floats, of which equal elements share the derivative: two passes more."""
    element = f"a[{', '.join(f'i{k}' for k in range(rank))}]"
    start, step, _ = _FOLDS[name]
    text = "\n".join(
        [
            f"def {name}_{rank}(a):",
            "    " + start.format(zeros=", ".join("0" * rank)),
            _loops(rank, "a", step.format(x=element)),
            "    limit = constant(total)",
            "    count = 0.0",
            _loops(rank, "a", f"count = tie_count(count, {element}, limit)"),
            "    total = limit",
            _loops(rank, "a", f"total = tie_share(total, {element}, limit, count)"),
            "    return total\n",
        ]
    )
    return _written(f"{name}_{rank}", text, **OF_EXTREMES)


@cache
def reduction(name: str, rank: int, floats: bool = False) -> Callable[..., Any] | None:
    """A reduction of all elements, by NumPy's name; None if it is none.

    That of ``floats`` has derivatives.
    """
    name = _SAME.get(name, name)
    if name == "std":
        return _written("std", "def std(a):\n    return math.sqrt(var(a))\n",
                        var=reduction("var", rank))  # fmt: skip
    if name == "ptp":
        return _written("ptp", "def ptp(a):\n    return most(a) - least(a)\n",
                        most=reduction("max", rank, floats),
                        least=reduction("min", rank, floats))  # fmt: skip
    if name not in _FOLDS or not 1 <= rank <= MOST_RANKS:
        return None
    if floats and name in ("max", "min"):
        return _shared(name, rank)
    start, step, result = _FOLDS[name]
    element = f"a[{', '.join(f'i{k}' for k in range(rank))}]"
    start = start.format(zeros=", ".join("0" * rank), mean="mean_of")
    lines = "\n".join("    " + line for line in start.split("\n"))
    body = _loops(rank, "a", step.format(x=element))
    text = f"def {name}_{rank}(a):\n{lines}\n{body}\n    return {result}\n"
    more = {"mean_of": reduction("mean", rank)} if name == "var" else {}
    return _written(f"{name}_{rank}", text, **more)


@cache
def places_of(rank: int) -> Callable[..., Any]:
    """The function that gives the indices of the truths of a mask, as ``np.nonzero`` does."""
    element = f"mask[{', '.join(f'i{k}' for k in range(rank))}]"
    names = [f"place{k}" for k in range(rank)]
    stores = "\n".join(f"    {name}[n] = i{k}" for k, name in enumerate(names))
    text = "\n".join(
        [
            "def places(mask):",
            *[f"    {name} = np.empty(mask.size, np.int64)" for name in names],
            "    n = 0",
            _loops(rank, "mask", f"if {element}:\n{stores}\n    n += 1"),
            f"    return {', '.join(f'{name}[:n]' for name in names)}\n",
        ]
    )
    return _written("places", text)


@cache
def masked_fill(rank: int) -> Callable[..., Any]:
    """The function that sets the elements of an array where a mask is true."""
    element = f"[{', '.join(f'i{k}' for k in range(rank))}]"
    body = _loops(rank, "a", f"if mask{element}:\n    a{element} = number")
    return _written("fill", f"def fill(a, mask, number):\n{body}\n")


def dot_1_1(a, b):
    total = 0
    for i in range(a.shape[0]):
        total = total + a[i] * b[i]
    return total


def dot_2_1(a, b, out):
    for i in range(a.shape[0]):
        out[i] = dot_1_1(a[i], b)


def dot_1_2(a, b, out):
    for j in range(b.shape[1]):
        out[j] = dot_1_1(a, b[:, j])


def dot_2_2(a, b, out):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            out[i, j] = dot_1_1(a[i], b[:, j])


def vdot(a, b):
    total = 0
    for i in range(a.shape[0]):
        total = total + np.conj(a[i]) * b[i]
    return total


PRODUCTS: dict[tuple[int, int], Any] = {
    (1, 1): dot_1_1, (2, 1): dot_2_1, (1, 2): dot_1_2, (2, 2): dot_2_2,
}  # fmt: skip
"""Of vectors and matrices, by ranks; what is an array is written to a third operand."""


def cumsum(a):
    out = np.empty(a.shape[0], a.dtype)
    total = 0
    for i in range(a.shape[0]):
        total = total + a[i]
        out[i] = total
    return out


def cumprod(a):
    out = np.empty(a.shape[0], a.dtype)
    total = 1
    for i in range(a.shape[0]):
        total = total * a[i]
        out[i] = total
    return out


def trace(a):
    total = 0
    for i in range(min(a.shape[0], a.shape[1])):
        total = total + a[i, i]
    return total


def searchsorted(a, v, right):
    low = 0
    high = a.shape[0]
    while low < high:
        middle = (low + high) // 2
        if a[middle] < v or (right and a[middle] == v):
            low = middle + 1
        else:
            high = middle
    return low


def interp(x, xp, fp):
    last = xp.shape[0] - 1
    out = fp[last]
    if x <= xp[0]:
        out = fp[0]
    elif x < xp[last]:
        low = searchsorted(xp, x, True) - 1
        slope = (fp[low + 1] - fp[low]) / (xp[low + 1] - xp[low])
        out = fp[low] + slope * (x - xp[low])
    return out


def cross(a, b):
    return np.array(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    )


def gcd(a, b):
    a = abs(a)
    b = abs(b)
    while b > 0:
        a, b = b, a % b
    return a


def isclose(a, b, rel_tol=1e-9, abs_tol=0.0):
    return abs(a - b) <= max(rel_tol * max(abs(a), abs(b)), abs_tol)


def whole_power(a, n):
    out = 1
    while n > 0:
        if n & 1:
            out *= a
        a *= a
        n >>= 1
    return out


def factorial(n):
    out = 1
    for k in range(2, n + 1):
        out *= k
    return out


def logarithm(x, base):
    return math.log(x) / math.log(base)


def ldexp(x, k):
    return x * 2.0**k


def remainder(x, y):
    a = abs(float(x))
    b = abs(float(y))
    up = math.fmod(a, b)
    down = b - up
    if up < down:
        out = up
    elif up > down:
        out = -down
    else:
        out = up - 2.0 * math.fmod(0.5 * (a - up), b)
    return out if x >= 0 else -out


def sinc(x):
    y = np.pi * x
    if abs(y) < 0.02:
        y *= y
        return 1.0 - y / 6.0 * (1.0 - y / 20.0 * (1.0 - y / 42.0))
    return np.sin(y) / y


FUNCTIONS: dict[str, Any] = {
    "cumsum": cumsum, "cumprod": cumprod, "trace": trace, "vdot": vdot, "cross": cross,
}  # fmt: skip
"""By NumPy's name, of arrays alone."""
OF_NUMBERS: dict[Any, Any] = {
    math.gcd: gcd, np.gcd: gcd, math.isclose: isclose, math.factorial: factorial,
    math.ldexp: ldexp, np.ldexp: ldexp, math.remainder: remainder, np.sinc: sinc,
}  # fmt: skip
"""Of numbers, by the function that they stand for."""
