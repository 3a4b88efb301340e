"""Products with sparse matrices and systems of them, in terms of their non-zero elements."""
