"""Axis programs against NumPy, SciPy and exact sums; serial against parallel."""

import math

import numpy as np
import pytest
import scipy.special

import numgrad as ng
from numgrad.codegen import reductions, threads
from numgrad.codegen.reductions import ReductionOperand, axis_kernel
from numgrad.codegen.symbols import AXIS, Reader
from tests.quiet import quiet

pytestmark = pytest.mark.slow

BLOCK = reductions.BLOCK
TILE = reductions.TILE
CHUNK = reductions.CHUNK


# --------------------------------------------------------------------------------- formulas


def total(x, axis):
    return np.sum(x, axis=axis, keepdims=True)


def product(x, axis):
    return np.prod(x, axis=axis, keepdims=True)


def largest(x, axis):
    return np.max(x, axis=axis, keepdims=True)


def smallest(x, axis):
    return np.min(x, axis=axis, keepdims=True)


def anything(x, axis):
    return np.any(x, axis=axis, keepdims=True)


def everything(x, axis):
    return np.all(x, axis=axis, keepdims=True)


def spread(x, axis):
    return np.max(x, axis=axis, keepdims=True) - np.min(x, axis=axis, keepdims=True)


def variance(x, n, axis):
    deviation = x - np.sum(x, axis=axis, keepdims=True) / n
    return np.sum(np.square(deviation), axis=axis, keepdims=True) / (n - 1)


def logsumexp(x, axis):
    m = np.max(x, axis=axis, keepdims=True)
    m = np.where(np.isfinite(m), m, 0.0)
    return np.log(np.sum(np.exp(x - m), axis=axis, keepdims=True)) + m


def softmax(x, axis):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def softmax_vjp(g, y, axis):
    return y * (g - np.sum(g * y, axis=axis, keepdims=True))


def sum_vjp(g, axis):
    return g


def logsumexp_vjp(g, x, y, axis):
    return g * np.exp(x - y)


def curvature(x, axis):
    return np.sum(np.sin(x) * x, axis=axis, keepdims=True)


def build(formula, operands, out_role, columns, *, parallel=False, accumulate=False):
    reader = Reader()
    operands = [ReductionOperand(name, role, np.dtype(dtype)) for name, role, dtype in operands]
    inputs = [reader.input(o.name, o.dtype) for o in operands]
    output = reader.lift(formula(*inputs, axis=AXIS))
    return axis_kernel(
        formula.__name__,
        reader,
        output,
        operands,
        out_role=out_role,
        columns=columns,
        parallel=parallel,
        accumulate=accumulate,
    ), np.dtype(output.dtype)


def run(built, shape, arguments, out_role="reduced", number_of_threads=0, out=None):
    """Call a kernel on operands of shape (o, r, i), (o, 1, i) or ()."""
    kernel, dtype = built
    outer, _, inner = shape
    out_shape = shape if out_role == "full" else (outer, 1, inner)
    if out is None:
        out = np.full(out_shape, 77, dtype)
    sizes = shape if "outer, length, inner):" in kernel.source else shape[:2]
    flat = [a.ravel() if isinstance(a, np.ndarray) else a for a in arguments]
    call = (*flat, out.reshape(-1), *sizes)
    if number_of_threads:
        threads.launch(kernel.entry, number_of_threads, *call)
    else:
        kernel.entry(*call)
    return out


ROW_SHAPES = [
    (3, n, 1) for n in (1, 2, 7, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5)
] + [(0, 3, 1), (40, 5, 1)]  # fmt: skip
COLUMN_SHAPES = [
    (2, 3, 1), (1, 1, 5), (3, 10, 4), (1, 5, TILE - 1), (1, 5, TILE), (2, 5, TILE + 1),
    (1, 3 * CHUNK + 1, 200), (1, 20_011, 2), (0, 2, 3), (2, 2, 0), (1, CHUNK + 1, 1030),
    (1, 3 * (TILE // 4) + 10, 4),
]  # fmt: skip


def shapes(columns):
    return COLUMN_SHAPES if columns else ROW_SHAPES


def operand(rng, shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.9
    if dtype.kind in "iu":
        return rng.integers(0, 100, shape).astype(dtype)
    x = rng.standard_normal(shape)
    if dtype.kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


both_layouts = pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])


# ------------------------------------------------------------------------------------- tests


@both_layouts
@pytest.mark.parametrize(
    ("formula", "dtype"),
    [
        (total, "float64"), (total, "float32"), (total, "complex128"), (total, "int8"),
        (total, "bool"), (product, "float32"), (product, "complex64"), (largest, "float32"),
        (largest, "int16"), (largest, "bool"), (smallest, "float64"), (smallest, "uint8"),
        (anything, "float64"), (everything, "bool"),
        (spread, "float64"),
    ],
)  # fmt: skip
def test_reduction_matches_numpy(formula, dtype, columns):
    rng = np.random.default_rng(1)
    built = build(formula, [("x", "full", dtype)], "reduced", columns)
    for shape in shapes(columns):
        x = operand(rng, shape, dtype)
        if formula is product:
            x = (x / np.where(x == 0, 1, abs(x)) * 1.001).astype(dtype)
        expected = formula(x, axis=1)
        got = run(built, shape, [x])
        assert got.dtype == built[1]
        if got.dtype.kind in "fc" and formula in (total, product):
            eps = np.finfo(got.dtype).eps
            scale = np.sum(abs(x), axis=1, keepdims=True) if formula is total else abs(expected)
            # NumPy adds rows and multiplies one by one
            assert np.all(abs(got - expected) <= eps * (8 + shape[1]) * scale), shape
        else:
            np.testing.assert_array_equal(got, expected, err_msg=str(shape))


@both_layouts
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sum_is_as_accurate_as_pairwise_summation(dtype, columns):
    rng = np.random.default_rng(2)
    shape = (1, 100_003, 3) if columns else (3, 100_003, 1)
    x = (rng.random(shape) + 1e-3).astype(dtype)
    built = build(total, [("x", "full", dtype)], "reduced", columns)
    got = run(built, shape, [x]).ravel()
    rows = np.ascontiguousarray(np.moveaxis(x, 1, 2)).reshape(3, -1)
    exact = np.array([math.fsum(row) for row in rows.astype("float64")])
    ulp = np.finfo(dtype).eps * exact
    assert np.all(abs(got.astype("float64") - exact) <= 1.0 * ulp)
    # pairwise summation of contiguous rows is the better of NumPy's two
    worst_numpy = np.max(abs(np.sum(rows, axis=1).astype("float64") - exact) / ulp)
    assert np.max(abs(got - exact) / ulp) <= max(1.0, worst_numpy)


@both_layouts
def test_compensation_across_blocks(columns):
    """Blocks of very different size cancel without loss."""
    length = 4 * BLOCK if not columns else 4 * CHUNK * TILE
    part = length // 4
    x = np.concatenate([np.full(part, v) for v in (1e16, 1.0, 1.0, -1e16)])
    built = build(total, [("x", "full", "float64")], "reduced", columns)
    assert run(built, (1, length, 1), [x]).item() == 2.0 * part


@both_layouts
def test_sums_of_special_values(columns):
    built = build(total, [("x", "full", "float64")], "reduced", columns)
    length = 3 * max(BLOCK, CHUNK * TILE) + 1
    x = np.ones(length)
    big = np.finfo(float).max
    for places, expected in [
        ({0: np.inf}, np.inf),
        ({length - 1: -np.inf}, -np.inf),
        ({0: np.inf, length - 1: np.inf}, np.inf),
        ({0: np.inf, length - 1: -np.inf}, np.nan),
        ({length // 2: np.nan}, np.nan),
        ({0: big, length - 1: big}, np.inf),
    ]:
        z = x.copy()
        for place, value in places.items():
            z[place] = value
        np.testing.assert_array_equal(run(built, (1, length, 1), [z]).item(), expected)
    assert math.copysign(1, run(built, (1, 3, 1), [np.full(3, -0.0)]).item()) == 1


@both_layouts
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_extremes_propagate_nan(dtype, columns):
    rng = np.random.default_rng(3)
    length = 2 * BLOCK + 3
    for formula in (largest, smallest):
        built = build(formula, [("x", "full", dtype)], "reduced", columns)
        for place in (0, 5, BLOCK, length - 1):
            x = operand(rng, (1, length, 1), dtype)
            x[0, place] = -np.nan if dtype == "float64" else complex(0, np.nan)
            assert np.isnan(run(built, x.shape, [x]).item())
        x = np.full((1, 9, 1), -np.inf, dtype)
        np.testing.assert_array_equal(run(built, x.shape, [x]), quiet(formula, x, axis=1))
        x = np.full((1, 9, 1), np.inf, dtype)
        np.testing.assert_array_equal(run(built, x.shape, [x]), quiet(formula, x, axis=1))


@pytest.mark.parametrize("shape", [(9, 1500), (130, 1030), (2000, 70), (3, 67, 40)])
def test_columns_in_tiles_and_as_one_stream(shape):
    rng = np.random.default_rng(1)
    x = rng.standard_normal(shape)
    x[rng.random(shape) < 1e-3] = np.nan
    for name in ("max", "min", "sum", "mean"):
        y = getattr(ng, name)(ng.tensor(x), axis=0).numpy()
        np.testing.assert_allclose(y, getattr(np, name)(x, axis=0), rtol=1e-11, atol=1e-11)


def test_complex_extremes_are_lexicographic():
    rng = np.random.default_rng(4)
    x = (rng.integers(0, 3, (50, 7, 1)) + 1j * rng.integers(0, 9, (50, 7, 1))).astype("complex128")
    for formula in (largest, smallest):
        built = build(formula, [("x", "full", "complex128")], "reduced", False)
        np.testing.assert_array_equal(run(built, x.shape, [x]), quiet(formula, x, axis=1))


@both_layouts
def test_empty_axis_gives_the_identity(columns):
    for formula, dtype in [(total, "float64"), (product, "float64"), (anything, "float64")]:
        built = build(formula, [("x", "full", dtype)], "reduced", columns)
        x = np.empty((2, 0, 3 if columns else 1), dtype)
        np.testing.assert_array_equal(run(built, x.shape, [x]), quiet(formula, x, axis=1))


@pytest.mark.slow(cases=0)
@both_layouts
def test_variance_and_logsumexp(columns):
    rng = np.random.default_rng(5)
    dtype = "float32"
    tolerance = 8 * np.finfo(dtype).eps
    operands = [("x", "full", dtype), ("n", "scalar", dtype)]
    var = build(variance, operands, "reduced", columns)
    lse = build(logsumexp, operands[:1], "reduced", columns)
    for shape in shapes(columns):
        x = operand(rng, shape, dtype) + np.dtype(dtype).type(3)
        got = run(lse, shape, [x])
        wide = x.astype("float64")
        if got.size:
            expected = scipy.special.logsumexp(wide, axis=1, keepdims=True)
            np.testing.assert_allclose(got, expected, rtol=tolerance, err_msg=str(shape))
        if shape[1] > 1:
            got = run(var, shape, [x, np.dtype(dtype).type(shape[1])])
            expected = np.var(wide, axis=1, ddof=1, keepdims=True)
            np.testing.assert_allclose(got, expected, rtol=tolerance, err_msg=str(shape))


def test_logsumexp_of_infinities():
    built = build(logsumexp, [("x", "full", "float64")], "reduced", False)
    for values in ([-np.inf] * 3, [np.inf, 1.0, 2.0], [-np.inf, 1.0, -np.inf], [np.nan, 1.0, 2.0]):
        got = run(built, (1, 3, 1), [np.array(values)]).item()
        expected = quiet(scipy.special.logsumexp, values)
        np.testing.assert_allclose(got, expected, rtol=1e-15)


@both_layouts
def test_full_outputs(columns):
    rng = np.random.default_rng(6)
    forward = build(softmax, [("x", "full", "float64")], "full", columns)
    backward = build(
        softmax_vjp, [("g", "full", "float64"), ("y", "full", "float64")], "full", columns
    )
    mixed = build(
        logsumexp_vjp,
        [("g", "reduced", "float64"), ("x", "full", "float64"), ("y", "reduced", "float64")],
        "full",
        columns,
    )
    for shape in shapes(columns):
        if not math.prod(shape):
            continue
        x, g = operand(rng, shape, "float64"), operand(rng, shape, "float64")
        y = scipy.special.softmax(x, axis=1)
        np.testing.assert_allclose(run(forward, shape, [x], "full"), y, rtol=1e-13)
        np.testing.assert_allclose(
            run(backward, shape, [g, y], "full"), softmax_vjp(g, y, 1), rtol=1e-11, atol=1e-14
        )
        g = operand(rng, (shape[0], 1, shape[2]), "float64")
        level = scipy.special.logsumexp(x, axis=1, keepdims=True)
        np.testing.assert_allclose(run(mixed, shape, [g, x, level], "full"), g * y, rtol=1e-13)


def test_a_value_needed_again_is_kept_in_the_output():
    kernel, _ = build(softmax, [("x", "full", "float64")], "full", False)
    assert kernel.source.count("exp_f64(") == 1
    adding, _ = build(softmax, [("x", "full", "float64")], "full", False, accumulate=True)
    assert adding.source.count("exp_f64(") == 2


@both_layouts
def test_accumulate(columns):
    rng = np.random.default_rng(7)
    shape = (3, 11, 5) if columns else (3, 11, 1)
    g = operand(rng, (3, 1, shape[2]), "float64")
    x = operand(rng, shape, "float64")
    for formula, operands, arguments, role in [
        (sum_vjp, [("g", "reduced", "float64")], [g], "full"),
        (softmax, [("x", "full", "float64")], [x], "full"),
        (total, [("x", "full", "float64")], [x], "reduced"),
    ]:
        built = build(formula, operands, role, columns, accumulate=True)
        before = operand(rng, shape if role == "full" else g.shape, "float64")
        got = run(built, shape, arguments, role, out=before.copy())
        value = formula(*arguments, axis=1)
        np.testing.assert_allclose(got, before + value, rtol=1e-12, atol=1e-14)


def test_rare_arguments():
    x = np.array([[1e22, 0.5, -3e15, 2.0]]).reshape(1, 4, 1)
    built = build(curvature, [("x", "full", "float64")], "reduced", False)
    np.testing.assert_allclose(run(built, x.shape, [x]), curvature(x, 1), rtol=1e-15)


@pytest.mark.slow(cases=0)
@both_layouts
@pytest.mark.parametrize(
    ("formula", "role", "dtype"),
    [(total, "reduced", "float32"), (softmax, "full", "float64")],
    ids=["sum", "softmax"],
)
def test_threads_do_not_change_a_bit(formula, role, dtype, columns):
    rng = np.random.default_rng(8)
    operands = [("x", "full", dtype)]
    serial = build(formula, operands, role, columns)
    parallel = build(formula, operands, role, columns, parallel=True)
    many = [(1, 40_000, 3), (1, 20 * CHUNK, 300), (30, 9, 40)]
    long = [(1, 50_001, 1), (3, 9 * BLOCK, 1), (100, 37, 1)]
    for shape in [*(many if columns else long), *shapes(columns)]:
        x = operand(rng, shape, dtype)
        expected = run(serial, shape, [x], role)
        for number_of_threads in (1, 2):
            got = run(parallel, shape, [x], role, number_of_threads)
            np.testing.assert_array_equal(got, expected, err_msg=f"{shape} {number_of_threads}")
