"""Lowering of a graph to native code: terms, statements, loops, source."""
