"""Sparse matrices with gradients in their elements.

A matrix is a vector of elements, which may require grad, and a pattern, which says where they are.
A ``scipy.sparse`` matrix that is a constant needs neither: ``matrix @ tensor`` is a product with a
gradient as it stands. ``ng.jit`` keeps the elements that it has when a function is compiled.

>>> import numpy as np, numgrad as ng
>>> from scipy.sparse import csr_array
>>> matrix = csr_array([[1.0, 2.0], [0.0, 3.0]])
>>> ng.grad(lambda x: (matrix @ x).sum())(np.ones(2))
array([1., 5.])
"""

from numgrad.operations.sparse_matrices import SparsePattern as SparsePattern
from numgrad.operations.sparse_matrices import matmul as matmul
from numgrad.operations.sparse_matrices import pattern as pattern
from numgrad.operations.sparse_matrices import spsolve as spsolve

__all__ = ["SparsePattern", "matmul", "pattern", "spsolve"]


def __dir__() -> list[str]:
    return __all__
