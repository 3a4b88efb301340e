"""Values and dtypes of the elementwise table against NumPy and SciPy."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.kernels.expr import kernel_dtype
from tests.ops.reference import (
    BINARY,
    ELEMENTWISE,
    NEURAL,
    OF_COMPLEX,
    assert_same,
    by_name,
    operands,
    reference,
    tolerance,
)
from tests.quiet import quiet

pytestmark = pytest.mark.slow

DTYPES = ["bool", "int8", "uint8", "int64", "float32", "float64", "complex128"]
# What computes floats converts these to float32 first: each such operation meets one of them
SMALL = DTYPES[:3]
# SciPy computes these for complex numbers, or for integers in a dtype of its own
REAL_ONLY = {"erf", "erfc", "erfinv", "gamma", "gammaln", "digamma", "zeta", *NEURAL}
REAL_ONLY -= {"absolute_error"}
OWN_DTYPES = REAL_ONLY | {"absolute_error", "sigmoid", "softplus", "logit", "from_parts", "where"}
# Of +0 and -0 NumPy takes either as the larger; others keep no sign worth promising
UNSIGNED_ZEROS = {
    "maximum", "minimum", "fmax", "fmin", "gammaln", "logaddexp", "logaddexp2", "softplus",
    "replace_nonfinite", *NEURAL,
}  # fmt: skip


def expected_or_none(op, args):
    function = reference(op)
    if getattr(args[0], "dtype", None) == np.complex128:
        function = OF_COMPLEX.get(op.name, function)
    try:
        return np.asarray(quiet(function, *args))
    except TypeError:
        return None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", **by_name(ELEMENTWISE))
def test_value_and_dtype(op, dtype):
    args = operands(op, dtype, special=op.name != "zeta")  # SciPy's has inf for zeta(nan, 0)
    if np.dtype(dtype).kind in "iu" and op.name in ("left_shift", "right_shift", "power"):
        args[1] = np.abs(args[1])
    if op.name == "where":
        args[0] = args[0].real > 0.5
    if op.name in REAL_ONLY and dtype == "complex128":
        with pytest.raises(TypeError, match=op.name):
            op(*args)
        return
    expected = expected_or_none(op, args)
    if expected is None:
        with pytest.raises(TypeError):
            op(*args)
        return
    turn = SMALL[ELEMENTWISE.index(op) % len(SMALL)]
    if dtype in SMALL and (op.name in NEURAL or (expected.dtype == np.float16 and dtype != turn)):
        # nothing is compiled for no element
        dtypes = {np.dtype(np.float32), kernel_dtype(expected.dtype)}
        assert op(*[a[:0] for a in args]).dtype in dtypes
        return
    before = [a.copy() for a in args]
    actual = op(*[ng.tensor(a) for a in args]).numpy()
    rtol = max(tolerance(actual.dtype), tolerance(expected.dtype))
    if op.name in OWN_DTYPES:
        expected = expected.astype(actual.dtype)
    assert_same(actual, expected, rtol, op.name not in UNSIGNED_ZEROS)
    for a, b in zip(args, before, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("scalar", [2, 1.5])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("op", **by_name([op for op in BINARY if op.name not in NEURAL]))
def test_python_numbers_are_weak(op, dtype, scalar):
    array = operands(op, dtype, special=False)[0]
    for args in ((array, scalar), (scalar, array)):
        expected = expected_or_none(op, args)
        given = [ng.tensor(a) if a is array else a for a in args]
        if expected is None:
            with pytest.raises(TypeError):
                op(*given)
            continue
        if op.name in OWN_DTYPES:
            expected = expected.astype(op(*given).dtype)
        assert_same(op(*given).numpy(), expected, tolerance(expected.dtype))


@pytest.mark.parametrize("dtype", ["complex64", "uint64", "int32"])
@pytest.mark.parametrize("name", ["multiply", "divide", "exp", "absolute", "power", "sign"])
def test_further_dtypes(name, dtype):
    test_value_and_dtype(ng.ops[name].op, dtype)


@pytest.mark.parametrize("pair", [("float32", "float64"), ("int64", "float32"), ("int8", "uint8"),
                                  ("bool", "int8"), ("complex64", "float64")])  # fmt: skip
@pytest.mark.parametrize("name", ["add", "maximum", "divide"])
def test_mixed_dtypes_promote(name, pair):
    op = ng.ops[name].op
    a, b = (operands(op, dtype, special=False)[k] for k, dtype in enumerate(pair))
    if "c" in (a.dtype.kind, b.dtype.kind) and name == "maximum":
        a = a.real
    assert_same(op(ng.tensor(a), ng.tensor(b)).numpy(), quiet(reference(op), a, b), 1e-6)


@pytest.mark.parametrize("op", **by_name(ELEMENTWISE))
def test_dtypes_without_kernels(op):
    for array in (np.ones(3, np.float16), np.array([1, "a", None], object)):
        with pytest.raises(TypeError, match=op.name):
            op(*[array] * len(op.inputs))
