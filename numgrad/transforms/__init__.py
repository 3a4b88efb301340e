"""Functions of functions: derivatives, batches, loops."""
