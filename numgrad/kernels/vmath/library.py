"""The elementary functions as formulas name them: fills ``numgrad.codegen.library``."""

from numgrad.codegen import library
from numgrad.codegen.linker import special_function

_KERNELS = "numgrad.kernels"
# By module; ``a=b`` is a function whose kernel is called ``b``.
_REAL = {
    "vmath.exponential": "exp exp2 expm1 exp_product sigmoid softplus gelu_gate",
    "vmath.logarithm": "log log2 log10 log1p logit",
    "vmath.trigonometric": "sin cos tan",
    "vmath.inverse_trigonometric": "arcsin=asin arccos=acos arctan=atan arctan2=atan2",
    "vmath.hyperbolic": "sinh cosh tanh arcsinh=asinh arccosh=acosh arctanh=atanh",
    "vmath.power": "power=pow float_power=pow",
    "vmath.roots": "cbrt hypot",
    "vmath.error_function": "erf erfc ndtr gelu",
    "vmath.gamma": "gammaln digamma",
    "scipy_functions": "gamma",
    "zeta": "zeta zeta_s zeta_ss",
    "vmath.inverse_error": "erfinv erfcinv ndtri",
    "vmath.bessel": "i0e",
    "vmath.scalar": "logaddexp logaddexp2 remainder fmod floor_divide sign fmax fmin "
    "to_int32 to_int64 to_uint32 to_uint64",
}
_COMPLEX = {
    name: f"vmath.complex_{module}"
    for module, names in {
        "exponential": (
            "exp exp2 expm1 sin cos tan sinh cosh tanh sigmoid softplus power float_power"
        ),
        "inverse": (
            "sqrt absolute sign reciprocal log log2 log10 log1p logit "
            "arcsin arccos arctan arcsinh arccosh arctanh"
        ),
    }.items()
    for name in names.split()
}
# C functions behind the device functions of ``scipy_functions``.
_EXTERNALS = {
    name: (special_function(function, "float64"),)
    for name, function in {"gammaln": "gammaln", "gamma": "gamma", "digamma": "psi"}.items()
}

for _module, _entries in _REAL.items():
    for _entry in _entries.split():
        _name, _, _kernel = _entry.partition("=")
        library.LIBRARY[_name] = f"{_KERNELS}.{_module}", _kernel or _name
library.COMPLEX_LIBRARY.update({name: f"{_KERNELS}.{m}" for name, m in _COMPLEX.items()})
_INVERSE = {"erfinv", "erfcinv", "ndtri"}
library.WITH_RARE.update(
    {"sin", "cos", "tan", "power", "float_power", "gammaln", "digamma"} | _INVERSE
)
library.SLOW_FOR_ALL.update({"power", "float_power"} | _INVERSE)
library.EXTERNALS.update(_EXTERNALS)

# ------------------------------------------------------- special functions of complex arguments
# They are those that SciPy exports for complex numbers, and Hurwitz's zeta function.

# By the number of arguments, and of those before the others that are real.
_NAMES: dict[tuple[int, int], str] = {
    (1, 0): (
        "erf erfc erfcx erfi dawsn ndtr log_ndtr gamma loggamma rgamma digamma exp1 expi spence "
        "wrightomega"
    ),
    (2, 0): "xlogy xlog1py elliprc",
    (2, 1): (
        "jv jve yv yve iv ive kv kve hyp0f1 eval_legendre eval_chebyt eval_chebyu eval_laguerre "
        "eval_chebyc eval_chebys eval_sh_legendre eval_sh_chebyt eval_sh_chebyu"
    ),
    (3, 0): "elliprd elliprf elliprg",
    (4, 0): "elliprj",
    (3, 2): "hyp1f1 eval_gegenbauer eval_genlaguerre",
    (4, 3): "hyp2f1 eval_jacobi eval_sh_jacobi",
}
_THEIRS = {"digamma": "psi"}
_SPHERICAL = ("spherical_jn", "spherical_yn", "spherical_in", "spherical_kn")

OF_COMPLEX: dict[str, tuple[str, int]] = {}
"""Functions -> where the linker finds SciPy's, and the number of arguments."""
OF_WHOLE_ORDER_AND_COMPLEX: dict[str, str] = {}
"""Functions whose order is an integer -> where the linker finds SciPy's."""


def _enter(name: str, reals: int, exported: str = "", module: str = "scipy_functions") -> None:
    library.COMPLEX_LIBRARY[name] = f"{_KERNELS}.{module}"
    library.REAL_BESIDE[name] = reals
    if exported:
        library.EXTERNALS[f"{name}_c128"] = (exported,)


for (_count, _reals), _listed in _NAMES.items():
    for _name in _listed.split():
        _types = ["float64"] * _reals + ["complex128"] * (_count - _reals)
        _exported = special_function(_THEIRS.get(_name, _name), *_types)
        OF_COMPLEX[_name] = _exported, _count
        _enter(_name, _reals, _exported)
for _name in _SPHERICAL:
    OF_WHOLE_ORDER_AND_COMPLEX[_name] = _exported = special_function(_name, "int64", "complex128")
    _enter(_name, 1, _exported)
_enter("zeta", 1, module="zeta")
library.EXTERNALS["log_ndtr_c128"] += library.EXTERNALS["erfc_c128"]
