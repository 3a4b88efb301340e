"""The program that a trace makes, and symbolic lengths of axes."""
