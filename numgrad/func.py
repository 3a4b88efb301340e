"""Functions that turn functions into their derivatives; ``ng.grad`` is ``ng.func.grad``."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

from numgrad.core.absent import absent as _absent
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


_missing = _absent(
    __name__,
    __all__,
    {
        "functional_call": "ng.nn.functional_call",
        "stack_module_state": "ng.nn.stack_module_state",
        "grad_and_value": "value_and_grad",
        "functionalize": "ng.jit",
    },
)


def __getattr__(name: str) -> _Any:
    if name != "sparsity":
        return _missing(name)
    # needs SciPy and the compiler, which are not loaded earlier
    globals()[name] = _import_module("numgrad.compiler.inspect.sparsity").sparsity
    return globals()[name]


def __dir__() -> list[str]:
    return __all__
