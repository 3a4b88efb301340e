"""``Function``: operations that a user writes in Python."""
