"""Products of blocks of lanes: values, edges, zeros, vectors of any width."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.native import machine
from numgrad.kernels.products.blocks import SLACK

SOURCE = """
from numba import {dtype}
from numgrad.kernels.products.blocks import block_product

def kernel(a, row_a, step_a, b, row_b, count, c, row_c, rows, columns, add):
    block_product({dtype}, {size}, a, row_a, step_a, b, row_b, count, c, row_c, rows, columns, add)
"""
TWICE = """
from numba import float64
from numgrad.kernels.products.blocks import block_product

def kernel(times, a, b, c):
    for k in range(times):
        block_product(float64, 8, a, 8, 8, b, 8, 1, c, 8, 1, 1, 1)
"""


def kernel(dtype: str, **options: Any) -> Any:
    source = SOURCE.format(dtype=dtype, size=np.dtype(dtype).itemsize)
    signature = f"void({', '.join(['int64'] * 11)})"
    return compile_kernel("blocks", source, signature, **options)


def padded(x: np.ndarray) -> np.ndarray:
    """The elements of a block, and behind them what a tile may read."""
    return np.concatenate([x.reshape(-1), np.full(SLACK // x.itemsize, np.nan, x.dtype)])


def multiplied(compiled: Any, a: np.ndarray, b: np.ndarray, c: np.ndarray, add: bool) -> None:
    size, block = a.itemsize, padded(b)
    (rows, count), columns = a.shape, b.shape[1]
    compiled.entry(
        a.ctypes.data, a.strides[0], a.strides[1], block.ctypes.data, columns * size, count,
        c.ctypes.data, c.strides[0], rows, columns, int(add),
    )  # fmt: skip


SIZES = [(1, 1, 1), (3, 5, 7), (4, 8, 16), (18, 18, 128), (9, 300, 33), (17, 40, 104)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values_and_edges(dtype):
    draw = np.random.default_rng(0)
    compiled = kernel(dtype)
    assert not compiled.numba_reason
    for rows, count, columns in SIZES:
        a = draw.normal(size=(rows, count)).astype(dtype)
        b = draw.normal(size=(count, columns)).astype(dtype)
        before = draw.normal(size=(rows + 1, columns + 3)).astype(dtype)
        for left in (a, np.asfortranarray(a), np.tril(a), np.triu(a).T.copy().T, 0 * a):
            for add in (False, True):
                found = before.copy()
                multiplied(compiled, left, b, found[:rows, 1 : columns + 1], add)
                expected = before.astype(np.longdouble)
                exact = left.astype(np.longdouble) @ b.astype(np.longdouble)
                expected[:rows, 1 : columns + 1] = exact + add * expected[:rows, 1 : columns + 1]
                atol = 8 * np.finfo(dtype).eps * count
                np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


def test_zeros_beside_what_is_not_finite():
    compiled = kernel("float64")
    a = np.tril(np.ones((12, 12)))
    for bad in (np.inf, -np.inf, np.nan):
        b = np.ones((12, 40))
        b[11, 37] = bad
        c = np.empty((12, 40))
        multiplied(compiled, a, b, c, False)
        assert np.isnan(c[:11, 37]).all()
        assert np.array_equal(c[:, :37], np.repeat(np.arange(1.0, 13.0)[:, None], 37, axis=1))


def test_bits_for_vectors_of_any_width(monkeypatch):
    draw = np.random.default_rng(1)
    found = []
    for bits in (128, 256, 512):
        monkeypatch.setattr(machine, "vector_bits", lambda bits=bits: bits)
        compiled = kernel("float64", keep=False)
        results = []
        for rows, count, columns in SIZES:
            a, b = draw.normal(size=(rows, count)), draw.normal(size=(count, columns))
            c = draw.normal(size=(rows, columns))
            multiplied(compiled, np.tril(a), b, c, True)
            results.append(c)
        found.append(results)
        draw = np.random.default_rng(1)
    for others in found[1:]:
        for a, b in zip(found[0], others, strict=True):
            assert np.array_equal(a, b)


def test_calls_for_their_effects_are_not_joined():
    compiled = compile_kernel("blocks_twice", TWICE, "void(int64, int64, int64, int64)")
    assert not compiled.numba_reason
    a, b, c = np.full(1, 2.0), padded(np.full((1, 1), 3.0)), np.zeros(1)
    compiled.entry(20, a.ctypes.data, b.ctypes.data, c.ctypes.data)
    assert c[0] == 120


@pytest.mark.slow(cases=0)  # Numba takes seconds
def test_bits_beside_a_function_that_a_user_compiled():
    half = numba.njit(lambda x: x / 2)
    source = SOURCE.format(dtype="float64", size=8) + "    user_half(1.0)\n"
    signature = f"void({', '.join(['int64'] * 11)})"
    beside = compile_kernel("beside", source, signature, functions={"user_half": half})
    assert "others have compiled" in beside.numba_reason
    draw = np.random.default_rng(0)
    a, b, c = (draw.normal(size=shape) for shape in ((18, 20), (20, 33), (18, 33)))
    found = c.copy(), c.copy()
    for compiled, result in zip((kernel("float64"), beside), found, strict=True):
        multiplied(compiled, a, b, result, True)
    np.testing.assert_array_equal(*found)
