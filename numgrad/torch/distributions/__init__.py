"""Distributions with gradients in their parameters: ``torch.distributions``.

>>> import numgrad.torch as torch
>>> from numgrad.torch.distributions import Normal
>>> scale = torch.tensor(2.0, requires_grad=True)
>>> Normal(0.0, scale).log_prob(torch.tensor(2.0)).backward()
>>> scale.grad
tensor(0.)
"""

from numgrad.torch.distributions import (  # noqa: F401, I001 - names of this module
    constraints, distribution, kl, transforms, utils, vectors as _vectors,
)  # fmt: skip
from numgrad.torch.distributions.composed import Independent, TransformedDistribution  # noqa: F401
from numgrad.torch.distributions.distribution import Distribution, ExponentialFamily  # noqa: F401
from numgrad.torch.distributions.kl import kl_divergence, register_kl  # noqa: F401
from numgrad.torch.distributions.mixtures import MixtureSameFamily  # noqa: F401
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.paths import alias as _alias

globals().update(_vectors.CLASSES)
globals().update({n: v for n, v in vars(transforms).items() if n in transforms.NAMES})
_alias(f"{__name__}.transforms", "distributions.constraint_registry")
_HOMES = """
    bernoulli beta binomial categorical cauchy chi2 continuous_bernoulli dirichlet exp_family
    exponential fishersnedecor gamma generalized_pareto geometric gumbel half_cauchy half_normal
    independent inverse_gamma kumaraswamy laplace lkj_cholesky log_normal logistic_normal
    lowrank_multivariate_normal mixture_same_family multinomial multivariate_normal
    negative_binomial normal one_hot_categorical pareto poisson relaxed_bernoulli
    relaxed_categorical studentT transformed_distribution uniform von_mises weibull wishart"""
_alias(__name__, " ".join(f"distributions.{name}" for name in _HOMES.split()))
__all__ = sorted(n for n in globals() if n[0] != "_")  # pyright: ignore
__getattr__ = _refuse(globals())
