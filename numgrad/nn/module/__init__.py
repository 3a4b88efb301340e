"""``Module``: parameters, buffers, submodules, hooks, states."""
