"""Special functions that SciPy exports to compiled code: tables, of which the library is made.

``jv_f64(v, x)`` calls SciPy's function; ``jv_f32`` converts, computes in float64 and rounds once.
``jv_c128(v, z)`` is for complex numbers. SciPy's addresses change with every process, so machine
code on disk refers to them by name: Note [External functions] of ``linker``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.codegen import library
from numgrad.codegen.device import DeviceFunction, ExternalFunction, device, outlined
from numgrad.codegen.intrinsics import fabs, floor, rint, select
from numgrad.codegen.linker import external_symbol, special_function
from numgrad.kernels.vmath.complex_inverse import log1p_c128
from numgrad.kernels.vmath.exponential import exp_f64
from numgrad.kernels.vmath.library import OF_COMPLEX, OF_WHOLE_ORDER_AND_COMPLEX
from numgrad.kernels.vmath.precision import through_float64
from numgrad.kernels.vmath.trigonometric import tan_f64

NO = np.int32(0)  # Cython's last argument says whether to look for Python overrides
NOTHING = np.int64(0)  # a null pointer: no optional arguments

# Names by the number of arguments, which are float64.
_TABLE: dict[int, str] = {
    1: (
        "ndtri_exp gammasgn i0 i1 i1e j0 j1 k0 k0e k1 k1e y0 y1 ellipk "
        "ellipkm1 ellipe cosm1 exprel entr exp10 zetac sindg cosdg tandg cotdg "
        "ber bei berp beip ker kei kerp keip itstruve0 it2struve0 itmodstruve0 "
        "kolmogorov kolmogi log_ndtr erfcx erfi dawsn loggamma rgamma exp1 expi spence wrightomega"
    ),
    2: (
        "beta betaln binom gammainc gammaincc gammaincinv gammainccinv owens_t poch "
        "ellipkinc ellipeinc rel_entr kl_div huber pseudo_huber boxcox boxcox1p inv_boxcox "
        "inv_boxcox1p struve modstruve chdtr chdtrc chdtri pdtr pdtrc agm tklmbda stdtridf "
        "mathieu_a mathieu_b xlogy xlog1py jv jve yv yve iv ive kv kve hyp0f1 elliprc "
        "stdtr stdtrit powm1 chdtriv pdtrik"
    ),
    3: (
        "gdtr gdtrc hyperu radian besselpoly gdtria gdtrib gdtrix fdtridfd bdtrik bdtrin "
        "nbdtrik nbdtrin nrdtrimn nrdtrisd lpmv wright_bessel log_wright_bessel pro_cv obl_cv "
        "betainc betaincc betaincinv betainccinv bdtr bdtrc nbdtr nbdtrc fdtrc fdtri "
        "btdtria btdtrib chndtr chndtrix chndtridf chndtrinc hyp1f1 elliprd elliprf elliprg"
    ),
    4: "hyp2f1 elliprj ncfdtr ncfdtri",
}
# Polynomials have a form for integer orders, and all but Hermite's another for real ones. Where
# there is none for real orders these are truncated, as SciPy does.
_OF_WHOLE_ORDER = "eval_hermite eval_hermitenorm expn yn kn"
_POLYNOMIALS = {
    2: "eval_legendre eval_chebyt eval_chebyu eval_laguerre eval_chebyc eval_chebys "
    "eval_sh_legendre eval_sh_chebyt eval_sh_chebyu",
    3: "eval_gegenbauer eval_genlaguerre",
    4: "eval_jacobi eval_sh_jacobi",
}
_SPHERICAL = {"spherical_jn": 1.0, "spherical_yn": -1.0, "spherical_in": 1.0, "spherical_kn": 0.0}
"""Spherical functions, with the signs that even orders get from an argument below 0."""
_HALF_PI = 0.5 * np.pi
MOST = 10_000.0
"""Order up to which a recurrence is run."""

EXTERNALS: dict[str, tuple[str, ...]] = {}
"""Names of the library -> where the linker finds what each calls."""


def exported(function: str, result: str, *beside: str) -> ExternalFunction:
    """A ``special_function`` with a result of a type; ``beside`` is what Cython has it take too."""
    types = function.partition("(")[2].rstrip(")")
    arguments = ", ".join((types, "int32", *beside))
    return ExternalFunction(external_symbol(function), f"{result}({arguments})")


def of_floats(name: str, count: int) -> ExternalFunction:
    """A special function of so many float64 arguments."""
    return exported(special_function(name, *["float64"] * count), "float64")


_gammaln, _gamma, _psi = of_floats("gammaln", 1), of_floats("gamma", 1), of_floats("psi", 1)
_PI, _QUARTER, _HALF = np.float64(np.pi), np.float64(0.25), np.float64(0.5)
_ROOT_HALF = np.float64(0.5**0.5)


@device
def scipy_gammaln_f64(x):
    """Logarithm of the absolute gamma function; the fast form is in ``vmath.gamma``."""
    return _gammaln(x, NO)


@device
def gamma_f64(x):
    """Gamma function."""
    return _gamma(x, NO)


@device
def scipy_digamma_f64(x):
    """Derivative of gammaln; below 0 by reflection, with the exact distance from the pole."""
    if not x < 0.0:
        return _psi(x, NO)
    r = x - rint(x)
    if not fabs(r) > 0.0:  # a pole or infinity
        return np.nan
    a = fabs(r)
    # cot(pi r), whose argument is rounded where it is small
    tangent = tan_f64(_PI * select(a > _QUARTER, _HALF - a, a))
    cotangent = select(a > _QUARTER, tangent, 1.0 / tangent)
    return _psi(1.0 - x, NO) - _PI * select(r < 0.0, -cotangent, cotangent)


gamma_f32 = through_float64(gamma_f64)


def _of_one(f: ExternalFunction) -> DeviceFunction:
    @device
    def f64(x):
        return f(x, NO)

    return f64


def _of_two(f: ExternalFunction) -> DeviceFunction:
    @device
    def f64(a, x):
        return f(a, x, NO)

    return f64


def _of_three(f: ExternalFunction) -> DeviceFunction:
    @device
    def f64(a, b, x):
        return f(a, b, x, NO)

    return f64


def _of_four(f: ExternalFunction) -> DeviceFunction:
    @device
    def f64(a, b, c, x):
        return f(a, b, c, x, NO)

    return f64


CALLED: dict[int, Callable[[ExternalFunction], DeviceFunction]] = {
    1: _of_one,
    2: _of_two,
    3: _of_three,
    4: _of_four,
}


def _of_whole_order(f: ExternalFunction) -> DeviceFunction:
    @outlined
    def f64(n, x):
        if not (n > -MOST and n < MOST):
            return np.nan
        return f(np.int64(n), x, NO)

    return f64


def _spherical(f: ExternalFunction, even: float) -> DeviceFunction:
    """Extend to arguments below 0 by parity; ``even`` is the sign there of even orders."""

    @outlined
    def f64(n, x):
        if not (n > -1.0 and n < MOST):
            return np.nan
        order = np.int64(n)
        if x < 0.0:
            return f(order, -x, NO, NOTHING) * (even if order % 2 == 0 else -even)
        return f(order, x, NO, NOTHING)

    return f64


def _spherical_decay(f: ExternalFunction) -> DeviceFunction:
    """Extend to arguments below 0 by the recurrence, which SciPy does by complex numbers."""

    @outlined
    def f64(n, x):
        if not (n > -1.0 and n < MOST):
            return np.nan
        order = np.int64(n)
        if not x < 0.0:
            return f(order, x, NO, NOTHING)
        below = _HALF_PI * exp_f64(-x) / x
        here = below * (1.0 + 1.0 / x)
        if order == 0:
            return below
        for k in range(1, order):
            after = below + (2 * k + 1) / x * here
            below = here
            here = after
        return here

    return f64


def _polynomial(whole: ExternalFunction, real: ExternalFunction, count: int) -> DeviceFunction:
    """Evaluate by a recurrence at integer orders and finite places, else hypergeometrically."""
    if count == 2:

        @outlined
        def of_order(n, x):
            if n == floor(n) and n >= 0.0 and n < MOST and x - x == 0.0:
                return whole(np.int64(n), x, NO)
            return real(n, x, NO)

        return of_order
    if count == 3:

        @outlined
        def of_one_parameter(n, a, x):
            if n == floor(n) and n >= 0.0 and n < MOST and x - x == 0.0:
                return whole(np.int64(n), a, x, NO)
            return real(n, a, x, NO)

        return of_one_parameter

    @outlined
    def of_two_parameters(n, a, b, x):
        if n == floor(n) and n >= 0.0 and n < MOST and x - x == 0.0:
            return whole(np.int64(n), a, b, x, NO)
        return real(n, a, b, x, NO)

    return of_two_parameters


def _fisher(f: ExternalFunction) -> DeviceFunction:
    """1 at infinity, where older releases of SciPy have NaN."""

    @outlined
    def f64(dfn, dfd, x):
        if x == np.inf and dfn > 0.0 and dfd > 0.0:
            return 1.0
        return f(dfn, dfd, x, NO)

    return f64


def _enter(name: str, count: int, f64: DeviceFunction, *first: str) -> None:
    """Enter a function that calls SciPy's forms with a first argument of these types."""
    _FUNCTIONS[f"{name}_f64"], _FUNCTIONS[f"{name}_f32"] = f64, through_float64(f64)
    rest = ["float64"] * (count - 1)
    EXTERNALS[name] = tuple(special_function(name, kind, *rest) for kind in first)


_FUNCTIONS: dict[str, Any] = {}
for _count, _names in _TABLE.items():
    for _name in _names.split():
        _enter(_name, _count, CALLED[_count](of_floats(_name, _count)), "float64")
_enter("fdtr", 3, _fisher(of_floats("fdtr", 3)), "float64")
for _name in _OF_WHOLE_ORDER.split():
    _f = exported(special_function(_name, "int64", "float64"), "float64")
    _enter(_name, 2, _of_whole_order(_f), "int64")
for _name, _even in _SPHERICAL.items():
    _f = exported(special_function(_name, "int64", "float64"), "float64", "int64")
    _enter(_name, 2, _spherical(_f, _even) if _even else _spherical_decay(_f), "int64")
for _count, _names in _POLYNOMIALS.items():
    for _name in _names.split():
        _whole = special_function(_name, "int64", *["float64"] * (_count - 1))
        _f = _polynomial(exported(_whole, "float64"), of_floats(_name, _count), _count)
        _enter(_name, _count, _f, "int64", "float64")
globals().update(_FUNCTIONS)
library.LIBRARY.update({name: (__name__, name) for name in EXTERNALS})
library.EXTERNALS.update(EXTERNALS)


# --------------------------------------------------------------------------- of complex arguments


def _complex_form(function: str, count: int) -> DeviceFunction:
    return CALLED[count](exported(function, "complex128"))


def _of_whole_order_and_complex(function: str) -> DeviceFunction:
    f = exported(function, "complex128", "int64")

    @outlined
    def c128(n, z):
        if not (n > -1.0 and n < MOST):
            return complex(np.nan, np.nan)
        return f(np.int64(n), z, NO, NOTHING)

    return c128


globals().update({f"{name}_c128": _complex_form(*place) for name, place in OF_COMPLEX.items()})
globals().update(
    {
        f"{name}_c128": _of_whole_order_and_complex(function)
        for name, function in OF_WHOLE_ORDER_AND_COMPLEX.items()
    }
)


def _log_ndtr() -> DeviceFunction:
    far_left, of_tail = (_complex_form(*OF_COMPLEX[name]) for name in ("log_ndtr", "erfc"))

    @outlined
    def c128(z):
        if z.real > 0.0:  # SciPy's logarithm is rounded where the tail is small beside 1
            tail = complex(_HALF, 0.0) * of_tail(z * complex(_ROOT_HALF, 0.0))
            if fabs(tail.real) < _HALF and fabs(tail.imag) < _HALF:
                return log1p_c128(-tail)
        return far_left(z)

    return c128


log_ndtr_c128 = _log_ndtr()
