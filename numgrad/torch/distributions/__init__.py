"""Distributions with gradients in their parameters: ``torch.distributions``.

>>> import numgrad.torch as torch
>>> from numgrad.torch.distributions import Normal
>>> scale = torch.tensor(2.0, requires_grad=True)
>>> Normal(0.0, scale).log_prob(torch.tensor(2.0)).backward()
>>> scale.grad
tensor(0.)
"""

from numgrad.core.namespaces import absent as _absent
from numgrad.torch.distributions import (
    composed as _composed, constraints, counts as _counts, distribution, kl, line as _line,
    transforms, vectors as _vectors,
)  # fmt: skip
from numgrad.torch.distributions.distribution import Distribution, ExponentialFamily
from numgrad.torch.distributions.kl import kl_divergence, register_kl
from numgrad.torch.distributions.transforms import biject_to, transform_to

globals().update(_line.CLASSES, **_counts.CLASSES)
for _module, _names in {
    _vectors: "Categorical Dirichlet LowRankMultivariateNormal Multinomial MultivariateNormal "
    "OneHotCategorical",
    _composed: "Independent MixtureSameFamily TransformedDistribution",
    transforms: " ".join(n for n in vars(transforms) if n.endswith("Transform") and n[0] != "_"),
}.items():
    globals().update({_name: getattr(_module, _name) for _name in _names.split()})
__all__ = sorted(n for n in globals() if n[0] != "_")
__getattr__ = _absent(
    __name__,
    __all__,
    {"*": "there is no such distribution here; ng.stats has logpdf, cdf, rvs of others"},
)
