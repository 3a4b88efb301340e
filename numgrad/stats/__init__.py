"""Densities and distribution functions with SciPy's names, and gradients in all parameters.

>>> import numgrad as ng
>>> ng.grad(lambda loc: ng.stats.norm.logpdf(1.0, loc, 2.0))(0.0)
np.float64(0.25)

Each name is a distribution with functions ``logpdf``, ``pdf`` (``logpmf``, ``pmf`` of integers),
``cdf``, ``logcdf``, ``sf``, ``logsf``, ``ppf``, ``isf``, ``median``, ``interval``, ``support``,
``mean``, ``var``, ``std``, ``moment``, ``stats``, ``entropy``, ``rvs``, called as in
``scipy.stats``: shape parameters, then ``loc`` and ``scale``. They are compositions of operations:
``ng.jit`` fuses them, and every derivative that these have is one of theirs. ``scipy.stats``' own
functions take no Tensors that require gradients.
"""

from numgrad.core.namespaces import absent as _absent
from numgrad.stats.counts import bernoulli as bernoulli
from numgrad.stats.counts import binom as binom
from numgrad.stats.counts import categorical as categorical
from numgrad.stats.counts import geom as geom
from numgrad.stats.counts import multinomial as multinomial
from numgrad.stats.counts import nbinom as nbinom
from numgrad.stats.counts import poisson as poisson
from numgrad.stats.half_line import beta as beta
from numgrad.stats.half_line import chi2 as chi2
from numgrad.stats.half_line import expon as expon
from numgrad.stats.half_line import f as f
from numgrad.stats.half_line import gamma_ as gamma
from numgrad.stats.half_line import halfnorm as halfnorm
from numgrad.stats.half_line import invgamma as invgamma
from numgrad.stats.half_line import lognorm as lognorm
from numgrad.stats.half_line import pareto as pareto
from numgrad.stats.half_line import rayleigh as rayleigh
from numgrad.stats.half_line import weibull_min as weibull_min
from numgrad.stats.line import cauchy as cauchy
from numgrad.stats.line import gumbel_r as gumbel_r
from numgrad.stats.line import laplace as laplace
from numgrad.stats.line import logistic as logistic
from numgrad.stats.line import norm as norm
from numgrad.stats.line import skewnorm as skewnorm
from numgrad.stats.line import t as t
from numgrad.stats.line import truncnorm as truncnorm
from numgrad.stats.line import uniform as uniform
from numgrad.stats.line import vonmises as vonmises
from numgrad.stats.vectors import dirichlet as dirichlet
from numgrad.stats.vectors import multivariate_normal as multivariate_normal
from numgrad.stats.vectors import multivariate_t as multivariate_t
from numgrad.stats.vectors import wishart as wishart

__all__ = [
    "bernoulli",
    "beta",
    "binom",
    "categorical",
    "cauchy",
    "chi2",
    "dirichlet",
    "expon",
    "f",
    "gamma",
    "geom",
    "gumbel_r",
    "halfnorm",
    "invgamma",
    "laplace",
    "logistic",
    "lognorm",
    "multinomial",
    "multivariate_normal",
    "multivariate_t",
    "nbinom",
    "norm",
    "pareto",
    "poisson",
    "rayleigh",
    "skewnorm",
    "t",
    "truncnorm",
    "uniform",
    "vonmises",
    "weibull_min",
    "wishart",
]


__getattr__ = _absent(
    __name__,
    __all__,
    {"*": "there is no such distribution here; scipy.stats takes arrays without gradients"},
)


def __dir__() -> list[str]:
    return __all__
