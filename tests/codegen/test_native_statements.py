"""Statements of kernels, natively: what Python would do."""

import numpy as np
import pytest

from numgrad.codegen.compile import compile_kernel


def native(source, signature, parallel=False):
    kernel = compile_kernel("statements", source, signature, parallel=parallel, keep=False)
    assert not kernel.numba_reason
    return kernel.entry


STEPS = """
def kernel(start, stop, step, out):
    count = 0
    for k in range(start, stop, step):
        out[count] = k
        count += 1
    for k in range(stop, start, -2):
        out[count] = k
        count += 1
    return count
"""


def test_a_range_has_any_step():
    kernel = native(STEPS, "int64(int64, int64, int64, int64[::1])")
    for start, stop, step in [(0, 7, 3), (0, 6, 3), (5, 5, 1), (9, 0, -4), (-2, 3, -1), (0, 9, 1)]:
        out = np.zeros(30, np.int64)
        count = kernel(start, stop, step, out)
        expected = [*range(start, stop, step), *range(stop, start, -2)]
        assert out[:count].tolist() == expected


CHOICE = """
def kernel(first, x, y, out):
    chosen = x[2:12] if first else y[1:]
    for k in range(chosen.size):
        out[k] = chosen[k]
    for k in range(chosen.size - 1):
        chosen[k] = x[k + 1]
"""


@pytest.mark.parametrize("first", [False, True])
def test_one_of_two_parts_is_chosen_and_may_overlap_what_is_read(first):
    x, y, out = np.arange(40.0), -np.arange(40.0), np.zeros(40)
    native(CHOICE, "void(boolean, float64[::1], float64[::1], float64[::1])")(first, x, y, out)
    expected_x, expected_y = np.arange(40.0), -np.arange(40.0)
    chosen = expected_x[2:12] if first else expected_y[1:]
    assert out[: chosen.size].tolist() == chosen.tolist()
    for k in range(chosen.size - 1):
        chosen[k] = expected_x[k + 1]
    assert x.tolist() == expected_x.tolist()
    assert y.tolist() == expected_y.tolist()


TASKS = """
from numba import prange

def kernel(table, out):
    for index in prange(table.shape[0]):
        lo, hi = table[index]
        total = 0.0
        for k in range(lo, hi):
            for j in range(k):
                total += min(1.5, float(j))
        out[index] = max(total, 1)
"""


def test_tasks_have_loops_and_names_of_their_own():
    table = np.array([[0, 3], [2, 2], [1, 9]])
    out = np.zeros(3)
    native(TASKS, "void(int64[:,::1], float64[::1])", parallel=True)(table, out)
    expected = [
        max(sum(min(1.5, j) for k in range(lo, hi) for j in range(k)), 1) for lo, hi in table
    ]
    assert out.tolist() == expected


EXTREMES = "def kernel(a, b, out):\n    out[0], out[1] = min(a, b), max(a, b)\n"


def test_extremes_of_floats_are_those_of_python():
    kernel = native(EXTREMES, "void(float64, float64, float64[::1])")
    values = [0.0, -0.0, 1.0, np.nan, -np.inf]
    for a in values:
        for b in values:
            out = np.empty(2)
            kernel(a, b, out)
            assert out.tobytes() == np.array([min(a, b), max(a, b)]).tobytes()


ORDERED = """
import numpy as np

def kernel(a, b, out):
    for k in range(a.size):
        out[0, k], out[1, k] = np.fmax(a[k], b[k]), np.fmin(a[k], b[k])
        out[2, k] = np.rint(a[k])
"""


def test_complex_extremes_past_nan_and_rounding_are_those_of_numpy():
    parts = [0.0, -0.0, 1.5, -2.5, np.nan, np.inf]
    values = np.array([complex(x, y) for x in parts for y in parts])
    a, b = (x.ravel() for x in np.meshgrid(values, values))
    out = np.empty((3, a.size), complex)
    native(ORDERED, "void(complex128[::1], complex128[::1], complex128[:,::1])")(a, b, out)
    with np.errstate(invalid="ignore"):
        expected = np.stack([np.fmax(a, b), np.fmin(a, b), np.rint(a)])
    assert out.tobytes() == expected.tobytes()


PARTS = """
def kernel(table, first, second, count, out):
    x, y, z = table[first:], table[second:], out[0:]
    for k in range(count):
        x[k] = x[k] + y[k]
        y[k] = x[k] * 0.5
    for k in range(count):
        z[k] = x[k]
"""


@pytest.mark.parametrize("distance", [0, 1, 3, 8, 15, 16, 33, 64])
@pytest.mark.parametrize("order", [1, -1])
def test_parts_that_are_both_written_are_those_of_python_however_near(distance, order):
    kernel = native(PARTS, "void(float64[::1], int64, int64, int64, float64[::1])")
    first, second = (100, 100 + order * distance)
    table = np.random.default_rng(distance).normal(size=300)
    expected, out = table.copy(), np.zeros(90)
    kernel(table, first, second, 83, out)
    for k in range(83):
        expected[first + k] = expected[first + k] + expected[second + k]
        expected[second + k] = expected[first + k] * 0.5
    assert table.tolist() == expected.tolist()
    assert out[:83].tolist() == expected[first : first + 83].tolist()


COLUMNS = """
def kernel(table, first, second, count):
    x, y = table[first:], table[second:]
    for k in range(count):
        x[k] = x[k] + y[k]
"""


@pytest.mark.parametrize("step", [3, 200])
def test_parts_with_gaps_are_near_as_far_as_they_reach(step):
    kernel = native(COLUMNS, "void(float64[:], int64, int64, int64)")
    table = np.random.default_rng(step).normal(size=(120, step))
    expected = table.copy()
    kernel(table[:, 0], 10, 9, 83)
    for k in range(83):
        expected[10 + k, 0] += expected[9 + k, 0]
    assert table.tolist() == expected.tolist()
