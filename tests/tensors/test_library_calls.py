"""Errors name the function of another library that converts a Tensor, and ours instead."""

import json
import math

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


PICTURES = {
    "plot": lambda axes, t: axes.plot(t, t),
    "step": lambda axes, t: axes.step(t, t),
    "scatter": lambda axes, t: axes.scatter(t, t, c=t),
    "bar": lambda axes, t: axes.bar([1, 2, 3], t),
    "hist": lambda axes, t: axes.hist(t),
    "errorbar": lambda axes, t: axes.errorbar(t, t, t),
    "fill_between": lambda axes, t: axes.fill_between(t, t, t),
    "boxplot": lambda axes, t: axes.boxplot(t),
    "quiver": lambda axes, t: axes.quiver(t, t, t, t),
    "imshow": lambda axes, t: axes.imshow(ng.outer(t, t)),
    "pcolormesh": lambda axes, t: axes.pcolormesh(ng.outer(t, t)),
    "contour": lambda axes, t: axes.contour(ng.outer(t, t)),
    "axhline": lambda axes, t: axes.axhline(t[0]),
    "set_xlim": lambda axes, t: axes.set_xlim(t[0], t[1]),
}


def test_pictures_of_tensors_are_those_of_arrays():
    figure = pytest.importorskip("matplotlib.figure").Figure
    canvas = pytest.importorskip("matplotlib.backends.backend_agg").FigureCanvasAgg
    numbers = np.array([1.0, 2.0, 4.0])
    for name, draw in PICTURES.items():
        pictures = []
        for x in (numbers, ng.tensor(numbers)):
            axes = figure(figsize=(1, 1), dpi=20).subplots()
            axes.set_axis_off()  # texts take longest
            draw(axes, x)
            drawn = canvas(axes.figure)
            drawn.draw()
            pictures.append(np.array(drawn.buffer_rgba()))
        assert np.array_equal(*pictures), name
        with pytest.raises(ng.NumgradRuntimeError) as raised:
            draw(axes, ng.tensor(numbers, requires_grad=True))
        assert str(raised.value).endswith("cannot carry; .detach() drops it on purpose"), name


def test_tensors_are_numbers_to_other_libraries():
    t, x = ng.tensor([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 4.0])
    pandas.testing.assert_series_equal(pandas.Series(t), pandas.Series(x))
    pandas.testing.assert_frame_equal(pandas.DataFrame({"t": t}), pandas.DataFrame({"t": x}))
    assert json.loads(json.dumps(t.tolist())) == x.tolist()
    assert math.sqrt(t[2]) == 2.0
    assert math.fsum(t) == 7.0
    assert f"{t[1]:.2f}" == "2.00"
    assert np.asarray(t, "float32").dtype == np.float32
    validation = pytest.importorskip("sklearn.utils.validation")
    np.testing.assert_array_equal(validation.check_array(ng.outer(t, t)), np.outer(x, x))
    with pytest.raises(ng.NumgradRuntimeError, match=r"carry; \.detach\(\) drops it on purpose$"):
        validation.check_array(ng.outer(t, t).requires_grad_())
