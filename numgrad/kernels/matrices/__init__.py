"""Kernels of factorizations and of triangular systems, over stacks of matrices."""
