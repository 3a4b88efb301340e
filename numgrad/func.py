"""Functions that turn functions into their derivatives; ``ng.grad`` is ``ng.func.grad``."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

from numgrad.errors import NumgradAttributeError as _NumgradAttributeError
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

if TYPE_CHECKING:
    from numgrad.compiler.inspect.sparsity import sparsity

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
    "sparsity",
    "stop_gradient",
    "value_and_grad",
    "vhp",
    "vjp",
    "vmap",
]


def __getattr__(name: str) -> _Any:
    if name != "sparsity":
        raise _NumgradAttributeError(
            f"module 'numgrad.func' has no attribute {name!r}; dir(numgrad.func) lists all names",
            name=name,
        )
    # needs SciPy and the compiler, which are not loaded earlier
    globals()[name] = _import_module("numgrad.compiler.inspect.sparsity").sparsity
    return globals()[name]


def __dir__() -> list[str]:
    return __all__
