"""Distances against SciPy's, their gradients against differences."""

import tracemalloc

import numpy as np
import pytest
import scipy.spatial.distance

import numgrad as ng
from numgrad.spatial.metrics import METRICS
from numgrad.testing import gradcheck, gradgradcheck

D, S = ng.spatial.distance, scipy.spatial.distance
RNG = np.random.default_rng(6)
A, B, W = RNG.uniform(0.1, 1, (6, 3)), RNG.uniform(0.1, 1, (5, 3)), RNG.uniform(0.5, 2, 3)
PLAIN = ("jensenshannon", "mahalanobis", "seuclidean")


def leaf(value):
    return ng.tensor(value, requires_grad=True)


def same(found, true):
    np.testing.assert_allclose(found.detach().numpy(), true, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_values(metric):
    for options in ({},) if metric in PLAIN else ({}, {"w": W}):
        same(D.cdist(A, B, metric, **options), S.cdist(A, B, metric, **options))
        same(D.pdist(A, metric, **options), S.pdist(A, metric, **options))
        if metric not in PLAIN[1:]:
            true = getattr(S, metric)(A[0], B[0], **options)
            same(getattr(D, metric)(A[0], B[0], **options), true)


def test_options():
    for p in (1, 0.5, 3, np.inf):
        for w in (None, W):
            options = {} if w is None else {"w": w}
            true = S.cdist(A, B, "minkowski", p=p, **options)
            same(D.cdist(A, B, "minkowski", p=p, **options), true)
            same(D.minkowski(A[0], B[0], p, w), S.minkowski(A[0], B[0], p, w))
    inverse = np.cov(A.T)
    same(D.mahalanobis(A[0], B[0], inverse), S.mahalanobis(A[0], B[0], inverse))
    true = S.cdist(A, B, "mahalanobis", VI=inverse)
    same(D.cdist(A, B, "mahalanobis", VI=inverse), true)
    same(D.seuclidean(A[0], B[0], W), S.seuclidean(A[0], B[0], W))
    same(D.cdist(A, B, "seuclidean", V=W), S.cdist(A, B, "seuclidean", V=W))
    true = S.correlation(A[0], B[0], W, centered=False)
    same(D.correlation(A[0], B[0], W, centered=False), true)
    true = S.jensenshannon(A, A[::-1], 2.0, axis=1, keepdims=True)
    same(D.jensenshannon(A, A[::-1], 2.0, axis=1, keepdims=True), true)
    same(D.cdist(A, B, "manhattan"), S.cdist(A, B, "cityblock"))
    for found in (D.cdist(A, B, D.euclidean), D.cdist(A, B, lambda u, v: D.euclidean(u, v))):
        same(found, S.cdist(A, B))
    same(D.pdist(A, lambda u, v, w: ((u - v) ** 2 * w).sum(), w=2.0), 2 * S.pdist(A, "sqeuclidean"))
    assert D.cdist(A.astype(np.float32), B.astype(np.float32)).dtype == np.float32
    assert D.pdist(A[:1]).shape == (0,)


def test_forms_of_pairs():
    distances = S.pdist(A)
    same(D.squareform(distances), S.squareform(distances))
    same(D.squareform(S.squareform(distances)), distances)
    same(D.squareform(S.squareform(distances), "tovector"), distances)
    assert D.squareform([]).shape == (1, 1)
    found, true = D.directed_hausdorff(A, B), S.directed_hausdorff(A, B)
    np.testing.assert_allclose([part.item() for part in found], true)
    assert gradcheck(lambda a, b: D.directed_hausdorff(a, b)[0], (leaf(A), leaf(B)), fast_mode=True)
    assert gradcheck(lambda d: D.squareform(D.squareform(d)), (leaf(distances),), fast_mode=True)


def of_metric(metric):
    if metric in PLAIN:
        return lambda a, b: D.cdist(a, b, metric), (A, B)
    if metric == "minkowski":
        return lambda a, b, w, p: D.cdist(a, b, metric, w=w, p=p), (A, B, W, 2.5)
    return lambda a, b, w: D.cdist(a, b, metric, w=w), (A, B, W)


@pytest.mark.parametrize("metric", sorted(METRICS.keys() - {"hamming"}))
def test_gradients(metric):
    function, arguments = of_metric(metric)
    assert gradcheck(function, tuple(map(leaf, arguments)), fast_mode=True)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("metric", sorted(METRICS.keys() - {"hamming"}))
def test_second_gradients_compiled_and_mapped(metric):
    function, arguments = of_metric(metric)
    assert gradgradcheck(function, tuple(map(leaf, arguments)))
    gradient = ng.grad(lambda *args: (function(*args) ** 2).sum())
    np.testing.assert_allclose(ng.jit(gradient)(*arguments), gradient(*arguments), rtol=1e-9)
    both = ng.vmap(function)(*[np.stack([x, x]) for x in arguments])
    np.testing.assert_allclose(both[1], function(*arguments), rtol=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "minkowski", "cityblock", "chebyshev",
                                    "canberra", "jensenshannon"])  # fmt: skip
def test_the_gradient_where_points_coincide_is_zero(metric):
    x = leaf(np.full((3, 2), 0.5))
    D.cdist(x, x, metric).sum().backward()
    np.testing.assert_array_equal(x.grad, np.zeros((3, 2)))
    u = np.array([1.0, 2.0])
    assert ng.grad(lambda v: D.minkowski(u, v, 0.5))(np.array([1.0, 3.0])).tolist() == [0.0, 1.0]


def test_no_array_of_the_differences_of_all_pairs():
    x = RNG.uniform(size=(300, 50))
    function = ng.value_and_grad(lambda x: ng.sum(D.cdist(x, x) ** 3))
    function(x)
    tracemalloc.start()
    try:
        _, gradient = function(x)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 6 * 300 * 300 * 8  # a twelfth of the differences, 36 MB
    distances = S.cdist(x, x)
    weights = 3 * distances  # by the derivative of the distance, a unit vector
    true = 2 * (weights.sum(1)[:, None] * x - weights @ x)
    np.testing.assert_allclose(gradient, true, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: D.euclidean([1.0], [1.0, 2.0]), "same length"),
        (lambda: D.cdist(A, B[:, :2]), "equal length"),
        (lambda: D.cdist(A, B[0]), "matrices of rows"),
        (lambda: D.cdist(A, B, "jaccard"), "no metric 'jaccard' with gradients"),
        (lambda: D.cdist(A, B, "cosine", p=3), "takes w, got p"),
        (lambda: D.cdist(A, B, w=-W), "not negative"),
        (lambda: D.minkowski(A[0], B[0], 0), "positive"),
        (lambda: D.cdist(1j * A, B), "real vectors"),
        (lambda: D.squareform([1.0, 2.0]), "all pairs"),
        (lambda: D.squareform(A), "not square"),
        (lambda: D.squareform(np.arange(4.0).reshape(2, 2)), "not symmetric"),
        (lambda: D.squareform([1.0], "tovector"), "force"),
        (lambda: D.jaccard, "truth values"),
    ],
)
def test_errors(call, words):
    with pytest.raises(ng.NumgradError, match=words):
        call()
