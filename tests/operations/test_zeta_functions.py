"""The zeta functions of Hurwitz and Riemann, and their derivatives, against mpmath."""

import math

import mpmath
import numpy as np
import pytest
import scipy.special

import numgrad as ng
from numgrad import special


@pytest.mark.parametrize("s", [1.01, 1.5, 2.0, 4.0, 11.3, 60.0])
def test_derivatives_of_hurwitzs_zeta_function_in_s(s):
    places = [1e-5, 0.1, 0.5, 1.0, 2.5, 11.9, 13.0, 40.0]
    for x in places:
        of_s = ng.grad(special.zeta)
        with mpmath.workdps(40):
            expected = [float(mpmath.zeta(s, x, n)) for n in (0, 1, 2)]
        found = [special.zeta(s, np.array(x)), of_s(s, x), ng.grad(of_s)(s, x)]
        np.testing.assert_allclose(found, expected, rtol=2e-12)
        if s < 5:
            mixed = float(-mpmath.zeta(s + 1, x) - s * mpmath.zeta(s + 1, x, 1))
            np.testing.assert_allclose(ng.grad(of_s, 1)(s, x), mixed, rtol=2e-12)
            np.testing.assert_allclose(ng.grad(ng.grad(special.zeta, 1))(s, x), mixed, rtol=2e-12)


def test_hurwitzs_zeta_function_in_s_of_arrays_and_at_ends():
    s, x = ng.tensor([[1.5], [3.0]], requires_grad=True), ng.tensor([0.3, 2.0], requires_grad=True)
    assert ng.testing.gradcheck(special.zeta, (s, x), check_forward_ad=True)
    assert ng.testing.gradgradcheck(special.zeta, (s, x))
    total = lambda s: np.sum(special.zeta(s, np.array([0.3, 2.0])))  # noqa: E731
    np.testing.assert_allclose(ng.jit(ng.grad(total))(2.5), ng.grad(total)(2.5), rtol=1e-14)
    slope = ng.grad(special.zeta)
    assert slope(2.0, np.inf) == 0.0
    assert slope(1.0, 2.0) == -np.inf
    assert slope(2.0, 0.0) == np.inf
    assert np.isnan([slope(0.5, 2.0), slope(2.0, -0.5), slope(np.nan, 1.0)]).all()


@pytest.mark.parametrize(("s", "x"), [(30.0, 12.5), (60.0, 13.0), (120.0, 12.5), (200.0, 13.0)])
def test_zeta_function_of_large_exponents(s, x):
    """Sums of powers: SciPy's, and by hand."""
    by_hand = math.fsum((k + x) ** -s for k in range(400))
    np.testing.assert_allclose(special.zeta(s, np.array(x)), by_hand, rtol=1e-13)
    np.testing.assert_allclose(special.zeta(s, np.array(x)), scipy.special.zeta(s, x), rtol=1e-13)
    np.testing.assert_allclose(special.zeta(s, np.array(x + 0j)), by_hand, rtol=1e-12)


@pytest.mark.parametrize(
    "s", [2.0, 0.5, -3.5, 0.0, 3.2, 30.0, 1.0001, 0.5 + 14.1j, 5 + 40j, 3.5 - 200j, -4 + 2j]
)
def test_riemanns_zeta_function(s):
    slope = ng.grad(lambda s: special.zeta(s).real)
    bend = ng.grad(lambda s: np.real(slope(s)))
    np.testing.assert_array_equal(special.zeta(s), scipy.special.zeta(s))
    with mpmath.workdps(40):
        for k, found in ((1, slope(s)), (2, bend(s))):
            expected = complex(mpmath.diff(mpmath.zeta, mpmath.mpmathify(s), k))
            assert np.conj(found) == pytest.approx(expected, rel=1e-12)


def test_riemanns_zeta_function_of_tensors():
    s = ng.tensor([[0.5, 2.5]], requires_grad=True)
    z = ng.tensor([0.5 + 1j, 2.5 - 1j], requires_grad=True)
    for x in (s, z):
        np.testing.assert_array_equal(
            scipy.special.zeta(x).detach(), scipy.special.zeta(x.detach().numpy())
        )
        assert ng.testing.gradcheck(special.zeta, (x,))
        assert ng.testing.gradgradcheck(special.zeta, (x,))
    assert special.zeta(ng.tensor([2.0], dtype=np.float32)).dtype == np.float32
    assert special.zeta(ng.tensor(np.empty((0, 2)))).shape == (0, 2)
    slopes = ng.grad(lambda s: special.zeta(s).sum())
    places = np.array([0.5, 2.0])
    np.testing.assert_allclose(ng.jit(slopes)(places), slopes(places), rtol=1e-15)
    each = ng.vmap(ng.grad(special.zeta))(places)
    np.testing.assert_allclose(each, slopes(places), rtol=1e-15)
    assert special.zeta(np.inf) == 1.0
    assert ng.grad(special.zeta)(np.inf) == 0.0
    assert special.zeta(1.0) == np.inf


@pytest.mark.parametrize(
    ("s", "x", "expected"),
    [
        (np.inf, 2.0, 0.0), (1e300, 2.5, 0.0), (np.inf, 1.0, 1.0), (1e300, 3 + 2j, 0.0),
        (3.0, -1.5, 0.11810202582086368), (3.0, -10.3, -34.41449430551848),
    ],
)  # fmt: skip
def test_zeta_where_terms_vanish_or_change_sign(s, x, expected):
    """They ended never, or at the first negative one."""
    result = ng.special.zeta(s, ng.tensor(x)).item()
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=0)
    if isinstance(x, float) and np.isfinite(s):
        slope = ng.grad(lambda x: ng.special.zeta(s - 1, x))(x)
        np.testing.assert_allclose(slope, -(s - 1) * expected, rtol=1e-6)
