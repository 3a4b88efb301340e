"""SciPy's solvers with exact derivatives: minima, fits, roots and integrals.

Functions take and return any containers of arrays; what SciPy gets are vectors.
"""
