"""Linear: the operation, its function, its modules."""
