"""Checks of gradients against finite differences."""

from numgrad.testing.gradcheck import gradcheck as gradcheck
from numgrad.testing.gradcheck import gradgradcheck as gradgradcheck

__all__ = ["gradcheck", "gradgradcheck"]


def __dir__() -> list[str]:
    return __all__
