"""Embedding: the operation, its function, its modules."""
