"""Kernels written by hand."""
