"""Distances of vectors, and of all pairs of rows, with the names of ``scipy.spatial.distance``.

>>> import numpy as np, numgrad as ng
>>> x = np.array([[0.0, 0.0], [3.0, 4.0]])
>>> ng.grad(lambda x: ng.spatial.distance.pdist(x).sum())(x)
array([[-0.6, -0.8],
       [ 0.6,  0.8]])
"""

from numgrad.core.namespaces import namespace as _namespace

_namespace(
    globals(),
    {
        "numgrad.spatial.metrics": "braycurtis canberra chebyshev cityblock correlation cosine "
        "euclidean hamming jensenshannon mahalanobis minkowski seuclidean sqeuclidean",
        "numgrad.spatial.pairs": "cdist directed_hausdorff pdist squareform",
    },
    {
        name: "of truth values there is no gradient; scipy.spatial.distance has it"
        for name in ("dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule")
    },
)
