"""Interpolants against SciPy's, their gradients against differences, in every interpreter."""

import pickle

import numpy as np
import pytest
import scipy
import scipy.interpolate as scipy_interpolate
from scipy.sparse.linalg import spsolve

import numgrad as ng
from numgrad.testing import gradcheck, gradgradcheck

I, S = ng.interpolate, scipy_interpolate  # noqa: E741
X = np.array([0.0, 1.1, 2.0, 3.3, 4.0, 5.2, 6.0])
X2 = np.array([0.0, 1.0, 2.5, 3.2, 5.0, 6.0])
RNG = np.random.default_rng(3)
Y = RNG.normal(size=(7, 2))
GRID = RNG.normal(size=(7, 6))
W = RNG.uniform(0.5, 2.0, 7)
PLACES = np.array([-1.0, 0.0, 0.3, 2.0, 3.31, 6.0, 8.5, np.nan])
INSIDE = np.array([0.4, 1.7, 3.0, 5.9])
POINTS = RNG.uniform(0.5, 5.5, size=(4, 2))


def closed(y):
    """Values of a period."""
    return ng.concat(y[:-1], y[:1], axis=0)


def same(ours, theirs, rtol=1e-9):
    np.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=rtol, atol=1e-11)


# ------------------------------------------------------------------------------------------ values

BOUNDARIES = [
    "not-a-knot", "periodic", "clamped", "natural", ((1, [1.0, 2.0]), (2, [3.0, 4.0])),
    ("not-a-knot", (1, [1.0, 2.0])), ((2, [1.0, 2.0]), "not-a-knot"),
]  # fmt: skip


@pytest.mark.parametrize("n", [2, 3, 4, 7])
@pytest.mark.parametrize("bc_type", BOUNDARIES, ids=str)
def test_cubic_splines(n, bc_type):
    x, y = X[:n], Y[:n] + 1j * Y[:n, ::-1] if n == 7 else Y[:n]
    if bc_type == "periodic":
        y = np.concatenate([y[:-1], y[:1]])
    ours, theirs = I.CubicSpline(x, y, bc_type=bc_type), S.CubicSpline(x, y, bc_type=bc_type)
    for nu in range(5):
        same(ours(PLACES, nu), theirs(PLACES, nu))
    for extrapolate in (True, False, "periodic"):
        same(ours(PLACES, extrapolate=extrapolate), theirs(PLACES, extrapolate=extrapolate))
        for a, b in ((0.5, 1.0), (1.0, 0.5), (-3.0, 11.0)):
            same(ours.integrate(a, b, extrapolate), theirs.integrate(a, b, extrapolate))
    same(ours.antiderivative(2)(PLACES), theirs.antiderivative(2)(PLACES))


PIECEWISE = {
    "akima": lambda of, x, y, axis: of.Akima1DInterpolator(x, y, axis=axis),
    "makima": lambda of, x, y, axis: of.Akima1DInterpolator(x, y, axis=axis, method="makima"),
    "pchip": lambda of, x, y, axis: of.PchipInterpolator(x, y, axis=axis),
    "hermite": lambda of, x, y, axis: of.CubicHermiteSpline(x, y, y**2, axis=axis),
    "spline": lambda of, x, y, axis: of.CubicSpline(x, y, axis=axis),
    "bspline": lambda of, x, y, axis: of.make_interp_spline(x, y, min(3, len(x) - 1), axis=axis),
}


@pytest.mark.parametrize("name", PIECEWISE)
def test_axes_and_few_points(name):
    older = np.lib.NumpyVersion(scipy.__version__) < "1.17.0"
    for n in (2, 3, 7):
        if n == 2 and older and name in ("akima", "makima"):
            continue  # which reads memory that it has not set there
        for y, axis in ((Y[:n], 0), (np.stack([Y[:n], -Y[:n]]), 1), (Y[:n].T, -1)):
            ours, theirs = PIECEWISE[name](I, X[:n], y, axis), PIECEWISE[name](S, X[:n], y, axis)
            same(ours(PLACES), theirs(PLACES))
            same(ours(PLACES.reshape(2, 4)), theirs(PLACES.reshape(2, 4)))
            same(ours(0.7), theirs(0.7))
    flat = np.array([0.0, 1.0, 1.0, 1.0, 0.0, -3.0, 2.0])
    same(PIECEWISE[name](I, X, flat, 0)(PLACES), PIECEWISE[name](S, X, flat, 0)(PLACES))


def test_piecewise_polynomials():
    c = RNG.normal(size=(3, 4, 2))
    for x in (X[:5], X[4::-1].copy()):
        for extrapolate in (True, False):
            ours, theirs = I.PPoly(c, x, extrapolate), S.PPoly(c, x, extrapolate)
            same(ours(PLACES), theirs(PLACES))
            same(ours.derivative(2)(PLACES), theirs.derivative(2)(PLACES))
            same(I.PPoly(c[:1], x)(PLACES), S.PPoly(c[:1], x)(PLACES))
    y = np.sin(2 * X)
    ours, theirs = I.CubicSpline(X, y), S.CubicSpline(X, y)
    same(ours.roots(), theirs.roots())
    same(ours.solve(0.3, extrapolate=False), theirs.solve(0.3, extrapolate=False))
    steps = [[0.0, 0, 1, 1], [1, -1, -0.5, 0]]
    same(I.PPoly(steps, X[:5]).roots(), S.PPoly(np.array(steps), X[:5]).roots())
    several = I.PPoly(c, X[:5]).roots()
    assert several.shape == (2,)
    same(several[1], S.PPoly(c, X[:5]).roots()[1])
    same(I.PPoly.from_spline(I.make_interp_spline(X, y))(PLACES), theirs(PLACES))


ENDS = [(k, None) for k in range(6)] + [
    (3, "natural"), (3, "clamped"), (3, ([(1, [1.0, 2])], [(2, [0.0, 1])])),
    (5, ([(1, [1.0, 2]), (2, [3.0, 4])],) * 2), (2, "periodic"), (3, "periodic"), (5, "periodic"),
]  # fmt: skip


@pytest.mark.parametrize(("k", "bc_type"), ENDS, ids=str)
def test_interpolating_b_splines(k, bc_type):
    y = np.concatenate([Y[:-1], Y[:1]]) if bc_type == "periodic" else Y
    ours = I.make_interp_spline(X, y, k, bc_type=bc_type)
    theirs = S.make_interp_spline(X, y, k, bc_type=bc_type)
    same(ours.t, theirs.t)
    same(ours.c, theirs.c)
    for nu in range(k + 1):
        same(ours(PLACES, nu), theirs(PLACES, nu))
    for extrapolate in (True, False, "periodic"):
        same(ours(PLACES, extrapolate=extrapolate), theirs(PLACES, extrapolate=extrapolate))
        for a, b in ((0.5, 1.0), (1.0, 0.5), (-3.0, 11.0)) if k else ((0.5, 1.0),):
            same(ours.integrate(a, b, extrapolate), theirs.integrate(a, b, extrapolate))
    if k > 1:
        same(ours.derivative(2)(PLACES), theirs.derivative(2)(PLACES))
        same(ours.antiderivative()(PLACES), theirs.antiderivative()(PLACES))


def test_b_splines():
    t = S.make_interp_spline(X, Y).t
    same(I.BSpline.design_matrix(INSIDE, t, 3), S.BSpline.design_matrix(INSIDE, t, 3).toarray())
    knots = [0.0, 0.5, 2.0, 3.0, 7.0]
    same(I.BSpline.basis_element(knots)(PLACES), S.BSpline.basis_element(knots)(PLACES))
    knots = [0.0, 0, 0, 0, 3, 6, 6, 6, 6]
    theirs = S.make_lsq_spline(X, Y, knots, w=W)
    same(I.make_lsq_spline(X, Y, knots, w=W).c, theirs.c)
    tck = S.splrep(X, Y[:, 0])
    for ext in (0, 1, 3):
        same(I.splev(PLACES[:-1], tck, ext=ext), S.splev(PLACES[:-1], tck, ext=ext))
    same(I.splint(-1.0, 3.0, tck), S.splint(-1.0, 3.0, tck))
    same(I.splev(INSIDE, I.splder(tck, 2)), S.splev(INSIDE, S.splder(tck, 2)))
    same(I.splev(INSIDE, I.splantider(tck)), S.splev(INSIDE, S.splantider(tck)))


@pytest.mark.parametrize("lam", [0.0, 1e-3, 1.0, 30.0])
def test_smoothing_splines(lam):
    for w in (None, W):
        ours = I.make_smoothing_spline(X, Y[:, 0], w, lam)
        theirs = S.make_smoothing_spline(X, Y[:, 0], w, lam)
        same(ours.t, theirs.t)
        same(ours.c, theirs.c, 1e-8)


def test_cross_validation():
    rng = np.random.default_rng(5)  # how near SciPy comes to the minimum depends on the data
    x = np.linspace(0, 6, 30)
    y = np.sin(x) + 0.2 * rng.normal(size=30)
    for w in (None, rng.uniform(0.5, 2, 30)):
        same(I.make_smoothing_spline(x, y, w)(x), S.make_smoothing_spline(x, y, w)(x), 1e-4)
    both = I.make_smoothing_spline(x, np.stack([y, y**2], 1))(x)
    same(both[:, 1], S.make_smoothing_spline(x, y**2)(x), 1e-4)


@pytest.mark.parametrize("method", ["linear", "nearest", "slinear", "cubic", "quintic", "pchip"])
def test_regular_grids(method):
    solver = {"solver": spsolve} if method in ("slinear", "cubic", "quintic") else {}
    values = np.stack([GRID, GRID**2], axis=-1)
    places = POINTS.reshape(2, 2, 2).copy()
    places[0, 0, 0], places[0, 1] = 9.0, [np.nan, -1.0]
    for grid in ((X, X2), (X, X2[::-1])):
        for fill in (np.nan, None, 7.0):
            options = grid, values, method, False, fill
            theirs = S.RegularGridInterpolator(*options, **solver)
            same(I.RegularGridInterpolator(*options)(places), theirs(places), 1e-8)
    one = (X,), Y[:, 0] if method == "pchip" else Y[:, 0] + 1j, method
    same(I.RegularGridInterpolator(*one)(INSIDE), S.RegularGridInterpolator(*one, **solver)(INSIDE))
    if method in ("slinear", "cubic"):
        theirs = S.RegularGridInterpolator((X, X2), GRID, method, **solver)
        ours = I.RegularGridInterpolator((X, X2), GRID, method)
        same(ours(POINTS, nu=(1, 0)), theirs(POINTS, nu=(1, 0)), 1e-8)
        assert ours(tuple(POINTS.T), "nearest").shape == (4,)
    ours = I.interpn((X, X2, [1.0, 2, 3, 4, 5, 6]), np.multiply.outer(GRID, X2), [3, 1, 2], method)
    assert np.isfinite(ours.numpy()).all()


def test_grids_of_one_point():
    grid = [1.0], [0.0, 1.0, 2.0]
    for method in ("linear", "nearest"):
        theirs = S.RegularGridInterpolator(grid, np.arange(3.0)[None], method)
        ours = I.RegularGridInterpolator(grid, np.arange(3.0)[None], method)
        same(ours([1.0, 0.3]), theirs([1.0, 0.3]))


KINDS = ["linear", "nearest", "nearest-up", "previous", "next", "zero", "slinear", "quadratic",
         "cubic", 4]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_one_axis_by_kind(kind):
    order = [3, 0, 1, 6, 2, 5, 4]
    places = PLACES[:-1] if kind in KINDS[1:5] else PLACES
    for y, axis in ((Y[order, 0], -1), (np.stack([Y[order]] * 3), 1)):
        for fill in (np.nan, "extrapolate", (1.0, 2.0), 5.0):
            options = {"fill_value": fill, "bounds_error": False, "axis": axis}
            ours, theirs = (
                I.interp1d(X[order], y, kind, **options),
                S.interp1d(X[order], y, kind, **options),
            )
            same(ours(places), theirs(places))
            same(ours(1.2), theirs(1.2))
    one = {"fill_value": 3.0, "bounds_error": False}
    if kind == "linear":
        same(I.interp1d([1.0], [2.0], **one)([0, 1, 2]), S.interp1d([1.0], [2.0], **one)([0, 1, 2]))


def test_integrals_of_coefficients_that_a_compiled_function_is_given():
    def area(c, a, b):
        return I.PPoly(c, X).integrate(a, b)

    c = RNG.normal(size=(3, 6))
    true = S.PPoly(c, X).integrate(0.5, 4.5)
    np.testing.assert_allclose(ng.jit(area)(c, 0.5, 4.5), true, rtol=1e-12)
    units = [S.PPoly(e.reshape(3, 6), X).integrate(0.5, 4.5) for e in np.eye(18)]
    gradients = ng.jit(ng.grad(area, (0, 1, 2)))(c, 0.5, 4.5)
    np.testing.assert_allclose(gradients[0].ravel(), units, rtol=1e-12, atol=1e-14)
    ends = [-S.PPoly(c, X)(0.5), S.PPoly(c, X)(4.5)]
    np.testing.assert_allclose(gradients[1:], ends, rtol=1e-12)
    spline = I.CubicSpline(X, Y[:, 0])
    compiled = ng.jit(lambda p, b: p.integrate(0.5, b))  # a polynomial as an argument
    np.testing.assert_allclose(compiled(spline, 4.5), spline.integrate(0.5, 4.5), rtol=1e-12)


# ---------------------------------------------------------------------------------------- gradients


def on_grid(method):
    return lambda x, v, q: I.RegularGridInterpolator((x, X2), v, method)(q)


CASES = {
    "not-a-knot": (lambda x, y, q: I.CubicSpline(x, y)(q), (X, Y, INSIDE)),
    "ends": (
        lambda x, y, q: I.CubicSpline(x, y, bc_type=("natural", (1, y[0])))(q, 1), (X, Y, INSIDE)
    ),
    "periodic": (
        lambda x, y, q: I.CubicSpline(x, closed(y), bc_type="periodic")(q), (X, Y, INSIDE)
    ),
    "pchip": (lambda x, y, q: I.PchipInterpolator(x, y)(q), (X, Y, INSIDE)),
    "akima": (lambda x, y, q: I.Akima1DInterpolator(x, y)(q), (X, Y, INSIDE)),
    "makima": (
        lambda x, y, q: I.Akima1DInterpolator(x, y, method="makima")(q, 1), (X, Y, INSIDE)
    ),
    "hermite": (
        lambda x, y, q: I.CubicHermiteSpline(x, y, y**2).antiderivative()(q), (X, Y, INSIDE)
    ),
    "integrate": (
        lambda x, y, q: I.CubicSpline(x, y).integrate(q[0], 2 * q[3], "periodic"), (X, Y, INSIDE)
    ),
    "solve": (
        lambda x, y, q: I.CubicSpline(x, np.sin(2 * x) + y[:, 0] / 9).solve(q[0]), (X, Y, INSIDE)
    ),
    "quadratic": (lambda x, y, q: I.make_interp_spline(x, y, 2)(q), (X, Y, INSIDE)),
    "quintic": (lambda x, y, q: I.make_interp_spline(x, y, 5).antiderivative()(q), (X, Y, INSIDE)),
    "b-spline ends": (
        lambda x, y, q: I.make_interp_spline(x, y, bc_type=("natural", [(1, y[0])]))(q, 1),
        (X, Y, INSIDE),
    ),
    "b-spline periodic": (
        lambda x, y, q: I.make_interp_spline(x, closed(y), bc_type="periodic")(q), (X, Y, INSIDE)
    ),
    "complex": (lambda y, q: I.make_interp_spline(X, y)(q), (Y + 1j * Y[::-1], INSIDE)),
    "least squares": (
        lambda x, y, w: I.make_lsq_spline(x, y, [0, 0, 0, 0, 3.1, 6, 6, 6, 6], w=w)(INSIDE),
        (X[1:-1], Y[1:-1], W[1:-1]),
    ),
    "smoothing": (
        lambda x, y, w, lam: I.make_smoothing_spline(x, y, w, lam)(INSIDE),
        (X, Y, W, np.array(0.3)),
    ),
    "linear": (
        lambda x, y, q: I.interp1d(x, y, axis=0, fill_value="extrapolate")(q), (X, Y, INSIDE)
    ),
    **{m: (on_grid(m), (X, GRID, POINTS)) for m in ("linear grid", "cubic", "pchip grid")},
}  # fmt: skip
CASES["linear grid"] = on_grid("linear"), (X, GRID, POINTS)
CASES["pchip grid"] = on_grid("pchip"), (X, GRID, POINTS)
CASES["cross-validation"] = (
    lambda x, y, w: I.make_smoothing_spline(x, y, w)(INSIDE), (X, np.sin(X) + 0.2 * Y[:, 0], W)
)  # fmt: skip


def leaves(arguments):
    return tuple(ng.tensor(a, requires_grad=True) for a in arguments)


@pytest.mark.parametrize("name", sorted(CASES.keys() - {"cross-validation"}))
def test_gradients(name):
    function, arguments = CASES[name]
    assert gradcheck(function, leaves(arguments), fast_mode=True)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("name", CASES)
def test_all_derivatives(name):
    function, arguments = CASES[name]
    assert gradcheck(function, leaves(arguments), check_forward_ad=True)
    assert gradgradcheck(function, leaves(arguments))


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("name", sorted(CASES.keys() - {"cross-validation", "solve"}))
def test_compiled_and_mapped(name):
    function, arguments = CASES[name]

    def loss(*args):
        return np.sum(np.abs(function(*args)) ** 2)

    value, gradient = ng.value_and_grad(loss, argnums=(0, 1))(*arguments)
    compiled, compiled_gradient = ng.jit(ng.value_and_grad(loss, argnums=(0, 1)))(*arguments)
    np.testing.assert_allclose(compiled, value, rtol=1e-10)
    for a, b in zip(compiled_gradient, gradient, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9)
    moved = [a * 1.01 for a in arguments]
    both = ng.vmap(loss)(*[np.stack(pair) for pair in zip(arguments, moved, strict=True)])
    np.testing.assert_allclose(both, [value, loss(*moved)], rtol=1e-9)


def test_gradients_of_single_precision_come_back_in_it():
    y = ng.tensor(Y.astype(np.float32), requires_grad=True)
    result = I.CubicSpline(X, y)(INSIDE)
    assert result.dtype == np.float64  # as SciPy computes
    result.sum().backward()
    assert y.grad is not None
    assert y.grad.dtype == np.float32


def test_an_interpolant_is_a_container():
    spline = I.CubicSpline(X, Y)
    value = spline(INSIDE).numpy()
    np.testing.assert_array_equal(ng.jit(lambda s, q: s(q))(spline, INSIDE), value)
    gradient = ng.grad(lambda s: s(INSIDE).sum())(spline)
    assert type(gradient) is I.CubicSpline
    assert gradient.c.shape == (4, 6, 2)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(spline))(INSIDE).numpy(), value)


def test_places_at_jumps_and_double_roots():
    steps = ng.tensor([[1.0, -1.0]], requires_grad=True)
    x = ng.tensor([0.0, 1.0, 2.0], requires_grad=True)
    (root,) = I.PPoly(steps, x).roots()
    root.backward()
    assert root.item() == 1.0
    assert x.grad is not None
    assert steps.grad is not None
    assert x.grad.numpy().tolist() == [0.0, 1.0, 0.0]
    assert steps.grad.numpy().tolist() == [[0.0, 0.0]]


# ------------------------------------------------------------------------------------------- errors

ERRORS = [
    (lambda: I.CubicSpline([1.0], [1.0]), "at least 2 points"),
    (lambda: I.CubicSpline([0.0, 1.0, 1.0], [1.0, 2.0, 3.0]), "strictly increasing"),
    (lambda: I.CubicSpline([0.0, 2.0, 1.0], [1.0, 2.0, 3.0]), "sort the points"),
    (lambda: I.CubicSpline([0.0, np.nan], [1.0, 2.0]), "must be finite"),
    (lambda: I.CubicSpline([0.0, 1.0], [1.0, np.inf]), "y must be finite"),
    (lambda: I.CubicSpline([0.0, 1.0], [1.0, 2.0, 3.0]), "2 points x, but y of shape"),
    (lambda: I.CubicSpline(X, Y, bc_type="open"), "is none of not-a-knot"),
    (lambda: I.CubicSpline(X, Y, bc_type=("natural", "periodic")), "for both"),
    (lambda: I.CubicSpline(X, Y, bc_type="periodic"), "must be equal"),
    (lambda: I.CubicSpline(X, Y, bc_type=((1, 0.0), (2, 0.0))), "shape"),
    (lambda: I.PchipInterpolator(X, Y + 1j), "must be real"),
    (lambda: I.Akima1DInterpolator(X, Y, method="cubic"), "method is"),
    (lambda: I.PPoly([[1.0, 2.0]], [0.0, 1.0]), "do not fit"),
    (lambda: I.PPoly([[1.0, 2.0]], [0.0, 2.0, 1.0]), "increasing or decreasing"),
    (lambda: I.make_interp_spline(X, Y, 2, t=X), "conditions"),
    (lambda: I.make_interp_spline(X, Y, 3, bc_type=([(4, 0.0)], None)), "orders from 0 to 3"),
    (lambda: I.BSpline([0.0, 1.0], [1.0], 1), "at least 4 points knots"),
    (lambda: I.BSpline.design_matrix([9.0], [0.0, 0, 1, 1], 1), "outside of"),
    (lambda: I.splev(9.0, ([0.0, 0, 1, 1], [1.0, 2.0], 1), ext=2), "beyond the ends"),
    (lambda: I.make_smoothing_spline(X[:4], Y[:4]), "at least 5"),
    (lambda: I.make_smoothing_spline(X, Y, -W), "must be positive"),
    (lambda: I.make_smoothing_spline(X, Y, lam=-1.0), "not negative"),
    (lambda: I.RegularGridInterpolator((X, X2), GRID)([9.0, 1.0]), "outside of the grid"),
    (lambda: I.RegularGridInterpolator((X,), GRID.T), "points along axis 0"),
    (lambda: I.RegularGridInterpolator((X, X2), GRID, "cube"), "is none of linear"),
    (lambda: I.RegularGridInterpolator((X[:3],), Y[:3], "cubic"), "needs 4 points"),
    (lambda: I.RegularGridInterpolator((X, X2), GRID, fill_value=1j), "fill_value"),
    (lambda: I.interp1d(X, Y, axis=0)(9.0), "behind the points"),
    (lambda: I.interp1d(X, Y, "wavy", axis=0), "is none of linear"),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number):
    call, message = ERRORS[number]
    with pytest.raises(ng.NumgradError, match=message):
        call()


def test_errors_where_numbers_are_unknown():
    spline = I.CubicSpline(X, Y[:, 0])
    with pytest.raises(ng.NumgradTraceError, match="solve"):
        ng.jit(lambda y: spline.solve(y))(0.1)
    with pytest.raises(ng.NumgradTraceError, match="give lam"):
        ng.jit(lambda y: I.make_smoothing_spline(X, y)(1.0))(Y[:, 0])


DESCENDING = np.array([3.0, 2.0, 1.0, 0.0]), np.array([9.0, 4.0, 1.0, 0.0])


@pytest.mark.parametrize("transform", [ng.jit, ng.vmap])
def test_descending_axes_where_numbers_come_later(transform):
    """The direction of a grid around the function, and of one that is an argument."""
    x, y = DESCENDING
    c = np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 2.0]])

    def grid(x, y):
        return I.RegularGridInterpolator((x,), y)([[0.5], [2.5]])

    def pieces(x, c):
        return I.PPoly(c, x, extrapolate=False)([0.5, 2.5, 9.0])

    lead = np.s_[None] if transform is ng.vmap else np.s_[...]
    for f, data, expected in (
        (grid, y, S.RegularGridInterpolator((x,), y)([[0.5], [2.5]])),
        (pieces, c, S.PPoly(c, x, extrapolate=False)([0.5, 2.5, 9.0])),
    ):
        np.testing.assert_allclose(transform(lambda d: f(x, d))(data[lead]), expected[lead])  # noqa: B023
        np.testing.assert_allclose(transform(f)(x[lead], data[lead]), expected[lead])
    up = S.RegularGridInterpolator((x[::-1],), y[::-1])([[0.5], [2.5]])
    np.testing.assert_allclose(transform(grid)(x[::-1][lead], y[::-1][lead]), up[lead])


KNOWN = [
    (lambda y: I.CubicSpline([0.0, 2.0, 1.0, 3.0], y)(1.0), "strictly increasing"),
    (lambda y: I.interp1d([0.0, 1.0, 1.0, 3.0], y)(1.0), "strictly increasing"),
    (lambda y: I.RegularGridInterpolator(([0.0, 2.0, 1.0, 3.0],), y)(1.0), "strictly increasing"),
    (
        lambda y: I.CubicSpline([0.0, 1, 2, 3], [[0.0, 1, 2, 3]], 1, "periodic")(y),
        "must be equal",
    ),
    (lambda y: I.PPoly([[1.0, 2.0]], [0.0, 2.0, 1.0])(y), "increasing or decreasing"),
]


@pytest.mark.parametrize("number", range(len(KNOWN)))
def test_points_around_a_compiled_function_are_checked(number):
    f, message = KNOWN[number]
    with pytest.raises(ng.NumgradValueError, match=message):
        ng.jit(f)(DESCENDING[1])
    with pytest.raises(ng.NumgradValueError, match=message):
        ng.vmap(f)(DESCENDING[1][None])


def test_points_around_a_compiled_function_may_change():
    x = np.arange(4.0)
    f = ng.jit(lambda y: I.RegularGridInterpolator((x,), y)([[0.5], [2.25]]))
    np.testing.assert_allclose(f(DESCENDING[1]), [6.5, 0.75])
    x[:] = x[::-1].copy()
    np.testing.assert_allclose(f(DESCENDING[1]), [0.5, 5.25])


def test_points_that_are_operands_too_may_change():
    x = np.arange(4.0)
    f = ng.jit(lambda y: I.CubicSpline(x, y)(1.5) + x[:2])
    np.testing.assert_allclose(f(X[:4] * 0 + 2.0), [2.0, 3.0])
    y = x**3
    for step in (1.0, 0.5):
        x[:] = step * np.arange(4.0)
        np.testing.assert_allclose(f(y), S.CubicSpline(x, y)(1.5) + x[:2], rtol=1e-12)
    x[1] = 3.0
    with pytest.raises(ng.NumgradValueError, match="strictly increasing"):
        f(y)


def test_places_outside_of_a_grid_where_numbers_come_later():
    table = I.RegularGridInterpolator((X, X2), GRID)
    places = np.array([[9.0, 1.0], [2.0, 1.0]])
    expected = [np.nan, GRID[2, 1]]
    np.testing.assert_allclose(ng.jit(table)(places), expected)
    np.testing.assert_allclose(ng.vmap(table)(places)[:, 0], expected)
    assert table((2.0, 1.0)).shape == ()
    assert table([2.0, 1.0]).shape == (1,)
