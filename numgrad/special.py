"""Special functions on Tensors, with derivatives, under their names in ``scipy.special``.

>>> import numgrad as ng
>>> ng.grad(ng.special.jv)(0.5, 1.0).round(12)
np.float64(-0.408103781378)

``scipy.special.jv(1.5, tensor)`` calls ``ng.special.jv``, as it is with every ufunc that is listed
here.
"""

from numgrad.operations.exponential import cbrt as cbrt
from numgrad.operations.exponential import exp2 as exp2
from numgrad.operations.exponential import expm1 as expm1
from numgrad.operations.exponential import log1p as log1p
from numgrad.operations.real import log_sigmoid as log_expit
from numgrad.operations.real import ndtr as ndtr
from numgrad.operations.rounding import rint as round
from numgrad.operations.special import digamma as digamma
from numgrad.operations.special import digamma as psi
from numgrad.operations.special import erf as erf
from numgrad.operations.special import erfc as erfc
from numgrad.operations.special import erfinv as erfinv
from numgrad.operations.special import gamma as gamma
from numgrad.operations.special import gammaln as gammaln
from numgrad.operations.special import logit as logit
from numgrad.operations.special import polygamma as polygamma
from numgrad.operations.special import sigmoid as expit
from numgrad.operations.special import zeta as zeta
from numgrad.operations.special_functions.bessel import i0 as i0
from numgrad.operations.special_functions.bessel import i0e as i0e
from numgrad.operations.special_functions.bessel import i1 as i1
from numgrad.operations.special_functions.bessel import i1e as i1e
from numgrad.operations.special_functions.bessel import iv as iv
from numgrad.operations.special_functions.bessel import ive as ive
from numgrad.operations.special_functions.bessel import j0 as j0
from numgrad.operations.special_functions.bessel import j1 as j1
from numgrad.operations.special_functions.bessel import jv as jn
from numgrad.operations.special_functions.bessel import jv as jv
from numgrad.operations.special_functions.bessel import jve as jve
from numgrad.operations.special_functions.bessel import k0 as k0
from numgrad.operations.special_functions.bessel import k0e as k0e
from numgrad.operations.special_functions.bessel import k1 as k1
from numgrad.operations.special_functions.bessel import k1e as k1e
from numgrad.operations.special_functions.bessel import kn as kn
from numgrad.operations.special_functions.bessel import kv as kv
from numgrad.operations.special_functions.bessel import kve as kve
from numgrad.operations.special_functions.bessel import modstruve as modstruve
from numgrad.operations.special_functions.bessel import spherical_in as spherical_in
from numgrad.operations.special_functions.bessel import spherical_jn as spherical_jn
from numgrad.operations.special_functions.bessel import spherical_kn as spherical_kn
from numgrad.operations.special_functions.bessel import spherical_yn as spherical_yn
from numgrad.operations.special_functions.bessel import struve as struve
from numgrad.operations.special_functions.bessel import y0 as y0
from numgrad.operations.special_functions.bessel import y1 as y1
from numgrad.operations.special_functions.bessel import yn as yn
from numgrad.operations.special_functions.bessel import yv as yv
from numgrad.operations.special_functions.bessel import yve as yve
from numgrad.operations.special_functions.beta import betainc as betainc
from numgrad.operations.special_functions.beta import betaincc as betaincc
from numgrad.operations.special_functions.beta import betainccinv as betainccinv
from numgrad.operations.special_functions.beta import betaincinv as betaincinv
from numgrad.operations.special_functions.convex import boxcox as boxcox
from numgrad.operations.special_functions.convex import boxcox1p as boxcox1p
from numgrad.operations.special_functions.convex import cosm1 as cosm1
from numgrad.operations.special_functions.convex import entr as entr
from numgrad.operations.special_functions.convex import exp10 as exp10
from numgrad.operations.special_functions.convex import huber as huber
from numgrad.operations.special_functions.convex import inv_boxcox as inv_boxcox
from numgrad.operations.special_functions.convex import inv_boxcox1p as inv_boxcox1p
from numgrad.operations.special_functions.convex import kl_div as kl_div
from numgrad.operations.special_functions.convex import powm1 as powm1
from numgrad.operations.special_functions.convex import pseudo_huber as pseudo_huber
from numgrad.operations.special_functions.convex import rel_entr as rel_entr
from numgrad.operations.special_functions.convex import xlog1py as xlog1py
from numgrad.operations.special_functions.convex import xlogy as xlogy
from numgrad.operations.special_functions.counting import comb as comb
from numgrad.operations.special_functions.counting import factorial as factorial
from numgrad.operations.special_functions.counting import log_softmax as log_softmax
from numgrad.operations.special_functions.counting import logsumexp as logsumexp
from numgrad.operations.special_functions.counting import multigammaln as multigammaln
from numgrad.operations.special_functions.counting import perm as perm
from numgrad.operations.special_functions.counting import softmax as softmax
from numgrad.operations.special_functions.distributions import bdtr as bdtr
from numgrad.operations.special_functions.distributions import bdtrc as bdtrc
from numgrad.operations.special_functions.distributions import chdtr as chdtr
from numgrad.operations.special_functions.distributions import chdtrc as chdtrc
from numgrad.operations.special_functions.distributions import chdtri as chdtri
from numgrad.operations.special_functions.distributions import fdtr as fdtr
from numgrad.operations.special_functions.distributions import fdtrc as fdtrc
from numgrad.operations.special_functions.distributions import fdtri as fdtri
from numgrad.operations.special_functions.distributions import gdtr as gdtr
from numgrad.operations.special_functions.distributions import gdtrc as gdtrc
from numgrad.operations.special_functions.distributions import nbdtr as nbdtr
from numgrad.operations.special_functions.distributions import nbdtrc as nbdtrc
from numgrad.operations.special_functions.distributions import pdtr as pdtr
from numgrad.operations.special_functions.distributions import pdtrc as pdtrc
from numgrad.operations.special_functions.distributions import stdtr as stdtr
from numgrad.operations.special_functions.distributions import stdtrit as stdtrit
from numgrad.operations.special_functions.elliptic import ellipe as ellipe
from numgrad.operations.special_functions.elliptic import ellipeinc as ellipeinc
from numgrad.operations.special_functions.elliptic import ellipk as ellipk
from numgrad.operations.special_functions.elliptic import ellipkinc as ellipkinc
from numgrad.operations.special_functions.elliptic import ellipkm1 as ellipkm1
from numgrad.operations.special_functions.error import dawsn as dawsn
from numgrad.operations.special_functions.error import erfcinv as erfcinv
from numgrad.operations.special_functions.error import erfcx as erfcx
from numgrad.operations.special_functions.error import erfi as erfi
from numgrad.operations.special_functions.error import log_ndtr as log_ndtr
from numgrad.operations.special_functions.error import ndtri as ndtri
from numgrad.operations.special_functions.error import ndtri_exp as ndtri_exp
from numgrad.operations.special_functions.error import owens_t as owens_t
from numgrad.operations.special_functions.gamma import beta as beta
from numgrad.operations.special_functions.gamma import betaln as betaln
from numgrad.operations.special_functions.gamma import binom as binom
from numgrad.operations.special_functions.gamma import gammainc as gammainc
from numgrad.operations.special_functions.gamma import gammaincc as gammaincc
from numgrad.operations.special_functions.gamma import gammainccinv as gammainccinv
from numgrad.operations.special_functions.gamma import gammaincinv as gammaincinv
from numgrad.operations.special_functions.gamma import gammasgn as gammasgn
from numgrad.operations.special_functions.gamma import loggamma as loggamma
from numgrad.operations.special_functions.gamma import poch as poch
from numgrad.operations.special_functions.gamma import rgamma as rgamma
from numgrad.operations.special_functions.hypergeometric import exp1 as exp1
from numgrad.operations.special_functions.hypergeometric import expi as expi
from numgrad.operations.special_functions.hypergeometric import expn as expn
from numgrad.operations.special_functions.hypergeometric import exprel as exprel
from numgrad.operations.special_functions.hypergeometric import hyp0f1 as hyp0f1
from numgrad.operations.special_functions.hypergeometric import hyp1f1 as hyp1f1
from numgrad.operations.special_functions.hypergeometric import hyp2f1 as hyp2f1
from numgrad.operations.special_functions.hypergeometric import hyperu as hyperu
from numgrad.operations.special_functions.hypergeometric import spence as spence
from numgrad.operations.special_functions.hypergeometric import wrightomega as wrightomega
from numgrad.operations.special_functions.integrals import airy as airy
from numgrad.operations.special_functions.integrals import fresnel as fresnel
from numgrad.operations.special_functions.integrals import lambertw as lambertw
from numgrad.operations.special_functions.integrals import shichi as shichi
from numgrad.operations.special_functions.integrals import sici as sici
from numgrad.operations.special_functions.integrals import wofz as wofz
from numgrad.operations.special_functions.polynomials import eval_chebyt as eval_chebyt
from numgrad.operations.special_functions.polynomials import eval_chebyu as eval_chebyu
from numgrad.operations.special_functions.polynomials import eval_gegenbauer as eval_gegenbauer
from numgrad.operations.special_functions.polynomials import eval_genlaguerre as eval_genlaguerre
from numgrad.operations.special_functions.polynomials import eval_hermite as eval_hermite
from numgrad.operations.special_functions.polynomials import eval_hermitenorm as eval_hermitenorm
from numgrad.operations.special_functions.polynomials import eval_jacobi as eval_jacobi
from numgrad.operations.special_functions.polynomials import eval_laguerre as eval_laguerre
from numgrad.operations.special_functions.polynomials import eval_legendre as eval_legendre

__all__ = [
    "airy",
    "bdtr",
    "bdtrc",
    "beta",
    "betainc",
    "betaincc",
    "betainccinv",
    "betaincinv",
    "betaln",
    "binom",
    "boxcox",
    "boxcox1p",
    "cbrt",
    "chdtr",
    "chdtrc",
    "chdtri",
    "comb",
    "cosm1",
    "dawsn",
    "digamma",
    "ellipe",
    "ellipeinc",
    "ellipk",
    "ellipkinc",
    "ellipkm1",
    "entr",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfi",
    "erfinv",
    "eval_chebyt",
    "eval_chebyu",
    "eval_gegenbauer",
    "eval_genlaguerre",
    "eval_hermite",
    "eval_hermitenorm",
    "eval_jacobi",
    "eval_laguerre",
    "eval_legendre",
    "exp1",
    "exp2",
    "exp10",
    "expi",
    "expit",
    "expm1",
    "expn",
    "exprel",
    "factorial",
    "fdtr",
    "fdtrc",
    "fdtri",
    "fresnel",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammainccinv",
    "gammaincinv",
    "gammaln",
    "gammasgn",
    "gdtr",
    "gdtrc",
    "huber",
    "hyp0f1",
    "hyp1f1",
    "hyp2f1",
    "hyperu",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "inv_boxcox",
    "inv_boxcox1p",
    "iv",
    "ive",
    "j0",
    "j1",
    "jn",
    "jv",
    "jve",
    "k0",
    "k0e",
    "k1",
    "k1e",
    "kl_div",
    "kn",
    "kv",
    "kve",
    "lambertw",
    "log1p",
    "log_expit",
    "log_ndtr",
    "log_softmax",
    "loggamma",
    "logit",
    "logsumexp",
    "modstruve",
    "multigammaln",
    "nbdtr",
    "nbdtrc",
    "ndtr",
    "ndtri",
    "ndtri_exp",
    "owens_t",
    "pdtr",
    "pdtrc",
    "perm",
    "poch",
    "polygamma",
    "powm1",
    "pseudo_huber",
    "psi",
    "rel_entr",
    "rgamma",
    "round",
    "shichi",
    "sici",
    "softmax",
    "spence",
    "spherical_in",
    "spherical_jn",
    "spherical_kn",
    "spherical_yn",
    "stdtr",
    "stdtrit",
    "struve",
    "wofz",
    "wrightomega",
    "xlog1py",
    "xlogy",
    "y0",
    "y1",
    "yn",
    "yv",
    "yve",
    "zeta",
]


def __dir__() -> list[str]:
    return __all__
