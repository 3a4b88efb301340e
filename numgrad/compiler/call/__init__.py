"""A call of a compiled function: its arguments, its surroundings, its results."""
