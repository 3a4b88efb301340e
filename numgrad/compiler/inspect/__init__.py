"""What became of a compiled function, in words and pictures."""
