"""Loops and branches within compiled functions: operations whose parameters are graphs."""
