"""Distributions with gradients in their parameters: ``torch.distributions``.

>>> import numgrad.torch as torch
>>> from numgrad.torch.distributions import Normal
>>> scale = torch.tensor(2.0, requires_grad=True)
>>> Normal(0.0, scale).log_prob(torch.tensor(2.0)).backward()
>>> scale.grad
tensor(0.)
"""

from numgrad.torch.distributions import (  # noqa: F401 - names of this module
    composed as _composed,
    constraints,
    counts as _counts,
    distribution,
    kl,
    line as _line,
    transforms,
    vectors as _vectors,
)  # fmt: skip
from numgrad.torch.distributions.distribution import (  # noqa: F401
    Distribution,
    ExponentialFamily,
)
from numgrad.torch.distributions.kl import kl_divergence, register_kl  # noqa: F401
from numgrad.torch.distributions.transforms import biject_to, transform_to  # noqa: F401
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.paths import alias as _alias

_CLASSES = {**_line.CLASSES, **_counts.CLASSES, **_vectors.CLASSES}
globals().update(_CLASSES)
for _module, _names in {
    _composed: "Independent MixtureSameFamily TransformedDistribution",
    transforms: " ".join(n for n in vars(transforms) if n.endswith("Transform") and n[0] != "_"),
}.items():
    globals().update({_name: getattr(_module, _name) for _name in _names.split()})
_alias(f"{__name__}.distribution", "distributions.utils")
_alias(f"{__name__}.transforms", "distributions.constraint_registry")
_alias(__name__, " ".join(f"distributions.{n.lower()}" for n in _CLASSES))
__all__ = sorted(n for n in globals() if n[0] != "_")  # pyright: ignore
__getattr__ = _refuse(globals())
