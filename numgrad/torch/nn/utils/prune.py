"""Masks that set parts of parameters to zero: ``torch.nn.utils.prune``."""

from __future__ import annotations

from numgrad.torch import creation, random
from numgrad.torch.specialization import expose, specialize

_base = specialize(
    "numgrad.nn.utils.prune",
    {
        "asarray": creation.from_numpy,
        "in_dtype": lambda mask, tensor: mask.to(tensor.dtype),
        "ones_like": creation.ones_like,
        "uniform": random.rand,
    },
)
expose(globals(), "numgrad.nn.utils.prune", _base)
