"""Systems of few unknowns and Cholesky's factors, a stack of them side by side in SIMD lanes.

Loops over rows and columns are written out, and rows are exchanged by selects, so that the only
loop left is the one over the stack. Operations and their order are those of ``small``: the same
bits, whether a stack is long enough for this or not.
"""

from collections.abc import Callable
from functools import cache, partial

import numpy as np

from numgrad.codegen import threads
from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.dtypes import short, type_name

LARGEST = 4
"""Unknowns, and right sides, up to which systems are solved so."""
FEWEST = 64
"""Systems from which lanes pay for making another kernel."""
TASK = 256
"""Systems that one thread takes at a time."""

_SOURCE = """
from numba import prange
from numgrad.codegen.accumulation import no_inline
from numgrad.codegen.device import outlined
from numgrad.codegen.intrinsics import select, sqrt

@outlined
def some({names}, lo, hi):
    no_inline()
    for s in range(lo, hi):
{body}

def kernel({names}):
    count = info.shape[0]
    for task in {range}(-(-count // {task})):
        lo = task * {task}
        some({names}, lo, min(lo + {task}, count))
    failed = 0
    for s in range(count):
        if info[s] != 0:
            failed += 1
    return failed
"""


def suits(count: int, n: int, columns: int, dtype: np.dtype) -> bool:
    """Whether so many systems are solved so."""
    return is_long(count, n, dtype) and 0 < columns <= LARGEST


def is_long(count: int, n: int, dtype: np.dtype) -> bool:
    """Whether a stack has enough matrices, small ones, to be factored so."""
    return count >= FEWEST and 0 < n <= LARGEST and dtype.kind == "f"


def bound(
    what: str, count: int, n: int, columns: int, dtype: np.dtype
) -> Callable[..., np.ndarray | None]:
    """A kernel that does as the function of that name of ``small`` with stacks of ``count``.

    It takes the arrays, and returns what went wrong for each, or None if nothing did.
    """
    kernel = partial(_kernel, what, dtype, n, columns)
    serial, parallel = partial(kernel, False), partial(kernel, True)
    work_ns = count * (2.0 * n * n + n * n * (n + columns) * 0.2)

    def run(*arrays: np.ndarray) -> np.ndarray | None:
        info = np.empty(count, np.int32)
        chosen = threads.choose(serial, parallel, work_ns)
        return info if chosen(info, *arrays) else None

    return run


@cache
def _kernel(what: str, dtype: np.dtype, n: int, columns: int, parallel: bool) -> Callable[..., int]:
    kinds = {"N": "int32[:,::1]", "T": f"{type_name(dtype)}[:,:,::1]"}
    if what == "cholesky":
        names, types, body = "info, a, factors", "TT", _cholesky(n)
    elif what in ("substitute", "substitute_adjoint"):
        lines = _transposed if what == "substitute_adjoint" else _substitution
        names, types, body = "info, factors, pivots, z", "TNT", [*lines(n, columns), "info[s] = 0"]
    elif what.startswith("triangle"):
        names, types, body = "info, a, z", "TT", _triangle(n, columns, what)
    elif what == "solve":
        names, types, body = "info, a, b, factors, pivots, x", "TTTNT", _solve(n, columns)
    else:
        names, types, body = "info, factors, pivots, z, x, ga", "TNTTT", _backward(n, columns)
    source = _SOURCE.format(
        names=names,
        body="\n".join(f"        {line}" for line in body),
        range="prange" if parallel else "range",
        task=TASK,
    )
    return compile_kernel(
        f"{what}_{n}_{columns}_{short(dtype)}{'_p' if parallel else ''}",
        source,
        f"int64(int32[::1], {', '.join(kinds[k] for k in types)})",
        parallel=parallel,
    ).entry


def _swap(condition: str, one: str, other: str) -> list[str]:
    return [
        f"kept = {one}",
        f"{one} = select({condition}, {other}, {one})",
        f"{other} = select({condition}, kept, {other})",
    ]


def _solve(n: int, columns: int) -> list[str]:
    """Statements that factor and solve one system."""
    rows = range(n)
    lines = [f"a{i}{j} = a[s, {i}, {j}]" for i in rows for j in rows]
    lines.append("bad = 0")
    for k in rows:
        lines += [f"best = abs(a{k}{k})", f"p{k} = {k}"]
        for j in range(k + 1, n):
            lines += [
                f"size = abs(a{k}{j})",
                "larger = size > best",
                "best = select(larger, size, best)",
                f"p{k} = select(larger, {j}, p{k})",
            ]
        lines.append(f"bad = select((best == 0.0) & (bad == 0), {k + 1}, bad)")
        for j in range(k + 1, n):
            lines.append(f"here = p{k} == {j}")
            for i in rows:
                lines += _swap("here", f"a{i}{k}", f"a{i}{j}")
        lines += [f"a{k}{j} = a{k}{j} / a{k}{k}" for j in range(k + 1, n)]
        lines += [
            f"a{i}{j} = a{i}{j} - a{i}{k} * a{k}{j}"
            for i in range(k + 1, n)
            for j in range(k + 1, n)
        ]
    for c in range(columns):
        lines += _solution(n, c, "b", "x")
    lines += [f"factors[s, {i}, {j}] = a{i}{j}" for i in rows for j in rows]
    lines += [f"pivots[s, {k}] = p{k} + 1" for k in rows]
    return [*lines, "info[s] = bad"]


def _solution(n: int, column: int, array: str, out: str) -> list[str]:
    """Statements that solve by factors and pivots, counted from 0, for one right side."""
    rows, lines = range(n), []
    for i in rows:
        lines.append(f"x{i} = {array}[s, {i}, {column}]")
        lines += [f"x{i} = x{i} - a{i}{j} * x{j}" for j in range(i)]
        lines.append(f"x{i} = x{i} / a{i}{i}")
    for i in reversed(rows):
        lines += [f"x{i} = x{i} - a{i}{j} * x{j}" for j in range(i + 1, n)]
    for k in reversed(rows):
        for j in range(k + 1, n):
            lines += _swap(f"p{k} == {j}", f"x{k}", f"x{j}")
    return [*lines, *(f"{out}[s, {i}, {column}] = x{i}" for i in rows)]


def _cholesky(n: int) -> list[str]:
    """Statements that factor one positive definite matrix."""
    lines = ["bad = 0"]
    for i in range(n):
        for j in range(i + 1):
            lines.append(f"a{i}{j} = a[s, {i}, {j}]")
            lines += [f"a{i}{j} = a{i}{j} - a{i}{k} * a{j}{k}" for k in range(j)]
            if j < i:
                lines.append(f"a{i}{j} = a{i}{j} / a{j}{j}")
        lines.append(f"bad = select((not a{i}{i} > 0.0) & (bad == 0), {i + 1}, bad)")
        lines.append(f"a{i}{i} = sqrt(a{i}{i})")
    rows = range(n)
    lines += [f"factors[s, {i}, {j}] = a{i}{j}" for i in rows for j in range(i + 1)]
    lines += [f"factors[s, {i}, {j}] = 0.0" for i in rows for j in range(i + 1, n)]
    return [*lines, "info[s] = bad"]


def _factors(n: int) -> list[str]:
    """Statements that read factors and pivots, which are counted from 0."""
    lines = [f"a{i}{j} = factors[s, {i}, {j}]" for i in range(n) for j in range(n)]
    return [*lines, *(f"p{k} = pivots[s, {k}] - 1" for k in range(n))]


def _substitution(n: int, columns: int) -> list[str]:
    """Statements that solve one system in place of its right sides."""
    lines = _factors(n)
    for c in range(columns):
        lines += _solution(n, c, "z", "z")
    return lines


def _transposed(n: int, columns: int) -> list[str]:
    """Statements that solve one transposed system in place of its right sides."""
    rows, lines = range(n), _factors(n)
    for c in range(columns):
        lines += [f"z{i}{c} = z[s, {i}, {c}]" for i in rows]
        for k in rows:
            for j in range(k + 1, n):
                lines += _swap(f"p{k} == {j}", f"z{k}{c}", f"z{j}{c}")
        for i in rows:
            lines += [f"z{j}{c} = z{j}{c} - a{i}{j} * z{i}{c}" for j in range(i + 1, n)]
        for i in reversed(rows):
            lines.append(f"z{i}{c} = z{i}{c} / a{i}{i}")
            lines += [f"z{j}{c} = z{j}{c} - a{i}{j} * z{i}{c}" for j in range(i)]
        lines += [f"z[s, {i}, {c}] = z{i}{c}" for i in rows]
    return lines


def triangle(lower: bool, of_adjoint: bool, unit: bool) -> str:
    """The name of the function that solves with one triangle, or its transpose."""
    return f"triangle_{'lower' if lower else 'upper'}{'_adjoint' * of_adjoint}{'_unit' * unit}"


def _triangle(n: int, columns: int, what: str) -> list[str]:
    """Statements that solve with one triangle in place of the right sides."""
    lower, of_adjoint, unit = (option in what for option in ("lower", "adjoint", "unit"))
    rows = range(n)
    beside = {i: rows[:i] if lower else rows[i + 1 :] for i in rows}
    lines = [f"a{i}{j} = a[s, {i}, {j}]" for i in rows for j in beside[i]]
    lines += [] if unit else [f"a{i}{i} = a[s, {i}, {i}]" for i in rows]
    for c in range(columns):
        lines += [f"z{i} = z[s, {i}, {c}]" for i in rows]
        for i in rows if lower != of_adjoint else reversed(rows):
            divided = [] if unit else [f"z{i} = z{i} / a{i}{i}"]
            if of_adjoint:
                lines += divided + [f"z{j} = z{j} - a{i}{j} * z{i}" for j in beside[i]]
            else:
                lines += [f"z{i} = z{i} - a{i}{j} * z{j}" for j in beside[i]] + divided
        lines += [f"z[s, {i}, {c}] = z{i}" for i in rows]
    return [*lines, "info[s] = 0"]


def _backward(n: int, columns: int) -> list[str]:
    """Statements that solve one transposed system, and multiply out the matrix's gradient."""
    rows, sides = range(n), range(columns)
    lines = _transposed(n, columns)
    lines += [f"x{i}{c} = x[s, {i}, {c}]" for c in sides for i in rows]
    for i in rows:
        for j in rows:
            total = " + ".join(f"z{i}{c} * x{j}{c}" for c in sides)
            lines.append(f"ga[s, {i}, {j}] = -({total})")
    return [*lines, "info[s] = 0"]
