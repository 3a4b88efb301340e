"""Which special functions take complex arguments in kernels; their forms are in another module.

They are those that SciPy exports for complex numbers, and Hurwitz's zeta function.
"""

from numgrad.codegen import library
from numgrad.codegen.linker import special_function

MODULE = "numgrad.kernels.complex_functions"

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

EXPORTED: dict[str, tuple[str, int]] = {}
"""Functions -> where the linker finds SciPy's, and the number of arguments."""
OF_WHOLE_ORDER: dict[str, str] = {}
"""Functions whose order is an integer -> where the linker finds SciPy's."""


def _enter(name: str, reals: int, exported: str = "") -> None:
    library.COMPLEX_LIBRARY[name] = MODULE
    library.REAL_BESIDE[name] = reals
    if exported:
        library.EXTERNALS[f"{name}_c128"] = (exported,)


for (_count, _reals), _listed in _NAMES.items():
    for _name in _listed.split():
        _types = ["float64"] * _reals + ["complex128"] * (_count - _reals)
        _exported = special_function(_THEIRS.get(_name, _name), *_types)
        EXPORTED[_name] = _exported, _count
        _enter(_name, _reals, _exported)
for _name in _SPHERICAL:
    OF_WHOLE_ORDER[_name] = _exported = special_function(_name, "int64", "complex128")
    _enter(_name, 1, _exported)
_enter("zeta", 1)
library.EXTERNALS["log_ndtr_c128"] += library.EXTERNALS["erfc_c128"]
