"""Loss: the operation, its function, its modules."""
