"""Arrays of single precision have results of the dtypes that Numba gives, whose rules NumPy shares
but for floats of Python beside arrays, and numbers, which are double precision."""

import linecache

import numpy as np
import pytest

import numgrad as ng

X = np.arange(1, 4, dtype=np.float32)
SINGLE = {
    "sum": "np.sum(x)",
    "sum of an axis": "np.sum(x, axis=0)",
    "mean": "x.mean()",
    "prod": "np.prod(x)",
    "dot": "np.dot(x, x)",
    "@": "x @ x",
    "max": "np.max(x)",
    "function": "np.sin(x[0])",
    "integers": "x * 2 + 1",
    "division": "-x / 3",
    "floor": "x // 2",
    "mean taken off": "x - np.mean(x)",
    "least": "np.minimum(x, 2)",
    "truth": "x * True",
    "outer": "x[:, None] * x",
    "power": "x**2",
}
DOUBLE = {
    "a float beside an array": "x * 2.0",
    "numbers": "x[0] * 2",
    "std": "np.std(x)",
}


def written(expression):
    """The function of ``x`` that returns an expression."""
    file, text = f"<{expression}>", f"def function(x):\n    return {expression}\n"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {"np": np}
    exec(compile(text, file, "exec"), space)
    return space["function"]


@pytest.mark.parametrize("name", [*SINGLE, *DOUBLE])
def test_dtypes_of_single_precision(name):
    function = written(SINGLE.get(name) or DOUBLE[name])
    seen = ng.kernel(function)(X)
    assert seen.dtype == (np.float32 if name in SINGLE else np.float64)
    np.testing.assert_allclose(np.asarray(seen), function(X), rtol=1e-6)


def test_gradients_of_sums_in_single_precision():
    kernel = ng.kernel(written("np.sum(x * 2) * np.mean(x) + np.dot(x, x)"))
    wanted = 4 * X.sum() / 3 + 2 * X
    np.testing.assert_allclose(np.asarray(ng.grad(kernel)(X)), wanted, rtol=1e-6)
    assert ng.grad(kernel)(X).dtype == np.float32


def test_sums_are_added_up_in_double_precision():
    x = np.full(3_000_000, 0.1, np.float32)
    assert float(ng.kernel(written("np.sum(x)"))(x)) == np.float32(np.sum(x, dtype=np.float64))
