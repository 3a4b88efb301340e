"""Which special functions take complex arguments in kernels; their forms are in another module.

They are those that SciPy exports for complex numbers, and Hurwitz's zeta function.
"""

import os
import platform

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
_PASSES_PARTS = os.name == "posix" and platform.machine() in ("x86_64", "aarch64", "arm64")
"""Whether C passes a complex number as its two parts; Microsoft's convention is by reference."""

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


def _enter_all() -> None:
    for (count, reals), names in _NAMES.items():
        for name in names.split():
            types = ["float64"] * reals + ["complex128"] * (count - reals)
            exported = special_function(_THEIRS.get(name, name), *types)
            EXPORTED[name] = exported, count
            _enter(name, reals, exported)
    for name in _SPHERICAL:
        OF_WHOLE_ORDER[name] = exported = special_function(name, "int64", "complex128")
        _enter(name, 1, exported)
    _enter("zeta", 1)
    library.EXTERNALS["log_ndtr_c128"] += library.EXTERNALS["erfc_c128"]


if _PASSES_PARTS:
    _enter_all()
