"""Checks of gradients against finite differences."""

from numgrad.testing.numerical import gradcheck as gradcheck
from numgrad.testing.numerical import gradgradcheck as gradgradcheck
