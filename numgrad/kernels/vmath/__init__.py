"""Elementary functions."""
