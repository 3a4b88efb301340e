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

from numgrad.core.namespaces import namespace as _namespace

_namespace(
    globals(), {"numgrad.operations.sparse_matrices": "SparsePattern matmul pattern spsolve"}
)
