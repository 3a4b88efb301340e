"""Padding: the operation, its function, its modules."""
