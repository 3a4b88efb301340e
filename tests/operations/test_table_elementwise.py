"""Values and dtypes of the elementwise table against NumPy and SciPy."""

import mpmath
import numpy as np
import pytest

import numgrad as ng
from tests.operations.cases import prepare
from tests.operations.reference import (
    BINARY,
    ELEMENTWISE,
    assert_same,
    by_name,
    of_our_own,
    operands,
    reference,
    tolerance,
)
from tests.quiet import quiet

pytestmark = pytest.mark.slow

DTYPES = ["bool", "int8", "uint8", "int64", "float32", "float64", "complex128"]
# What computes floats converts these first: each such operation meets one of them
INTEGERS = DTYPES[:4]


UNLIKE = {  # SciPy's zeta(nan, 0) is inf; an infinite order becomes some integer there
    "zeta", "yn", "kn", "expn", "eval_hermite", "eval_hermitenorm", "spherical_jn", "spherical_yn",
    "spherical_in", "spherical_kn", "powm1", "stdtrit",
}  # fmt: skip
COARSE = {
    "powm1", "betaincinv", "betainccinv", "stdtrit", "fdtri", "chdtriv", "btdtria", "ncfdtri",
    "ker", "kerp", "kei",
}  # fmt: skip
"""What SciPy iterates or sums in float32, and we in float64."""


COMPLEX = {"zeta": np.vectorize(lambda s, z: complex(mpmath.zeta(float(s), complex(z))))}
"""What SciPy has for real operands only."""


def expected_or_none(op, args):
    function = reference(op)
    if getattr(args[-1], "dtype", None) == np.complex128:
        function = op.complex_ref or COMPLEX.get(op.name) or function
    try:
        return np.asarray(quiet(function, *args))
    except TypeError:
        return None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", **by_name(ELEMENTWISE))
def test_value_and_dtype(op, dtype):
    args = operands(op, dtype, special=op.name not in UNLIKE)
    if op.name.startswith("spherical") and dtype == "bool":
        return  # SciPy's functions of Python negate it
    if np.dtype(dtype).kind in "iu" and op.name in ("left_shift", "right_shift", "power"):
        args[1] = np.abs(args[1])
    if op.name == "reciprocal" and np.dtype(dtype).kind in "biu":
        args[0] = args[0][args[0] != 0]  # 1 / 0 of integers is whatever the CPU makes of it
    args = prepare(op, args)
    if op.real_only and dtype == "complex128":
        with pytest.raises(TypeError, match=op.name):
            op(*args)
        return
    expected = expected_or_none(op, args)
    if expected is None:
        with pytest.raises(TypeError):
            op(*args)
        return
    turn = INTEGERS[ELEMENTWISE.index(op) % len(INTEGERS)]
    # nothing is compiled for no element
    found = op(*[a[:0] for a in args]).dtype if dtype in INTEGERS else expected.dtype
    if found == np.float32 and dtype in INTEGERS and of_our_own(op):
        return
    if dtype in INTEGERS and found.kind == expected.dtype.kind == "f" and dtype != turn:
        return
    before = [a.copy() for a in args]
    actual = op(*[ng.tensor(a) for a in args]).numpy()
    rtol = max(tolerance(actual.dtype), tolerance(expected.dtype))
    if op.name in COARSE and expected.dtype == np.float32:
        rtol = 1e-3
    if not isinstance(op.ref, np.ufunc):  # SciPy's and our own have other dtype rules
        expected = expected.astype(actual.dtype)
    assert_same(actual, expected, rtol, op.signed_zeros and not of_our_own(op))
    for a, b in zip(args, before, strict=True):
        np.testing.assert_array_equal(a, b)


PROMOTED = [op for op in BINARY if not (op.real_only and of_our_own(op))]


@pytest.mark.parametrize("scalar", [2, 1.5])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("op", **by_name(PROMOTED))
def test_python_numbers_are_weak(op, dtype, scalar):
    array = operands(op, dtype, special=False)[0]
    for args in ((array, scalar), (scalar, array)):
        expected = expected_or_none(op, args)
        given = [ng.tensor(a) if a is array else a for a in args]
        if expected is None:
            with pytest.raises(TypeError):
                op(*given)
            continue
        if not isinstance(op.ref, np.ufunc):
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
