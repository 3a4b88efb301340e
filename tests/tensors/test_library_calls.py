"""Errors name the function of another library that converts a Tensor, and ours instead."""

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.sparse
import scipy.sparse.linalg
import scipy.special
import scipy.stats

import numgrad as ng

pandas = pytest.importorskip("pandas")

X = np.eye(2) + 0.5
CALLS = {
    "scipy.linalg.expm": (scipy.linalg.expm, "ng.linalg.expm has gradients"),
    "scipy.linalg.cho_factor": (scipy.linalg.cho_factor, "ng.linalg.cho_factor has gradients"),
    "scipy.special.logsumexp": (scipy.special.logsumexp, "ng.special.logsumexp has gradients"),
    "scipy.signal.fftconvolve": (
        lambda x: scipy.signal.fftconvolve(x, x),
        "ng.signal.fftconvolve has gradients",
    ),
    "scipy.ndimage.gaussian_filter": (
        lambda x: scipy.ndimage.gaussian_filter(x, 1.0),
        "ng.ndimage.gaussian_filter has gradients",
    ),
    "scipy.integrate.simpson": (scipy.integrate.simpson, "ng.integrate.simpson has gradients"),
    "scipy.stats.norm.logpdf": (scipy.stats.norm.logpdf, "ng.stats.norm.logpdf has gradients"),
    "scipy.stats.multivariate_normal.logpdf": (
        scipy.stats.multivariate_normal.logpdf,
        "ng.stats.multivariate_normal.logpdf has gradients",
    ),
    "scipy.interpolate.CubicSpline": (
        lambda x: scipy.interpolate.CubicSpline([0, 1], x),
        "ng.interpolate.CubicSpline has gradients",
    ),
    "scipy.sparse.linalg.spsolve": (
        lambda x: scipy.sparse.linalg.spsolve(scipy.sparse.csc_array(X), x),
        "ng.sparse.spsolve(A.data, ng.sparse.pattern(A), b) gives the same",
    ),
    "scipy.sparse.coo_array.dot": (lambda x: scipy.sparse.coo_array(X).dot(x), "M @ t"),
    "pandas.DataFrame.__matmul__": (lambda x: pandas.DataFrame(X) @ x, "to_numpy"),
    "conversion to an ndarray": (np.asarray, ""),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_function_and_ours_are_named(name):
    function, instead = CALLS[name]
    with pytest.raises(ng.NumgradRuntimeError, match=f"^{name}: the tensor of shape") as raised:
        function(ng.tensor(X, requires_grad=True))
    assert instead in str(raised.value)
    with pytest.raises(ng.NumgradTraceError, match=f"{__name__.rpartition('.')[2]}.*{name} needs"):
        ng.jit(lambda x: function(x))(X)
    with pytest.raises(ng.NumgradRuntimeError, match=f"^{name}: .* has a tangent"):
        ng.jvp(function, (X,), (X,))
    plain = ng.tensor(X)
    if name == "scipy.linalg.expm":
        np.testing.assert_array_equal(function(plain), function(X))
