"""Densities and distribution functions with SciPy's names, and gradients in all parameters.

>>> import numgrad as ng
>>> ng.grad(lambda loc: ng.stats.norm.logpdf(1.0, loc, 2.0))(0.0)
np.float64(0.25)

Each name is a distribution with functions ``logpdf``, ``pdf`` (``logpmf``, ``pmf`` of integers),
``cdf``, ``logcdf``, ``sf``, ``logsf``, ``ppf``, ``isf``, ``median``, ``interval``, ``support``,
``mean``, ``var``, ``std``, ``moment``, ``stats``, ``entropy``, ``rvs``, ``expect``, ``fit``, called
as in ``scipy.stats``: shape parameters, then ``loc`` and ``scale``, or those of
``norm(loc, scale)``. They are compositions of operations: ``ng.jit`` fuses them, and every
derivative that these have is one of theirs. ``scipy.stats``' own functions take no Tensors that
require gradients.
"""

from numgrad.core.namespaces import namespace as _namespace

_namespace(
    globals(),
    {
        "numgrad.stats.counts": "bernoulli binom categorical geom multinomial nbinom poisson",
        "numgrad.stats.covariance": "Covariance",
        "numgrad.stats.divergence": "kl_divergence",
        "numgrad.stats.half_line": "beta chi2 expon f gamma=gamma_ genpareto halfcauchy halfnorm "
        "invgamma lognorm pareto rayleigh weibull_min",
        "numgrad.stats.kernel_density": "gaussian_kde",
        "numgrad.stats.line": "cauchy continuous_bernoulli gumbel_r laplace logistic norm "
        "skewnorm t truncnorm uniform vonmises",
        "numgrad.stats.vectors": "dirichlet multivariate_normal multivariate_t wishart",
    },
    {"*": "there is no such distribution here; scipy.stats takes arrays without gradients"},
)
