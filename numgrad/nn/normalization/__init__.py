"""Normalization: the operation, its function, its modules."""
