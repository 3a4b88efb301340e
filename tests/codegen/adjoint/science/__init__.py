"""Kernels of science as users of Numba write them: plain loops, each with arguments.

`CASES` holds them by name; nothing here knows numgrad.
"""

from . import chains, fields, finance, matrices, particles, sequences, signals  # noqa: F401
from .cases import CASES, Case

__all__ = ["CASES", "Case"]
