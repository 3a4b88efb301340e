"""Multivariate distributions against scipy.stats, and their gradients."""

import numpy as np
import pytest
import scipy.stats

import numgrad as ng
from numgrad import stats
from numgrad.testing import gradcheck, gradgradcheck

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 3))
MEAN = RNG.normal(size=3)
ROOT = RNG.normal(size=(3, 3))
COV = ROOT @ ROOT.T + np.eye(3)


@pytest.mark.parametrize("given", [(MEAN, COV), (None, COV), (MEAN, 2.0), (MEAN, np.ones(3) * 2)])
def test_multivariate_normal(given):
    for x in (X, X[0], X.reshape(2, 2, 3)):
        expected = scipy.stats.multivariate_normal.logpdf(x, *given)
        found = stats.multivariate_normal.logpdf(ng.tensor(x), *given)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


def test_multivariate_normal_of_a_subspace():
    """A covariance of rank two in three dimensions: values by SciPy, derivatives by differences."""
    root = ROOT[:, :2]
    x = MEAN + RNG.normal(size=(4, 2)) @ root.T
    x[3] += np.cross(root[:, 0], root[:, 1])  # out of it
    theirs = scipy.stats.multivariate_normal
    expected = theirs.logpdf(x, MEAN, root @ root.T, allow_singular=True)
    assert expected[3] == -np.inf

    def logpdf(x, mean=MEAN, cov=root @ root.T):
        return stats.multivariate_normal.logpdf(x, mean, cov, allow_singular=True)

    found = logpdf(ng.tensor(x))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9)
    np.testing.assert_allclose(ng.jit(logpdf)(x), expected, rtol=1e-9)
    np.testing.assert_allclose(ng.vmap(logpdf)(ng.tensor(x)).numpy(), expected, rtol=1e-9)
    densities = theirs.pdf(x, MEAN, root @ root.T, allow_singular=True)
    pdf = stats.multivariate_normal.pdf(x, MEAN, root @ root.T, allow_singular=True)
    np.testing.assert_allclose(np.asarray(pdf), densities, rtol=1e-9)
    regular = theirs.logpdf(X, MEAN, COV)
    np.testing.assert_allclose(np.asarray(logpdf(X, cov=COV)), regular, rtol=1e-12)

    parts = np.array([0.3, -0.7])  # moving within the subspace, and with it
    leaves = [ng.tensor(a, requires_grad=True) for a in (parts, MEAN, root)]

    def at(parts, mean, root):
        return logpdf(mean + root @ parts, mean * 1.0, root @ root.T)

    assert gradcheck(at, tuple(leaves))
    assert gradgradcheck(at, tuple(leaves))
    zero = stats.multivariate_normal.pdf(np.eye(2), np.zeros(2), np.zeros((2, 2)), True)
    np.testing.assert_array_equal(np.asarray(zero), 0)  # as SciPy's: no matrix is less definite
    with pytest.raises(np.linalg.LinAlgError, match="not positive semidefinite"):
        logpdf(x, cov=root @ root.T - np.eye(3))
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        stats.multivariate_normal.logpdf(x, MEAN, -COV)


def test_one_dimension():
    x = np.array([0.5, 1.0, 2.0])
    for given in ((), (0.3,), (0.3, 2.0), ([0.3], [[2.0]])):
        expected = scipy.stats.multivariate_normal.logpdf(x, *given)
        found = stats.multivariate_normal.logpdf(x, *given)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)


def test_multivariate_t():
    expected = scipy.stats.multivariate_t.logpdf(X, MEAN, COV, 3.5)
    found = stats.multivariate_t.logpdf(ng.tensor(X), MEAN, COV, 3.5)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


@pytest.mark.slow(cases=0)
def test_dirichlet():
    alpha = np.array([1.5, 0.5, 3.0])
    x = RNG.dirichlet(alpha, 4).T
    for given in (x, x[:-1], x[:, 0]):
        expected = scipy.stats.dirichlet.logpdf(given, alpha)
        found = stats.dirichlet.logpdf(ng.tensor(given), alpha)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9)
    for name in ("mean", "var", "cov", "entropy"):
        expected = getattr(scipy.stats.dirichlet, name)(alpha)
        np.testing.assert_allclose(np.asarray(getattr(stats.dirichlet, name)(alpha)), expected)
    assert stats.dirichlet.logpdf(np.array([0.5, 0.6, 0.1]), alpha).item() == -np.inf


def test_wishart():
    x = scipy.stats.wishart.rvs(5, COV, 4, random_state=0)
    for given in (np.moveaxis(x, 0, -1), x[0]):
        expected = scipy.stats.wishart.logpdf(given, 5.5, COV)
        found = stats.wishart.logpdf(ng.tensor(given), 5.5, COV)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


def test_entropies_of_wishart_with_several_degrees_of_freedom():
    df = np.array([4.0, 5.5, 9.0])
    expected = [scipy.stats.wishart.entropy(d, COV) for d in df]
    np.testing.assert_allclose(stats.wishart.entropy(df, COV), expected, rtol=1e-12)


def test_gradients():
    x = [ng.tensor(a, requires_grad=True) for a in (X, MEAN, COV)]
    assert gradcheck(lambda x, m, c: stats.multivariate_normal.logpdf(x, m, c + c.T), x)
    df = ng.tensor(3.5, requires_grad=True)
    assert gradcheck(lambda x, m, c, d: stats.multivariate_t.logpdf(x, m, c + c.T, d), [*x, df])
    assert gradcheck(lambda c, d: stats.wishart.logpdf(COV, d, c + c.T), [x[2], df])
    alpha = ng.tensor([1.5, 0.5, 3.0], requires_grad=True)
    assert gradcheck(lambda a: stats.dirichlet.logpdf(np.array([0.2, 0.3, 0.5]), a), [alpha])


def test_a_matrix_for_each_point():
    each = np.stack([COV * k for k in (1.0, 2.0, 3.0, 4.0)])
    found = stats.multivariate_normal.logpdf(ng.tensor(X), MEAN, each).numpy()
    for k in range(4):
        expected = scipy.stats.multivariate_normal.logpdf(X[k], MEAN, each[k])
        assert found[k] == pytest.approx(expected)


def test_bad_input_is_named():
    with pytest.raises(np.linalg.LinAlgError, match="cholesky"):
        stats.multivariate_normal.logpdf(X, MEAN, -COV)
    with pytest.raises(ng.NumgradValueError, match=r"multivariate_normal.logpdf.*dimension 3"):
        stats.multivariate_normal.logpdf(X[:, :2], MEAN, COV)
    with pytest.raises(ng.NumgradValueError, match=r"dirichlet.logpdf.*\(3,\)"):
        stats.dirichlet.logpdf(np.array([1.0]), np.ones(3))
    with pytest.raises(ng.NumgradValueError, match=r"wishart.logpdf.*\(2, 2\)"):
        stats.wishart.logpdf(np.eye(2), 3.0, COV)


def test_moments_and_entropies():
    p = np.array([0.2, 0.5, 0.3])
    found, theirs = stats.multinomial, scipy.stats.multinomial
    np.testing.assert_allclose(found.mean(7, p), theirs.mean(7, p), rtol=1e-14)
    np.testing.assert_allclose(found.cov(7, p), theirs.cov(7, p), atol=1e-14)
    np.testing.assert_allclose(found.entropy(7, p), theirs.entropy(7, p), rtol=1e-12)
    assert found.cov(np.array([3, 7]), p).shape == (2, 3, 3)
    for scale in (COV, [1.0, 2.0], 2.0):
        for name in ("var", "entropy"):
            expected = getattr(scipy.stats.wishart, name)(5.5, scale)
            np.testing.assert_allclose(getattr(stats.wishart, name)(5.5, scale), expected)


def test_gradients_of_moments_and_entropies():
    p, cov, df = (ng.tensor(a, requires_grad=True) for a in ([0.2, 0.5, 0.3], COV, 5.5))
    assert gradcheck(lambda p: stats.multinomial.entropy(7, p / np.sum(p)), [p])
    assert gradcheck(lambda p: stats.multinomial.cov(7, p), [p])
    assert gradcheck(lambda a: stats.dirichlet.cov(a), [p])
    assert gradcheck(lambda d, c: stats.wishart.entropy(d, c + c.T), [df, cov])
    assert gradcheck(stats.wishart.var, [df, cov])


SHAPE = np.array([[2.0, 0.6, 0.1], [0.6, 1.0, 0.2], [0.1, 0.2, 1.0]])


@pytest.mark.parametrize("df", [0.3, 1.0, 2.5, 30.0, 1e4, np.inf])
def test_probabilities_of_one_number_are_those_of_students(df):
    for x in (-1e6, -30.0, -3.0, -0.2, 0.0, 2.0):
        found = stats.multivariate_t.cdf([x], None, [[1.0]], df)
        expected = scipy.stats.norm.cdf(x) if df == np.inf else scipy.stats.t.cdf(x, df)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-15)


def test_probabilities_of_multivariate_t():
    for n, tolerance in ((2, 2e-5), (3, 2e-5)):
        x, loc, shape = np.array([0.3, -0.5, 1.0])[:n], np.array([0.1, 0, 0])[:n], SHAPE[:n, :n]
        for limit in (None, -np.ones(n)):
            found = stats.multivariate_t.cdf(ng.tensor(x), loc, shape, 3.0, lower_limit=limit)
            expected = scipy.stats.multivariate_t.cdf(
                x, loc, shape, 3.0, lower_limit=limit, maxpts=100_000, random_state=1
            )
            np.testing.assert_allclose(found, expected, atol=tolerance)
    given = [
        ng.tensor(a, requires_grad=True) for a in ([0.3, -0.5], [0.1, 0.0], SHAPE[:2, :2], 3.0)
    ]

    def cdf(x, loc, m, df):
        return stats.multivariate_t.cdf(x, loc, 0.5 * (m + m.T), df)

    assert gradcheck(cdf, given)
    assert gradgradcheck(lambda x, df: cdf(x, given[1].detach(), given[2].detach(), df),
                         [given[0], given[3]])  # fmt: skip
    values = [x.numpy(force=True) for x in given]
    np.testing.assert_allclose(ng.jit(cdf)(*values), cdf(*values), rtol=1e-13)
    assert np.isnan(stats.multivariate_t.cdf(values[0], None, SHAPE[:2, :2], -1.0))
    with pytest.raises(TypeError, match="random_state"):
        stats.multivariate_t.cdf(values[0], None, SHAPE[:2, :2], random_state=np.random)


def test_entropy_of_multivariate_t_and_mode_of_wishart():
    for df in (0.5, 3.0, 200.0):
        np.testing.assert_allclose(
            stats.multivariate_t.entropy(None, SHAPE, df),
            scipy.stats.multivariate_t.entropy(None, SHAPE, df), rtol=1e-10,
        )  # fmt: skip
    for df in (2.5, 5.0):
        expected = scipy.stats.wishart.mode(df, SHAPE)
        found = stats.wishart.mode(df, SHAPE)
        assert (found is None) == (expected is None)
        if expected is not None:
            np.testing.assert_allclose(found, expected)


def test_entropy_of_multivariate_normal():
    for given in ((MEAN, COV), (None, 3 * COV), (None, np.diag([0.2, 5.0])), (0.0, 2.5)):
        expected = scipy.stats.multivariate_normal.entropy(*given)
        np.testing.assert_allclose(stats.multivariate_normal.entropy(*given), expected, rtol=1e-12)


def test_covariances_by_their_factors():
    """Of a matrix, each maker's, and stacks of them, against SciPy's and those of the matrix."""
    root, low = np.linalg.cholesky(COV), RNG.normal(size=(3, 2))
    theirs = scipy.stats.Covariance
    made = [
        (stats.Covariance.from_cholesky(root), theirs.from_cholesky(root)),
        (stats.Covariance.from_precision(np.linalg.inv(COV)), theirs.from_cholesky(root)),
        (stats.Covariance.from_diagonal([1.0, 2.0, 3.0]), theirs.from_diagonal([1.0, 2.0, 3.0])),
        (stats.Covariance.from_low_rank(low, [1.0, 2.0, 3.0]), theirs.from_cholesky(
            np.linalg.cholesky(low @ low.T + np.diag([1.0, 2.0, 3.0])))),
    ]  # fmt: skip
    for own, truth in made:
        for name in ("covariance", "log_pdet"):
            found, expected = np.asarray(getattr(own, name)), getattr(truth, name)
            np.testing.assert_allclose(found, expected, rtol=1e-11)
        assert (own.shape, own.rank) == (truth.shape, truth.rank)
        np.testing.assert_allclose(
            np.asarray(own.precision), np.linalg.inv(truth.covariance), atol=1e-12
        )
        np.testing.assert_allclose(np.asarray(own.colorize(X)), truth.colorize(X), rtol=1e-11)
        np.testing.assert_allclose(np.asarray(own.whiten(X)), truth.whiten(X), rtol=1e-10)
        density = scipy.stats.multivariate_normal(MEAN, truth)
        p = stats.multivariate_normal(MEAN, own)
        np.testing.assert_allclose(np.asarray(p.logpdf(X)), density.logpdf(X), rtol=1e-11)
        np.testing.assert_allclose(float(p.entropy()), density.entropy(), rtol=1e-11)
        np.testing.assert_allclose(np.asarray(p.cdf(X[0])), density.cdf(X[0]), atol=2e-5)
        drawn = p.rvs(20000, 0).numpy()
        np.testing.assert_allclose(np.cov(drawn.T), truth.covariance, atol=0.25)
        t = stats.multivariate_t.logpdf(X, MEAN, own, 3.0)
        expected = scipy.stats.multivariate_t.logpdf(X, MEAN, truth.covariance, 3.0)
        np.testing.assert_allclose(np.asarray(t), expected, rtol=1e-11)
        w = stats.wishart.entropy(4.5, own)
        assert float(w) == pytest.approx(scipy.stats.wishart(4.5, truth.covariance).entropy())


@pytest.mark.parametrize("maker", ["from_cholesky", "from_precision", "from_low_rank"])
def test_gradients_of_densities_by_factors(maker):
    given = {
        "from_cholesky": (np.linalg.cholesky(COV),), "from_precision": (COV,),
        "from_low_rank": (ROOT[:, :2], np.array([1.0, 2.0, 0.5])),
    }[maker]  # fmt: skip

    def logpdf(mean, first, *rest):
        first = np.tril(first) if maker == "from_cholesky" else first
        first = 0.5 * (first + first.T) if maker == "from_precision" else first
        cov = getattr(stats.Covariance, maker)(first, *rest)
        return stats.multivariate_normal.logpdf(X, mean, cov)

    leaves = [ng.tensor(a, requires_grad=True) for a in (MEAN, *given)]
    assert gradcheck(logpdf, tuple(leaves))


def test_dirichlet_of_a_stack():
    alpha = np.array([[0.3, 0.7, 2.0], [4.0, 0.2, 0.8]])
    x = np.array([0.2, 0.3, 0.5])
    d, rows = stats.dirichlet(alpha), [scipy.stats.dirichlet(a) for a in alpha]
    at = np.stack([x, x], axis=1)
    np.testing.assert_allclose(np.asarray(d.logpdf(at)), [r.logpdf(x) for r in rows], rtol=1e-12)
    for name in ("mean", "var", "cov", "entropy"):
        expected = [getattr(r, name)() for r in rows]
        np.testing.assert_allclose(np.asarray(getattr(d, name)()), expected, rtol=1e-12)
    np.testing.assert_allclose(
        d.rvs((20000, 2), 0).numpy().mean(0), np.asarray(d.mean()), atol=0.01
    )


def test_dirichlet_draws_do_not_underflow_and_have_the_gradient_of_the_mean():
    assert np.isfinite(stats.dirichlet.rvs(np.full(3, 1e-3), 100, 0).numpy()).all()
    alpha = ng.tensor([0.6, 1.5, 0.4], requires_grad=True)
    (slope,) = ng.autograd.grad(stats.dirichlet.rvs(alpha, 1000, 1)[:, 0].mean(), alpha)
    np.testing.assert_allclose(slope.numpy(), [1.9 / 6.25, -0.6 / 6.25, -0.6 / 6.25], atol=0.02)
