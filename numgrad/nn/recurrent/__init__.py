"""Recurrent: the operation, its function, its modules."""
