"""Real measurements with certified fits: NIST StRD nonlinear regression problems."""

from numgrad.cli.nist.models import MODELS
from numgrad.cli.nist.problem import Problem, load, names, parse

__all__ = ["MODELS", "Problem", "load", "names", "parse"]
