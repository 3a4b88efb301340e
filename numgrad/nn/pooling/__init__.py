"""Pooling: the operation, its function, its modules."""
