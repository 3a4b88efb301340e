"""Attention: the operation, its function, its modules."""
