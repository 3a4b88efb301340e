"""``Function``: operations that a user writes in Python."""

from numgrad.autograd.function.function import Function, once_differentiable
from numgrad.autograd.function.function_call import FunctionCtx

__all__ = ["Function", "FunctionCtx", "once_differentiable"]


def __dir__() -> list[str]:
    return __all__
