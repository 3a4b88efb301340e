"""Linear algebra: the operations of ``numgrad.linalg``, which are declared when asked for."""
