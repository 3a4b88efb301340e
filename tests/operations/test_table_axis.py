"""Operations along axes: values, dtypes, layouts, empty and special operands, gradients."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.core.plan import Call
from numgrad.testing.samples import AXES, LAYOUTS, draw
from tests.operations.reference import (
    ALONG_AXES,
    assert_same,
    by_name,
    of_our_own,
    reference,
    result_dtype,
)
from tests.quiet import quiet

pytestmark = pytest.mark.slow

DTYPES = ["bool", "int8", "uint8", "int64", "float32", "float64", "complex128"]
SMOOTH = [op for op in ALONG_AXES if op.formulas]
FAST = {"float32": 2e-6, "complex128": 1e-13, "float64": 1e-13}


INTEGERS = DTYPES[:4]


def calls(op, dtype):
    """Shapes and axes to try: all of them in float64, rows and columns otherwise.

    Integers are converted as they are read, in rows as in columns, and kernels for columns are the
    longest to compile: each operation meets columns of one of the four dtypes, and columns alone
    or in a stack of float32, the other of complex numbers.
    """
    turn = ALONG_AXES.index(op)
    if dtype == "float64":
        return AXES
    if dtype in INTEGERS:
        return AXES[2:5] if turn % len(INTEGERS) == INTEGERS.index(dtype) else AXES[3:4]
    return AXES[3], AXES[2 if (turn + (dtype == "float32")) % 2 else 4]


def parameters(op, axis, keepdims):
    if not op.keeps_shape:
        return {"axis": axis, "keepdims": keepdims}
    return {"axis": axis}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", **by_name(ALONG_AXES))
def test_value_and_dtype(op, dtype):
    for k, (shape, axis) in enumerate(calls(op, dtype)):
        x = draw(op, shape, dtype)
        params = parameters(op, axis, bool(k % 2))
        # SciPy computes 8-bit integers in float16, and no bool
        given = x.astype(float) if op.keeps_shape and x.dtype.kind in "biu" else x
        try:
            expected = np.asarray(quiet(reference(op), given, **params))
        except TypeError:
            with pytest.raises(TypeError, match=op.name):
                op(ng.tensor(x), **params)
            return
        actual = op(ng.tensor(x), **params).numpy()
        if isinstance(op.ref, str) or of_our_own(op):  # with dtype rules of their own
            expected = expected.astype(actual.dtype)
            assert actual.dtype.kind in "fc"
        rtol = FAST.get(dtype, 1e-13 if actual.dtype != np.float32 else 2e-6)
        assert_same(actual, expected, rtol, signs=False)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", **by_name(ALONG_AXES))
def test_operands_that_are_not_contiguous(op, layout):
    x = LAYOUTS[layout](draw(op, (3, 4, 5)))
    before = x.copy()
    actual = op(ng.asarray(x), axis=1).numpy()
    assert_same(actual, np.asarray(reference(op)(x, axis=1)), 1e-13, signs=False)
    np.testing.assert_array_equal(x, before)
    if op.formulas:
        a, b = ng.asarray(x).requires_grad_(), ng.tensor(before.copy(), requires_grad=True)
        g = np.random.default_rng(0).standard_normal(actual.shape)
        op(a, axis=1).backward(np.asfortranarray(g))
        op(b, axis=1).backward(g)
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("op", **by_name(ALONG_AXES))
def test_special_values(op):
    rows = [[1.0, np.nan, 2.0], [1.0, np.inf, 2.0], [-np.inf, 1.0, 2.0], [np.inf, -np.inf, 1.0],
            [0.0, 0.0, 0.0], [-np.inf] * 3, [np.inf] * 3, [1e300, 1e300, 1e300]]  # fmt: skip
    x = np.array(rows)
    if op.name == "log_softmax":  # SciPy has -inf beside an infinity, torch and numgrad NaN
        x = x[~np.isposinf(x).any(axis=1)]
    for axis, operand in ((1, x), (0, np.ascontiguousarray(x.T))):
        expected = quiet(reference(op), operand, axis=axis)
        assert_same(op(ng.tensor(operand), axis=axis).numpy(), expected, 1e-13, signs=False)


@pytest.mark.parametrize("op", **by_name(ALONG_AXES))
def test_empty(op):
    none_left = ng.tensor(np.ones((0, 3)))
    out = op(none_left, axis=1)
    assert out.shape == ((0, 3) if op.keeps_shape else (0,))
    if not op.empty and not op.keeps_shape:
        with pytest.raises(ValueError, match=rf"{op.name}.*\(0, 3\)"):
            op(none_left, axis=0)
        return
    if op.keeps_shape:
        assert op(none_left, axis=0).shape == (0, 3)
        return
    expected = quiet(reference(op), np.ones((0, 3)), axis=0)
    assert_same(op(none_left, axis=0).numpy(), expected, 0, signs=False)
    if op.formulas:
        x = ng.tensor(np.ones((0, 3)), requires_grad=True)
        y = op(x, axis=0)
        y.backward(np.ones(y.shape))
        assert x.grad.shape == (0, 3)


@pytest.mark.parametrize("op", **by_name(ALONG_AXES))
def test_errors(op):
    x = ng.tensor(np.ones((2, 3)))
    with pytest.raises(IndexError, match=rf"{op.name}.*axis 2"):
        op(x, axis=2)
    with pytest.raises(ValueError, match=op.name):
        op(x, axis=(0, 0))
    with pytest.raises(TypeError, match=op.name):
        op(np.ones(3, np.float16))
    with pytest.raises(TypeError, match=rf"{op.name}.*nonsense"):
        op(x, nonsense=1)


@pytest.mark.parametrize("op", **by_name(ALONG_AXES))
def test_zero_dimensional(op):
    x = np.float64(0.7)
    params = {} if not op.keeps_shape else {"axis": None}
    expected = np.asarray(quiet(reference(op), x, **params))
    assert_same(op(ng.tensor(x), **params).numpy(), expected, 1e-13, signs=False)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("op", **by_name(SMOOTH))
def test_kernel_is_the_formula(op):
    columns, rows, both = AXES[2], AXES[3], AXES[5]
    # Of float32 one way of each operation: it differs by the types of constants alone
    single = (columns, rows)[SMOOTH.index(op) % 2]
    for dtype, places in ((np.float64, (columns, rows, both)), (np.float32, (single,))):
        for shape, axis in places:
            x = draw(op, shape, dtype)
            params = {**op.params, "axis": axis}
            out, plan = op.run((x,), params)
            g = draw(op, out.shape, out.dtype, 7)
            saved = [{"x": x, "y": out}[name] for name in plan.saves(1)]
            (expected,), _ = Call.backward(plan, 1, g, saved)
            (actual,), owned = plan.backward(1, g, saved)
            assert owned == 1
            assert actual.shape == x.shape
            assert actual.dtype == x.dtype
            rtol = 1e-12 if dtype == np.float64 else 1e-4
            np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol / 10)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "var", "std"])
def test_dtype_parameter(name):
    op = ng.ops[name].op
    x = draw(op, (3, 4), np.float32)
    out = op(ng.tensor(x, requires_grad=True), axis=0, dtype=np.float64)
    expected = reference(op)(x, axis=0, dtype=np.float64)
    assert_same(out.numpy(force=True), expected, 1e-6)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("ddof", [0, 1, 3])
def test_degrees_of_freedom(name, ddof):
    x = draw(ng.ops[name].op, (3, 4))
    expected = quiet(getattr(np, name), x, axis=0, ddof=ddof)
    actual = getattr(np, name)(ng.tensor(x), axis=0, ddof=ddof)
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-13)
    assert result_dtype(expected.dtype) == actual.dtype
