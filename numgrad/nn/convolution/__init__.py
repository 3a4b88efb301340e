"""Convolution: the operation, its function, its modules."""
