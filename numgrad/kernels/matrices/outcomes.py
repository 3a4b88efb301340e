"""What functions of one matrix say that went wrong."""

NOT_FINITE, NOT_FOUND, SINGULAR, NOT_REAL = -1, 1, 2, 3
"""Infinities or NaNs; an iteration without end; no solution; a complex one of what is real."""
