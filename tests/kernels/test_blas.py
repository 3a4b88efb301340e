"""Products called inside kernels: values, layouts, sizes that change the method, batches, cache."""

import multiprocessing
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from numgrad.codegen import cache as disk, compile as jit, threads
from numgrad.kernels.products import blas, gemm as products
from tests.quiet import quiet

GEMM = """
from numba import {dtype}
from numgrad.kernels.products.blas import gemm

def kernel(trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, add, alone):
    gemm({dtype}, trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, add, alone)
"""
BATCHED = """
from numba import {dtype}
from numgrad.kernels.products.blas import batched_gemm

def kernel(
    count, trans_a, trans_b, m, n, k, a, lda, stride_a, b, ldb, stride_b, c, ldc, stride_c, add
):
    batched_gemm(
        {dtype}, count, trans_a, trans_b, m, n, k,
        a, lda, stride_a, b, ldb, stride_b, c, ldc, stride_c, add, 0,
    )
"""
BATCHED_SIGNATURE = f"void({', '.join(['int64'] * 16)})"
WIDE = {
    "float32": np.float64,
    "float64": np.longdouble,
    "complex64": np.complex128,
    "complex128": np.clongdouble,
}
OPERATION = (lambda x: x, lambda x: x.T, lambda x: x.conj().T)


def compile_gemm(dtype):
    return jit.compile_kernel(
        f"test_gemm_{dtype}",
        GEMM.format(dtype=dtype),
        f"void({', '.join(['int64'] * 13)})",
        externals=[products.external("gemm", dtype)],
    )


gemm_entry = cache(lambda dtype: compile_gemm(dtype).entry)


@cache
def batched_entry(dtype):
    return jit.compile_kernel(
        f"test_batched_gemm_{dtype}",
        BATCHED.format(dtype=dtype),
        BATCHED_SIGNATURE,
        externals=[products.external("batched_gemm", dtype)],
    ).entry


def draw(rng, dtype, *shape):
    x = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


def stored(rng, dtype, shape, trans, gap=0):
    """A matrix whose op has that shape, with ``gap`` elements of NaN behind each row."""
    rows, columns = shape[::-1] if trans else shape
    x = np.full((rows, columns + gap), np.nan, dtype)
    x[:, :columns] = draw(rng, dtype, rows, columns)
    return x[:, :columns], max(columns + gap, 1)


def check(dtype, m, n, k, trans_a=0, trans_b=0, add=0, gap=0, alone=0):
    """Compare with NumPy in higher precision, and see that nothing else is written."""
    rng = np.random.default_rng([m, n, k, trans_a, trans_b])
    a, lda = stored(rng, dtype, (m, k), trans_a, gap)
    b, ldb = stored(rng, dtype, (k, n), trans_b, gap)
    whole = np.full((m, n + gap), np.nan, dtype)
    c = whole[:, :n]
    if add:
        c[...] = draw(rng, dtype, m, n)
    wide = WIDE[dtype]
    x, y = OPERATION[trans_a](a).astype(wide), OPERATION[trans_b](b).astype(wide)
    start = c.astype(wide) if add else np.zeros((m, n), wide)
    expected = x @ y + start
    # each product and each sum rounds once; complex ones are four products and two sums
    bound = (abs(x) @ abs(y) + abs(start)) * (k + 2) * 2 * np.finfo(dtype).eps
    addresses = [z.ctypes.data for z in (a, b, whole)]
    gemm_entry(dtype)(
        trans_a, trans_b, m, n, k,
        addresses[0], lda, addresses[1], ldb, addresses[2], max(n + gap, 1), add, alone,
    )  # fmt: skip
    assert (abs(c - expected) <= bound).all(), (dtype, m, n, k, trans_a, trans_b, add, gap)
    assert np.isnan(whole[:, n:]).all()


# methods meet at 64 and 64**3 multiplications, at vectors, and at tiles of two SIMD vectors
LENGTHS = (1, 3, 8, 33)


# the dtypes differ in the length of a vector and in what computes complex elements
DTYPES = [
    pytest.param(name, marks=pytest.mark.slow if name == "complex64" else ())
    for name in blas.DTYPES
]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_products_of_all_small_sizes_and_transposes(dtype):
    operations = range(3 if dtype.startswith("complex") else 2)
    cases = [(m, n, k) for m in LENGTHS for n in LENGTHS for k in (1, 5, 33)]
    cases += [(0, 3, 2), (3, 0, 2), (3, 17, 0), (1, 1, 0), (0, 0, 0)]
    for number, (m, n, k) in enumerate(cases):
        for trans_a in operations:
            for trans_b in operations:
                check(dtype, m, n, k, trans_a, trans_b, number % 2, number % 3)


@pytest.mark.slow(cases=3)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("add", [0, 1])
def test_products_beyond_the_blocks_of_each_method(dtype, add):
    last = 2 if dtype.startswith("complex") else 1
    for trans_a in (0, last):
        for trans_b in (0, last):
            for sizes in (
                (70, 65, 90),  # BLAS
                (5, 40, 600),  # several blocks of the axis that is summed
                (9, 3, 700),
                (1, 70, 600),
                (1, 9, 2500),
                (70, 1, 600),
                (6, 1, 2500),
            ):
                check(dtype, *sizes, trans_a, trans_b, add, gap=add)
            check(dtype, 150, 65, 290, trans_a, trans_b, add, alone=1)


def test_rows_that_lie_over_each_other():
    # a leading dimension below the length of a row: BLAS would refuse
    rng = np.random.default_rng(0)
    row, b = rng.normal(size=90), rng.normal(size=(90, 80))
    c = np.empty((70, 80))
    gemm_entry("float64")(
        0, 0, 70, 80, 90, row.ctypes.data, 0, b.ctypes.data, 80, c.ctypes.data, 80, 0, 0
    )
    np.testing.assert_allclose(c, np.broadcast_to(row @ b, c.shape), rtol=1e-12)


def test_not_a_number_and_infinity_reach_the_result():
    for m, n, k in ((2, 2, 2), (5, 9, 7), (1, 40, 9), (9, 1, 40)):
        a, b = np.ones((m, k)), np.ones((k, n))
        a[-1, -1], b[0, 0] = np.inf, np.nan
        c = np.empty((m, n))
        gemm_entry("float64")(
            0, 0, m, n, k, a.ctypes.data, k, b.ctypes.data, n, c.ctypes.data, n, 0, 0
        )
        np.testing.assert_array_equal(c, quiet(np.matmul, a, b))


def test_blocks_of_a_small_product_have_the_bits_of_the_whole():
    rng = np.random.default_rng(1)
    m, n, k = 23, 37, 300
    a, b = (draw(rng, "float32", *shape) for shape in ((m, k), (k, n)))
    whole, parts = np.empty((m, n), np.float32), np.empty((m, n), np.float32)
    entry, size = gemm_entry("float32"), 4
    at_a, at_b = a.ctypes.data, b.ctypes.data
    entry(0, 0, m, n, k, at_a, k, at_b, n, whole.ctypes.data, n, 0, 0)
    for low, high in ((0, 5), (5, 6), (6, 23)):
        for left, right in ((0, 3), (3, 20), (20, 37)):
            entry(
                0, 0, high - low, right - left, k,
                at_a + low * k * size, k, at_b + left * size, n,
                parts.ctypes.data + (low * n + left) * size, n, 0, 0,
            )  # fmt: skip
    rows = slice(6, 23)
    np.testing.assert_array_equal(parts[rows], whole[rows])
    np.testing.assert_array_equal(parts[:5], whole[:5])


@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.slow)])
@pytest.mark.parametrize("shape", [(8, 64), pytest.param((4, 16), marks=pytest.mark.slow)])
def test_products_of_factors_in_tables(dtype, shape, monkeypatch):
    monkeypatch.setattr(products, "tile_shape", lambda: shape)
    entry, rng = products.compile_function(f"table_gemm_{dtype}").entry, np.random.default_rng(8)
    size = np.dtype(dtype).itemsize
    spare = blas.SPARE // size
    for m, n, k in ((1, 3, 5), (9, 17, 140), (2, 100, 7), (3, 70, 260), (10, 32, 1), (4, 9, 30)):
        a, b = draw(rng, dtype, 900), draw(rng, dtype, 300 + n + spare)
        places, left, right = (rng.integers(300, size=length) for length in (m, k, k))
        x, y = a[places[:, None] + 2 * left], b[right[:, None] + np.arange(n)]
        tables = [np.stack(pair, 1) * size for pair in ((places, places), (2 * left, right))]
        for add in (0, 1):
            start = draw(rng, dtype, m, n + spare)
            c = start.copy()
            entry(
                m, n, k, a.ctypes.data, *(table.ctypes.data for table in tables), b.ctypes.data,
                c.ctypes.data, n + spare, add,
            )  # fmt: skip
            expected = x.astype(WIDE[dtype]) @ y + add * start[:, :n]
            bound = (abs(x) @ abs(y) + abs(start[:, :n])) * (k + 2) * np.finfo(dtype).eps
            assert (abs(c[:, :n] - expected) <= bound).all()


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_tiles_of_every_cpu_have_the_same_bits(dtype, monkeypatch):
    entries, rng = [], np.random.default_rng(6)
    for rows, width in ((4, 16), (4, 32), (8, 64)):
        monkeypatch.setattr(products, "tile_shape", lambda shape=(rows, width): shape)
        entries.append(products.compile_function(f"gemm_{dtype}").entry)
    for m, n, k in ((9, 7, 40), (21, 20, 35), (3, 53, 17), (140, 31, 261), (17, 13, 300)):
        for trans_a, trans_b, add in ((0, 0, 1), (1, 0, 0), (0, 1, 1), (1, 1, 0)):
            a, lda = stored(rng, dtype, (m, k), trans_a, gap=1)
            b, ldb = stored(rng, dtype, (k, n), trans_b)
            start, found = draw(rng, dtype, m, n + 2), []
            for entry in entries:
                found.append(c := start.copy())
                entry(
                    trans_a, trans_b, m, n, k, a.ctypes.data, lda, b.ctypes.data, ldb,
                    c.ctypes.data, n + 2, add, 1,
                )  # fmt: skip
            x, y = OPERATION[trans_a](a).astype(WIDE[dtype]), OPERATION[trans_b](b)
            expected = x @ y + add * start[:, :n]
            bound = (abs(x) @ abs(y) + abs(start[:, :n])) * (k + 2) * np.finfo(dtype).eps
            assert (abs(found[0][:, :n] - expected) <= bound).all()
            np.testing.assert_array_equal(found[0][:, n:], start[:, n:])
            for other in found[1:]:
                np.testing.assert_array_equal(other, found[0])


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("share", ["", "a", "b", "c", "ac", "bc"])
def test_batches(dtype, share):
    rng = np.random.default_rng(2)
    for count in (0, 1, 3):
        for trans_a, trans_b in ((0, 0), (1, 0), (0, 1), (1, 1)):
            for add in (0, 1):
                m, n, k = 5, 6, 4
                shape_a = (k, m) if trans_a else (m, k)
                shape_b = (n, k) if trans_b else (k, n)
                a = draw(rng, dtype, 1 if "a" in share else count, *shape_a)
                b = draw(rng, dtype, 1 if "b" in share else count, *shape_b)
                c = draw(rng, dtype, 1 if "c" in share else count, m, n)
                x = a.swapaxes(1, 2) if trans_a else a
                y = b.swapaxes(1, 2) if trans_b else b
                each = np.broadcast_to(x, (count, m, k)) @ np.broadcast_to(y, (count, k, n))
                expected = each.sum(axis=0)[None] if "c" in share else each
                if add:
                    expected = expected + c
                strides = [
                    0 if name in share else rows * columns
                    for name, (rows, columns) in (("a", shape_a), ("b", shape_b), ("c", (m, n)))
                ]
                batched_entry(dtype)(
                    count, trans_a, trans_b, m, n, k,
                    a.ctypes.data, shape_a[1], strides[0], b.ctypes.data, shape_b[1], strides[1],
                    c.ctypes.data, n, strides[2], add,
                )  # fmt: skip
                limit = 100 * np.finfo(dtype).eps
                np.testing.assert_allclose(c, expected, rtol=limit, atol=limit)


PARALLEL = """
from numba import float32
from numgrad.kernels.products.blas import parallel_gemm

def kernel(trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc):
    parallel_gemm(float32, trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, 0)
"""


@cache
def parallel_entry():
    return jit.compile_kernel(
        "test_parallel_gemm",
        PARALLEL,
        f"void({', '.join(['int64'] * 11)})",
        externals=[products.external("parallel_gemm", "float32")],
    ).entry


def test_shared_out_products_are_kept_on_disk():
    parallel_entry()
    (kernel,) = (k for k in jit._loaded.values() if k.name == "parallel_gemm_float32")
    assert not kernel.numba_reason
    assert list(disk.root().glob("parallel_gemm_float32-*.bin"))


def test_products_are_compiled_without_numba():
    for dtype in blas.DTYPES:
        products.compile_function(f"gemm_{dtype}")
        products.compile_function(f"batched_gemm_{dtype}")
    kernels = [k for k in jit._loaded.values() if k.name.startswith(("gemm_", "batched_gemm_"))]
    assert len(kernels) >= 8
    assert not any(k.numba_reason for k in kernels)


def shared_out(count, trans_a, trans_b, a, b, c):
    """The product of float32 matrices by at most ``count`` threads."""
    (m, n), k = c.shape, a.shape[0 if trans_a else 1]
    threads.launch(
        parallel_entry(), count, trans_a, trans_b, m, n, k,
        a.ctypes.data, a.shape[1], b.ctypes.data, b.shape[1], c.ctypes.data, n,
    )  # fmt: skip
    return c


def test_shared_out_products_have_the_bits_of_those_of_one_thread():
    rng = np.random.default_rng(4)
    for m, n, k in ((133, 70, 300), (6, 700, 800), (1, 1700, 1700), (1700, 1, 1700), (130, 131, 5)):
        for trans_a, trans_b in ((0, 0), (1, 0), (0, 1)):
            a = draw(rng, "float32", *((k, m) if trans_a else (m, k)))
            b = draw(rng, "float32", *((n, k) if trans_b else (k, n)))
            alone = np.empty((m, n), np.float32)
            gemm_entry("float32")(
                trans_a, trans_b, m, n, k, a.ctypes.data, a.shape[1], b.ctypes.data, b.shape[1],
                alone.ctypes.data, n, 0, 1,
            )  # fmt: skip
            for count in range(1, numba_threads() + 1):
                c = np.empty((m, n), np.float32)
                np.testing.assert_array_equal(shared_out(count, trans_a, trans_b, a, b, c), alone)


def numba_threads():
    from numba import config

    return config.NUMBA_NUM_THREADS


def product(m=70, n=80, k=90):
    """A product large enough for BLAS."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(m, k)), rng.normal(size=(k, n))
    c = np.empty((m, n))
    gemm_entry("float64")(0, 0, m, n, k, a.ctypes.data, k, b.ctypes.data, n, c.ctypes.data, n, 0, 0)
    np.testing.assert_allclose(c, a @ b, rtol=1e-11, atol=1e-11)
    return c


def test_another_process_loads_it_without_the_rest_of_scipy():
    compile_gemm("float64")
    program = (
        "import sys\n"
        "from tests.kernels import test_blas\n"
        "print(test_blas.compile_gemm('float64').from_cache, 'scipy.linalg' in sys.modules)\n"
        "test_blas.product()\n"
        "import scipy.linalg.cython_blas\n"
        "print(hasattr(scipy.linalg, 'cython_blas'))\n"
    )
    root = Path(jit.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(root)},
        cwd=root,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.split() == ["True", "False", "True"]


def test_python_threads_may_multiply_at_once():
    expected = product()
    failures = []

    def work():
        try:
            for _ in range(20):
                np.testing.assert_allclose(product(), expected, rtol=1e-13, atol=1e-13)
        except Exception as error:
            failures.append(error)

    workers = [Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert not failures


def both_ways():
    """A product by BLAS, and one shared out to as many threads as are safe."""
    a = draw(np.random.default_rng(5), "float32", 200, 200)
    out = np.empty((200, 200), np.float32)
    return product(), shared_out(threads.worth(1e9), 0, 0, a, a, out)


def _child(queue):
    queue.put(both_ways())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_products_after_fork():
    expected = both_ways()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_child, args=(queue,))
    child.start()
    found = queue.get(timeout=120)
    child.join(60)
    assert child.exitcode == 0
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(found[1], expected[1])
