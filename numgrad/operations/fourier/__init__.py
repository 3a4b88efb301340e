"""Discrete Fourier, cosine and sine transforms."""
