"""Reports of a compiled function, in words and pictures."""
