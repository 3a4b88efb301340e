"""Filters and interpolation of images against SciPy."""

import numpy as np
import pytest
import scipy.ndimage
import scipy.optimize

import numgrad as ng
from numgrad.testing import gradcheck
from tests.quiet import quiet

MODES = ("reflect", "constant", "nearest", "mirror", "wrap", "grid-constant", "grid-wrap")
DTYPES = (np.float64, np.float32, np.complex128, np.int64)


def draw(shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    x = 3 * rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def check(name, x, *args, **options):
    """The function on a Tensor and SciPy's on an array give the same."""
    expected = quiet(getattr(scipy.ndimage, name), x, *args, **options)
    actual = getattr(ng.ndimage, name)(ng.tensor(x), *args, **options).numpy()
    tolerance = 1e-4 if expected.dtype == np.float32 else 1e-9
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance, strict=True)


@pytest.mark.parametrize("name", ["correlate", "convolve"])
def test_weights_of_any_size(name):
    shapes = (((6,), (3,)), ((6,), (4,)), ((2,), (5,)), ((4, 5), (3, 2)), ((3, 2, 2), (2, 3, 1)))
    for mode in MODES:
        for dtype in DTYPES:
            for shape, size in shapes:
                weights = np.rint(3 * draw(size, seed=1))
                for place in (0, 1, -1):
                    options = {"mode": mode, "cval": 2, "origin": [place * (n > 2) for n in size]}
                    check(name, draw(shape, dtype), weights, **options)
        check(f"{name}1d", draw((3, 5)), [1.0, 2.0, 3.0, 4.0], 0, mode=mode, origin=1)


@pytest.mark.parametrize("mode", MODES[:5])
def test_filters(mode):
    for dtype in DTYPES[:2]:
        x = draw((7, 9), dtype)
        for order in (0, 1, 3):
            check("gaussian_filter", x, 1.3, order, mode=mode)
        check("gaussian_filter", x, (1.3, 0.7), (1, 0), mode=mode, radius=(2, 3))
        check("gaussian_filter", x, 1.0, mode=mode, output=np.float64, axes=(0,))
        check("gaussian_filter1d", x, 2.0, 0, 2, mode=mode)
        check("uniform_filter", x, (2, 3), mode=mode)
        check("uniform_filter1d", x, 4, 0, mode=mode, origin=1)
        for axis in (0, -1):
            check("sobel", x, axis, mode=mode)
            check("prewitt", x, axis, mode=mode)
        check("laplace", x, mode=mode)
        for name in ("maximum_filter", "minimum_filter", "median_filter"):
            check(name, x, 3, mode=mode)
            check(name, x, (2, 3), mode=mode, origin=-1)
            check(name, x, footprint=np.array([[0, 1, 0], [1, 1, 1]]), mode=mode, cval=1.0)


@pytest.mark.parametrize("mode", MODES)
def test_interpolation(mode):
    for order in range(6):
        if order > 1:
            check("spline_filter", draw((31, 24)), order, mode=mode)
            check("spline_filter1d", draw((24, 2)), order, 0, mode=mode)
        for dtype in DTYPES:
            x = draw((24, 31), dtype)
            at = np.random.default_rng(1).uniform(-15, 40, (2, 60))
            check("map_coordinates", x, at, order=order, mode=mode, cval=1.0)
        check("map_coordinates", x, at, order=order, mode=mode, cval=1.0, prefilter=False)
        x = draw((30, 26))
        matrix = np.array([[0.913, 0.2], [-0.117, 1.1]])
        options = {"order": order, "mode": mode}
        check("shift", x, (0.7, -1.2), cval=0.5, **options)
        check("zoom", x, (1.7, 1), **options)
        if mode not in ("constant", "wrap"):  # of which SciPy warns
            check("zoom", x, (1.7, 0.6), grid_mode=True, **options)
        check("affine_transform", x, matrix, [0.3141, -0.4], **options)
        check("affine_transform", x, [0.913, 1.21], [0.3141, -0.4], (4, 7), **options)
        homogeneous = np.block([[matrix, np.array([[0.31], [0.17]])], [0, 0, 1]])
        check("affine_transform", x, homogeneous, **options)
        check("rotate", x, 33.0, **options)
        check("rotate", draw((30, 2, 25)), 33.0, (0, 2), reshape=False, **options)


@pytest.mark.parametrize("mode", ["mirror", "reflect", "grid-wrap"])
def test_splines_go_through_their_points(mode):
    """Exactly, also where SciPy's start of the recurrences is inexact (few points, ``reflect``)."""
    for shape in ((2,), (5,), (1, 3)):
        for order in (2, 3, 4, 5):
            x = draw(shape)
            at = np.indices(shape, dtype=float)
            y = ng.ndimage.map_coordinates(ng.tensor(x), at, order=order, mode=mode)
            np.testing.assert_allclose(y.numpy(), x, rtol=1e-10, atol=1e-12)


def test_the_corners_of_a_zoomed_image_are_its_own():
    x = ng.tensor(draw((30,)))  # 29 / 14 * 14 is more than 29
    y = ng.ndimage.zoom(x, 0.5, order=1)
    np.testing.assert_array_equal(y.numpy()[[0, -1]], x.numpy()[[0, -1]])


def test_gradients_of_coordinates():
    at = np.random.default_rng(2).uniform(-2, 6, (2, 5))
    for order, mode in ((3, "constant"), (3, "mirror"), (2, "nearest"), (1, "wrap")):
        operands = [ng.tensor(a, requires_grad=True) for a in (draw((4, 5)), at)]
        assert gradcheck(
            lambda x, at, order=order, mode=mode: ng.ndimage.map_coordinates(
                x, at, order=order, mode=mode, cval=0.3
            ),
            operands,
        )


def test_gradients_of_parameters():
    def tensor(*values):
        return ng.tensor(np.array(values) if len(values) > 1 else values[0], requires_grad=True)

    x = ng.tensor(draw((4, 3)), requires_grad=True)
    f = ng.ndimage
    assert gradcheck(lambda x, d: f.shift(x, d, mode="mirror"), [x, tensor(0.3, -0.4)])
    assert gradcheck(
        lambda x, m, o: f.affine_transform(x, m, o, mode="reflect"),
        [x, tensor([0.9, 0.1], [0.2, 1.1]), tensor(0.2, 0.3)],
    )
    turn = lambda x, angle: f.rotate(x, angle, reshape=False, mode="nearest")  # noqa: E731
    assert gradcheck(turn, [x, tensor(20.0)])
    assert gradcheck(lambda x, s: f.gaussian_filter(x, s, 1), [x, tensor(0.8)])


def test_what_is_compiled():
    def energy(x, at):
        blurred = ng.ndimage.gaussian_filter(x, 1.0)
        return np.sum(ng.ndimage.map_coordinates(blurred, at) ** 2)

    x, at = draw((5, 6)), np.random.default_rng(0).uniform(0, 4, (2, 4))
    gradient = ng.grad(energy, argnums=(0, 1))
    for actual, expected in zip(ng.jit(gradient)(x, at), gradient(x, at), strict=True):
        np.testing.assert_allclose(actual, expected, atol=1e-12)


def test_an_image_is_registered():
    """Gradients of the coordinates find how far an image was moved and turned."""
    down, right = np.indices((24, 24), dtype=float) - 11.5
    bell = np.exp(-(((down - 2) / 4) ** 2) - (right / 7) ** 2)
    angle, moved = np.deg2rad(12.0), np.array([1.3, -0.8])

    def seen(image, parameters):
        c, s = np.cos(parameters[0]), np.sin(parameters[0])
        at = np.stack([c * down + s * right + parameters[1], c * right - s * down + parameters[2]])
        return ng.ndimage.map_coordinates(image, at + 11.5, order=3, mode="nearest")

    target = seen(bell, np.array([angle, *moved])).numpy()
    misfit = ng.value_and_grad(lambda p: np.sum((seen(bell, p) - target) ** 2))
    found = scipy.optimize.minimize(misfit, np.zeros(3), jac=True)
    np.testing.assert_allclose(found.x, [angle, *moved], atol=1e-5)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda f, x: f.correlate(x, np.ones(3)), r"correlate: weights of shape \(3,\)"),
        (lambda f, x: f.correlate(x, np.ones((0, 1))), "correlate: there are no weights"),
        (lambda f, x: f.correlate(x, np.ones((2, 2)), origin=2), "correlate: origin=2"),
        (lambda f, x: f.convolve(x, np.ones((2, 2)), mode="odd"), "convolve: mode 'odd'"),
        (lambda f, x: f.gaussian_filter(x, (1, 2, 3)), "gaussian_filter: sigma=.*3 values"),
        (lambda f, x: f.gaussian_filter(x, 1, order=-1), "gaussian_filter: order must not"),
        (lambda f, x: f.uniform_filter(x, 0), "uniform_filter: size must be 1"),
        (lambda f, x: f.map_coordinates(x, np.ones((3, 2))), r"coordinates of shape \(3, 2\)"),
        (lambda f, x: f.map_coordinates(x, np.ones((2, 2)), order=6), "order is a number from 0"),
        (lambda f, x: f.zoom(x, 0.1), "zoom: zoom=0.1 leaves nothing"),
        (lambda f, x: f.affine_transform(x, np.ones((3, 2))), r"a matrix of shape \(3, 2\)"),
        (lambda f, x: f.rotate(x, 3, (0, 0)), r"rotate: axes=\(0, 0\)"),
        (lambda f, x: f.spline_filter(x, 1), "spline_filter: order is a number from 2"),
        (lambda f, x: f.median_filter(x), "median_filter: give size or footprint"),
    ],
)
def test_errors_name_the_operation_and_what_was_seen(call, says):
    with pytest.raises(ng.NumgradValueError, match=says):
        call(ng.ndimage, ng.ones((2, 3)))


@pytest.mark.parametrize("mode", ["reflect", "constant"])
@pytest.mark.parametrize("shape", [(0, 2), (2, 0)])
def test_filters_of_no_pixels_keep_the_shape(shape, mode):
    """Those that look beyond the edges, where there is nothing to look at."""
    for name, *args in (
        ("correlate", np.ones((2, 2))), ("convolve1d", [1.0, 2.0]), ("uniform_filter", 3),
        ("gaussian_filter", 1.0), ("median_filter", 3), ("maximum_filter", 3), ("sobel",),
    ):  # fmt: skip
        image = ng.zeros(shape, requires_grad=True)
        found = getattr(ng.ndimage, name)(image, *args, mode=mode)
        assert found.shape == getattr(scipy.ndimage, name)(np.zeros(shape), *args, mode=mode).shape
        found.sum().backward()
        assert image.grad.shape == shape


@pytest.mark.parametrize("dtype", [">f8", "float16", "longdouble"])
@pytest.mark.parametrize("name", ["gaussian_filter", "median_filter", "sobel"])
def test_dtypes_without_kernels(name, dtype):
    options = () if name == "sobel" else (3,)
    with pytest.raises(ng.NumgradTypeError, match=r"dtype .*; convert with astype"):
        getattr(ng.ndimage, name)(np.ones((4, 4), dtype), *options)
