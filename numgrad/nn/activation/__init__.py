"""Activation: the operation, its function, its modules."""
