"""The elementary functions as formulas name them: fills ``numgrad.codegen.library``."""

from numgrad.codegen import library
from numgrad.codegen.linker import special_function
from numgrad.kernels import complex_table as _complex_table  # noqa: F401 (fills them too)

_KERNELS = "numgrad.kernels"
_REAL = {
    "exp": ("vmath.exponential", "exp"),
    "exp2": ("vmath.exponential", "exp2"),
    "expm1": ("vmath.exponential", "expm1"),
    "exp_product": ("vmath.exponential", "exp_product"),
    "sigmoid": ("vmath.exponential", "sigmoid"),
    "softplus": ("vmath.exponential", "softplus"),
    "log": ("vmath.logarithm", "log"),
    "log2": ("vmath.logarithm", "log2"),
    "log10": ("vmath.logarithm", "log10"),
    "log1p": ("vmath.logarithm", "log1p"),
    "sin": ("vmath.trigonometric", "sin"),
    "cos": ("vmath.trigonometric", "cos"),
    "tan": ("vmath.trigonometric", "tan"),
    "arcsin": ("vmath.inverse_trigonometric", "asin"),
    "arccos": ("vmath.inverse_trigonometric", "acos"),
    "arctan": ("vmath.inverse_trigonometric", "atan"),
    "arctan2": ("vmath.inverse_trigonometric", "atan2"),
    "sinh": ("vmath.hyperbolic", "sinh"),
    "cosh": ("vmath.hyperbolic", "cosh"),
    "tanh": ("vmath.hyperbolic", "tanh"),
    "arcsinh": ("vmath.hyperbolic", "asinh"),
    "arccosh": ("vmath.hyperbolic", "acosh"),
    "arctanh": ("vmath.hyperbolic", "atanh"),
    "power": ("vmath.power", "pow"),
    "float_power": ("vmath.power", "pow"),
    "cbrt": ("vmath.roots", "cbrt"),
    "hypot": ("vmath.roots", "hypot"),
    "logit": ("vmath.logarithm", "logit"),
    "erf": ("vmath.error_function", "erf"),
    "erfc": ("vmath.error_function", "erfc"),
    "ndtr": ("vmath.error_function", "ndtr"),
    "gelu": ("vmath.error_function", "gelu"),
    "gelu_gate": ("vmath.exponential", "gelu_gate"),
    "gammaln": ("vmath.gamma", "gammaln"),
    "gamma": ("special", "gamma"),
    "digamma": ("vmath.gamma", "digamma"),
    "zeta": ("special", "zeta"),
    "zeta_s": ("special", "zeta_s"),
    "zeta_ss": ("special", "zeta_ss"),
    "erfinv": ("vmath.inverse_error", "erfinv"),
    "erfcinv": ("vmath.inverse_error", "erfcinv"),
    "ndtri": ("vmath.inverse_error", "ndtri"),
    "i0e": ("vmath.bessel", "i0e"),
    "logaddexp": ("vmath.scalar", "logaddexp"),
    "logaddexp2": ("vmath.scalar", "logaddexp2"),
    "remainder": ("vmath.scalar", "remainder"),
    "fmod": ("vmath.scalar", "fmod"),
    "floor_divide": ("vmath.scalar", "floor_divide"),
    "sign": ("vmath.scalar", "sign"),
    **{
        f"to_{kind}": ("vmath.casts", f"to_{kind}")
        for kind in ("int32", "int64", "uint32", "uint64")
    },
    "fmax": ("vmath.scalar", "fmax"),
    "fmin": ("vmath.scalar", "fmin"),
}
_COMPLEX = {
    name: f"vmath.complex_{module}"
    for module, names in {
        "exponential": (
            "exp exp2 expm1 sin cos tan sinh cosh tanh sigmoid softplus power float_power"
        ),
        "logarithm": "log log2 log10 log1p logit",
        "parts": "sqrt absolute sign reciprocal",
        "inverse": "arcsin arccos arctan arcsinh arccosh arctanh",
    }.items()
    for name in names.split()
}
# C functions behind the device functions of ``special``.
_EXTERNALS = {
    name: (special_function(function, "float64"),)
    for name, function in {"gammaln": "gammaln", "gamma": "gamma", "digamma": "psi"}.items()
}

library.LIBRARY.update({name: (f"{_KERNELS}.{m}", f) for name, (m, f) in _REAL.items()})
library.COMPLEX_LIBRARY.update({name: f"{_KERNELS}.{m}" for name, m in _COMPLEX.items()})
_INVERSE = {"erfinv", "erfcinv", "ndtri"}
library.WITH_RARE.update(
    {"sin", "cos", "tan", "power", "float_power", "gammaln", "digamma"} | _INVERSE
)
library.SLOW_FOR_ALL.update({"power", "float_power"} | _INVERSE)
library.EXTERNALS.update(_EXTERNALS)
