"""Checks of gradients against finite differences.

>>> import numgrad as ng
>>> x = ng.tensor([0.3, 0.8], requires_grad=True)
>>> ng.testing.gradcheck(ng.tanh, (x,)), ng.testing.gradgradcheck(ng.tanh, (x,))
(True, True)
"""

from numgrad.testing.numerical import gradcheck as gradcheck
from numgrad.testing.numerical import gradgradcheck as gradgradcheck

__all__ = ["gradcheck", "gradgradcheck"]


def __dir__() -> list[str]:
    return __all__
