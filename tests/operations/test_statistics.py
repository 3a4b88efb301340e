"""Quantiles, reductions without NaN, averages, histograms: gradients, compiled forms, bad input."""

import warnings

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradTraceError
from numgrad.operations.quantiles import _PLACES
from numgrad.testing import gradcheck, gradgradcheck
from tests.compiler.emulator import emulating
from tests.quiet import quiet

rng = np.random.default_rng(6)
X = rng.normal(size=(4, 6))
N = np.where(rng.random((4, 6)) < 0.3, np.nan, X)


def leaf(x):
    return ng.tensor(x, requires_grad=True)


def same(found, expected, **tolerance):
    found = np.asarray(found.detach() if isinstance(found, ng.Tensor) else found)
    assert (found.shape, found.dtype) == (np.shape(expected), np.asarray(expected).dtype)
    np.testing.assert_allclose(found, expected, **{"rtol": 1e-13, **tolerance})


# ------------------------------------------------------------------------------- order statistics


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("method", _PLACES)
def test_quantiles_are_those_of_numpy(method):
    for x in (X, N, (X * 9).astype(int), X[:1], X[:, :1], X.T[::-1]):
        for q in (0.0, 0.5, 1.0, [0.1, 0.25, 0.9], np.linspace(0, 1, 11)):
            for axis in (None, 0, 1, (0, 1)):
                for name in ("quantile", "nanquantile"):
                    expected = quiet(getattr(np, name), x, q, axis=axis, method=method)
                    same(getattr(ng, name)(x, q, axis=axis, method=method), expected, atol=1e-15)


def test_gradients_of_order_statistics():
    t, q = leaf(X), leaf([0.13, 0.77])
    assert gradcheck(lambda t, q: ng.quantile(t, q, axis=1), (t, q))
    assert gradgradcheck(lambda t, q: ng.sin(ng.nanquantile(t, q, axis=1)), (t, q))
    assert gradcheck(lambda t: ng.median(t, axis=0), (t,))
    for x in (N, np.array([2.0, 1.0, 1.0, 2.0]), np.array([5.0, 5.0, 5.0])):
        t = leaf(x)
        ng.nanmedian(t).backward()
        middle = np.flatnonzero(np.isfinite(x.ravel()))
        order = middle[np.argsort(x.ravel()[middle], kind="stable")]
        expected = np.zeros(x.size)
        for k in ((len(order) - 1) // 2, len(order) // 2):
            expected[order[k]] += 0.5
        np.testing.assert_array_equal(t.grad.numpy().ravel(), expected)


def test_of_equal_elements_one_has_the_gradient():
    x = rng.integers(0, 3, (5, 40)).astype(float)
    order = np.argsort(x, axis=1, kind="stable")
    for q in ([0.3, 0.8], np.linspace(0, 1, 12)):
        g = ng.jacobian(lambda t, q=q: ng.quantile(t, q, axis=1, method="lower"))(x)
        for k, place in enumerate(np.floor(39 * np.asarray(q)).astype(int)):
            for row in range(5):
                assert g[k, row].sum() == 1 == g[k, row, row, order[row, place]]


def test_weights_count_elements():
    counts = rng.integers(1, 4, X.shape)
    for axis in (None, 1):
        expected = np.quantile(X, [0.3, 0.6], axis=axis, method="inverted_cdf", weights=counts)
        t = leaf(X)
        y = ng.quantile(t, [0.3, 0.6], axis=axis, method="inverted_cdf", weights=counts)
        same(y, expected)
        y.sum().backward()
        assert t.grad.sum() == y.size
        assert set(X[t.grad.numpy() > 0]) == set(expected.ravel())


def test_infinities_are_as_in_numpy():
    for x in ([1.0, 2.0, np.inf], [1.0, np.inf], [np.inf, np.inf], [-np.inf, 1.0, 2.0]):
        for q in (0.0, 0.5, 1.0):
            np.testing.assert_equal(ng.quantile(x, q).item(), quiet(np.quantile, x, q).item())
        np.testing.assert_equal(ng.median(x).item(), quiet(np.median, x).item())
    assert np.isnan(ng.median([]).item())
    same(ng.median(np.zeros((0, 3)), axis=0), np.full(3, np.nan))
    same(ng.median(np.zeros((0, 3)), axis=1), np.zeros(0))


def test_compiled_order_statistics():
    def f(x):
        spread = ng.quantile(x, 0.75, axis=0) - ng.quantile(x, 0.25, axis=0)
        return (ng.median(x * x, axis=0) * spread).sum() + ng.nanmedian(x)

    fast = ng.jit(ng.value_and_grad(f))
    for x in (X, X[:3]):
        value, g = fast(x)
        expected, wanted = ng.value_and_grad(f)(x)
        np.testing.assert_allclose(value, expected)
        np.testing.assert_allclose(g, wanted)


# ----------------------------------------------------------------------------- without NaN


@pytest.mark.parametrize(
    "name", ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd"]
)
def test_what_is_nan_has_no_gradient(name):
    function = getattr(ng, name)
    present = np.isfinite(N[1])
    with_nan, without = leaf(N[1]), leaf(N[1][present])
    for t in (with_nan, without):
        function(t).backward()
    np.testing.assert_array_equal(with_nan.grad.numpy()[~present], 0)
    np.testing.assert_allclose(with_nan.grad.numpy()[present], without.grad.numpy())
    assert gradgradcheck(lambda t: ng.sin(function(t, axis=1)), (leaf(X),))


def test_nothing_but_nan():
    x = np.array([[1.0, np.nan], [np.nan, np.nan]])
    for name in ("nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd",
                 "nanmedian"):  # fmt: skip
        same(getattr(ng, name)(x, axis=1), quiet(getattr(np, name), x, axis=1))
    for name in ("nanargmax", "nanargmin"):
        with pytest.raises(ng.NumgradValueError, match=rf"{name}: All-NaN .* \(2, 2\)"):
            getattr(ng, name)(x, axis=1)


# ------------------------------------------------------------------------------------- running


def test_running_extremes():
    for x in (N, X.round(), (X * 3).astype(int), X[:0]):
        for axis in (0, 1):
            values, indices = ng.cummax(x, axis, return_indices=True)
            np.testing.assert_array_equal(values.numpy(), np.maximum.accumulate(x, axis=axis))
            np.testing.assert_array_equal(np.take_along_axis(x, indices.numpy(), axis), values)
            found = ng.cummin(x, axis=axis).numpy()
            np.testing.assert_array_equal(found, np.minimum.accumulate(x, axis=axis))
    torch = pytest.importorskip("torch")
    for x in (N, X.round()):
        ours, theirs = leaf(x), torch.tensor(x, requires_grad=True)
        weights = np.arange(1.0, 7.0)
        (ng.cummax(ours, axis=1) * weights).sum().backward()
        (torch.cummax(theirs, 1)[0] * torch.tensor(weights)).sum().backward()
        np.testing.assert_array_equal(ours.grad.numpy(), theirs.grad.numpy())


def test_ufuncs_accumulate():
    t = leaf(X)
    for ufunc in (np.maximum, np.minimum, np.logaddexp):
        for keywords in ({}, {"axis": 1}):
            y = ufunc.accumulate(t, **keywords)
            assert y.requires_grad
            same(y, ufunc.accumulate(X, **keywords))
        same(ufunc.accumulate(t.detach(), dtype=np.float32), ufunc.accumulate(X, dtype=np.float32))


def test_logcumsumexp():
    t = leaf(X)
    for axis in (0, 1, None):
        assert gradcheck(lambda t, axis=axis: ng.logcumsumexp(t, axis=axis), (t,))
    assert gradgradcheck(lambda t: ng.sin(ng.logcumsumexp(t, axis=1)), (t,))
    same(ng.logcumsumexp([-np.inf, -np.inf, 0.0, 800.0, -900.0]),
         np.array([-np.inf, -np.inf, 0.0, 800.0, 800.0]))  # fmt: skip
    steep = leaf([800.0, -800.0, 801.0, -np.inf])
    ng.logcumsumexp(steep).sum().backward()
    e = 1 / (1 + np.e)
    np.testing.assert_allclose(steep.grad.numpy(), [2 + 2 * e, 0, 2 * (1 - e), 0])
    # gradients that are zero, and depend on the operand, have derivatives themselves
    x = leaf([1.0, -1.0])
    (g,) = ng.autograd.grad((ng.logcumsumexp(x) ** 2)[0], x, create_graph=True)
    np.testing.assert_allclose(ng.autograd.grad(g[0], x)[0].numpy(), [2.0, 0.0])
    with pytest.raises(ng.NumgradTypeError, match=r"logcumsumexp: .*complex"):
        ng.logcumsumexp([1j])


# --------------------------------------------------------------------------- averages, covariances


def test_covariances():
    t, w = leaf(X), leaf(rng.uniform(1, 2, 6))
    assert gradcheck(lambda t: ng.cov(t), (t,))
    assert gradcheck(lambda t, w: ng.cov(t, aweights=w), (t, w))
    assert gradcheck(lambda t: ng.corrcoef(t)[0, 1:], (t,))
    assert gradcheck(lambda t, w: ng.average(t, 1, w), (t, w))
    assert gradgradcheck(lambda t: ng.cov(t[:2]), (t,))
    z = leaf(X[:2] + 1j * X[2:])
    assert gradcheck(lambda z: ng.cov(z).real, (z,))
    fast = ng.jit(ng.grad(lambda x: ng.corrcoef(x)[0, 1] + ng.average(x, weights=x * x)))
    expected = ng.grad(lambda x: ng.corrcoef(x)[0, 1] + ng.average(x, weights=x * x))(X)
    np.testing.assert_allclose(fast(X), expected)


def test_histograms_have_gradients_in_weights():
    x, w = rng.uniform(0, 4, 30), leaf(rng.normal(size=30))
    edges = [0.0, 1.0, 2.5, 3.0]
    assert gradcheck(lambda w: ng.histogram(x, edges, weights=w)[0], (w,))
    assert gradcheck(lambda w: ng.histogram(x, 4, (1, 3), weights=w)[0], (w,))
    assert gradcheck(lambda w: ng.histogram(x, 4, density=True, weights=w * w)[0], (w,))
    assert gradgradcheck(lambda w: ng.histogram(x, 4, weights=ng.sin(w))[0], (w,))
    points = np.stack([x, x[::-1]], axis=1)
    for bins in (3, (2, edges)):
        for span in (None, ((1, 3), (0, 2)), (None, (1, 2.5))):  # of one axis alone, too
            assert gradcheck(lambda w: ng.histogramdd(points, bins, span, weights=w)[0], (w,))  # noqa: B023
    assert gradcheck(lambda w: ng.histogram2d(x, x * x, 3, weights=w)[0], (w,))
    plain = ng.tensor(x)
    fast = ng.jit(ng.grad(lambda w: (ng.histogram(plain, 4, (0, 4), weights=w)[0] ** 2).sum()))
    sums = np.histogram(x, 4, (0, 4), weights=w.detach().numpy())[0]
    np.testing.assert_allclose(fast(w.detach().numpy()), 2 * sums[np.minimum(x.astype(int), 3)])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ng.quantile(X, 1.5), ValueError, "quantile: q must be from 0 to 1"),
        (lambda: ng.percentile(X, -1), ValueError, "percentile: q must be from 0 to 100"),
        (lambda: ng.quantile(X * 1j, 0.5), TypeError, "quantile: complex"),
        (lambda: ng.quantile([], 0.5), ValueError, "quantile: no elements"),
        (lambda: ng.quantile(X, 0.5, method="best"), ValueError, "no method is called 'best'"),
        (lambda: ng.quantile([True], 0.5), TypeError, "quantile: bools"),
        (lambda: ng.quantile(X, 0.5, weights=X), ValueError, "quantile: weights= goes with"),
        (
            lambda: ng.quantile(X, 0.5, weights=-abs(X), method="inverted_cdf"),
            ValueError,
            "quantile: weights must not be negative",
        ),
        (
            lambda: ng.quantile(X, 0.5, weights=X * 0, method="inverted_cdf"),
            ValueError,
            "quantile: weights are all zero",
        ),
        (
            lambda: ng.quantile(X, 0.5, weights=X[0], method="inverted_cdf"),
            ValueError,
            r"quantile: weights of shape \(6,\)",
        ),
        (lambda: ng.median(X, axis=2), IndexError, "median: axis 2"),
        (lambda: ng.average(X, weights=X * 0), ZeroDivisionError, "average: weights add up"),
        (lambda: ng.average(X, weights=[1, 2]), TypeError, "average: give the axis"),
        (lambda: ng.average(X, 1, weights=[1, 2]), ValueError, r"average: weights of shape \(2,\)"),
        (lambda: ng.cov(X[None]), ValueError, "cov: takes at most two axes"),
        (lambda: ng.cov(X, X[:, :2]), ValueError, "cov: 6 and 2 observations"),
        (lambda: ng.cov(X, fweights=[1, 2]), ValueError, r"cov: fweights of shape \(2,\)"),
        (lambda: ng.cov(X, aweights=X[0]), ValueError, "cov: aweights must not be negative"),
        (lambda: ng.cov(X, fweights=abs(X[0])), TypeError, "cov: fweights are counts"),
        (lambda: ng.cov(X, ddof=0.5), ValueError, "cov: ddof"),
        (lambda: ng.nanmax(X, where=X > 0), ValueError, "nanmax: .*give initial"),
        (lambda: ng.nanvar(X, ddof=1, correction=1), ValueError, "nanvar: ddof and correction"),
        (lambda: ng.nansum(X, where=X), TypeError, "nansum: where= .*boolean"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message) as raised:
        call()
    assert isinstance(raised.value, ng.NumgradError)


@pytest.mark.parametrize("ddof", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("name", ["var", "std"])
def test_no_degrees_of_freedom_are_left(name, ddof):
    for length in (0, 1, 2, 3):
        x = np.arange(1.0, length + 1)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = getattr(np, name)(x, ddof=ddof)
            found = getattr(ng, name)(ng.tensor(x), ddof=ddof)
        np.testing.assert_allclose(found.numpy(), want)


def test_quantiles_of_nothing_but_nans():
    for shape, axis in (((0,), 0), ((0, 3), 0), ((3, 0), 1)):
        found = np.nanquantile(ng.zeros(shape), 0.3, axis=axis)
        assert found.shape == shape[:axis] + shape[axis + 1 :]
        assert np.isnan(found.numpy()).all()
    with pytest.raises(ng.NumgradValueError, match="no elements"):
        np.quantile(ng.zeros((0,)), 0.3)


EDGES = np.array([0.0, 0.5, 1.5, 2.0])
WHOLE = np.arange(4) - 1


@pytest.mark.parametrize(
    "f",
    [
        lambda x, w: np.histogram(x, EDGES),
        lambda x, w: np.histogram(x, EDGES, weights=w, density=True),
        lambda x, w: np.histogram(x, WHOLE),
        lambda x, w: np.histogram2d(x, w, [EDGES, 3], weights=w),
        lambda x, w: np.histogramdd(np.stack([x, w], 1), (EDGES, EDGES[::2]), density=True),
        lambda x, w: (np.histogram_bin_edges(x, EDGES),),
    ],
)
def test_compiled_histograms_between_edges_from_outside(f):
    rng = np.random.default_rng(4)
    x, w = rng.uniform(-0.5, 2.5, 30), rng.uniform(0, 3, 30)
    with emulating():
        found = ng.tree.flatten(ng.jit(f)(x, w))[0]
    expected = ng.tree.flatten(f(x, w))[0]
    for ours, numpys in zip(found, expected, strict=True):
        assert ours.dtype == numpys.dtype
        np.testing.assert_allclose(ours, numpys, rtol=1e-12)


def test_edges_of_a_compiled_histogram_are_read_at_each_call():
    x, edges = np.array([0.1, 0.5, 1.2]), np.array([0.0, 1.0, 2.0])
    fast = ng.jit(lambda x, edges: np.histogram(x, edges)[0])
    assert fast(x, edges).tolist() == [2, 1]
    assert fast(x, edges / 2).tolist() == [1, 1]
    with pytest.raises(ValueError, match="increase"):
        fast(x, edges[::-1])
    with pytest.raises(NumgradTraceError, match="range as Python numbers"):
        ng.jit(lambda x, r: np.histogram(x, 3, r)[0])(x, edges[:2])


def test_bools_stay_bools_where_numpys_do():
    p, q = np.array([True, True, False, True]), np.array([True, True, False])
    for mode in ("full", "same", "valid"):
        for f in (np.convolve, np.correlate):
            same(f(ng.tensor(p), ng.tensor(q), mode), f(p, q, mode))
            same(f(ng.tensor(q), ng.tensor(p), mode), f(q, p, mode))
    for mode in ("reflect", "symmetric"):
        same(
            np.pad(ng.tensor(p), 2, mode, reflect_type="odd"),
            np.pad(p, 2, mode, reflect_type="odd"),
        )
    same(np.nan_to_num(ng.tensor(p)), p)
    with pytest.raises(TypeError, match="bools"):
        np.gradient(ng.tensor(p))


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, bool])
@pytest.mark.parametrize("subscripts", ["ij->", "ij->j", "ij,jk->i", "ij,jk->ik"])
def test_einsum_keeps_dtypes(dtype, subscripts):
    x = np.random.default_rng(1).integers(0, 200, (3, 3)).astype(dtype)
    operands = [x] * (1 + subscripts.count(","))
    same(np.einsum(subscripts, *map(ng.tensor, operands)), np.einsum(subscripts, *operands))


def test_simpsons_rule_in_single_precision():
    y = np.linspace(0, 1, 6, dtype=np.float32)
    assert ng.simpson(ng.tensor(y)).dtype == ng.simpson(ng.tensor(y), dx=0.5).dtype == np.float32
    assert ng.simpson(ng.tensor(y + 0j)).dtype == np.complex64


@pytest.mark.parametrize("q", [0.0, 0.3, 0.5, [0.1, 0.9, 1.0]])
def test_quantiles_of_unequal_weights(q):
    x = np.array([[3.0, -1.0, 2.0, 0.5], [1.0, 4.0, -2.0, 7.0]])
    weights = np.array([[0.1, 2.0, 0.0, 1.0], [3.0, 0.2, 0.2, 0.1]])
    for axis in (1, 0):
        options = {"axis": axis, "weights": weights, "method": "inverted_cdf"}
        expected = np.quantile(x, q, **options)
        np.testing.assert_array_equal(ng.quantile(ng.tensor(x), q, **options).numpy(), expected)
