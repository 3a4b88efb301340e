"""Python integers beside arrays of integers that do not hold them, as NumPy's answers."""

import operator

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradValueError
from tests.crossed import each_first

COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)
VALUES = (0, -1, 1000, -1000, 2**63 - 1, 2**63, -(2**63) - 1, 2**64 - 1, 2**70, -(2**70))


def answers(x, value):
    return np.stack([f(x, value) for f in COMPARISONS] + [np.less(value, x)])


FORMS = {"eager": lambda f: f, "jit": ng.jit, "vmap": ng.vmap}
DTYPES = ["int8", "uint64", "float32", "uint8", "int64"]


@pytest.mark.slow(cases=len(DTYPES))
@pytest.mark.parametrize(("dtype", "form"), each_first(DTYPES, [*FORMS]))
def test_comparisons(dtype, form):
    limits = np.iinfo(dtype) if dtype != "float32" else np.iinfo("int8")
    x = np.array([0, 1, limits.min, limits.max], dtype)
    expected = [answers(x, value) for value in VALUES]
    found = FORMS[form](lambda x: tuple(np.swapaxes(answers(x, v), 0, -1) for v in VALUES))(
        ng.tensor(x)
    )
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a.numpy().T, b)


@pytest.mark.parametrize("form", [lambda f: f, ng.jit])
def test_signed_beside_unsigned(form):
    signed = np.array([-1, 5, -(2**63), 2**63 - 1] * 5)
    unsigned = np.array([2**64 - 1, 5, 2**63, 2**63 - 1] * 5, np.uint64)
    for a, b in ((signed, unsigned), (unsigned, signed), (signed.astype(np.int8), unsigned)):
        found = form(lambda a, b: tuple(f(a, b) for f in COMPARISONS))(ng.tensor(a), ng.tensor(b))
        for f, ours in zip(COMPARISONS, found, strict=True):
            np.testing.assert_array_equal(ours.numpy(), f(a, b))


@pytest.mark.parametrize("form", [lambda f: f, ng.jit, ng.vmap])
def test_clip(form):
    x = np.array([1, -2, 100], np.int8)
    for low, high in ((0, 99999), (-1000, 50), (None, 200), (-999, 999), (-(2**70), 2**70)):
        found = form(lambda x: np.clip(x, low, high))(ng.tensor(x))  # noqa: B023
        assert found.dtype == np.int8
        np.testing.assert_array_equal(found.numpy(), np.clip(x, low, high))
    for low, high in ((200, None), (None, -200)):
        with pytest.raises(NumgradValueError, match="does not fit int8"):
            form(lambda x: np.clip(x, low, high))(ng.tensor(x))  # noqa: B023


def test_large_integers_beside_floats_in_compiled_functions():
    def f(x):
        return x * 2**63, np.maximum(x, -(2**70)), x + (2**54 + 1)

    for a, b in zip(ng.jit(f)(np.array([-1.0, 2.0])), f(np.array([-1.0, 2.0])), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "uint64"])
def test_integers_given_to_compiled_functions(dtype):
    """They are known at a call only, where they are checked."""
    x = np.arange(3).astype(dtype)
    compare = ng.jit(lambda x, k: answers(x, k))
    limit = ng.jit(lambda x, k: np.clip(x, None, k))
    add = ng.jit(lambda x, k: x + (k + 1))
    for k in (2, -1, -200, 70000, 2**62):
        np.testing.assert_array_equal(compare(x, k), answers(x, k))
        for compiled, plain in (
            (limit, lambda x, k: np.clip(x, None, k)),
            (add, lambda x, k: x + (k + 1)),
        ):
            try:
                expected = plain(x, k)
            except OverflowError:
                with pytest.raises(NumgradValueError, match=f"does not fit {dtype}"):
                    compiled(x, k)
            else:
                np.testing.assert_array_equal(compiled(x, k), expected)


@pytest.mark.parametrize(
    "name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
)
def test_comparisons_of_numbers_that_are_equal(name):
    ours, theirs = getattr(ng, name), getattr(np, name)
    for dtype in ("bool", "uint8", "int64", "float32", "float64"):
        a, b = np.array([0, 1, 1, 0], dtype), np.array([0, 1, 0, 1], dtype)
        np.testing.assert_array_equal(ours(ng.tensor(a), b).numpy(), theirs(a, b))
    a, b = np.array([0.0, -np.inf, np.nan, np.inf]), np.array([-0.0, -np.inf, np.nan, np.nan])
    np.testing.assert_array_equal(ours(ng.tensor(a), b).numpy(), theirs(a, b))


@pytest.mark.parametrize("exponent", [2.0, 1.0, 3.0, -1.0, 2, 1])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_integers_to_the_power_of_a_float_are_floats(dtype, exponent):
    x = np.array([3, 100, 7], dtype)
    if exponent == 2 and type(exponent) is int:
        x = x[[0, 2]]
    expected = x**exponent
    for found in (np.asarray(ng.tensor(x) ** exponent), ng.jit(lambda x: x**exponent)(x)):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_truth_to_a_power():
    x = np.array([True, False])
    for exponent in (1, 3, 1.0, 2.0):
        for power in (ng.jit(lambda x, k=exponent: x**k)(x), np.asarray(ng.tensor(x) ** exponent)):
            np.testing.assert_array_equal(power, x**exponent)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8"])
def test_closeness_of_what_has_no_differences(dtype):
    a, b = np.array([0, 1, 127, 0]).astype(dtype), np.array([1, 1, 0, 0]).astype(dtype)
    for tolerance in (1e-5, 0.6):
        expected = np.isclose(a, b, rtol=0, atol=tolerance)
        assert np.array_equal(ng.isclose(ng.tensor(a), ng.tensor(b), 0, tolerance), expected)
    limits = np.array([-128, 127], np.int8)
    assert ng.isclose(ng.tensor(limits), ng.tensor(limits[::-1]), 0, 1).tolist() == [False, False]
