"""Hints of errors to functions that do the same with gradients: one table, and who called.

Each entry is called in tests beside the function that it stands for. What has the same name and
meaning is listed by name; for others stands an expression in the names of SciPy's parameters. A
function without an entry has no equal here, and hints say so.

SciPy's and pandas' functions convert what they are given to ndarrays, somewhere deep inside. The
error is about the function that the user called, and names ours that does the same with gradients.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import takewhile
from types import FrameType, FunctionType

import numpy as np

SAME_NAME = {
    "scipy.fft": """dct dctn dst dstn fft fft2 fftn fftshift hfft hfft2 hfftn idct idctn idst idstn
        ifft ifft2 ifftn ifftshift ihfft ihfft2 ihfftn irfft irfft2 irfftn rfft rfft2 rfftn""",
    "scipy.integrate": """cumulative_simpson cumulative_trapezoid dblquad fixed_quad nquad odeint
        quad romb simpson solve_ivp tplquad trapezoid""",
    "scipy.interpolate": """Akima1DInterpolator BSpline CubicHermiteSpline CubicSpline PPoly
        PchipInterpolator RegularGridInterpolator interp1d interpn make_interp_spline
        make_lsq_spline make_smoothing_spline splantider splder splev splint""",
    "scipy.linalg": """block_diag cho_factor cho_solve circulant companion coshm cosm det eig eigh
        eigvals eigvalsh expm fractional_matrix_power hankel hessenberg inv khatri_rao ldl logm
        lu lu_factor lu_solve matmul_toeplitz norm null_space orth pinv pinvh polar qz rsf2csf
        schur signm sinhm sinm solve solve_banded solve_continuous_are solve_continuous_lyapunov
        solve_discrete_are solve_discrete_lyapunov solve_sylvester solve_toeplitz solve_triangular
        sqrtm svd svdvals tanhm tanm toeplitz""",
    "scipy.ndimage": """affine_transform convolve convolve1d correlate correlate1d gaussian_filter
        gaussian_filter1d laplace map_coordinates maximum_filter median_filter minimum_filter
        prewitt rotate shift sobel spline_filter spline_filter1d uniform_filter uniform_filter1d
        zoom""",
    "scipy.signal": """convolve convolve2d correlate correlate2d csd detrend fftconvolve filtfilt
        hilbert istft lfilter lfilter_zi medfilt oaconvolve periodogram resample savgol_filter
        sosfilt sosfilt_zi sosfiltfilt stft welch""",
    "scipy.spatial.distance": """braycurtis canberra cdist chebyshev cityblock correlation cosine
        directed_hausdorff euclidean hamming jensenshannon mahalanobis minkowski pdist seuclidean
        sqeuclidean squareform""",
    "scipy.special": """comb diric factorial h1vp h2vp ivp jvp kvp lambertw log_softmax logsumexp
        multigammaln perm polygamma sinc softmax spherical_in spherical_jn spherical_kn spherical_yn
        yvp zeta""",
    "scipy.stats": """bernoulli beta binom cauchy chi2 dirichlet expon f gamma genpareto geom
        gumbel_r halfcauchy halfnorm invgamma laplace logistic lognorm multinomial
        multivariate_normal multivariate_t nbinom norm pareto poisson rayleigh skewnorm t
        truncnorm uniform vonmises weibull_min wishart""",
}  # fmt: skip
"""Module -> functions, or distributions with their methods, that are called alike."""

_LACKING = ("skewnorm.interval", "skewnorm.isf", "skewnorm.median", "skewnorm.ppf")
"""Methods that distributions here have no formula for."""

EXPRESSIONS = {
    "numpy.full": "ng.full(shape, fill_value)",
    "numpy.full_like": "ng.full_like(a, fill_value)",
    "numpy.piecewise": "ng.piecewise(x, condlist, funclist)",
    "scipy.cluster.vq.whiten": "obs / ng.std(obs, axis=0)",
    "scipy.integrate.quad_vec": "ng.integrate.quad_vec(f, a, b)",
    "scipy.linalg.cholesky": "ng.linalg.cholesky(a, upper=True)",
    "scipy.linalg.lstsq": "ng.linalg.lstsq(a, b)[0]",
    "scipy.linalg.orthogonal_procrustes": "ng.linalg.polar(A.mT @ B)[0]",
    "scipy.linalg.qr": "ng.linalg.qr(a, mode='complete')",
    "scipy.linalg.solve_circulant": "ng.linalg.solve(ng.linalg.circulant(c), b)",
    "scipy.optimize.curve_fit": (
        "ng.implicit.argmin(lambda p, *args: ng.sum((f(xdata, *p, *args) - ydata) ** 2), p0, args)"
    ),
    "scipy.sparse.linalg.spsolve": "ng.sparse.spsolve(A.data, ng.sparse.pattern(A), b)",
    "scipy.stats.gmean": "ng.exp(ng.mean(ng.log(a), axis=0))",
    "scipy.stats.hmean": "1 / ng.mean(1 / a, axis=0)",
    "scipy.stats.kurtosis": (
        "ng.mean(((a - ng.mean(a, axis=0)) / ng.std(a, axis=0)) ** 4, axis=0) - 3"
    ),
    "scipy.stats.pearsonr": "ng.corrcoef(x, y)[0, 1]",
    "scipy.stats.sem": "ng.std(a, axis=0, ddof=1) / len(a) ** 0.5",
    "scipy.stats.skew": "ng.mean(((a - ng.mean(a, axis=0)) / ng.std(a, axis=0)) ** 3, axis=0)",
    "scipy.stats.zscore": "(a - ng.mean(a, axis=0)) / ng.std(a, axis=0)",
    "scipy.optimize.fixed_point": "ng.implicit.fixed_point(func, x0, args)",
    "scipy.optimize.least_squares": (
        "ng.implicit.argmin(lambda x, *args: ng.sum(fun(x, *args) ** 2), x0, args)"
    ),
    "scipy.optimize.leastsq": (
        "ng.implicit.argmin(lambda x, *args: ng.sum(func(x, *args) ** 2), x0, args)"
    ),
    "scipy.optimize.fsolve": "ng.implicit.root(func, x0, args)",
    "scipy.optimize.newton": "ng.implicit.root(func, x0, args)",
    "scipy.optimize.root": "ng.implicit.root(fun, x0, args)",
    **{
        f"scipy.optimize.{name}": "ng.implicit.root(f, x0, args)"
        for name in ("bisect", "brenth", "brentq", "ridder", "root_scalar", "toms748")
    },
    "scipy.optimize.minimize": "ng.implicit.argmin(fun, x0, args)",
    **{
        f"scipy.optimize.{name}": "ng.implicit.argmin(func, x0, args)"
        for name in ("fmin", "fmin_bfgs", "fmin_cg", "fmin_l_bfgs_b", "fmin_powell", "fmin_slsqp",
                     "fmin_tnc")
    },
    **{
        f"scipy.optimize.{name}": "ng.implicit.argmin(f, x0, args)"
        for name in ("brent", "fminbound", "golden", "minimize_scalar")
    },
}  # fmt: skip
"""Function -> an expression that gives the same, of SciPy's parameters."""

DIRECT = {
    "scipy.optimize.curve_fit": "ng.curve_fit",
    "scipy.optimize.fsolve": "ng.root",
    "scipy.optimize.least_squares": "ng.least_squares",
    "scipy.optimize.leastsq": "ng.least_squares",
    "scipy.optimize.minimize": "ng.minimize",
    "scipy.optimize.root": "ng.root",
    **{
        f"scipy.optimize.{name}": "ng.minimize"
        for name in ("fmin", "fmin_bfgs", "fmin_cg", "fmin_l_bfgs_b", "fmin_powell", "fmin_slsqp",
                     "fmin_tnc")
    },
}  # fmt: skip
"""Solver -> ours that takes Tensors from the function and derives it by itself."""

OPTIONS = {
    "scipy.linalg.cholesky": {"lower=True": "ng.linalg.cholesky(a)"},
    "scipy.linalg.eigh": {"b": "ng.linalg.eigh(a, b=b)"},
    "scipy.linalg.eigvalsh": {"b": "ng.linalg.eigvalsh(a, b=b)"},
    "scipy.linalg.qr": {"mode='economic'": "ng.linalg.qr(a, mode='reduced')"},
    "scipy.stats.kurtosis": {
        "fisher=False": "ng.mean(((a - ng.mean(a, axis=0)) / ng.std(a, axis=0)) ** 4, axis=0)"
    },
    "scipy.stats.zscore": {"ddof=1": "(a - ng.mean(a, axis=0)) / ng.std(a, axis=0, ddof=1)"},
}
"""Function -> an argument other than the default -> what gives the same with it."""

_NO_EQUAL = {
    "scipy.stats": (
        "nothing here gives the same; of distributions, fit= by minimizing -logpdf, as with "
        "ng.minimize(lambda p: -ng.sum(ng.stats.norm.logpdf(x, *p)), p0)"
    ),
    "scipy.integrate": "nothing here gives the same; integrals are ng.quad, of samples ng.simpson",
    "scipy.interpolate": (
        "nothing here gives the same; ng.interpolate has CubicSpline, make_interp_spline and "
        "others, and what is linear in y is a matrix, which an interpolation of the unit vectors "
        "gives, times y"
    ),
    "scipy.sparse": (
        "a sparse matrix holds numbers alone; one whose elements have gradients is "
        "ng.sparse.matmul(data, pattern, x), and a constant one times a Tensor is M @ t"
    ),
    "scipy.optimize": (
        "nothing here gives the same; a solution that is to be differentiated by what its function "
        "depends on is that of ng.implicit.argmin or ng.implicit.root, which take it in args"
    ),
}
_WRITE_IT = (
    "write it with operations (ng.ops lists them), or give a function around it derivatives of "
    "your own by ng.custom_vjp"
)


def equivalent(home: str, name: str) -> str | None:
    """The expression that gives the same as ``home.name`` with gradients; None if none does.

    Examples
    --------
    >>> from numgrad.tensors.hints import equivalent
    >>> equivalent("scipy.linalg", "qr")
    "ng.linalg.qr(a, mode='complete')"
    >>> equivalent("scipy.stats", "norm.logpdf")
    'ng.stats.norm.logpdf'
    """
    expression = EXPRESSIONS.get(f"{home}.{name}")
    if expression is not None:
        return expression
    first, _, method = name.partition(".")
    if name in _LACKING or first not in SAME_NAME.get(home, "").split():
        return None
    ours = home.replace("scipy", "ng", 1)
    if method:
        module = import_module(ours.replace("ng", "numgrad", 1))
        if not hasattr(getattr(module, first), method):
            return None
    return f"{ours}.{name}"


def hint(home: str, name: str) -> str:
    """Say what to write in place of a function of another library's, for errors."""
    expression, path = equivalent(home, name), f"{home}.{name}"
    if expression is None:
        places = (key for key in _NO_EQUAL if f"{home}.".startswith(f"{key}."))
        text = _NO_EQUAL.get(next(places, ""), "nothing here gives the same")
        why = _reason(home, name)
        return f"{text}{why and f' ({name} {why})'}; else {_WRITE_IT}"
    options = "".join(f", with {key} {value}" for key, value in OPTIONS.get(path, {}).items())
    if expression.endswith(f".{name}"):
        return f"{expression} has gradients{options}"
    if not expression.startswith("ng.implicit."):
        covered = "" if home == "numpy" else f" as {name} with its defaults"
        return f"{expression} gives the same{covered} with gradients{options}"
    known = DIRECT.get(path)
    solver = f"{known} derives the function that it is given, and " if known else ""
    return (
        f"{solver}{expression} gives the solution with gradients by what the function gets in args"
    )


def _reason(home: str, name: str) -> str:
    from numgrad.tensors.missing import reason

    return reason(home, name) or ""


# ---------------------------------------------------------------------------- who asked for numbers


_LIBRARIES = frozenset(
    {"matplotlib", "numpy", "pandas", "scipy", "sklearn", "statsmodels", "xarray"}
)
_ONE_ROOM = ("pandas", "xarray")
"""Libraries whose users import everything from the top."""
_WRAPPED = ("f", "fun", "func", "function", "hypotest_fun_in")
"""Names under which functions of functions know these."""


def library_call() -> tuple[str, str | None] | None:
    """The function of another library that is running, and what to do instead; None if none is.

    The latter is None where what is said of any conversion is right, and empty where there is
    nothing to do but to go without gradients.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _package(frame) == "numgrad":
        frame = frame.f_back
    frames: list[FrameType] = []
    while frame is not None and _package(frame) in _LIBRARIES:
        frames.append(frame)
        frame = frame.f_back
    called = [f for f in reversed(frames) if _package(f) == _package(frames[-1])]
    for home, name in (public for f in called for public in _public(f)):
        return f"{home}.{name}", _instead(home, name)
    return None


def in_solver() -> bool:
    """Whether the caller's caller is a solver of SciPy's that looks at a value of its function.

    What it returns would have the derivatives of its steps, not those of the solution.
    """
    if "scipy.optimize" not in sys.modules:  # a frame costs more
        return False
    return sys._getframe(2).f_globals.get("__name__", "")[:15] == "scipy.optimize."


def _package(frame: FrameType) -> str:
    return frame.f_globals.get("__name__", "").partition(".")[0]


def _public(frame: FrameType) -> Iterator[tuple[str, str]]:
    """The module and the name that users know a function by, if it is one of theirs."""
    module, path = frame.f_globals["__name__"], frame.f_code.co_qualname
    owner = frame.f_locals.get("self")
    if "<locals>" in path:  # a function around another
        held = [frame.f_locals.get(name) for name in _WRAPPED]
        inner = next((f for f in held if isinstance(f, FunctionType)), None)
        if inner is None:
            return
        module, path = inner.__module__, inner.__qualname__
    public = list(takewhile(lambda part: part[0] != "_", module.split(".")))
    kind, _, name = path.rpartition(".")
    if kind and owner is not None:
        kind = type(owner).__name__.removesuffix("_gen")
    if public == ["scipy", "stats"] and isinstance(getattr(owner, "name", None), str):
        kind = owner.name  # pyright: ignore[reportOptionalMemberAccess]
    kind = "" if kind.startswith("_") else kind
    own = public[0] == "numpy" and public[1:2] != ["linalg"] and not kind
    if own and name[0] != "_" and hasattr(np, name):
        yield "np", name
    if len(public) < 2 or (public[0] == "numpy" and public[1] != "polynomial"):
        return
    if name == "__init__" and kind:
        name, kind = kind, ""
    if not name.startswith("_") or (kind and name.endswith("__")):
        home = public[0] if public[0] in _ONE_ROOM else ".".join(public)
        yield home, f"{kind}.{name}" if kind else name


def _instead(home: str, name: str) -> str | None:
    if home == "np":  # most take Tensors by themselves, if not in lists
        return hint("numpy", name) if f"numpy.{name}" in EXPRESSIONS else None
    if home == "pandas":
        return "write it with .to_numpy() of frames and columns"
    if home == "xarray":
        return "computing with its .data, which is the Tensor, keeps gradients"
    if home.startswith(("matplotlib", "sklearn")):
        return ""  # pictures and estimators have no gradients: there is nothing else to write
    return hint(home, name)
