"""A backward: what is asked for, and the two walks that answer it."""
