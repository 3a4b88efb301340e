"""Functions that turn functions into their derivatives; ``ng.grad`` is ``ng.func.grad``."""

from numgrad.transforms import grad, hessian, jacobian, value_and_grad

__all__ = ["grad", "hessian", "jacobian", "value_and_grad"]


def __dir__() -> list[str]:
    return __all__
