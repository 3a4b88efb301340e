"""Kernels that compare indices with the lengths of arrays: Note [Bounds] in ``memory``."""

import os
import subprocess
import sys

import numpy as np
import pytest

from numgrad.codegen import compile as compiler
from numgrad.codegen.native import kernel as native

HEADER = """
import numpy as np
from numba import prange
from numgrad.codegen.device import outlined

@outlined
def get(x, i):
    return x[i]

@outlined
def copied(x, n):
    y = np.empty(n, x.dtype)
    for k in range(n):
        y[k] = x[k]
    return y[n - 1]
"""


@pytest.fixture
def checking(monkeypatch):
    monkeypatch.setattr(native, "CHECK_BOUNDS", True)
    monkeypatch.setattr(compiler, "_loaded", {})


def compiled(body, types, **options):
    kernel = compiler.compile_kernel("bounds", HEADER + body, types, keep=False, **options)
    assert not kernel.numba_reason
    return kernel.entry


STORES = "def kernel(x, places):\n    for k in range(places.size):\n        x[places[k]] = 2.0\n"


@pytest.mark.parametrize("place", [3, -1, 1 << 40])
def test_an_index_out_of_range(checking, place):
    store = compiled(STORES, "void(float64[::1], int64[::1])")
    x = np.zeros(3)
    store(x, np.array([0, 2]))
    assert x.tolist() == [2.0, 0.0, 2.0]
    message = rf"index {place} is out of range for axis 0 with 3 elements, in kernel: x\[places"
    with pytest.raises(IndexError, match=message):
        store(x, np.array([1, place]))


def test_where_a_task_a_function_and_a_row_are_read(checking):
    fill = compiled(
        """
def kernel(x, places, y):
    for t in prange(places.size):
        row = y[t]
        row[places[t]] = get(x, places[t])
""",
        "void(float64[::1], int64[::1], float64[:,::1])",
        parallel=True,
    )
    x, y = np.arange(5.0), np.zeros((3, 5))
    fill(x, np.array([0, 4, 2]), y)
    np.testing.assert_array_equal(y, np.diag(x)[[0, 4, 2]])
    with pytest.raises(IndexError, match=r"index 5 .* axis 0 with 5 elements, in get: return x\[i"):
        fill(x, np.array([0, 5, 2]), y)
    with pytest.raises(IndexError, match=r"axis 0 with 4 elements, in kernel: row\[places"):
        fill(x, np.array([0, 4, 2]), np.zeros((3, 4)))
    with pytest.raises(IndexError, match=r"axis 0 with 2 elements, in kernel: row = y\[t\]"):
        fill(x, np.array([0, 4, 2]), np.zeros((2, 5)))


def test_memory_of_the_functions_own_is_given_back(checking):
    last = compiled("def kernel(x, n):\n    return copied(x, n)\n", "float64(float64[:], int64)")
    x = np.arange(12.0)[::2]
    assert last(x, 6) == 10.0
    for _ in range(3):
        with pytest.raises(IndexError, match=r"index 6 .* with 6 elements, in copied: y\[k\]"):
            last(x, 7)
    with pytest.raises(MemoryError):
        last(x, 1 << 56)


def test_slices_may_reach_beyond_and_be_empty(checking):
    fill = compiled(
        "def kernel(x, lo, hi):\n    x[lo:hi] = 1.0\n", "void(float64[::1], int64, int64)"
    )
    x = np.zeros(4)
    fill(x, 4, 4)
    fill(x, 2, 9)
    assert x.tolist() == [0.0, 0.0, 1.0, 1.0]


def test_such_kernels_have_names_of_their_own(checking, monkeypatch):
    stamp = native.native_stamp()
    monkeypatch.setattr(native, "CHECK_BOUNDS", False)
    assert native.native_stamp() != stamp


def test_a_part_of_the_array_that_is_not_chosen_is_not_checked(checking):
    choose = compiled(
        """
def kernel(x, y, row, first):
    part = x[row] if first else y
    part[0] = 1.0
""",
        "void(float64[:, ::1], float64[::1], int64, boolean)",
    )
    nothing, y = np.zeros((0, 2)), np.zeros(2)
    choose(nothing, y, 0, False)
    assert y.tolist() == [1.0, 0.0]
    with pytest.raises(IndexError):
        choose(np.zeros((1, 0)), y, 0, True)


def test_the_largest_of_a_row_is_checked_too():
    # whose statements are partly written by the translator, at no line of the source
    program = "import numpy as np, numgrad as ng; print(np.max(ng.tensor([[1.0, 3.0]]), axis=1))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False,
        env={**os.environ, "NUMGRAD_BOUNDSCHECK": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.stdout == "tensor([3.])\n", done.stderr
