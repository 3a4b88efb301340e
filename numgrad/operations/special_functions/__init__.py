"""Special functions of SciPy's names, one module a field; ``numgrad.special`` shows them."""
