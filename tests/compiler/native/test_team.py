"""Native functions whose large loops run in several threads: `jit(f).native(..., threads=N)`."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.core.tree import leaves

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="threads are those of POSIX")
numba = pytest.importorskip("numba")
RNG = np.random.default_rng(3)
LONG = np.linspace(-2.0, 2.0, 300_000)
ROWS = RNG.normal(size=(3000, 90))


@ng.kernel
def long_rows(a):
    out = np.zeros(len(a))
    for i in numba.prange(len(a)):
        for k in range(a.shape[1]):
            out[i] += np.sin(a[i, k]) * a[i, k]
    return out


def energy(x: Any) -> Any:
    return np.sum(np.exp(-x * x) * x)


PROGRAMS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "value and gradient": (ng.value_and_grad(energy), (LONG,)),
    "sums along axes": (lambda a: (np.sum(np.tanh(a), 0), np.mean(a * a, 1)), (ROWS,)),
    "product": (lambda a, b: np.tanh(a @ b), (ROWS[:400], ROWS[:90, :40])),
    "explicit loop": (ng.value_and_grad(lambda a: np.sum(long_rows(a))), (ROWS,)),
}


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_any_number_of_threads_has_the_same_bits(name: str) -> None:
    function, arguments = PROGRAMS[name]
    fast = ng.jit(function)
    expected = leaves(fast.native(*arguments)(*arguments))
    native = fast.native(*arguments, threads=3)
    assert "large loops run in up to 3 threads" in repr(native)
    for _ in range(3):
        for a, b in zip(leaves(native(*arguments)), expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_calls_beside_another_one_have_a_thread_each() -> None:
    native = ng.jit(ng.value_and_grad(energy)).native(LONG, threads=2)
    expected = native(LONG)
    wrong: list[Any] = []

    def repeat() -> None:
        for _ in range(5):
            value, slope = native(LONG)
            if value != expected[0] or not np.array_equal(slope, expected[1]):
                wrong.append(value)

    callers = [threading.Thread(target=repeat) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


@pytest.mark.slow(cases=0)
def test_calls_within_parallel_loops_of_numba() -> None:
    gradient = ng.jit(ng.value_and_grad(energy)).native(LONG, threads=2).njit

    @numba.njit(parallel=True)
    def run(rows: Any) -> Any:
        out = np.empty(len(rows))
        for k in numba.prange(len(rows)):
            out[k] = gradient(rows[k])[0]
        return out

    rows = np.stack([LONG, 2 * LONG, LONG - 1])
    np.testing.assert_array_equal(run(rows), [gradient(row)[0] for row in rows])


@pytest.mark.parametrize("threads", [0, -1, 5000, 2.0, True])
def test_what_is_no_number_of_threads(threads: Any) -> None:
    error = ng.NumgradValueError if type(threads) is int else ng.NumgradTypeError
    with pytest.raises(error, match="native: threads is"):
        ng.jit(np.sin).native(LONG, threads=threads)
