"""Dropout: the operation, its function, its modules."""
