"""Errors name what gives the same with gradients: each entry is called beside SciPy's function."""

import importlib
import re

import numpy as np
import pytest
import scipy
import scipy.cluster.vq
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.sparse
import scipy.sparse.linalg
import scipy.spatial.distance
import scipy.special
import scipy.stats

import numgrad as ng
import numgrad.implicit
import numgrad.sparse
from numgrad.tensors.hints import EXPRESSIONS, OPTIONS, SAME_NAME, equivalent, hint

RNG = np.random.default_rng(3)
A = RNG.normal(size=(3, 3))
S = A @ A.T + 3 * np.eye(3)
TALL = RNG.normal(size=(4, 3))
FIRST = np.array([5.0, 0.0, 0.0])
LOW = np.tril(A) + 3 * np.eye(3)
V, W = RNG.normal(size=3), RNG.normal(size=4)
X = RNG.normal(size=300)
IMAGE = RNG.normal(size=(6, 7))
WEIGHTS = RNG.normal(size=(3, 3))
SOS = scipy.signal.butter(4, 0.3, output="sos")
GRID = np.arange(6.0)
SPLINE = np.r_[[0.0] * 4, 2.5, [5.0] * 4], np.r_[1.0, 2, 4, 3, 1, [0] * 4], 3
ROTATION = scipy.linalg.expm(A - A.T)

# positional arguments for each function; several calls where defaults depend on shapes
SAMPLES = {
    "scipy.integrate": [(X,)],
    "scipy.integrate.dblquad": [(lambda y, x: x * y, 0.0, 1.0, 0.0, 2.0)],
    "scipy.integrate.fixed_quad": [(np.sin, 0.0, 1.0)],
    "scipy.integrate.nquad": [(lambda y, x: x * y, [(0.0, 1.0), (0.0, 2.0)])],
    "scipy.integrate.odeint": [(lambda y, t: -y, 1.0, np.linspace(0, 1, 3))],
    "scipy.integrate.quad": [(np.sin, 0.0, 1.0)],
    "scipy.integrate.romb": [(X[:17],)],
    "scipy.integrate.tplquad": [(lambda z, y, x: x * y, 0.0, 1.0, 0.0, 2.0, 0.0, 1.0)],
    "scipy.integrate.solve_ivp": [(lambda t, y: -y, (0.0, 1.0), [1.0])],
    "scipy.interpolate": [(GRID, GRID**3)],
    "scipy.interpolate.BSpline": [SPLINE],
    "scipy.interpolate.CubicHermiteSpline": [(GRID, GRID**3, GRID)],
    "scipy.interpolate.PPoly": [(A, GRID[:4])],
    "scipy.interpolate.RegularGridInterpolator": [((GRID,), GRID**3)],
    "scipy.interpolate.interpn": [((GRID,), GRID**3, [0.5])],
    "scipy.interpolate.make_lsq_spline": [(GRID, GRID**3, SPLINE[0])],
    "scipy.interpolate.splantider": [(SPLINE,)],
    "scipy.interpolate.splder": [(SPLINE,)],
    "scipy.interpolate.splev": [(GRID, SPLINE)],
    "scipy.interpolate.splint": [(0.2, 1.5, SPLINE)],
    "scipy.linalg": [(S,)],
    "scipy.linalg.block_diag": [(A, TALL)],
    "scipy.linalg.cho_solve": [(scipy.linalg.cho_factor(S), V)],
    "scipy.linalg.circulant": [(V,)],
    "scipy.linalg.companion": [(V,)],
    "scipy.linalg.det": [(A,)],
    "scipy.linalg.eig": [(S,)],
    "scipy.linalg.eigvals": [(A,)],
    "scipy.linalg.fractional_matrix_power": [(S, 0.4)],
    "scipy.linalg.hankel": [(V,), (V, np.r_[V[-1], W])],
    "scipy.linalg.hessenberg": [(A,)],
    "scipy.linalg.khatri_rao": [(A, TALL)],
    "scipy.linalg.lu": [(A,), (TALL,)],
    "scipy.linalg.lu_factor": [(A,)],
    "scipy.linalg.lu_solve": [(scipy.linalg.lu_factor(A), V)],
    "scipy.linalg.matmul_toeplitz": [(V, A), ((V, np.r_[V[0], W]), np.ones(5))],
    "scipy.linalg.norm": [(A,), (V,)],
    "scipy.linalg.null_space": [(A[:2],)],
    "scipy.linalg.orth": [(TALL,)],
    "scipy.linalg.pinv": [(TALL,)],
    "scipy.linalg.polar": [(A,)],
    "scipy.linalg.qz": [(A, S)],
    "scipy.linalg.rsf2csf": [(*scipy.linalg.schur(A),)],
    "scipy.linalg.schur": [(A,)],
    "scipy.linalg.solve": [(A, V), (A, TALL.T)],
    "scipy.linalg.solve_banded": [((1, 1), np.array([[0, 1, 2.0], [4, 5, 6], [1, 2, 0]]), V)],
    "scipy.linalg.solve_continuous_are": [(A, A, S, S)],
    "scipy.linalg.solve_continuous_lyapunov": [(A, S)],
    "scipy.linalg.solve_discrete_are": [(A, A, S, S)],
    "scipy.linalg.solve_discrete_lyapunov": [(A / 4, S)],
    "scipy.linalg.solve_sylvester": [(A, S, S)],
    "scipy.linalg.solve_toeplitz": [(V + FIRST, V), ((V + FIRST, V + FIRST), V)],
    "scipy.linalg.solve_triangular": [(LOW.T, V)],
    "scipy.linalg.svd": [(A,), (TALL,), (TALL.T,)],
    "scipy.linalg.toeplitz": [(V,), (V, np.r_[V[0], W])],
    "scipy.fft": [(X,), (IMAGE,)],
    "scipy.ndimage": [(IMAGE,)],
    "scipy.ndimage.affine_transform": [(IMAGE, np.array([[1.0, 0.2], [0.1, 0.9]]))],
    **{f"scipy.ndimage.{name}": [(IMAGE, WEIGHTS)] for name in ("convolve", "correlate")},
    **{f"scipy.ndimage.{name}": [(IMAGE, V)] for name in ("convolve1d", "correlate1d")},
    **{f"scipy.ndimage.gaussian_filter{d}": [(IMAGE, 1.5)] for d in ("", "1d")},
    **{f"scipy.ndimage.{kind}_filter": [(IMAGE, 3)] for kind in ("maximum", "median", "minimum")},
    "scipy.ndimage.map_coordinates": [(IMAGE, np.array([[0.5, 1.2], [2.2, 3.1]]))],
    "scipy.ndimage.rotate": [(IMAGE, 20.0)],
    "scipy.ndimage.shift": [(IMAGE, 0.4)],
    "scipy.ndimage.uniform_filter1d": [(IMAGE, 3)],
    "scipy.ndimage.zoom": [(IMAGE, 2)],
    "scipy.signal": [(X,)],
    **{
        f"scipy.signal.{name}": [(X, V), (IMAGE, WEIGHTS)]
        for name in ("convolve", "correlate", "fftconvolve", "oaconvolve")
    },
    **{f"scipy.signal.{name}2d": [(IMAGE, WEIGHTS)] for name in ("convolve", "correlate")},
    "scipy.signal.csd": [(X, X[::-1])],
    "scipy.signal.filtfilt": [([1.0, 0.5], [1.0, 0.2], X)],
    "scipy.signal.istft": [(scipy.signal.stft(X, nperseg=16)[2],)],
    "scipy.signal.lfilter": [([1.0, 0.5], [1.0, 0.2], X)],
    "scipy.signal.lfilter_zi": [([1.0, 0.5], [1.0, 0.2])],
    "scipy.signal.resample": [(X, 30)],
    "scipy.signal.savgol_filter": [(X, 5, 2)],
    "scipy.signal.sosfilt": [(SOS, X)],
    "scipy.signal.sosfilt_zi": [(SOS,)],
    "scipy.signal.sosfiltfilt": [(SOS, X)],
    "scipy.spatial.distance": [(V, W[:3])],
    "scipy.spatial.distance.cdist": [(A, TALL)],
    "scipy.spatial.distance.directed_hausdorff": [(A, TALL)],
    "scipy.spatial.distance.jensenshannon": [(V**2, W[:3] ** 2)],
    "scipy.spatial.distance.mahalanobis": [(V, W[:3], S)],
    "scipy.spatial.distance.pdist": [(A,)],
    "scipy.spatial.distance.seuclidean": [(V, W[:3], V**2)],
    "scipy.spatial.distance.squareform": [(V**2,)],
    "scipy.special": [(2, X[:4])],
    "scipy.special.comb": [(7.5, 2.0)],
    "scipy.special.diric": [(X, 5)],
    "scipy.special.factorial": [(np.array([1, 3]),)],
    "scipy.special.lambertw": [(np.array([0.3, 2.0]),)],
    "scipy.special.log_softmax": [(X,)],
    "scipy.special.logsumexp": [(X,), (IMAGE, 1)],
    "scipy.special.multigammaln": [(4.5, 2)],
    "scipy.special.perm": [(7.0, 2.0)],
    "scipy.special.polygamma": [(2, np.array([0.5, 2.0]))],
    "scipy.special.sinc": [(X,)],
    "scipy.special.softmax": [(X,)],
    "scipy.special.zeta": [(np.array([1.5, 3.0]),)],
    **{
        f"scipy.special.{name}": [(2, np.array([0.5, 2.0]))]
        for name in ("h1vp", "h2vp", "ivp", "jvp", "kvp", "yvp", "spherical_in", "spherical_jn",
                     "spherical_kn", "spherical_yn")
    },
}  # fmt: skip
SIGNS = {"eig", "eigh", "svd", "orth", "null_space", "qz", "schur", "qr", "hessenberg"}
"""Functions whose vectors have signs that LAPACK's versions choose."""
SEVERAL = [f"{home}.{name}" for home, names in SAME_NAME.items() for name in names.split()]


def found(path):
    home, _, name = path.rpartition(".")
    return getattr(importlib.import_module(home), name)


def plain(value):
    """Arrays in a result, as a list."""
    if isinstance(value, tuple | list):
        return [part for element in value for part in plain(element)]
    if hasattr(value, "y") and hasattr(value, "t"):  # of solve_ivp
        return plain([value.t, value.y])
    return [value.detach().numpy() if isinstance(value, ng.Tensor) else np.asarray(value)]


def assert_equal(found, true, signs=False, rtol=1e-8):
    found, true = plain(found), plain(true)
    assert len(found) == len(true)
    for f, t in zip(found, true, strict=True):
        assert f.shape == t.shape
        if signs:
            f, t = abs(f), abs(t)
        np.testing.assert_allclose(f, t, rtol=rtol, atol=1e-9)


@pytest.mark.parametrize("path", [p for p in SEVERAL if not p.startswith("scipy.stats")])
def test_same_name_same_meaning(path):
    home, _, name = path.rpartition(".")
    ours = eval(equivalent(home, name), {"ng": ng})
    rtol = 1e-3 if path in ("scipy.integrate.odeint", "scipy.integrate.solve_ivp") else 1e-8
    for args in SAMPLES.get(path) or SAMPLES[home]:
        try:
            true = found(path)(*args)
        except ValueError:  # a function of matrices, or of vectors only
            continue
        result = ours(*args)
        if home == "scipy.interpolate" and not isinstance(true, tuple | float | np.ndarray):
            true, result = (interpolant([0.5]) for interpolant in (true, result))
        if name in ("splantider", "splder"):  # where SciPy's have zeros behind the coefficients
            true, result = (scipy.interpolate.splev(GRID, plain(tck)) for tck in (true, result))
        if name == "cho_factor":  # what the other triangle has is said to mean nothing
            true, result = np.triu(true[0]), np.triu(ng.asarray(result[0]).numpy())
        if name.endswith("quad"):  # without the estimate of its error
            true, result = true[0], result[0]
        if name == "odeint":  # SciPy has an axis for one number too
            true = true[:, 0]
        assert_equal(result, true, name in SIGNS, rtol)


PARAMETERS = {
    "bernoulli": (0.3,), "beta": (2.0, 3.0), "binom": (5, 0.3), "chi2": (3.0,), "f": (3.0, 8.0),
    "gamma": (2.0,), "genpareto": (0.2,), "geom": (0.3,), "invgamma": (4.0,), "lognorm": (0.7,),
    "nbinom": (4, 0.3),
    "pareto": (3.0,), "poisson": (2.0,), "skewnorm": (1.5,), "t": (6.0,), "truncnorm": (-1.0, 2.0),
    "vonmises": (1.5,), "weibull_min": (1.5,), "multivariate_normal": (V, S),
    "multivariate_t": (V, S), "dirichlet": (np.array([2.0, 3.0, 4.0]),),
    "multinomial": (4, np.array([0.2, 0.3, 0.5])), "wishart": (5, S),
}  # fmt: skip
POINTS = {
    "multivariate_normal": W[:3], "multivariate_t": W[:3], "dirichlet": np.array([0.2, 0.3, 0.5]),
    "multinomial": np.array([1, 1, 2]), "wishart": S,
    **dict.fromkeys(("bernoulli", "binom", "geom", "nbinom", "poisson"), np.array([1, 2])),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME_NAME["scipy.stats"].split())
def test_distributions_of_the_same_name(name):
    theirs, given = getattr(scipy.stats, name), PARAMETERS.get(name, ())
    called = 0
    for method in ("pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf"):
        path = equivalent("scipy.stats", f"{name}.{method}")
        if path is None or not hasattr(theirs, method):
            continue
        x = np.array([0.25, 0.66]) if method in ("ppf", "isf") else POINTS.get(name, [0.3, 1.2])
        if name == "pareto" and method not in ("ppf", "isf"):
            x = [1.3, 2.2]
        ours = eval(path, {"ng": ng})
        if name in ("multivariate_normal", "multivariate_t") and "cdf" in method:
            continue  # by Monte Carlo
        with np.errstate(divide="ignore"):
            assert_equal(ours(x, *given), getattr(theirs, method)(x, *given), rtol=1e-7)
        called += 1
    assert called
    ours = getattr(ng.stats, name)
    fit = f"ng.stats.{name}.fit" if hasattr(ours, "fit") else None
    assert equivalent("scipy.stats", f"{name}.fit") == fit
    said = fit or "ng.minimize(lambda p: -ng.sum(ng.stats."
    assert said in hint("scipy.stats", f"{name}.fit")


def squares(x, c=2.0):
    return np.sum((x - c) ** 2)


def cubic(x, c=2.0):
    return x**3 - c


def line(x, a, b):
    return a + b * x


U1, U2 = RNG.uniform(1, 2, 5), RNG.uniform(1, 2, 5)
SPARSE = scipy.sparse.csr_array(S)
OF_ONE = {"f": squares, "x0": np.float64(0.3), "args": (2.0,), "func": squares, "fun": squares}
OF_ROOT = {"f": cubic, "func": cubic, "fun": cubic, "x0": np.float64(1.0), "args": (2.0,)}
CALLS = {
    "numpy.full": {"shape": (2, 3), "fill_value": V},
    "numpy.full_like": {"a": A, "fill_value": 2.5},
    "numpy.piecewise": {"x": W, "condlist": [W < 0], "funclist": [abs, 3.0]},
    "scipy.cluster.vq.whiten": {"obs": TALL},
    "scipy.integrate.quad_vec": {"f": np.exp, "a": 0.0, "b": 1.0},
    "scipy.linalg.cholesky": {"a": S},
    "scipy.linalg.lstsq": {"a": TALL, "b": W},
    "scipy.linalg.orthogonal_procrustes": {"A": A, "B": S},
    "scipy.linalg.qr": {"a": TALL},
    "scipy.linalg.solve_circulant": {"c": V + 3, "b": V},
    "scipy.sparse.linalg.spsolve": {"A": SPARSE, "b": V},
    "scipy.stats.pearsonr": {"x": U1, "y": U2},
    "scipy.optimize.fixed_point": {"func": lambda x, c: np.cos(x) * c, "x0": 0.5, "args": (0.7,)},
    "scipy.optimize.fsolve": OF_ROOT | {"x0": np.array([1.0])},
    "scipy.optimize.root": OF_ROOT | {"x0": np.array([1.0])},
    "scipy.optimize.least_squares": {
        "fun": lambda x, c: x * U1 - c, "x0": np.array([1.0]), "args": (2.0,)
    },
    "scipy.optimize.leastsq": {
        "func": lambda x, c: x * U1 - c, "x0": np.array([1.0]), "args": (2.0,)
    },
    "scipy.optimize.curve_fit": {
        "f": line, "xdata": np.arange(5.0), "ydata": U1, "p0": np.zeros(2), "args": ()
    },
}  # fmt: skip
OF_SOLVERS = {
    "curve_fit": lambda n: scipy.optimize.curve_fit(n["f"], n["xdata"], n["ydata"], n["p0"])[0],
    "least_squares": lambda n: scipy.optimize.least_squares(n["fun"], n["x0"], args=n["args"]).x,
    "leastsq": lambda n: scipy.optimize.leastsq(n["func"], n["x0"], n["args"])[0],
    "fixed_point": lambda n: scipy.optimize.fixed_point(n["func"], n["x0"], n["args"]),
    "fsolve": lambda n: scipy.optimize.fsolve(n["func"], n["x0"], n["args"]),
    "newton": lambda n: scipy.optimize.newton(n["func"], n["x0"], args=n["args"]),
    "root": lambda n: scipy.optimize.root(n["fun"], n["x0"], n["args"]).x,
    "root_scalar": lambda n: scipy.optimize.root_scalar(
        n["f"], args=n["args"], bracket=(0.0, 3.0)
    ).root,
    "minimize": lambda n: scipy.optimize.minimize(n["fun"], n["x0"], n["args"]).x[0],
    "minimize_scalar": lambda n: scipy.optimize.minimize_scalar(n["f"], args=n["args"]).x,
    "brent": lambda n: scipy.optimize.brent(n["f"], n["args"]),
    "golden": lambda n: scipy.optimize.golden(n["f"], n["args"]),
    "fminbound": lambda n: scipy.optimize.fminbound(n["f"], 0.0, 5.0, n["args"]),
    **{
        name: lambda n, name=name: getattr(scipy.optimize, name)(n["f"], 0.0, 3.0, args=n["args"])
        for name in ("bisect", "brenth", "brentq", "ridder", "toms748")
    },
    **{
        name: lambda n, name=name: getattr(scipy.optimize, name)(
            n["func"], n["x0"], args=n["args"], disp=0
        )[0]
        for name in ("fmin", "fmin_bfgs", "fmin_cg", "fmin_powell", "fmin_slsqp")
    },
    **{
        name: lambda n, name=name: getattr(scipy.optimize, name)(
            n["func"], [n["x0"]], args=n["args"], approx_grad=True
        )[0][0]
        for name in ("fmin_l_bfgs_b", "fmin_tnc")
    },
}  # fmt: skip


@pytest.mark.parametrize("path", EXPRESSIONS)
def test_expressions_give_the_same(path):
    home, _, name = path.rpartition(".")
    names = CALLS.get(path)
    if names is None and home == "scipy.optimize":
        names = OF_ROOT if "implicit.root" in EXPRESSIONS[path] else OF_ONE
    elif names is None:
        names = {"u": U1, "v": U2} if home.endswith("distance") else {"a": U1}
    tensors = {
        key: ng.asarray(value) if type(value) is np.ndarray else value
        for key, value in names.items()
    }
    result = eval(EXPRESSIONS[path], {"ng": ng, **tensors})
    if home == "scipy.optimize":
        true = OF_SOLVERS[name](names)
    else:
        true = found(path)(**names)
    if name in ("lstsq", "orthogonal_procrustes", "pearsonr", "quad_vec"):
        true = true[0]
        result = result[0] if name == "quad_vec" else result
    solver = home == "scipy.optimize"
    assert_equal(result, true, name in SIGNS, 2e-4 if solver else 1e-8)


@pytest.mark.parametrize("path", OPTIONS)
def test_expressions_for_other_arguments(path):
    home, _, name = path.rpartition(".")
    given = {"XA": TALL, "XB": A} if name == "cdist" else {"a": TALL if name == "qr" else S}
    for option, expression in OPTIONS[path].items():
        assert f", with {option} {expression}" in hint(home, name)
        if option == "b":
            given = given | {"b": S + np.eye(3)}
            true = found(path)(**given)
        else:
            true = eval(f"f(**given, {option})", {"f": found(path), "given": given})
        tensors = {key: ng.asarray(value) for key, value in given.items()}
        assert_equal(eval(expression, {"ng": ng, **tensors}), true, name in SIGNS)


def test_hints_say_for_which_arguments_they_are():
    t = ng.tensor(S, requires_grad=True)
    for call in (
        lambda: scipy.linalg.qr(t, pivoting=True),
        lambda: scipy.stats.zscore(t, axis=1),
        lambda: scipy.stats.kurtosis(t, bias=False),
        lambda: scipy.stats.gmean(t, weights=S),
        lambda: scipy.stats.sem(t, ddof=0),
    ):
        with pytest.raises(
            ng.NumgradRuntimeError, match=r"gives the same as \w+ with its defaults"
        ):
            call()
    with pytest.raises(ng.NumgradRuntimeError, match=r"ng\.linalg\.eigh\(a, b=b\)"):
        scipy.linalg.eigh(t, S)


def test_hints_say_what_is_meant():
    t = ng.tensor(S, requires_grad=True)
    v = ng.tensor([1.0, 2.0], requires_grad=True)
    for call, said in {
        (lambda: scipy.linalg.cholesky(t)): "ng.linalg.cholesky(a, upper=True) gives the same",
        (lambda: scipy.linalg.qr(t)): "ng.linalg.qr(a, mode='complete') gives the same",
        (lambda: scipy.linalg.expm(t)): "ng.linalg.expm has gradients",
        (lambda: scipy.linalg.rq(t)): "nothing here gives the same (rq changes a factorization",
        (lambda: scipy.optimize.fmin(lambda x: np.sum((x - v) ** 2), np.ones(2), disp=0)): (
            "ng.minimize derives the function that it is given, and ng.implicit.argmin("
        ),
        (lambda: scipy.stats.norm.fit(v)): "ng.stats.norm.fit has gradients",
        (lambda: scipy.stats.crystalball.fit(v)): "ng.minimize(lambda p: -ng.sum(ng.stats.norm",
        (lambda: scipy.stats.norm.logpdf(v)): "ng.stats.norm.logpdf has gradients",
        (lambda: scipy.interpolate.CubicSpline([0, 1], v)): "ng.interpolate.CubicSpline has",
    }.items():
        with pytest.raises(ng.NumgradRuntimeError, match=re.escape(said)):
            call()


# -------------------------------------------------------------------------------------- solvers

P = 2.0
SOLVERS = {
    **{
        name: lambda a, name=name: getattr(scipy.optimize, name)(lambda x: x * x - a, 0.0, 3.0)
        for name in ("brentq", "brenth", "bisect", "ridder", "toms748")
    },
    **{
        f"root_scalar {method}": lambda a, method=method: scipy.optimize.root_scalar(
            lambda x: x * x - a, bracket=(0.0, 3.0), x0=1.0, x1=2.0, method=method,
            fprime=lambda x: 2 * x,
        )
        for method in ("brentq", "bisect", "newton", "secant", "toms748")
    },
    **{
        name: lambda a, name=name: getattr(scipy.optimize, name)(lambda x: x * x - a, [1.0])
        for name in ("newton", "fsolve", "leastsq", "root", "least_squares")
    },
    "curve_fit": lambda a: scipy.optimize.curve_fit(
        lambda x, b: a * b * x, np.arange(3.0), np.arange(3.0)
    ),
    "milp": lambda a: scipy.optimize.milp(a * np.ones(2)),
    **{
        name: lambda a, name=name: getattr(scipy.optimize, name)(lambda x: (x - a) ** 2)
        for name in ("brent", "golden", "bracket", "minimize_scalar")
    },
    "fminbound": lambda a: scipy.optimize.fminbound(lambda x: (x - a) ** 2, 0.0, 3.0),
    **{
        f"minimize {method}": lambda a, method=method: scipy.optimize.minimize(
            lambda x: np.sum((x - a) ** 2), np.ones(2), method=method
        )
        for method in ("Nelder-Mead", "Powell", "CG", "BFGS", "L-BFGS-B", "TNC", "COBYLA", "SLSQP",
                       "trust-constr")
    },
    "minimize x0": lambda a: scipy.optimize.minimize(lambda x: np.sum(x**2), a),
    "minimize args": lambda a: scipy.optimize.minimize(
        lambda x, a: np.sum((x - a) ** 2), np.ones(2), args=(a,)
    ),
    **{
        name: lambda a, name=name: getattr(scipy.optimize, name)(
            lambda x: np.sum((x - a) ** 2), np.ones(2), disp=0
        )
        for name in ("fmin", "fmin_bfgs", "fmin_cg", "fmin_powell", "fmin_slsqp")
    },
    "differential_evolution": lambda a: scipy.optimize.differential_evolution(
        lambda x: np.sum((x - a) ** 2), [(0, 1)]
    ),
    "quad": lambda a: scipy.integrate.quad(lambda x: x * a, 0, 1),
    "quad limit": lambda a: scipy.integrate.quad(np.sin, 0, a),
    "dblquad": lambda a: scipy.integrate.dblquad(lambda x, y: x * y * a, 0, 1, 0, 1),
    "odeint": lambda a: scipy.integrate.odeint(lambda y, t: -a * y, 1.0, [0.0, 1.0]),
    **{
        f"solve_ivp {method}": lambda a, method=method: scipy.integrate.solve_ivp(
            lambda t, y: -a * y, (0.0, 1.0), [1.0], method=method
        )
        for method in ("RK45", "Radau", "LSODA")
    },
    "solve_ivp span": lambda a: scipy.integrate.solve_ivp(lambda t, y: -y, (0.0, a), [1.0]),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_of_scipy_name_themselves(name):
    solver, a = SOLVERS[name], ng.tensor(P, requires_grad=True)
    own = rf"^scipy\.\w+\.{name.split()[0]}: "
    with pytest.raises(ng.NumgradError, match=own + ".* requires grad"):
        solver(a)
    with pytest.raises(ng.NumgradError, match=own + ".*a tangent"):
        ng.jvp(solver, (P,), (1.0,))
    with pytest.raises(ng.NumgradError):
        ng.grad(solver)(P)
    with pytest.raises(ng.NumgradTraceError):
        ng.jit(solver)(P)
    solver(P)
    solver(a.detach())


# ------------------------------------------------------------------------------- public functions

MODULES = [
    "scipy.linalg", "scipy.fft", "scipy.signal", "scipy.ndimage", "scipy.special",
    "scipy.integrate", "scipy.interpolate", "scipy.stats", "scipy.spatial.distance",
    "scipy.cluster.vq", "scipy.cluster.hierarchy", "scipy.sparse", "scipy.sparse.linalg",
    "numpy.linalg", "numpy.fft",
]  # fmt: skip
CONSTANT = {
    "distance_transform_edt", "gammasgn", "newton_cotes", "tiecorrect", "lobpcg", "null_space",
    "cramervonmises", "tmin",
}  # fmt: skip
"""Functions whose floating results do not depend on what they are given, but by jumps."""


def kinds(value, depth=0):
    """Whether floats in a result are followed, each by a letter."""
    if isinstance(value, ng.Tensor):
        return (
            "" if value.dtype.kind not in "fc" else "followed " if value.requires_grad else "lost "
        )
    if isinstance(value, np.ndarray | np.generic | float):
        return "lost " if np.asarray(value).dtype.kind in "fc" else ""
    if isinstance(value, tuple | list) and depth < 3:
        return "".join(kinds(part, depth + 1) for part in value)
    return ""


@pytest.mark.slow(cases=1)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("home", MODULES)
def test_no_gradient_is_lost(home):
    module = importlib.import_module(home)
    v, t = ng.tensor(U1[:3], requires_grad=True), ng.tensor(S, requires_grad=True)
    lost, raised = [], 0
    for name in module.__all__:
        function = getattr(module, name)
        if not callable(function) or isinstance(function, type) or "backend" in name:
            continue
        if name in ("test", "seterr", "set_workers", "errstate"):
            continue
        for args in ((v,), (t,), (v, v), (t, v), (t, t), (v, v, v)):
            try:
                result = function(*args)
            except Exception as error:
                raised += isinstance(error, ng.NumgradError)
                continue
            seen = kinds(result)
            if "lost" in seen and "followed" not in seen and name not in CONSTANT:
                lost.append(name)
    assert not lost
    assert raised or home in ("numpy.fft",)


def test_functions_of_numpy_that_do_not_ask():
    s = ng.tensor(2.0, requires_grad=True)
    x = np.array([-1.0, 2.0])
    for call, said in (
        (lambda: np.full(3, s), r"np\.full: .*ng\.full\(shape, fill_value\) gives the same"),
        (lambda: np.full(3, s, dtype=float), r"np\.full: .*ng\.full\("),
        (lambda: np.full_like(x, s), r"np\.full_like: .*ng\.full_like\("),
        (lambda: np.piecewise(x, [x < 0], [lambda v: v * s, 1.0]), r"np\.piecewise: .*ng\.piece"),
    ):
        with pytest.raises(ng.NumgradError, match=said):
            call()
    assert ng.grad(lambda s: np.sum(np.full_like(ng.ones(3), s)))(2.0) == 3.0
    for full in (lambda s: ng.full((2, 3), s), lambda s: ng.full_like(np.ones((2, 3)), s)):
        for transform in (lambda f: f, ng.jit):
            grad = transform(ng.grad(lambda s, f=full: np.sum(f(s) * 2.0)))
            assert grad(2.0) == 12.0
