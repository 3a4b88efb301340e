"""Special functions and their derivatives against mpmath, at places where they are hard as well.

The sweeps of the table compare values with SciPy, and derivatives with differences.
"""

import warnings

import mpmath
import numpy as np
import pytest
import scipy.special

import numgrad as ng
from numgrad import special
from numgrad.codegen.library import REAL_BESIDE

mp = mpmath.mp


def upper(a, x):
    return mpmath.gammainc(a, x, mpmath.inf, regularized=True)


def lower(a, x):
    return mpmath.gammainc(a, 0, x, regularized=True)


def fraction(a, b, x):
    return mpmath.betainc(a, b, 0, x, regularized=True)


def normal(x):
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def student(df, t):
    tail = fraction(df / 2, mpmath.mpf(1) / 2, df / (df + t * t)) / 2
    return tail if t < 0 else 1 - tail


def power_transform(x, lmbda):
    return mpmath.expm1(lmbda * mpmath.log(x)) / lmbda if lmbda else mpmath.log(x)


def power_root(x, lmbda):
    return mpmath.exp(mpmath.log1p(lmbda * x) / lmbda) if lmbda else mpmath.exp(x)


def owen(a, b):
    return mpmath.quad(lambda t: mpmath.exp(-a * a * (1 + t * t) / 2) / (1 + t * t), [0, b]) / (
        2 * mpmath.pi
    )


def noncentral(x, df, nc):
    return mpmath.nsum(
        lambda j: mpmath.exp(-nc / 2) * (nc / 2) ** j / mpmath.factorial(j)
        * lower(df / 2 + j, x / 2),
        [0, 80],
    )  # fmt: skip


def kolmogorov(x):
    return mpmath.nsum(lambda k: -2 * (-1) ** k * mpmath.exp(-2 * (k * x) ** 2), [1, 60])


def scaled(f, sign):
    return lambda v, z: f(v, z) * mpmath.exp(sign * abs(z))


# name, truth, columns of operands, which derivatives, relative error allowed of these
TABLE = [
    ("rgamma", mpmath.rgamma, [[-3.0, -2.5, -1.0, 0.0, 0.4, 3.0, 30.0]], "1", 1e-12),
    ("loggamma", mpmath.loggamma, [[1e-5, 0.7, 5.0, 1e5]], "1", 1e-12),
    ("poch", mpmath.rf, [[0.5, 2.0, 7.0], [1.5, 0.3, 2.0]], "11", 1e-12),
    ("beta", mpmath.beta, [[0.5, 2.0, 30.0], [1e-3, 3.0, 20.0]], "11", 1e-12),
    ("betaln", lambda a, b: mpmath.log(mpmath.beta(a, b)), [[0.5, 200.0], [1e-3, 300.0]], "11",
     1e-12),
    ("binom", mpmath.binomial, [[5.0, 7.5, 40.0], [2.0, 3.3, 20.0]], "11", 1e-11),
    ("gammainc", lower, [[0.3, 2.0, 5.0, 50.0, 1e4, 1e-3, 3.0], [0.5, 1, 12, 30, 10100, 2, 1e-9]],
     "11", 1e-11),
    ("gammaincc", upper, [[0.3, 2.0, 5.0, 50.0, 1e-3, 3.0], [0.5, 1, 12, 30, 2, 300]], "11", 1e-10),
    ("betainc", fraction, [[0.5, 20.0, 3.0, 300.0, 2.0, 9e-3, 30.0, 0.7, 0.7],
                           [0.3, 2.0, 5.0, 200.0, 1e-2, 300.0, 300.0, 1.4, 1.4],
                           [0.1, 0.5, 0.999, 0.6, 0.3, 1e-30, 0.09, 0.2, 0.8]], "111", 1e-10),
    ("betaincc", lambda a, b, x: 1 - fraction(a, b, x), [[0.5, 20.0], [0.3, 2.0], [0.1, 0.5]],
     "111", 1e-10),
    ("erfcx", lambda x: mpmath.exp(x * x) * mpmath.erfc(x), [[-5.0, 0.0, 3.0, 11.9, 12.1, 1e6]],
     "1", 3e-13),
    ("erfi", mpmath.erfi, [[-5.0, 0.0, 3.0, 20.0]], "1", 1e-13),
    ("dawsn", lambda x: mpmath.exp(-x * x) * mpmath.erfi(x) * mpmath.sqrt(mpmath.pi) / 2,
     [[-20.0, -5.0, 0.0, 0.5, 11.9, 12.1, 40.0]], "1", 3e-12),
    ("log_ndtr", lambda x: mpmath.log(normal(x)), [[-1e3, -30.0, -1.0, 0.0, 3.0, 10.0]], "1",
     1e-12),
    ("owens_t", owen, [[0.0, 0.5, -2.0, 3.0], [0.5, 1.0, 0.3, -2.0]], "11", 1e-11),
    ("xlogy", lambda a, b: a * mpmath.log(b), [[0.5, 2.0], [3.0, 1e-9]], "11", 1e-13),
    ("xlog1py", lambda a, b: a * mpmath.log1p(b), [[0.5, 2.0], [3.0, 1e-9]], "11", 1e-13),
    ("pseudo_huber", lambda d, r: d * d * (mpmath.sqrt(1 + (r / d) ** 2) - 1),
     [[1.0, 2.0, 1.0], [0.5, -30.0, 1e-3]], "11", 1e-12),
    ("boxcox", power_transform, [[0.5, 2.0, 30.0, 1.5], [0.5, 1e-9, -2.0, 3.0]], "11", 1e-11),
    ("boxcox1p", lambda x, p: power_transform(1 + x, p), [[0.5, 2.0, 1e-9], [0.5, 1e-9, -2.0]],
     "11", 1e-11),
    ("inv_boxcox", power_root, [[0.5, 2.0, 1e-3], [0.5, 1e-9, -2.0]], "11", 1e-11),
    ("inv_boxcox1p", lambda x, p: power_root(x, p) - 1, [[0.5, 2.0], [0.5, 1e-9]], "11", 1e-11),
    ("exprel", lambda x: mpmath.expm1(x) / x if x else mpmath.mpf(1), [[-30.0, -1e-6, 2.0, 50.0]],
     "1", 1e-11),
    ("exp1", mpmath.e1, [[1e-3, 1.0, 30.0]], "1", 1e-13),
    ("expi", mpmath.ei, [[-30.0, -1.0, 0.5, 30.0]], "1", 1e-13),
    ("expn", mpmath.expint, [[0, 1, 3, 50], [0.5, 1e-3, 2.0, 60.0]], "01", 1e-12),
    ("spence", lambda z: mpmath.polylog(2, 1 - z).real, [[0.3, 0.99999, 1.00005, 1.9]], "1", 1e-12),
    ("hyp0f1", mpmath.hyp0f1, [[0.5, 3.0], [2.0, -5.0]], "11", 1e-10),
    ("hyp1f1", mpmath.hyp1f1, [[0.5, 3.0], [1.5, 0.3], [2.0, -5.0]], "111", 1e-10),
    ("hyp2f1", mpmath.hyp2f1, [[0.5, 3.0], [1.5, 0.3], [2.0, 2.5], [0.7, -5.0]], "1111",
     1e-10),
    ("hyperu", mpmath.hyperu, [[0.5, 3.0], [1.5, 0.3], [2.0, 5.0]], "111", 1e-10),
    ("jv", mpmath.besselj, [[0.5, 3.7, 0.0, 30.0, 20.0, -0.5], [1e-2, 2.0, 5.0, 40.0, 3.0, 2.0]],
     "11", 1e-9),
    ("yv", mpmath.bessely, [[0.5, 3.7, 0.2, 30.5, 10.5], [1e-2, 2.0, 5.0, 40.0, 3.0]], "11", 1e-9),
    ("iv", mpmath.besseli, [[0.5, 3.7, 0.0, 30.0], [1e-2, 2.0, 5.0, 40.0]], "11", 1e-9),
    ("kv", mpmath.besselk, [[0.5, 3.7, 0.4, 30.5], [1e-2, 2.0, 5.0, 40.0]], "11", 1e-9),
    ("ive", scaled(mpmath.besseli, -1), [[0.5, 3.7, 2.0], [1e-2, 2.0, 900.0]], "11", 1e-8),
    ("kve", scaled(mpmath.besselk, 1), [[0.5, 3.7, 2.0], [1e-2, 2.0, 900.0]], "11", 1e-8),
    ("j0", lambda x: mpmath.besselj(0, x), [[-3.0, 0.0, 30.0]], "1", 1e-12),
    ("j1", lambda x: mpmath.besselj(1, x), [[-3.0, 0.0, 30.0]], "1", 1e-12),
    ("y1", lambda x: mpmath.bessely(1, x), [[3.0]], "1", 1e-12),
    ("i0", lambda x: mpmath.besseli(0, x), [[-3.0, 0.0, 30.0]], "1", 1e-12),
    ("i1", lambda x: mpmath.besseli(1, x), [[-3.0, 0.0, 30.0]], "1", 1e-12),
    ("i0e", lambda x: scaled(mpmath.besseli, -1)(0, x), [[-3.0, 0.1, 30.0]], "1", 1e-12),
    ("i1e", lambda x: scaled(mpmath.besseli, -1)(1, x), [[-3.0, 0.1, 30.0]], "1", 1e-12),
    ("k1", lambda x: mpmath.besselk(1, x), [[3.0]], "1", 1e-12),
    ("k1e", lambda x: scaled(mpmath.besselk, 1)(1, x), [[3.0]], "1", 1e-12),
    ("spherical_jn", lambda n, z: mpmath.sqrt(mpmath.pi / 2 / z) * mpmath.besselj(n + 0.5, z),
     [[0, 1, 5], [0.5, 2.0, 9.0]], "01", 1e-12),
    ("spherical_kn", lambda n, z: mpmath.sqrt(mpmath.pi / 2 / z) * mpmath.besselk(n + 0.5, z),
     [[0, 1, 5], [0.5, 2.0, 9.0]], "01", 1e-12),
    ("struve", mpmath.struveh, [[0.5, 0.0], [0.5, 9.0]], "11", 1e-10),
    ("ellipk", mpmath.ellipk, [[-5.0, -1e-3, 0.0, 0.009, 0.5, 0.999]], "1", 1e-12),
    ("ellipkm1", lambda p: mpmath.ellipk(1 - p), [[1e-12, 0.5, 0.999]], "1", 1e-12),
    ("ellipe", mpmath.ellipe, [[-5.0, -1e-3, 0.0, 0.009, 0.5, 0.999]], "1", 1e-12),
    ("ellipkinc", mpmath.ellipf, [[0.5, 1.0, 2.0, -4.0, 1.2], [0.5, 1e-4, 0.0, 0.009, -3.0]], "11",
     1e-12),
    ("ellipeinc", mpmath.ellipe, [[0.5, 1.0, 2.0, -4.0, 1.2], [0.5, 1e-4, 0.0, 0.009, -3.0]], "11",
     1e-12),
    ("eval_legendre", mpmath.legendre, [[0, 1, 5, 2.5], [0.3, -0.5, 1.0, 0.2]], "01", 1e-12),
    ("eval_chebyt", mpmath.chebyt, [[0, 1, 5, 2.5], [0.3, -0.5, 1.0, 0.2]], "01", 1e-12),
    ("eval_chebyu", mpmath.chebyu, [[0, 1, 5, 2.5], [0.3, -0.5, 0.9, 0.2]], "01", 1e-12),
    ("eval_laguerre", lambda n, x: mpmath.laguerre(n, 0, x), [[0, 1, 5], [0.3, 2.0, 9.0]], "01",
     1e-12),
    ("eval_hermite", mpmath.hermite, [[0, 1, 5], [0.3, 2.0, -3.0]], "01", 1e-12),
    ("eval_jacobi", mpmath.jacobi, [[0, 1, 5], [0.5] * 3, [1.5] * 3, [0.3, -0.5, 0.9]], "0001",
     1e-12),
    ("eval_gegenbauer", mpmath.gegenbauer, [[0, 1, 5], [0.5] * 3, [0.3, -0.5, 0.9]], "001", 1e-12),
    ("chdtr", lambda v, x: lower(v / 2, x / 2), [[1.0, 5.0], [0.3, 9.0]], "11", 1e-11),
    ("stdtr", student, [[1.0, 5.0, 3.0, 30.0], [0.3, -9.0, 1e3, -2.0]], "11", 1e-9),
    ("fdtr", lambda n, d, x: fraction(n / 2, d / 2, n * x / (d + n * x)),
     [[1.0, 5.0], [2.0, 7.0], [0.3, 3.0]], "111", 1e-10),
    ("agm", mpmath.agm, [[1.0, 1e-6, 1.0, 3.0], [2.0, 1.0, 1.0, 1e8]], "11", 1e-12),
    ("elliprf", mpmath.elliprf, [[1.0, 0.1, 5.0], [1.0, 7.0, 0.3], [1.0, 2.0, 1e-3]], "111", 1e-12),
    ("elliprg", mpmath.elliprg, [[1.0, 0.1, 5.0], [1.0, 7.0, 0.3], [1.0, 2.0, 1e-3]], "111", 1e-11),
    ("elliprc", mpmath.elliprc, [[1.0, 0.1, 5.0], [1.0, 7.0, 0.3]], "11", 1e-12),
    ("elliprd", mpmath.elliprd, [[1.0, 0.1, 5.0], [1.0, 7.0, 0.3], [1.0, 2.0, 1e-3]], "111", 1e-12),
    ("elliprj", mpmath.elliprj, [[1.0, 0.1, 5.0], [1.0, 7.0, 0.3], [1.0, 2.0, 1e-3],
                                 [1.0, 3.0, 0.3]], "1111", 1e-12),
    ("chndtr", noncentral, [[0.5, 3.0, 30.0], [1.0, 2.5, 4.0], [1e-3, 2.0, 20.0]], "111", 1e-9),
    ("kolmogorov", kolmogorov, [[0.3, 0.6, 0.81, 0.83, 1.5, 3.0]], "1", 1e-12),
    ("ber", lambda x: mpmath.ber(0, x), [[0.0, 1.0, 4.0]], "1", 1e-12),
    ("ker", lambda x: mpmath.ker(0, x), [[0.1, 1.0, 4.0]], "1", 1e-12),
    ("lpmv", lambda m, v, x: (1 - x * x) ** 0.5 * -mpmath.diff(lambda t: mpmath.legendre(v, t), x),
     [[1, 1], [2.0, 3.5], [0.3, -0.6]], "001", 1e-11),
    ("eval_chebys", lambda n, x: mpmath.chebyu(n, x / 2), [[0, 1, 5], [0.3, -0.5, 1.9]], "01",
     1e-12),
    ("eval_sh_legendre", lambda n, x: mpmath.legendre(n, 2 * x - 1), [[0, 1, 5], [0.3, 0.5, 0.9]],
     "01", 1e-12),
    ("bdtr", lambda k, n, p: fraction(n - k, k + 1, 1 - p), [[1, 3], [4, 9], [0.3, 0.1]], "001",
     1e-12),
]  # fmt: skip


ROWS = TABLE[::3] + TABLE[1::3] + TABLE[2::3]  # of each field some


@pytest.mark.slow(cases=len(TABLE) // 3)  # each compiles two kernels
@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_values_and_derivatives(row):
    name, truth, columns, followed, rtol = row
    op = getattr(special, name)
    given = [
        ng.tensor(np.asarray(c, float), requires_grad=d == "1")
        for c, d in zip(columns, followed, strict=True)
    ]
    y = op(*given)
    leaves = [x for x in given if x.requires_grad]
    found = iter(ng.autograd.grad(y.sum(), leaves))
    gradients = [next(found).numpy() if x.requires_grad else None for x in given]
    with mpmath.workdps(60):
        for k, place in enumerate(zip(*columns, strict=True)):
            exact = tuple(map(mpmath.mpf, place))
            assert y[k].item() == pytest.approx(float(truth(*exact)), rel=1e-11, abs=1e-300)
            for j, g in enumerate(gradients):
                if g is None:
                    continue

                def along(s, j=j, exact=exact):
                    return truth(*exact[:j], s, *exact[j + 1 :])

                expected = mpmath.re(
                    mpmath.diff(along, exact[j], h=abs(exact[j] or 1) * mpmath.mpf(10) ** -18)
                )
                assert g[k] == pytest.approx(float(expected), rel=rtol, abs=1e-15), (place, j)


def second(name, *columns, which):
    given = [ng.tensor(c, requires_grad=True) for c in columns]
    (first,) = ng.autograd.grad(
        getattr(special, name)(*given).sum(), given[which], None, True, True
    )
    return [g.numpy() for g in ng.autograd.grad(first.sum(), given)]


def test_second_derivatives_in_parameters():
    found = second("gammainc", [2.0, 50.0], [1.0, 40.0], which=0)
    with mpmath.workdps(40):
        for k, place in enumerate([(2, 1), (50, 40)]):
            for j, order in enumerate([(2, 0), (1, 1)]):
                expected = float(mpmath.diff(lower, place, order))
                assert found[j][k] == pytest.approx(expected, rel=1e-8)
    found = second("kv", [2.5], [1.5], which=0)
    assert found[0][0] == pytest.approx(
        float(mpmath.diff(lambda v: mpmath.besselk(v, 1.5), 2.5, 2)), rel=1e-8
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda x: special.besselpoly(0.5, x, 1.0),
        lambda x: special.yn(x, 0.5),
        lambda x: special.eval_legendre(x, 0.5),
        lambda x: special.expn(x, 0.5),
        lambda x: special.bdtr(x, 5.0, 0.5),
        lambda x: ng.grad(lambda s: ng.grad(ng.grad(special.zeta))(s, 2.0))(x[0]),
    ],
)
def test_a_derivative_that_is_not_there_raises(call):
    x = ng.tensor([1.5], requires_grad=True)
    with pytest.raises(ng.NumgradNotImplementedError, match="no derivative with respect to"):
        call(x).sum().backward()


def test_third_derivatives_by_differences_raise():
    with pytest.raises(ng.NumgradNotImplementedError, match=r"gammainc_aa.*'a'"):
        ng.grad(ng.grad(ng.grad(lambda a: special.gammainc(a, 1.0))))(2.0)


UNARY = "log_ndtr ndtri erfcx dawsn entr exp1 i0e k1 ellipk rgamma loggamma"
BINARY = "xlogy gammainc beta jv kve binom stdtr huber rel_entr boxcox"
EDGES = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -2.5, 1e-310, 1e300, 170.7])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_unary_values_at_the_edges_are_those_of_scipy(dtype):
    x = EDGES.astype(dtype) if dtype == np.float64 else EDGES[:9].astype(dtype)
    for name in UNARY.split():
        with np.errstate(all="ignore"):
            expected = getattr(scipy.special, name)(x)
        found = getattr(special, name)(ng.tensor(x)).numpy()
        np.testing.assert_allclose(found, expected, rtol=8 * np.finfo(dtype).eps, err_msg=name)
        assert found.dtype == dtype


def test_values_of_two_operands_at_the_edges_are_those_of_scipy():
    a, b = np.meshgrid(EDGES, EDGES)
    for name in BINARY.split():
        with np.errstate(all="ignore"):
            expected = getattr(scipy.special, name)(a, b)
        found = getattr(special, name)(ng.tensor(a), ng.tensor(b)).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-14, err_msg=name)


def test_gradients_at_the_edges():
    x = ng.tensor([0.0, np.inf], requires_grad=True)
    (g,) = ng.autograd.grad(special.gammainc(1.0, x).sum(), x)
    np.testing.assert_array_equal(g.numpy(), [1.0, 0.0])
    a, b = ng.tensor([0.0], requires_grad=True), ng.tensor([0.0], requires_grad=True)
    special.xlogy(a, b).sum().backward()
    assert (a.grad.item(), b.grad.item()) == (-np.inf, 0.0)
    x = ng.tensor([-np.inf, np.inf], requires_grad=True)
    special.log_ndtr(x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [np.inf, 0.0])


def test_functions_with_several_results():
    x = np.array([0.3, 1.0, 4.0])
    for name in ("airy", "sici", "shichi", "fresnel"):
        found, expected = getattr(special, name)(ng.tensor(x)), getattr(scipy.special, name)(x)
        for y, z in zip(found, expected, strict=True):
            np.testing.assert_array_equal(y.numpy(), z)
        leaf = ng.tensor(x, requires_grad=True)
        assert getattr(scipy.special, name)(leaf)[0].requires_grad
        z = (x - 2 + 1j).astype(np.complex64)
        found, expected = getattr(special, name)(ng.tensor(z)), getattr(scipy.special, name)(z)
        for y, z in zip(found, expected, strict=True):
            assert y.dtype == np.complex64
            np.testing.assert_allclose(y.numpy(), z, rtol=1e-6)


def test_complex_functions():
    z = ng.tensor([0.5 + 1j, -0.2 - 0.1j], requires_grad=True)
    for name in ("lambertw", "wofz"):
        assert ng.testing.gradcheck(getattr(special, name), (z,))
        np.testing.assert_array_equal(
            getattr(special, name)(z).detach().numpy(),
            getattr(scipy.special, name)(z.detach().numpy()),
        )
    other = special.lambertw(z.detach(), -1).numpy()
    np.testing.assert_array_equal(other, scipy.special.lambertw(z.detach().numpy(), -1))
    assert ng.grad(lambda x: special.lambertw(x).real)(1.0) == pytest.approx(0.3618962566)


@pytest.mark.parametrize("name", ["erf", "erfcx", "loggamma", "kv", "jve", "xlogy", "hyp2f1"])
def test_values_at_complex_places(name):
    """Beside SciPy's, in both precisions, beside real and integer operands and Python numbers."""
    function, expected = getattr(special, name), getattr(scipy.special, name)
    z = np.array([0.5 + 1j, -0.2 - 0.1j, 3 - 4j, -3 + 0.5j, np.inf + 0j, np.nan + 1j])
    reals = [0.7, 1.3, 2.1][: REAL_BESIDE[name] + (name == "xlogy")]
    for dtype, rtol in ((np.complex128, 1e-15), (np.complex64, 1e-6)):
        given = z.astype(dtype)
        with np.errstate(all="ignore"):
            value = expected(*reals, given)
        for places in (given, given[::-1], given.reshape(2, 3).T, given[:0]):
            places = ng.tensor(places)
            found = function(*reals, places)
            assert found.dtype == dtype
            with np.errstate(all="ignore"):
                same = expected(*reals, places.numpy())
            np.testing.assert_allclose(found.numpy(), same, rtol=rtol)
        beside = [np.full(6, r, np.float32) for r in reals]
        if beside and dtype == np.complex64:
            assert function(*beside, given).dtype == np.complex64
            np.testing.assert_allclose(function(*beside, given), value, rtol=1e-5)
    for k in range(REAL_BESIDE[name]):
        given = [r + 0j if j == k else r for j, r in enumerate(reals)]
        with pytest.raises(ng.NumgradTypeError, match=f"{name}: only the last operand"):
            function(*given, z)


ORDERED = {
    "jv": mpmath.besselj,
    "kv": mpmath.besselk,
    "yve": lambda v, z: mpmath.bessely(v, z) * mpmath.exp(-abs(mpmath.im(z))),
    "hankel1": mpmath.hankel1,
    "hankel2e": lambda v, z: mpmath.hankel2(v, z) * mpmath.exp(1j * z),
}


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("name", ORDERED)
def test_derivatives_in_an_order_at_complex_places(name):
    op, truth = getattr(special, name), ORDERED[name]
    for v, z in ((0.5, 1 + 2j), (3.7, -2 - 1j)):
        slope = ng.grad(lambda v: op(v, z).real)  # noqa: B023
        for k, found in ((1, slope(v)), (2, ng.grad(slope)(v))):
            expected = complex(mpmath.diff(lambda v: truth(v, mpmath.mpc(z)), v, k))  # noqa: B023
            assert found == pytest.approx(expected.real, abs=1e-10 * abs(expected))
    v = ng.tensor([0.5, 1.5], requires_grad=True)
    z = ng.tensor([1 + 2j, 0.5 - 1j], requires_grad=True)
    assert ng.testing.gradcheck(op, (v, z))
    assert ng.testing.gradgradcheck(op, (v, z))


@pytest.mark.parametrize(
    ("name", "truth", "place", "by"),
    [
        ("agm", mpmath.agm, (2.0, 0.0), 0), ("agm", mpmath.agm, (-2.0, -1e-20), 0),
        ("agm", mpmath.agm, (1e-10, 3.0), 1), ("agm", mpmath.agm, (0.0, 3.0), 1),
        ("powm1", lambda a, b: a**b - 1, (0.0, 2.0), 1),
        ("powm1", lambda a, b: a**b - 1, (0.0, 1.0), 0),
        ("poch", mpmath.rf, (0.0, 2.0), 0), ("poch", mpmath.rf, (-3.0, 2.0), 0),
        ("poch", mpmath.rf, (-3.0, 1.5), 0), ("poch", mpmath.rf, (0.0, 2.0), 1),
        ("binom", mpmath.binomial, (3.0, 5.0), 0), ("binom", mpmath.binomial, (3.0, 5.0), 1),
        ("binom", mpmath.binomial, (2.5, -1.0), 1),
    ],
)  # fmt: skip
def test_derivatives_where_a_factor_is_zero_or_has_a_pole(name, truth, place, by):
    found = ng.grad(getattr(special, name), argnums=by)(*place)
    if name == "agm" and 0.0 in place:  # like 1 / log
        assert found == 0.0
        return
    with mpmath.workdps(40):
        at, h = list(map(mpmath.mpf, place)), mpmath.mpf(10) ** -25
        if name == "agm":
            at = [abs(a) for a in at]  # an odd function
        moved = [*at[:by], at[by] + h, *at[by + 1 :]]
        assert found == pytest.approx(float((truth(*moved) - truth(*at)) / h), rel=1e-9)


def test_derivatives_of_digamma_at_complex_places():
    places = np.array([0.3 + 0.2j, 5 - 3j, -3.2 + 0.1j, -3.2 + 40j, -80.5 + 1j, 1e8 + 1e9j, 30j])
    for order in (1, 2, 5):
        found = ng.polygamma(order, places)
        # mpmath's zeta function fails far on the left
        sign, power = (-1) ** (order + 1) * mpmath.factorial(order), order + 1
        expected = [
            complex(
                sign * sum((mpmath.mpc(z) + k) ** -power for k in range(100))
                + sign * mpmath.zeta(power, mpmath.mpc(z) + 100)
            )
            for z in places
        ]
        np.testing.assert_allclose(found, expected, rtol=2e-13)
    assert np.isnan(ng.zeta(2.0, np.array([np.inf + 0j, np.nan + 1j, 1 + np.inf * 1j]))).all()


def test_gradients_far_from_the_real_axis():
    """Asymptotic series of gradients of real arguments are for some directions only."""
    for name in ("erfcx", "dawsn", "log_ndtr", "rgamma"):
        f, expected = getattr(special, name), getattr(mpmath, name, None)
        for z in (14 + 1j, 13 + 13j, 1 + 13j, -14 + 1j, 3 - 14j, -13 - 13.5j, 14j, 400 + 3j):
            theirs = {
                "erfcx": lambda z: mpmath.exp(z * z) * mpmath.erfc(z),
                "dawsn": lambda z: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-z * z) * mpmath.erfi(z),
                "log_ndtr": lambda z: mpmath.log(mpmath.erfc(-z / mpmath.sqrt(2)) / 2),
                "rgamma": expected,
            }[name]
            with mpmath.workdps(60):
                slope = complex(mpmath.diff(theirs, mpmath.mpc(z), h=mpmath.mpf(10) ** -20))
            leaf = ng.tensor(z, requires_grad=True)
            (found,) = ng.autograd.grad(f(leaf).real, [leaf])
            if np.isfinite(slope):
                found = np.conj(found.item())
                np.testing.assert_allclose(found, slope, 1e-11, 1e-100, err_msg=name)


def test_logsumexp_with_weights_and_signs():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 4)) * 300, rng.normal(size=(3, 4))
    b[0, 0], a[0, 1] = 0, -np.inf
    for options in ({"axis": 1}, {"axis": 0, "keepdims": True}, {}):
        y, sign = special.logsumexp(ng.tensor(a), b=ng.tensor(b), return_sign=True, **options)
        expected = scipy.special.logsumexp(a, b=b, return_sign=True, **options)
        np.testing.assert_allclose(y.numpy(), expected[0], rtol=1e-13)
        np.testing.assert_array_equal(sign.numpy(), expected[1])
    assert np.isnan(special.logsumexp(ng.tensor([0.0, 0.0]), b=[-1.0, 0.5]).item())
    a, b = ng.tensor([0.3, 1000.0], requires_grad=True), ng.tensor([1.0, 2.0], requires_grad=True)
    special.logsumexp(a, b=b).backward()
    np.testing.assert_allclose(a.grad.numpy(), [0, 1], atol=1e-15)
    np.testing.assert_allclose(b.grad.numpy(), [0, 0.5], atol=1e-15)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_is_over_all_axes(name):
    x = np.random.default_rng(0).normal(size=(2, 3))
    for axis in (None, 0, 1):
        found = getattr(special, name)(ng.tensor(x), axis=axis).numpy()
        np.testing.assert_allclose(found, getattr(scipy.special, name)(x, axis=axis), rtol=1e-13)


def test_counting():
    n, k = np.array([5.0, 7.0, 2.0, -1.0]), np.array([2.0, 3.5, 3.0, 0.0])
    for name in ("comb", "perm"):
        found = getattr(special, name)(ng.tensor(n), ng.tensor(k)).numpy()
        np.testing.assert_allclose(found, getattr(scipy.special, name)(n, k), rtol=1e-14)
        assert getattr(special, name)(5, 2, exact=True) == getattr(scipy.special, name)(5, 2)
    assert special.comb(3, 2, exact=True, repetition=True) == 6
    np.testing.assert_array_equal(special.comb([0, 0, 3, -1], [0, 1, 0, 0]), [1, 0, 1, 0])
    np.testing.assert_allclose(
        special.factorial(ng.tensor(n)).numpy(), scipy.special.factorial(n), rtol=1e-14
    )
    np.testing.assert_allclose(
        special.multigammaln(ng.tensor([3.0, 7.5]), 3).numpy(),
        scipy.special.multigammaln([3.0, 7.5], 3), rtol=1e-14,
    )  # fmt: skip
    with pytest.raises(ng.NumgradValueError, match="positive integer"):
        special.multigammaln(3.0, 0)


def test_under_jit():
    def function(a, x):
        return np.sum(special.gammainc(a, x) * special.jv(1.5, x) + special.ndtri(0.1 + 0 * x))

    a, x = np.array([0.5, 2.0]), np.array([1.0, 3.0])
    eager, fast = ng.grad(function, (0, 1))(a, x), ng.jit(ng.grad(function, (0, 1)))(a, x)
    for e, f in zip(eager, fast, strict=True):
        np.testing.assert_allclose(f, e, rtol=1e-12)


def test_tails_of_logistic_functions_are_derived_without_cancellation():
    def logistic(x):
        return 1 / (1 + mpmath.exp(-x))

    cases = [
        (ng.stats.logistic.cdf, logistic),
        (special.log_expit, lambda x: mpmath.log(logistic(x))),
        (ng.softplus, lambda x: -mpmath.log(logistic(-x))),
    ]
    for function, truth in cases:
        for x in (-50.0, -36.0, -3.0, 10.0, 36.0, 50.0):
            slope = ng.grad(function)
            with mpmath.workdps(60):
                first, second = (
                    float(mpmath.diff(truth, mpmath.mpf(x), k, h=mpmath.mpf(10) ** -18))
                    for k in (1, 2)
                )
            assert slope(x) == pytest.approx(first, rel=1e-13, abs=0)
            assert ng.grad(slope)(x) == pytest.approx(second, rel=1e-13, abs=0)


@pytest.mark.parametrize("name", ["jvp", "yvp", "ivp", "kvp", "h1vp", "h2vp"])
def test_derivatives_that_scipy_adds_up_in_place(name):
    function = getattr(scipy.special, name)
    z = np.array([0.5, 1.5])
    for n in (1, 2):
        found = ng.grad(lambda x: np.real(function(1, x, n)).sum())(z)  # noqa: B023
        np.testing.assert_allclose(found, function(1, z, n + 1).real, rtol=1e-10)


@pytest.mark.parametrize(
    ("name", "x", "k", "expected"),
    [
        ("airy", 200.0, 0, 0.0),
        ("airye", -1.0, 2, scipy.special.airye(-1.0)[3]),
        ("sici", 0.0, 0, 1.0),
        ("shichi", 0.0, 0, 1.0),
        ("iti0k0", -1.0, 0, scipy.special.i0(1.0)),
        ("itj0y0", -1.0, 0, scipy.special.j0(1.0)),
        ("it2i0k0", -1.0, 0, 1 - scipy.special.i0(1.0)),
        ("it2j0y0", -1.0, 0, scipy.special.j0(1.0) - 1),
    ],
)
def test_a_result_beside_that_is_not_finite_leaves_a_gradient_as_it_is(name, x, k, expected):
    def f(x):
        return getattr(special, name)(x)[k]

    assert ng.grad(f)(x) == pytest.approx(expected, rel=1e-12)
    assert ng.jvp(f, (x,), (1.0,))[1] == pytest.approx(expected, rel=1e-12)
    assert np.isfinite(ng.hessian(f)(x))


def test_scaled_airy_functions_of_a_positive_number():
    # Ai of exp(2 / 3 * z**1.5), Bi of its reciprocal, and the product rule
    z = 1.7
    values, root = scipy.special.airye(z), np.sqrt(z)
    slopes = [values[1], z * values[0], values[3], z * values[2]]
    for k, slope in enumerate(slopes):
        expected = slope + (root if k < 2 else -root) * values[k]
        assert ng.grad(lambda z, k=k: special.airye(z)[k])(z) == pytest.approx(expected, rel=1e-12)
        step = scipy.special.airye(z + 1e-6)[k] - scipy.special.airye(z - 1e-6)[k]
        assert expected == pytest.approx(step / 2e-6, rel=1e-6)


def test_voigts_profile_of_a_narrow_normal_number():
    # of no width it is Cauchy's, and the width matters by its square: a heat equation
    x, gamma = 0.3, 0.2
    for sigma in (1e-8, 1e-4, 0.005):
        g = ng.grad(special.voigt_profile, argnums=(0, 1, 2))(x, sigma, gamma)
        r = x * x + gamma * gamma
        slope = -2 * x * gamma / (np.pi * r * r)
        bend = 2 * gamma * (3 * x * x - gamma * gamma) / (np.pi * r**3)
        allowed = 30 * sigma**2 / r + 1e-13
        assert g[0] == pytest.approx(slope, rel=allowed)
        assert g[1] == pytest.approx(sigma * bend, rel=allowed)
        assert g[2] == pytest.approx((x * x - gamma * gamma) / (np.pi * r * r), rel=allowed)


@pytest.mark.parametrize("z", [1e6 + 1j, 1e6 - 1j, 40j, -50.0 + 0j])
def test_faddeevas_function_far_from_zero(z):
    slope = np.conj(ng.grad(lambda z: special.wofz(z).real)(z))
    leading = -1j / (np.sqrt(np.pi) * z**2)
    series = leading * (1 + 1.5 / z**2 + 3.75 / z**4 + 13.125 / z**6 + 59.0625 / z**8)
    np.testing.assert_allclose(slope, series, rtol=1e-11)


def test_tukeys_distribution_is_flat_outside_of_its_support():
    assert special.tklmbda(1.3, 30.2) == 1.0
    assert ng.grad(special.tklmbda, argnums=(0, 1))(1.3, 30.2) == (0.0, 0.0)


@pytest.mark.parametrize("name", ["bdtr", "bdtrc", "nbdtr", "nbdtrc"])
def test_counts_and_chances_that_are_none(name):
    pool = np.array([0.0, 0.3, 1.0, 2.6, 3.0, -0.6, -1.7, 200.0, np.nan])
    k, n, p = (a.ravel() for a in np.meshgrid(pool, pool, pool))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SciPy's, of numbers that it truncates
        expected = getattr(scipy.special, name)(k, n, p)
    found = getattr(special, name)(ng.tensor(k), ng.tensor(n), ng.tensor(p)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("keepdims", [False, True])
def test_logsumexp_of_nothing(keepdims):
    for shape, axis in (((2, 0), 1), ((2, 0), 0), ((0,), None)):
        x = np.zeros(shape)
        expected = scipy.special.logsumexp(x, axis=axis, keepdims=keepdims)
        for found in (
            special.logsumexp(x, axis=axis, keepdims=keepdims),
            special.logsumexp(x, axis=axis, keepdims=keepdims, b=np.ones(shape)),
            ng.jit(lambda x: ng.logsumexp(x, axis=axis, keepdims=keepdims))(x),  # noqa: B023
        ):
            np.testing.assert_array_equal(found, expected)
            assert found.shape == expected.shape


@pytest.mark.parametrize(
    ("name", "truth", "place"),
    [
        ("poch", lambda z, m: mpmath.gamma(z + m) * mpmath.rgamma(z), (-3.0, 1.5)),
        ("binom", lambda x, k: mpmath.gamma(x + 1) * mpmath.rgamma(k + 1)
         * mpmath.rgamma(x - k + 1), (3.0, 5.0)),
        ("beta", lambda a, b: mpmath.gamma(a) * mpmath.gamma(b) * mpmath.rgamma(a + b),
         (-0.5, 0.5)),
        ("powm1", lambda a, b: a**b - 1, (2.0, 0.0)),
    ],
)  # fmt: skip
def test_second_derivatives_where_a_factor_is_zero(name, truth, place):
    found = ng.hessian(lambda v: getattr(special, name)(v[0], v[1]))(np.array(place))
    with mpmath.workdps(40):
        for i, j, orders in ((0, 0, (2, 0)), (0, 1, (1, 1)), (1, 1, (0, 2))):
            expected = mpmath.diff(truth, tuple(map(mpmath.mpf, place)), orders)
            assert found[i, j] == pytest.approx(float(expected), rel=1e-9)


@pytest.mark.parametrize(
    ("name", "place", "expected"),
    [
        ("eval_legendre", (-2.0, 0.3), [1.0]), ("eval_sh_legendre", (-2.0, 0.3), [2.0]),
        ("eval_chebyu", (-1.0, 0.3), [0.0]), ("eval_chebyu", (-4.0, 0.3), [-2.4]),
        ("eval_sh_chebyu", (-3.0, 0.3), [-4.0]), ("lpmv", (0.0, 2.0, 1.0), [3.0]),
        ("lpmv", (0.0, 2.0, -1.0), [-3.0]), ("lpmv", (3.0, 4.0, 1.0), [0.0]),
        ("pseudo_huber", (0.0, -2.0), [2.0, 0.0]), ("it2struve0", (0.0,), [-2 / np.pi]),
        ("kl_div", (0.0, 0.0), [None, 1.0]), ("rel_entr", (0.0, 0.0), [None, 0.0]),
        ("betaincinv", (2.0, 3.0, 0.0), [0.0, 0.0, np.inf]), ("gammaincinv", (2.0, 0.0),
                                                             [0.0, np.inf]),
        ("gdtrix", (2.0, 2.0, 0.0), [0.0, 0.0, np.inf]), ("betaln", (-2.0, 1.0), [0.5, None]),
        ("ellipkinc", (1.0, 1.0), [1 / np.cos(1),
                                   (np.tan(1) / np.cos(1) - np.arcsinh(np.tan(1))) / 4]),
        ("boxcox", (0.0, 2.0), [0.0, 0.25]), ("boxcox1p", (-1.0, 0.5), [np.inf, 4.0]),
        ("inv_boxcox", (-1.0, 1.0), [1.0, -1.0]), ("inv_boxcox1p", (-2.0, 0.5), [0.0, 0.0]),
        ("lpmv", (2.0, 3.0, 1.0), [-30.0]), ("lpmv", (-2.0, 3.0, -1.0), [-0.25]),
        ("lpmv", (1.0, 2.0, 1.0), [np.inf]), ("lpmv", (-1.0, 1.0, -1.0), [np.inf]),
        ("eval_gegenbauer", (-1.0, 1.0, 0.5), [0.0]),
        ("gammainc", (0.0, 0.7), [-scipy.special.exp1(0.7), 0.0]),
        ("betainc", (0.0, 1.0, 0.5), [-np.log(2), None, 0.0]),
        ("betainc", (1.0, 0.0, 0.5), [None, np.log(2), 0.0]),
        ("gammainc", (np.inf, 2.0), [None, 0.0]), ("pdtr", (np.inf, 2.0), [0.0]),
        ("owens_t", (0.0, np.inf), [0.0, 0.0]), ("owens_t", (np.inf, 0.0), [0.0, 0.0]),
        ("stdtr", (np.inf, 1.0), [0.0, np.exp(-0.5) / np.sqrt(2 * np.pi)]),
        ("stdtr", (2.0, -np.inf), [0.0, 0.0]), ("elliprg", (0.0, 0.0, 1.0), [None, None, 0.25]),
        ("rgamma", (np.inf,), [0.0]), ("kolmogorov", (np.inf,), [0.0]),
        ("hyp1f1", (-1.0, -1.0, 0.5), [None, None, 1.0]),
        ("hyperu", (-1.0, 0.5, 0.0), [None, None, 1.0]),
    ],
)  # fmt: skip
def test_derivatives_at_the_ends(name, place, expected):
    op = getattr(special, name)
    given = [ng.tensor(a, requires_grad=n not in op.refused)
             for a, n in zip(place, op.inputs, strict=True)]  # fmt: skip
    leaves = [x for x in given if x.requires_grad]
    found = ng.autograd.grad(op(*given), leaves)
    for g, value in zip(found, expected, strict=True):
        if value is not None:
            assert g.item() == pytest.approx(value, abs=1e-12)


def test_complex64_in_compiled_functions():
    """They stay complex64, as in eager code and in SciPy, so a loop may carry them."""
    z = np.array([1 + 1j, 2 - 0.5j], np.complex64)
    names = ("gamma", "erf", "loggamma", "exp1", "spence", "psi", "ndtr")

    def every(z):
        found = [getattr(special, name)(z) for name in names]
        return [*found, special.jv(1.3, z), special.xlogy(z, z), special.hyp2f1(1.0, 0.5, 2.0, z)]

    def loop(z):
        return ng.scan(lambda c, _: (special.jv(1.3, c), None), z, length=3)[0]

    f = lambda z: [*every(z), loop(z)]  # noqa: E731
    for found, expected in zip(ng.jit(f)(z), f(z), strict=True):
        assert found.dtype == np.complex64
        np.testing.assert_allclose(found, np.asarray(expected), rtol=1e-5)


@pytest.mark.parametrize("name", ["jvp", "yvp", "ivp", "kvp", "h1vp", "h2vp"])
def test_derivatives_of_bessel_functions(name):
    f, theirs = getattr(special, name), getattr(scipy.special, name)
    x, v = np.array([0.4, 1.3, 5.0]), np.array([0.0, 1.7, 2.0])
    for n in range(4):
        found = f(ng.tensor(v), ng.tensor(x), n)
        assert found.dtype == theirs(v, x).dtype
        np.testing.assert_allclose(found.numpy(), theirs(v, x, n), rtol=1e-12, atol=1e-14)
        z = x + 0.3j
        np.testing.assert_allclose(f(v, ng.tensor(z), n).numpy(), theirs(v, z, n), rtol=1e-12)
        slope = ng.vmap(ng.grad(lambda v, x, n=n: np.real(f(v, x, n)), 1))(v, x)
        np.testing.assert_allclose(slope, theirs(v, x, n + 1).real, rtol=1e-9, atol=1e-12)
    curve = ng.grad(ng.grad(lambda x: np.real(f(1.7, x, 2))))
    for g in (curve, ng.jit(curve)):
        np.testing.assert_allclose(g(1.3), theirs(1.7, 1.3, 4).real, rtol=1e-11)
    by_order = ng.grad(lambda v: np.real(f(v, 1.3, 1)))(1.7)
    step = 1e-5
    difference = (theirs(1.7 + step, 1.3) - theirs(1.7 - step, 1.3)).real / (2 * step)
    np.testing.assert_allclose(by_order, difference, rtol=1e-7)
    for n in (-1, 1.5):
        with pytest.raises(ng.NumgradValueError, match=f"{name}: n is {n}"):
            f(0, ng.tensor(x), n)


def test_names_that_the_table_promises():
    x = np.array([0.0, 0.3, 2.5])
    for name, *given in (("sinc", x), ("softplus", x), ("assoc_laguerre", x, 2, 0.5)):
        ours, theirs = getattr(special, name), getattr(scipy.special, name)
        first, *rest = given
        np.testing.assert_allclose(
            ours(ng.tensor(first), *rest).numpy(), theirs(*given), rtol=1e-14
        )
    slope = ng.grad(lambda x: special.assoc_laguerre(x, 2, 0.5))(0.3)
    np.testing.assert_allclose(slope, 0.3 - 2.5, rtol=1e-14)  # L = x^2/2 - (k+2)x + ...


@pytest.mark.parametrize(
    ("name", "at", "expected"),
    [  # mpmath's diff(f, at, (1, 1)) at 30 digits
        ("xlogy", (0.0, 0.5), 2.0),
        ("xlog1py", (0.0, 0.5), 1 / 1.5),
        ("poch", (0.0, 0.5), -3.48023090691326),
        ("poch", (-1.0, 0.5), 0.129353589795540),
        ("stdtr", (2.5, 0.0), 0.0135544378626562),
        ("stdtrit", (2.5, 0.5), -0.103543644),
        ("gammainc", (2.0, 0.0), 0.0),
    ],
)
def test_mixed_second_derivatives_at_zeros_of_the_first(name, at, expected):
    function = getattr(ng.special, name)
    found = ng.hessian(lambda p: function(p[0], p[1]))(np.array(at))
    np.testing.assert_allclose([found[0, 1], found[1, 0]], expected, rtol=1e-7, atol=1e-12)


def test_python_numbers_count_as_scipys_arrays_also_where_they_are_traced():
    x = np.array([0.4, 0.6], np.float32)
    for name in ("perm", "comb", "jvp", "h1vp", "kvp"):
        expected = getattr(scipy.special, name)(1.3, x)
        for call in (getattr(special, name), ng.jit(getattr(special, name))):
            found = call(1.3, x)
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_polygamma_of_many_orders():
    orders, x = np.array([[0], [1], [2], [3], [-1]]), np.array([0.4, 7.0])
    for call in (ng.polygamma, ng.jit(ng.polygamma)):
        np.testing.assert_allclose(
            call(orders, x), np.vstack([scipy.special.polygamma(orders[:4], x), [[np.nan] * 2]])
        )
    slope = ng.grad(lambda x: np.sum(ng.polygamma(orders[:3], x)))(x)
    np.testing.assert_allclose(slope, scipy.special.polygamma(orders[:3] + 1, x).sum(0))
    assert ng.jit(ng.polygamma)(1, np.float32(0.5)).dtype == np.float32


@pytest.mark.parametrize(("df", "t"), [(0.01, -1e19), (0.01, -1e160), (0.5, -1e155), (2.5, -1e30)])
def test_student_tails_of_numbers_whose_squares_overflow(df, t):
    def truth(df, t):
        share = df / (df + t * t)
        return mpmath.betainc(df / 2, mpmath.mpf(0.5), 0, share, regularized=True) / 2

    with mpmath.workdps(40):
        a, b = mpmath.mpf(df), mpmath.mpf(t)
        h = mpmath.mpf(10) ** -15
        expected = [
            float((truth(a + h, b) - truth(a - h, b)) / (2 * h)),
            float((truth(a, b * (1 + h)) - truth(a, b * (1 - h))) / (2 * h * b)),
        ]
    found = ng.grad(lambda p: special.stdtr(p[0], p[1]))(np.array([df, t]))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("f", [special.rel_entr, special.kl_div])
def test_second_derivatives_of_relative_entropies_at_0(f):
    found = ng.hessian(lambda p: f(p[0], p[1]))(np.array([0.0, 0.5]))
    assert found[0].tolist() == [np.inf, -2.0]
    assert found[1, 1] == 0


@pytest.mark.parametrize(("x", "power"), [(np.inf, 1.0), (2.0, np.inf), (0.0, -1.0)])
def test_the_slope_of_boxcox_where_the_power_is_endless(x, power):
    # SciPy's hyp1f1 does not return for an infinite argument
    assert ng.grad(lambda p: ng.special.boxcox(np.array(x), p))(power) == np.inf
