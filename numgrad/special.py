"""Special functions on Tensors, with derivatives, under their names in ``scipy.special``.

>>> import numgrad as ng
>>> ng.grad(ng.special.jv)(0.5, 1.0).round(12)
np.float64(-0.408103781378)

``scipy.special.jv(1.5, tensor)`` calls ``ng.special.jv``, as it is with every ufunc that is listed
here.
"""

from numgrad.core.absent import absent as _absent
from numgrad.operations.arithmetic import rint as round
from numgrad.operations.elementary import sinc as sinc
from numgrad.operations.error_gamma_logistic import digamma as digamma
from numgrad.operations.error_gamma_logistic import digamma as psi
from numgrad.operations.error_gamma_logistic import erf as erf
from numgrad.operations.error_gamma_logistic import erfc as erfc
from numgrad.operations.error_gamma_logistic import erfinv as erfinv
from numgrad.operations.error_gamma_logistic import gamma as gamma
from numgrad.operations.error_gamma_logistic import gammaln as gammaln
from numgrad.operations.error_gamma_logistic import log_sigmoid as log_expit
from numgrad.operations.error_gamma_logistic import logit as logit
from numgrad.operations.error_gamma_logistic import ndtr as ndtr
from numgrad.operations.error_gamma_logistic import polygamma as polygamma
from numgrad.operations.error_gamma_logistic import sigmoid as expit
from numgrad.operations.error_gamma_logistic import softplus as softplus
from numgrad.operations.exponential import cbrt as cbrt
from numgrad.operations.exponential import exp2 as exp2
from numgrad.operations.exponential import expm1 as expm1
from numgrad.operations.exponential import log1p as log1p
from numgrad.operations.special_functions.bessel import bei as bei
from numgrad.operations.special_functions.bessel import beip as beip
from numgrad.operations.special_functions.bessel import ber as ber
from numgrad.operations.special_functions.bessel import berp as berp
from numgrad.operations.special_functions.bessel import besselpoly as besselpoly
from numgrad.operations.special_functions.bessel import i0 as i0
from numgrad.operations.special_functions.bessel import i0e as i0e
from numgrad.operations.special_functions.bessel import i1 as i1
from numgrad.operations.special_functions.bessel import i1e as i1e
from numgrad.operations.special_functions.bessel import it2struve0 as it2struve0
from numgrad.operations.special_functions.bessel import itmodstruve0 as itmodstruve0
from numgrad.operations.special_functions.bessel import itstruve0 as itstruve0
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
from numgrad.operations.special_functions.bessel import kei as kei
from numgrad.operations.special_functions.bessel import keip as keip
from numgrad.operations.special_functions.bessel import ker as ker
from numgrad.operations.special_functions.bessel import kerp as kerp
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
from numgrad.operations.special_functions.complex_valued import h1vp as h1vp
from numgrad.operations.special_functions.complex_valued import h2vp as h2vp
from numgrad.operations.special_functions.complex_valued import hankel1 as hankel1
from numgrad.operations.special_functions.complex_valued import hankel1e as hankel1e
from numgrad.operations.special_functions.complex_valued import hankel2 as hankel2
from numgrad.operations.special_functions.complex_valued import hankel2e as hankel2e
from numgrad.operations.special_functions.complex_valued import ivp as ivp
from numgrad.operations.special_functions.complex_valued import jvp as jvp
from numgrad.operations.special_functions.complex_valued import kelvin as kelvin
from numgrad.operations.special_functions.complex_valued import kvp as kvp
from numgrad.operations.special_functions.complex_valued import lambertw as lambertw
from numgrad.operations.special_functions.complex_valued import modfresnelm as modfresnelm
from numgrad.operations.special_functions.complex_valued import modfresnelp as modfresnelp
from numgrad.operations.special_functions.complex_valued import voigt_profile as voigt_profile
from numgrad.operations.special_functions.complex_valued import wofz as wofz
from numgrad.operations.special_functions.complex_valued import yvp as yvp
from numgrad.operations.special_functions.counting import comb as comb
from numgrad.operations.special_functions.counting import diric as diric
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
from numgrad.operations.special_functions.elliptic import agm as agm
from numgrad.operations.special_functions.elliptic import ellipe as ellipe
from numgrad.operations.special_functions.elliptic import ellipeinc as ellipeinc
from numgrad.operations.special_functions.elliptic import ellipk as ellipk
from numgrad.operations.special_functions.elliptic import ellipkinc as ellipkinc
from numgrad.operations.special_functions.elliptic import ellipkm1 as ellipkm1
from numgrad.operations.special_functions.elliptic import elliprc as elliprc
from numgrad.operations.special_functions.elliptic import elliprd as elliprd
from numgrad.operations.special_functions.elliptic import elliprf as elliprf
from numgrad.operations.special_functions.elliptic import elliprg as elliprg
from numgrad.operations.special_functions.elliptic import elliprj as elliprj
from numgrad.operations.special_functions.error import dawsn as dawsn
from numgrad.operations.special_functions.error import erfcinv as erfcinv
from numgrad.operations.special_functions.error import erfcx as erfcx
from numgrad.operations.special_functions.error import erfi as erfi
from numgrad.operations.special_functions.error import log_ndtr as log_ndtr
from numgrad.operations.special_functions.error import ndtri as ndtri
from numgrad.operations.special_functions.error import ndtri_exp as ndtri_exp
from numgrad.operations.special_functions.error import owens_t as owens_t
from numgrad.operations.special_functions.gamma import beta as beta
from numgrad.operations.special_functions.gamma import betainc as betainc
from numgrad.operations.special_functions.gamma import betaincc as betaincc
from numgrad.operations.special_functions.gamma import betainccinv as betainccinv
from numgrad.operations.special_functions.gamma import betaincinv as betaincinv
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
from numgrad.operations.special_functions.gamma import zeta as zeta
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
from numgrad.operations.special_functions.integrals import airye as airye
from numgrad.operations.special_functions.integrals import ellipj as ellipj
from numgrad.operations.special_functions.integrals import fresnel as fresnel
from numgrad.operations.special_functions.integrals import it2i0k0 as it2i0k0
from numgrad.operations.special_functions.integrals import it2j0y0 as it2j0y0
from numgrad.operations.special_functions.integrals import itairy as itairy
from numgrad.operations.special_functions.integrals import iti0k0 as iti0k0
from numgrad.operations.special_functions.integrals import itj0y0 as itj0y0
from numgrad.operations.special_functions.integrals import shichi as shichi
from numgrad.operations.special_functions.integrals import sici as sici
from numgrad.operations.special_functions.inverse_parameters import bdtri as bdtri
from numgrad.operations.special_functions.inverse_parameters import bdtrik as bdtrik
from numgrad.operations.special_functions.inverse_parameters import bdtrin as bdtrin
from numgrad.operations.special_functions.inverse_parameters import btdtria as btdtria
from numgrad.operations.special_functions.inverse_parameters import btdtrib as btdtrib
from numgrad.operations.special_functions.inverse_parameters import chdtriv as chdtriv
from numgrad.operations.special_functions.inverse_parameters import fdtridfd as fdtridfd
from numgrad.operations.special_functions.inverse_parameters import gdtria as gdtria
from numgrad.operations.special_functions.inverse_parameters import gdtrib as gdtrib
from numgrad.operations.special_functions.inverse_parameters import gdtrix as gdtrix
from numgrad.operations.special_functions.inverse_parameters import nbdtri as nbdtri
from numgrad.operations.special_functions.inverse_parameters import nbdtrik as nbdtrik
from numgrad.operations.special_functions.inverse_parameters import nbdtrin as nbdtrin
from numgrad.operations.special_functions.inverse_parameters import nrdtrimn as nrdtrimn
from numgrad.operations.special_functions.inverse_parameters import nrdtrisd as nrdtrisd
from numgrad.operations.special_functions.inverse_parameters import pdtri as pdtri
from numgrad.operations.special_functions.inverse_parameters import pdtrik as pdtrik
from numgrad.operations.special_functions.inverse_parameters import stdtridf as stdtridf
from numgrad.operations.special_functions.noncentral import chndtr as chndtr
from numgrad.operations.special_functions.noncentral import chndtridf as chndtridf
from numgrad.operations.special_functions.noncentral import chndtrinc as chndtrinc
from numgrad.operations.special_functions.noncentral import chndtrix as chndtrix
from numgrad.operations.special_functions.noncentral import kolmogi as kolmogi
from numgrad.operations.special_functions.noncentral import kolmogorov as kolmogorov
from numgrad.operations.special_functions.noncentral import log_wright_bessel as log_wright_bessel
from numgrad.operations.special_functions.noncentral import ncfdtr as ncfdtr
from numgrad.operations.special_functions.noncentral import ncfdtri as ncfdtri
from numgrad.operations.special_functions.noncentral import tklmbda as tklmbda
from numgrad.operations.special_functions.noncentral import wright_bessel as wright_bessel
from numgrad.operations.special_functions.polynomials import assoc_laguerre as assoc_laguerre
from numgrad.operations.special_functions.polynomials import eval_chebyc as eval_chebyc
from numgrad.operations.special_functions.polynomials import eval_chebys as eval_chebys
from numgrad.operations.special_functions.polynomials import eval_chebyt as eval_chebyt
from numgrad.operations.special_functions.polynomials import eval_chebyu as eval_chebyu
from numgrad.operations.special_functions.polynomials import eval_gegenbauer as eval_gegenbauer
from numgrad.operations.special_functions.polynomials import eval_genlaguerre as eval_genlaguerre
from numgrad.operations.special_functions.polynomials import eval_hermite as eval_hermite
from numgrad.operations.special_functions.polynomials import eval_hermitenorm as eval_hermitenorm
from numgrad.operations.special_functions.polynomials import eval_jacobi as eval_jacobi
from numgrad.operations.special_functions.polynomials import eval_laguerre as eval_laguerre
from numgrad.operations.special_functions.polynomials import eval_legendre as eval_legendre
from numgrad.operations.special_functions.polynomials import eval_sh_chebyt as eval_sh_chebyt
from numgrad.operations.special_functions.polynomials import eval_sh_chebyu as eval_sh_chebyu
from numgrad.operations.special_functions.polynomials import eval_sh_jacobi as eval_sh_jacobi
from numgrad.operations.special_functions.polynomials import eval_sh_legendre as eval_sh_legendre
from numgrad.operations.special_functions.polynomials import lpmv as lpmv
from numgrad.operations.special_functions.scipy_elementary import boxcox as boxcox
from numgrad.operations.special_functions.scipy_elementary import boxcox1p as boxcox1p
from numgrad.operations.special_functions.scipy_elementary import cosdg as cosdg
from numgrad.operations.special_functions.scipy_elementary import cosm1 as cosm1
from numgrad.operations.special_functions.scipy_elementary import cotdg as cotdg
from numgrad.operations.special_functions.scipy_elementary import entr as entr
from numgrad.operations.special_functions.scipy_elementary import exp10 as exp10
from numgrad.operations.special_functions.scipy_elementary import huber as huber
from numgrad.operations.special_functions.scipy_elementary import inv_boxcox as inv_boxcox
from numgrad.operations.special_functions.scipy_elementary import inv_boxcox1p as inv_boxcox1p
from numgrad.operations.special_functions.scipy_elementary import kl_div as kl_div
from numgrad.operations.special_functions.scipy_elementary import powm1 as powm1
from numgrad.operations.special_functions.scipy_elementary import pseudo_huber as pseudo_huber
from numgrad.operations.special_functions.scipy_elementary import radian as radian
from numgrad.operations.special_functions.scipy_elementary import rel_entr as rel_entr
from numgrad.operations.special_functions.scipy_elementary import sindg as sindg
from numgrad.operations.special_functions.scipy_elementary import tandg as tandg
from numgrad.operations.special_functions.scipy_elementary import xlog1py as xlog1py
from numgrad.operations.special_functions.scipy_elementary import xlogy as xlogy
from numgrad.operations.special_functions.wave_functions import mathieu_a as mathieu_a
from numgrad.operations.special_functions.wave_functions import mathieu_b as mathieu_b
from numgrad.operations.special_functions.wave_functions import mathieu_cem as mathieu_cem
from numgrad.operations.special_functions.wave_functions import mathieu_modcem1 as mathieu_modcem1
from numgrad.operations.special_functions.wave_functions import mathieu_modcem2 as mathieu_modcem2
from numgrad.operations.special_functions.wave_functions import mathieu_modsem1 as mathieu_modsem1
from numgrad.operations.special_functions.wave_functions import mathieu_modsem2 as mathieu_modsem2
from numgrad.operations.special_functions.wave_functions import mathieu_sem as mathieu_sem
from numgrad.operations.special_functions.wave_functions import obl_ang1 as obl_ang1
from numgrad.operations.special_functions.wave_functions import obl_ang1_cv as obl_ang1_cv
from numgrad.operations.special_functions.wave_functions import obl_cv as obl_cv
from numgrad.operations.special_functions.wave_functions import obl_rad1 as obl_rad1
from numgrad.operations.special_functions.wave_functions import obl_rad1_cv as obl_rad1_cv
from numgrad.operations.special_functions.wave_functions import pbdv as pbdv
from numgrad.operations.special_functions.wave_functions import pbvv as pbvv
from numgrad.operations.special_functions.wave_functions import pbwa as pbwa
from numgrad.operations.special_functions.wave_functions import pro_ang1 as pro_ang1
from numgrad.operations.special_functions.wave_functions import pro_ang1_cv as pro_ang1_cv
from numgrad.operations.special_functions.wave_functions import pro_cv as pro_cv
from numgrad.operations.special_functions.wave_functions import pro_rad1 as pro_rad1
from numgrad.operations.special_functions.wave_functions import pro_rad1_cv as pro_rad1_cv

__all__ = [
    "agm",
    "airy",
    "airye",
    "assoc_laguerre",
    "bdtr",
    "bdtrc",
    "bdtri",
    "bdtrik",
    "bdtrin",
    "bei",
    "beip",
    "ber",
    "berp",
    "besselpoly",
    "beta",
    "betainc",
    "betaincc",
    "betainccinv",
    "betaincinv",
    "betaln",
    "binom",
    "boxcox",
    "boxcox1p",
    "btdtria",
    "btdtrib",
    "cbrt",
    "chdtr",
    "chdtrc",
    "chdtri",
    "chdtriv",
    "chndtr",
    "chndtridf",
    "chndtrinc",
    "chndtrix",
    "comb",
    "cosdg",
    "cosm1",
    "cotdg",
    "dawsn",
    "digamma",
    "diric",
    "ellipe",
    "ellipeinc",
    "ellipj",
    "ellipk",
    "ellipkinc",
    "ellipkm1",
    "elliprc",
    "elliprd",
    "elliprf",
    "elliprg",
    "elliprj",
    "entr",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfi",
    "erfinv",
    "eval_chebyc",
    "eval_chebys",
    "eval_chebyt",
    "eval_chebyu",
    "eval_gegenbauer",
    "eval_genlaguerre",
    "eval_hermite",
    "eval_hermitenorm",
    "eval_jacobi",
    "eval_laguerre",
    "eval_legendre",
    "eval_sh_chebyt",
    "eval_sh_chebyu",
    "eval_sh_jacobi",
    "eval_sh_legendre",
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
    "fdtridfd",
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
    "gdtria",
    "gdtrib",
    "gdtrix",
    "h1vp",
    "h2vp",
    "hankel1",
    "hankel1e",
    "hankel2",
    "hankel2e",
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
    "it2i0k0",
    "it2j0y0",
    "it2struve0",
    "itairy",
    "iti0k0",
    "itj0y0",
    "itmodstruve0",
    "itstruve0",
    "iv",
    "ive",
    "ivp",
    "j0",
    "j1",
    "jn",
    "jv",
    "jve",
    "jvp",
    "k0",
    "k0e",
    "k1",
    "k1e",
    "kei",
    "keip",
    "kelvin",
    "ker",
    "kerp",
    "kl_div",
    "kn",
    "kolmogi",
    "kolmogorov",
    "kv",
    "kve",
    "kvp",
    "lambertw",
    "log1p",
    "log_expit",
    "log_ndtr",
    "log_softmax",
    "log_wright_bessel",
    "loggamma",
    "logit",
    "logsumexp",
    "lpmv",
    "mathieu_a",
    "mathieu_b",
    "mathieu_cem",
    "mathieu_modcem1",
    "mathieu_modcem2",
    "mathieu_modsem1",
    "mathieu_modsem2",
    "mathieu_sem",
    "modfresnelm",
    "modfresnelp",
    "modstruve",
    "multigammaln",
    "nbdtr",
    "nbdtrc",
    "nbdtri",
    "nbdtrik",
    "nbdtrin",
    "ncfdtr",
    "ncfdtri",
    "ndtr",
    "ndtri",
    "ndtri_exp",
    "nrdtrimn",
    "nrdtrisd",
    "obl_ang1",
    "obl_ang1_cv",
    "obl_cv",
    "obl_rad1",
    "obl_rad1_cv",
    "owens_t",
    "pbdv",
    "pbvv",
    "pbwa",
    "pdtr",
    "pdtrc",
    "pdtri",
    "pdtrik",
    "perm",
    "poch",
    "polygamma",
    "powm1",
    "pro_ang1",
    "pro_ang1_cv",
    "pro_cv",
    "pro_rad1",
    "pro_rad1_cv",
    "pseudo_huber",
    "psi",
    "radian",
    "rel_entr",
    "rgamma",
    "round",
    "shichi",
    "sici",
    "sinc",
    "sindg",
    "softmax",
    "softplus",
    "spence",
    "spherical_in",
    "spherical_jn",
    "spherical_kn",
    "spherical_yn",
    "stdtr",
    "stdtridf",
    "stdtrit",
    "struve",
    "tandg",
    "tklmbda",
    "voigt_profile",
    "wofz",
    "wright_bessel",
    "wrightomega",
    "xlog1py",
    "xlogy",
    "y0",
    "y1",
    "yn",
    "yv",
    "yve",
    "yvp",
    "zeta",
]


__getattr__ = _absent(
    __name__,
    __all__,
    {
        "zetac": "zeta(x) - 1",
        "sph_harm_y": "lpmv",
        "factorialk": "factorial",
        "factorial2": "factorial",
    },
)


def __dir__() -> list[str]:
    return __all__
