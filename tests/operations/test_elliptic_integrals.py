"""Elliptic integrals, Carlson's forms among them, and their derivatives against mpmath."""

import mpmath
import numpy as np
import pytest
import scipy.special

import numgrad as ng
from numgrad import special


@pytest.mark.parametrize(
    ("name", "place"),
    [("elliprc", (1 + 2j, 2 - 1j)), ("elliprd", (1 + 2j, 2 - 1j, 1 + 0.5j)),
     ("elliprf", (-1 + 0.1j, 2 + 0j, 3 + 0j)), ("elliprg", (1 + 2j, 2 - 1j, 1 + 0.5j)),
     ("elliprj", (1 + 0j, 2 + 0j, 3 + 0j, -1 + 0.5j))],
)  # fmt: skip
def test_carlsons_integrals_of_complex_numbers(name, place):
    truth = getattr(mpmath, name)
    given = [ng.tensor(z, requires_grad=True) for z in place]
    y = getattr(special, name)(*given)
    assert y.item() == pytest.approx(complex(truth(*place)), rel=1e-13)
    slopes = ng.autograd.grad(y.real, given)
    with mpmath.workdps(30):
        for k, slope in enumerate(slopes):
            at = [mpmath.mpmathify(z) for z in place]
            expected = mpmath.diff(lambda z: truth(*at[:k], z, *at[k + 1 :]), at[k])  # noqa: B023
            assert np.conj(slope.item()) == pytest.approx(complex(expected), rel=1e-12)


def test_derivatives_of_carlsons_integrals_at_the_ends():
    slopes = ng.grad(special.elliprj, argnums=(0, 1, 2, 3))
    assert slopes(0.0, 1.0, 2.0, 3.0)[0] == -np.inf
    assert all(np.isfinite(slopes(0.0, 1.0, 2.0, 3.0)[1:]))
    second = ng.hessian(lambda v: special.elliprj(v[0], v[1], v[2], v[3]))(np.ones(4))
    # all equal, it is x**-1.5: these are Dirichlet moments of order two
    b = np.array([0.5, 0.5, 0.5, 1.0])
    moments = (np.outer(b, b) + np.diag(b)) / (2.5 * 3.5)
    np.testing.assert_allclose(second, 1.5 * 2.5 * moments, rtol=1e-12)


def test_derivatives_of_principal_values():
    for name, places in (
        ("elliprc", [(1.0, -2.0), (0.3, -0.1), (0.0, -1.0)]),
        ("elliprj", [(1.0, 2.0, 3.0, -1.0), (0.0, 0.5, 1.0, -0.2), (2.0, 2.0, 2.0, -3.0)]),
    ):
        for place in places:
            theirs = getattr(scipy.special, name)
            slopes = ng.grad(getattr(special, name), argnums=tuple(range(len(place))))(*place)
            for k, found in enumerate(slopes):
                if place[k] == 0:
                    continue  # an end
                near = [list(place), list(place)]
                near[0][k] -= 1e-5
                near[1][k] += 1e-5
                expected = (theirs(*near[1]) - theirs(*near[0])) / 2e-5
                np.testing.assert_allclose(found, expected, rtol=1e-7)


def test_the_slope_of_an_elliptic_integral_in_its_parameter_does_not_cancel():
    slope = ng.grad(special.ellipkinc, argnums=1)
    with mpmath.workdps(40):
        for phi, m in ((1.0, 1 - 1e-10), (1.5, 0.99), (2.5, 0.7), (-4.0, 0.3), (1e-3, 0.5)):
            expected = mpmath.diff(lambda m, phi=phi: mpmath.ellipf(mpmath.mpf(phi), m), m, h=1e-15)
            assert slope(phi, m) == pytest.approx(float(expected), rel=1e-12)
