"""Functions of real operands whose results are complex where there is no real one.

Values are compared with SciPy's and NumPy's, derivatives with central differences.
"""

import numpy as np
import pytest
import scipy.linalg

import numgrad as ng
from numgrad.testing import gradcheck, gradgradcheck

NEGATIVE = {
    "one negative eigenvalue": [[-1.0, 2.0], [0.5, 1.0]],
    "diagonal": [[-4.0, 0.0], [0.0, 9.0]],
    "two negative ones": [[-1.0, 0.1, 0.2], [0.3, -1.6, 0.5], [0.6, 0.7, 3.8]],
    "a pair beside it": [[-2.0, 0.3, 0.1], [0.2, -1.0, 2.0], [0.1, -2.0, -1.0]],
    "all negative": [[-2.0, 1.0], [0.0, -3.0]],
}
FUNCTIONS = {
    "sqrtm": (ng.linalg.sqrtm, scipy.linalg.sqrtm),
    "logm": (ng.linalg.logm, scipy.linalg.logm),
    "power": (
        lambda a: ng.linalg.fractional_matrix_power(a, 0.3),
        lambda a: scipy.linalg.fractional_matrix_power(a, 0.3),
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("matrix", NEGATIVE)
def test_functions_of_real_matrices_with_negative_eigenvalues(name, matrix):
    ours, theirs = FUNCTIONS[name]
    a = np.array(NEGATIVE[matrix])
    expected = theirs(a)
    found = ours(a)
    assert found.dtype == expected.dtype == np.complex128
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    x = ng.tensor(a, requires_grad=True)
    assert gradcheck(ours, x, check_forward_ad=True, nondet_tol=1e-13)
    if matrix in ("one negative eigenvalue", "a pair beside it"):
        assert gradgradcheck(ours, x, nondet_tol=1e-13)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_stacks_and_dtypes_of_complex_results(name):
    ours, theirs = FUNCTIONS[name]
    a = np.array(NEGATIVE["one negative eigenvalue"])
    stack = np.stack([a, 4 * np.eye(2), [[1.0, 2.0], [-2.0, 0.5]]])
    np.testing.assert_allclose(ours(stack), [theirs(x) for x in stack], rtol=1e-12, atol=1e-13)
    assert ours(a.astype(np.float32)).dtype == np.complex64
    assert ours(np.array([[-1, 0], [0, 4]])).dtype == np.complex128
    assert ours(4 * np.eye(2)).dtype == np.float64
    slope = ng.grad(lambda a: np.sum(np.abs(ours(a)) ** 2))(a)
    assert slope.dtype == np.float64


@pytest.mark.parametrize("name", FUNCTIONS)
def test_where_numbers_come_later_a_complex_matrix_is_asked_for(name):
    ours, theirs = FUNCTIONS[name]
    a = np.array(NEGATIVE["one negative eigenvalue"])
    for call in (lambda: ng.jit(ours)(a), lambda: ng.vmap(ours)(a[None])):
        with pytest.raises(ng.NumgradLinAlgError, match=r"complex.*astype\(complex\)"):
            call()
    np.testing.assert_allclose(ng.jit(ours)(a.astype(complex)), theirs(a), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("matrix", ["one negative eigenvalue", "two negative ones"])
def test_gradients_alone_ask_for_a_complex_matrix_too(name, matrix):
    """Compiled code drops the result, which says whether there is one."""
    a = np.array(NEGATIVE[matrix])
    slope = ng.jit(ng.grad(lambda a: np.sum(np.real(FUNCTIONS[name][0](a)) * np.exp(a))))
    pushed = ng.jit(lambda a: ng.jvp(FUNCTIONS[name][0], (a,), (np.ones_like(a),))[1])
    for compiled in (slope, pushed):
        with pytest.raises(ng.NumgradError, match="complex"):
            compiled(a)


def test_matrices_without_a_result_still_raise():
    for f, a in (
        (ng.linalg.sqrtm, [[0.0, 1.0], [0.0, 0.0]]),
        (ng.linalg.logm, [[0.0, 0.0], [0.0, 0.0]]),
        (ng.linalg.logm, [[-1.0, 0.0], [0.0, 0.0]]),
    ):
        with pytest.raises(ng.NumgradLinAlgError):
            f(np.array(a))


# --------------------------------------------------------------------------------- single numbers

OUTSIDE = {
    "sqrt": [-0.5, 2.0],
    "log": [-0.5, 2.0],
    "log2": [-0.5, 2.0],
    "log10": [-0.5, 2.0],
    "arccos": [-2.0, 0.3, 1.5],
    "arcsin": [-2.0, 0.3, 1.5],
    "arctanh": [-2.0, 0.3, 1.5],
}
TWO = {
    "logn": lambda x: np.emath.logn(2, x),
    "power": lambda x: np.emath.power(x, 0.3),
    "negative power": lambda x: np.emath.power(x, -2),
    "base": lambda x: np.emath.logn(x, 3.0),
}


@pytest.mark.parametrize("name", [*OUTSIDE, *TWO])
def test_emath(name):
    f = TWO[name] if name in TWO else getattr(np.emath, name)
    outside = np.array(OUTSIDE.get(name, [-0.5, 2.0]))
    for x in (outside, np.array([0.3, 0.8]), outside.astype(np.float32), outside + 0.5j):
        found, expected = f(ng.tensor(x)), f(x)
        assert isinstance(found, ng.Tensor)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=2e-6 if x.itemsize == 4 else 1e-13)
    for x in (outside, np.array([0.3, 0.8])):
        assert gradcheck(f, ng.tensor(x, requires_grad=True), check_forward_ad=True)
        assert gradgradcheck(f, ng.tensor(x, requires_grad=True))


def test_emath_where_numbers_come_later():
    with pytest.raises(ng.NumgradTypeError, match=r"emath\.sqrt.*astype\(complex\)"):
        ng.jit(np.emath.sqrt)(np.array([-1.0]))
    assert ng.jit(np.emath.sqrt)(np.array([-1.0 + 0j]))[0] == 1j


CUTS = [
    (np.arcsin, [1.5, -2.0], 1),
    (np.arccos, [1.5, -2.0], 1),
    (np.arccosh, [0.5, -0.5, -2.0], 1),
    (np.arctanh, [1.5, -2.0], 1),
    (np.arcsinh, [1.5, -2.0], 1j),
    (np.arctan, [1.5, -2.0], 1j),
    (np.sqrt, [-2.0], 1),
    (np.log, [-2.0], 1),
    (np.log1p, [-3.0], 1),
]


@pytest.mark.parametrize("side", [0.0, -0.0])
@pytest.mark.parametrize(("f", "points", "along"), CUTS)
def test_derivatives_on_both_sides_of_branch_cuts(f, points, along, side):
    """The sign of a zero says on which: differences along the cut stay there."""

    def place(t):
        return np.array([complex(t, side) if along == 1 else complex(side, t)])

    def slope(z):
        return ng.grad(lambda z: np.sum(f(z)), holomorphic=True)(z)

    h = 1e-6
    for point in points:
        high, low, z = place(point + h), place(point - h), place(point)
        expected = (np.asarray(f(high)) - np.asarray(f(low))) / (2 * h * along)
        np.testing.assert_allclose(slope(z), expected, rtol=1e-6, atol=1e-9)
        moved = ng.jvp(f, (z,), (np.ones(1, complex),))[1]
        np.testing.assert_allclose(moved, expected, rtol=1e-6, atol=1e-9)
        second = ng.grad(lambda z: np.sum(slope(z)), holomorphic=True)(z)
        bend = (slope(high) - slope(low)) / (2 * h * along)
        np.testing.assert_allclose(second, bend, rtol=1e-6, atol=1e-9)
