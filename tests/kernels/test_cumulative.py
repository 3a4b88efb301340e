"""Cumulative kernels, argmax and argmin against NumPy."""

import numpy as np
import pytest

from numgrad.codegen import threads
from numgrad.codegen.axis_sweeps import (
    BLOCK,
    TILE,
    argreduce_kernel,
    cumprod_backward_kernel,
    cumulative_kernel,
)

pytestmark = pytest.mark.slow

both_layouts = pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])
SHAPES = {
    False: [(1, 1, 1), (3, 7, 1), (2, BLOCK + 1, 1), (0, 4, 1), (60, 3, 1)],
    True: [(1, 1, 1), (3, 7, 4), (2, 40, TILE + 1), (0, 4, 2), (2, 3, 0), (1, 30, 2 * TILE)],
}


def run(kernel, arrays, out, columns, number_of_threads=0):
    shape = out_shape = arrays[0].shape
    result = np.full((shape[0], 1, shape[2]) if out is np.int64 else out_shape, 77, out)
    sizes = shape if columns else shape[:2]
    call = (*(a.ravel() for a in arrays), result.reshape(-1), *sizes)
    if number_of_threads:
        threads.launch(kernel.entry, number_of_threads, *call)
    else:
        kernel.entry(*call)
    return result


def operand(rng, shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind in "biu":
        return rng.integers(0, 5, shape).astype(dtype)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.kind == "c" else x).astype(dtype)


# --------------------------------------------------------------------------- argmax, argmin


@both_layouts
@pytest.mark.parametrize("dtype", ["float64", "complex128", "int8", "bool"])
def test_argreduce(dtype, columns):
    rng = np.random.default_rng(1)
    for kind in ("argmax", "argmin"):
        kernel = argreduce_kernel(kind, np.dtype(dtype), columns, False)
        for shape in SHAPES[columns]:
            x = operand(rng, shape, dtype)
            if np.dtype(dtype).kind in "fc":
                x = np.round(x)  # ties
            expected = getattr(np, kind)(x, axis=1, keepdims=True)
            np.testing.assert_array_equal(run(kernel, [x], np.int64, columns), expected)


@both_layouts
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_argreduce_finds_the_first_nan(dtype, columns):
    rng = np.random.default_rng(2)
    length = 2 * BLOCK + 5
    for kind in ("argmax", "argmin"):
        kernel = argreduce_kernel(kind, np.dtype(dtype), columns, False)
        for places in ((0,), (3, 4), (BLOCK, BLOCK + 2), (length - 1,), (7, BLOCK + 1)):
            x = operand(rng, (1, length, 1), dtype)
            x[0, list(places)] = np.nan
            assert run(kernel, [x], np.int64, columns).item() == places[0]
        for value in (np.inf, -np.inf):
            x = np.full((1, length, 1), value, dtype)
            assert run(kernel, [x], np.int64, columns).item() == 0


@pytest.mark.slow(cases=0)
@both_layouts
def test_argreduce_in_parallel(columns):
    rng = np.random.default_rng(3)
    kernel = argreduce_kernel("argmax", np.dtype("float32"), columns, True)
    for shape in SHAPES[columns]:
        x = operand(rng, shape, "float32")
        for number in (1, 2):
            got = run(kernel, [x], np.int64, columns, number)
            np.testing.assert_array_equal(got, np.argmax(x, axis=1, keepdims=True))


# ------------------------------------------------------------------------- cumulative sums


@both_layouts
@pytest.mark.parametrize(
    ("kind", "dtype", "out"),
    [
        ("cumsum", "float32", "float32"), ("cumsum", "bool", "int64"),
        ("cumprod", "complex128", "complex128"), ("cumprod", "uint8", "uint64"),
    ],
)  # fmt: skip
def test_cumulative(kind, dtype, out, columns):
    rng = np.random.default_rng(4)
    kernel = cumulative_kernel(kind, np.dtype(dtype), np.dtype(out), columns, False)
    for shape in SHAPES[columns]:
        x = operand(rng, shape, dtype)
        expected = getattr(np, kind)(x, axis=1, dtype=out)
        got = run(kernel, [x], np.dtype(out), columns)
        if out.startswith("complex"):
            np.testing.assert_allclose(got, expected, rtol=1e-12)
        else:
            np.testing.assert_array_equal(got, expected)


@both_layouts
@pytest.mark.parametrize("parallel", [False, True])
def test_reversed_cumsum(columns, parallel):
    rng = np.random.default_rng(5)
    dtype = np.dtype("float64")
    kernel = cumulative_kernel("cumsum_reversed", dtype, dtype, columns, parallel)
    for shape in SHAPES[columns]:
        x = operand(rng, shape, dtype)
        expected = np.cumsum(x[:, ::-1], axis=1)[:, ::-1]
        for number in (1, 2) if parallel else (0,):
            np.testing.assert_array_equal(run(kernel, [x], dtype, columns, number), expected)


@both_layouts
def test_first_elements_are_those_of_the_operand(columns):
    zero = np.full((2, 3, 17 if columns else 1), -0.0)
    infinite = np.full(zero.shape, complex(np.inf, -0.0))
    for kind, x in (("cumsum", zero), ("cumprod", zero), ("cumsum", infinite),
                    ("cumprod", infinite)):  # fmt: skip
        kernel = cumulative_kernel(kind, x.dtype, x.dtype, columns, False)
        first = run(kernel, [x], x.dtype, columns)[:, 0]
        assert first.tobytes() == x[:, 0].tobytes()


def test_empty_axis():
    dtype = np.dtype("float64")
    for columns in (False, True):
        empty = np.empty((2, 0, 3 if columns else 1))
        assert run(cumulative_kernel("cumsum", dtype, dtype, columns, False), [empty], dtype,
                   columns).size == 0  # fmt: skip
        kernel = cumprod_backward_kernel(dtype, columns, False)
        assert run(kernel, [empty] * 3, dtype, columns).size == 0


# --------------------------------------------------------------------- gradient of cumprod


def cumprod_vjp(g, x):
    """The definition: derivative of every product by every factor."""
    gx = np.zeros_like(x)
    length = x.shape[1]
    for j in range(length):
        for k in range(j, length):
            others = np.delete(x[:, : k + 1], j, axis=1)
            gx[:, j] += g[:, k] * np.conj(np.prod(others, axis=1))
    return gx


@both_layouts
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("zeros", [0, 1, 3])
def test_cumprod_backward(dtype, zeros, columns):
    rng = np.random.default_rng(6)
    kernel = cumprod_backward_kernel(np.dtype(dtype), columns, False)
    for shape in [(3, 8, 5), (2, 8, TILE + 1)] if columns else [(3, 8, 1), (2, 1, 1)]:
        x, g = operand(rng, shape, dtype), operand(rng, shape, dtype)
        for outer in range(shape[0]):
            for column in range(shape[2]):
                x[outer, rng.permutation(shape[1])[:zeros], column] = 0
        y = np.cumprod(x, axis=1)
        got = run(kernel, [g, x, y], np.dtype(dtype), columns)
        np.testing.assert_allclose(got, cumprod_vjp(g, x), rtol=1e-11, atol=1e-13)


@pytest.mark.slow(cases=0)
def test_cumprod_backward_in_parallel():
    rng = np.random.default_rng(7)
    dtype = np.dtype("float64")
    for columns in (False, True):
        serial = cumprod_backward_kernel(dtype, columns, False)
        parallel = cumprod_backward_kernel(dtype, columns, True)
        shape = (5, 6, 2 * TILE if columns else 1)
        g, x = operand(rng, shape, dtype), operand(rng, shape, dtype)
        arrays = [g, x, np.cumprod(x, axis=1)]
        np.testing.assert_array_equal(
            run(parallel, arrays, dtype, columns, 2), run(serial, arrays, dtype, columns)
        )
