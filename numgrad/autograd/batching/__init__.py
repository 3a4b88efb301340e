"""Computing for many examples at once."""
