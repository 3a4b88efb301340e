"""Real operands beside complex ones, inside the real domain and outside of it.

The logarithm of a negative base is no real number where the exponent is complex. Values are those
of NumPy and SciPy for operands converted to complex numbers, gradients central differences.
"""

import importlib
import itertools

import numpy as np
import pytest

import numgrad as ng
from numgrad.core.elementwise import Elementwise
from numgrad.core.op import OPS
from numgrad.operations.lazy_operations import declare_all
from numgrad.testing import gradgradcheck
from tests.crossed import each_first
from tests.operations.reference import by_name

declare_all()

REAL = [-2.3, -0.7, 0.4, 1.8]
COMPLEX = [0.7 + 0.4j, -1.2 - 0.3j]
ZEROS = [0.0, -0.0]
STEP = 1e-6

MIXED = [
    op
    for op in list(OPS.values())
    if isinstance(op, Elementwise)
    and op.__module__.startswith("numgrad.operations")
    and len(op.inputs) > 1
    and op.differentiable
    and not (op.real_only or op.internal or op.name == "where")
]
BINARY = [op for op in MIXED if len(op.inputs) == 2 and not op.real_beside]
STEEP = {"eval_jacobi", "eval_sh_jacobi", "eval_gegenbauer"}
"""Whose values are huge outside of the domain of their parameters: differences are of no use."""


def kinds_of(op):
    """Which operands are complex, where some are and some are not."""
    every = itertools.product("rc", repeat=len(op.inputs) - op.real_beside)
    kinds = ["r" * op.real_beside + "".join(kind) for kind in every]
    return [kind for kind in kinds if "c" in kind and "r" in kind]


def operands(op, kinds, real=REAL):
    """All combinations of points, each operand along one axis; a few where they are many."""
    inside = [0.4, 1.8] if op.name in STEEP else real
    points = [inside if kind == "r" else COMPLEX for kind in kinds]
    grid = list(itertools.product(*points))
    grid = grid[:: max(1, len(grid) // 24)]
    return [
        np.array(column, complex if kind == "c" else float)
        for kind, column in zip(kinds, zip(*grid, strict=True), strict=True)
    ]


def reference(op):
    if isinstance(op.ref, str):
        home, _, name = op.ref.rpartition(".")
        return getattr(importlib.import_module(home), name)
    return op.ref


def differences(call, given, k, weight):
    """Gradients of the real part of ``conj(weight) * call`` by one operand."""

    def slope(step):
        high, low = ([*given[:k], given[k] + s, *given[k + 1 :]] for s in (step, -step))
        change = np.asarray(call(*high)) - np.asarray(call(*low))
        return np.real(np.conj(weight) * change / (2 * STEP))

    if given[k].dtype.kind != "c":
        return slope(STEP)
    return slope(STEP) + 1j * slope(1j * STEP)


def differentiable(op):
    return [
        k
        for k, name in enumerate(op.inputs)
        if k >= op.real_beside and name in op.formulas and name not in op.refused
    ]


@pytest.mark.parametrize("op", **by_name(MIXED))
def test_values_are_those_of_promoted_operands(op):
    function = reference(op)
    for kinds in kinds_of(op):
        for real in (REAL, ZEROS):
            given = operands(op, kinds, real)
            promoted = [a if k < op.real_beside else a + 0j for k, a in enumerate(given)]
            with np.errstate(all="ignore"):
                values = np.asarray(op(*given))
                np.testing.assert_allclose(values, op(*promoted), rtol=1e-12, atol=1e-14)
                if function is not None and op.name != "zeta":  # SciPy's takes no complex place
                    expected = function(*promoted)
                    np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("op", **by_name(MIXED))
def test_gradients_outside_of_the_real_domain(op):
    """Of several operands each is once real and once complex."""
    first, *_, last = kinds_of(op) * 2  # in the last those are complex that are not in the first
    _check_first(op, (0.6 - 0.8j,), compiled=False, among=dict.fromkeys((first, last)))


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("op", **by_name(MIXED))
def test_every_gradient_outside_of_the_real_domain(op):
    _check_first(op, (1.0, 1j), compiled=op in BINARY)


@pytest.mark.parametrize("op", **by_name([op for op in BINARY if "pow" in op.name]))
def test_compiled_gradients_outside_of_the_real_domain(op):
    _check_first(op, (1.0,), compiled=True)


def _check_first(op, weights, compiled, among=None):
    for kinds in among or kinds_of(op):
        given = operands(op, kinds)
        finite = np.isfinite(op(*given))
        given = [a[finite] for a in given]
        for k in differentiable(op):
            for weight in weights:
                expected = differences(op, given, k, weight)

                def real_part(x, k=k, weight=weight, given=given):
                    return np.real(np.conj(weight) * op(*given[:k], x, *given[k + 1 :]))

                def total(x, real_part=real_part):
                    return np.sum(real_part(x))

                found = ng.grad(total)(given[k])
                close = {"rtol": 2e-5, "atol": 2e-7, "err_msg": f"{kinds} {k} {weight}"}
                np.testing.assert_allclose(found, expected, **close)
                moved = ng.jvp(real_part, (given[k],), (np.ones_like(given[k]),))[1]
                np.testing.assert_allclose(moved, expected.real, **close)
                if compiled and weight == 1.0:
                    again = ng.jit(ng.grad(total))(given[k])
                    np.testing.assert_allclose(again, found, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("op", **by_name([op for op in BINARY if op.name.startswith("x")]))
def test_second_derivatives_outside_of_the_real_domain(op):
    _check_second(op)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("op", **by_name([op for op in MIXED if op.name not in STEEP]))
def test_every_second_derivative_outside_of_the_real_domain(op):
    _check_second(op)


def _check_second(op):
    for kinds in kinds_of(op):
        given = operands(op, kinds)
        finite = np.isfinite(op(*given))
        followed = differentiable(op)
        tensors = [
            ng.tensor(a[finite][::3], requires_grad=k in followed) for k, a in enumerate(given)
        ]
        assert gradgradcheck(op, tensors, rtol=1e-3, atol=1e-5)


SCALARS = [-2.0, 0.7 + 0.4j]
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


UFUNCS = [op for op in BINARY if isinstance(op.ref, np.ufunc)]
PAIRS = [
    (a, b)
    for a, b in itertools.product(DTYPES, DTYPES)
    if np.dtype(a).kind != np.dtype(b).kind
]  # fmt: skip


@pytest.mark.slow(cases=len(UFUNCS))
@pytest.mark.parametrize(
    ("op", "part"),
    each_first(UFUNCS, range(4)),
    ids=lambda given: given if isinstance(given, int) else given.name,
)
def test_dtypes_of_mixed_operands_are_numpys(op, part):
    for a, b in PAIRS[part::4]:
        x, y = np.array([0.5, 1.5]).astype(a), np.array([-2.0, 0.25]).astype(b)
        _same(op, x, y)
    for dtype, scalar in itertools.product(DTYPES, SCALARS):
        if np.dtype(dtype).kind == np.asarray(scalar).dtype.kind:
            continue
        x = np.array([-0.5, 1.5]).astype(dtype)
        _same(op, x, scalar)
        _same(op, scalar, x)


def _same(op, a, b):
    with np.errstate(all="ignore"):
        found, expected = op(a, b), op.ref(a, b)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["power", "float_power", "xlogy", "xlog1py"])
def test_python_numbers_beside_a_complex_operand(name):
    op = OPS[name]
    for number in (-2.0, -3):
        z = np.array(COMPLEX)
        for call in (lambda z, n=number: op(n, z), lambda z, n=number: op(z, n)):
            expected = differences(call, [z], 0, 1.0)
            total = lambda z, call=call: np.sum(np.real(call(z)))  # noqa: E731
            for derive in (ng.grad(total), ng.jit(ng.grad(total))):
                np.testing.assert_allclose(derive(z), expected, rtol=1e-6)
            holomorphic = ng.grad(lambda z, call=call: np.sum(call(z)), holomorphic=True)
            np.testing.assert_allclose(holomorphic(z), np.conj(expected), rtol=1e-6)


def test_the_derivative_of_a_negative_number_to_a_complex_power():
    """By hand: ``(-2)**z`` has the derivative ``(-2)**z * (log(2) + i pi)``."""
    z = 0.3 + 0.8j
    exact = (-2 + 0j) ** z * (np.log(2) + 1j * np.pi)
    for f in (np.power, np.float_power):
        got = ng.grad(lambda z, f=f: f(-2.0, z), holomorphic=True)(z)
        np.testing.assert_allclose(got, exact, rtol=1e-13)
        again = ng.grad(lambda z, f=f: ng.grad(lambda z: f(-2.0, z), holomorphic=True)(z),
                        holomorphic=True)(z)  # fmt: skip
        np.testing.assert_allclose(again, exact * (np.log(2) + 1j * np.pi), rtol=1e-13)
    np.testing.assert_allclose(
        ng.grad(lambda z: ng.special.xlogy(z, -2.0), holomorphic=True)(z), np.log(2) + 1j * np.pi
    )
    np.testing.assert_allclose(
        ng.grad(lambda z: ng.special.xlog1py(z, -3.0), holomorphic=True)(z), np.log(2) + 1j * np.pi
    )


def test_zero_to_a_complex_power():
    for power in (0.7 + 0.4j, 0.5 - 2j, 2 + 0j, 1 + 1j):
        for zero in (0.0, -0.0, 0j):
            assert np.power(ng.tensor([zero]), power)[0] == 0
            slope = ng.grad(lambda z, zero=zero: np.real(np.power(zero, z)))(power)
            assert slope == 0
    assert np.isnan(ng.power(ng.tensor([0j]), -1 + 1j)[0])
    assert ng.grad(lambda a: np.real(np.power(a, 1.5 + 1j)))(0j) == 0
