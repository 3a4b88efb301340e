"""Functions of NumPy's and SciPy's, and what gives the same with gradients: one table for hints.

Each entry is called in tests beside the function that it stands for. What has the same name and
meaning is listed by name; for others stands an expression in the names of SciPy's parameters. A
function without an entry has no equal here, and hints say so.
"""

from __future__ import annotations

from importlib import import_module

SAME_NAME = {
    "scipy.fft": """dct dctn dst dstn fft fft2 fftn fftshift hfft hfft2 hfftn idct idctn idst idstn
        ifft ifft2 ifftn ifftshift ihfft ihfft2 ihfftn irfft irfft2 irfftn rfft rfft2 rfftn""",
    "scipy.integrate": "cumulative_trapezoid odeint quad simpson solve_ivp trapezoid",
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
    "scipy.special": """comb diric factorial h1vp h2vp ivp jvp kvp lambertw log_softmax logsumexp
        multigammaln perm polygamma sinc softmax spherical_in spherical_jn spherical_kn spherical_yn
        yvp zeta""",
    "scipy.stats": """bernoulli beta binom cauchy chi2 dirichlet expon f gamma geom gumbel_r
        halfnorm invgamma laplace logistic lognorm multinomial multivariate_normal multivariate_t
        nbinom norm pareto poisson rayleigh skewnorm t truncnorm uniform vonmises weibull_min
        wishart""",
}  # fmt: skip
"""Module -> functions, or distributions with their methods, that are called alike."""

_LACKING = ("skewnorm.interval", "skewnorm.isf", "skewnorm.median", "skewnorm.ppf")
"""Methods that distributions here have no formula for."""
_PLACES = {"scipy.integrate": "ng"}

EXPRESSIONS = {
    "numpy.full": "ng.full(shape, fill_value)",
    "numpy.full_like": "ng.full_like(a, fill_value)",
    "numpy.piecewise": "ng.piecewise(x, condlist, funclist)",
    "scipy.cluster.vq.whiten": "obs / ng.std(obs, axis=0)",
    "scipy.integrate.quad_vec": "ng.quad(f, a, b)",
    "scipy.interpolate.interp1d": "ng.interp(x_new, x, y)",
    "scipy.linalg.cholesky": "ng.linalg.cholesky(a, upper=True)",
    "scipy.linalg.lstsq": "ng.linalg.lstsq(a, b)[0]",
    "scipy.linalg.orthogonal_procrustes": "ng.linalg.polar(A.mT @ B)[0]",
    "scipy.linalg.qr": "ng.linalg.qr(a, mode='complete')",
    "scipy.linalg.solve_circulant": "ng.linalg.solve(ng.linalg.circulant(c), b)",
    "scipy.optimize.curve_fit": (
        "ng.implicit.argmin(lambda p, *args: ng.sum((f(xdata, *p, *args) - ydata) ** 2), p0, args)"
    ),
    "scipy.sparse.linalg.spsolve": "ng.sparse.spsolve(A.data, ng.sparse.pattern(A), b)",
    "scipy.spatial.distance.chebyshev": "ng.max(abs(u - v))",
    "scipy.spatial.distance.cityblock": "ng.sum(abs(u - v))",
    "scipy.spatial.distance.cosine": "1 - u @ v / (ng.linalg.norm(u) * ng.linalg.norm(v))",
    "scipy.spatial.distance.cdist": "ng.linalg.norm(XA[:, None] - XB, axis=-1)",
    "scipy.spatial.distance.euclidean": "ng.linalg.norm(u - v)",
    "scipy.spatial.distance.minkowski": "ng.linalg.norm(u - v, p)",
    "scipy.spatial.distance.sqeuclidean": "ng.sum((u - v) ** 2)",
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
    "scipy.spatial.distance.cdist": {
        "metric='cityblock'": "ng.linalg.norm(XA[:, None] - XB, 1, axis=-1)"
    },
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
        "nothing here gives the same; piecewise linear is ng.interp(x_new, x, y), and what is "
        "linear in y is a matrix, which an interpolation of the unit vectors gives, times y"
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
    >>> from numgrad.tensors.equivalents import equivalent
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
    place = _PLACES.get(home, home.replace("scipy", "ng", 1))
    if method:
        module = import_module(place.replace("ng", "numgrad", 1))
        if not hasattr(getattr(module, first), method):
            return None
    return f"{place}.{name}"


def hint(home: str, name: str) -> str:
    """What to write in place of a function of another library's, for errors."""
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
    from numgrad.tensors.reasons import reason

    return reason(home, name) or ""
