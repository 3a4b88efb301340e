"""Real measurements with certified fits: NIST StRD nonlinear regression problems."""

from numgrad.cli.nist.problem import MODELS, Problem, load, names, parse

__all__ = ["MODELS", "Problem", "load", "names", "parse"]
