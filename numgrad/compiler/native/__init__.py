"""Compiled functions that other machine code calls: ``ng.jit(f).native(*examples)``."""
