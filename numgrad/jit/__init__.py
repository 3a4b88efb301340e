"""The whole of a function, its gradient included, as one native kernel."""
