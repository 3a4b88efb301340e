"""Functions that turn functions into their derivatives; ``ng.grad`` is ``ng.func.grad``."""

from numgrad.tensors.checkpoint import checkpoint
from numgrad.transforms import (
    custom_jvp,
    custom_vjp,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    linearize,
    stop_gradient,
    value_and_grad,
    vhp,
    vjp,
    vmap,
)

__all__ = [
    "checkpoint",
    "custom_jvp",
    "custom_vjp",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linearize",
    "stop_gradient",
    "value_and_grad",
    "vhp",
    "vjp",
    "vmap",
]


def __dir__() -> list[str]:
    return __all__
