"""Many temporary arrays of one length are rows of one array."""

import re

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen.nests import kernel, loop_tree
from tests.compiler.emulator import emulating


def steps(x, y):
    z = y
    for k in range(6):
        y = np.tanh(x * y) + np.sum(y) * 0.01 * k
        z = np.cumsum(z * y) / z.size
    return np.sum(y * y) + np.sum(z)


def arguments(n, dtype):
    draw = np.random.default_rng(n)
    return draw.uniform(0.5, 1.0, n).astype(dtype), draw.uniform(0.5, 1.0, n).astype(dtype)


@pytest.fixture
def many(monkeypatch):
    """Rows from few arrays on, and loops that few statements share, so that there are arrays."""
    monkeypatch.setattr(kernel, "ROWS", 4)
    monkeypatch.setattr(loop_tree, "MOST_TOGETHER", 3)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_hold_what_arrays_of_their_own_do(dtype, many, monkeypatch):
    gradient = ng.value_and_grad(steps, argnums=(0, 1))
    with emulating(task=16, lanes=8):
        fast = ng.jit(gradient)
        found = {n: fast(*arguments(n, dtype)) for n in (40, 1, 16, 0)}
    (step,) = fast.specialisations[0].steps
    source = step.written.source(parallel=False)
    assert re.search(r"x(\d+) = np.empty\(\((\d+), row\1\), np\." + dtype, source)
    monkeypatch.setattr(kernel, "ROWS", 10**6)
    with emulating(task=16, lanes=8):
        alone = ng.jit(gradient)
        for n, (value, gradients) in found.items():
            expected, wanted = alone(*arguments(n, dtype))
            np.testing.assert_array_equal(value, expected)
            np.testing.assert_array_equal(gradients, wanted)
    (step,) = alone.specialisations[0].steps
    assert " row" not in step.written.source(parallel=False)


def test_machine_code_reads_and_writes_rows(many):
    gradient = ng.value_and_grad(steps, argnums=(0, 1))
    fast = ng.jit(gradient)
    for n in (40, 1, 512, 0):
        value, gradients = fast(*arguments(n, "float64"))
        expected, wanted = gradient(*arguments(n, "float64"))
        np.testing.assert_allclose(value, expected, rtol=1e-13)
        np.testing.assert_allclose(gradients, wanted, rtol=1e-11)


def test_rows_lie_apart_by_whole_lines_of_caches():
    lines = kernel._rows([3, 5, 8], "n0*n1", np.dtype("float32"))
    for n in (1, 15, 16, 17, 1024):
        names = {"n0": n, "n1": 1, "np": np, "int64": int}
        exec("\n".join(line.strip() for line in lines), names)
        assert [names[f"a{k}"] - names["a3"] for k in (5, 8)] == [
            names["row3"] * 4 * k for k in (1, 2)
        ]
        assert names["row3"] >= n + 16
        assert names["row3"] * 4 % kernel.LINE == 0
        assert names["x3"].shape == (3, names["row3"])
