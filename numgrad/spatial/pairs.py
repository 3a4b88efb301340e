"""Distances of all pairs of rows of matrices."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from numgrad.core.op import OPS
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.arrangement import matrix_transpose
from numgrad.operations.join import concat
from numgrad.operations.linear_algebra.solve import inv
from numgrad.operations.take import take
from numgrad.random.generator import at_once
from numgrad.spatial.metrics import METRICS, operand, order, weights
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.mapping import vmap

_ALIASES = {
    "cheb": "chebyshev", "cheby": "chebyshev", "chebychev": "chebyshev", "che": "chebyshev",
    "ch": "chebyshev", "cblock": "cityblock", "cb": "cityblock", "c": "cityblock",
    "manhattan": "cityblock", "co": "correlation", "cos": "cosine", "euclid": "euclidean",
    "eu": "euclidean", "e": "euclidean", "hamm": "hamming", "ha": "hamming", "h": "hamming",
    "matching": "hamming", "js": "jensenshannon", "mahal": "mahalanobis", "mah": "mahalanobis",
    "mi": "minkowski", "m": "minkowski", "pnorm": "minkowski", "se": "seuclidean",
    "s": "seuclidean", "sqe": "sqeuclidean", "sqeuclid": "sqeuclidean",
}  # fmt: skip
"""SciPy's other names of metrics."""


def _rows(name: str, x: Any) -> Any:
    x = operand(name, x)
    if len(x.shape) != 2:
        raise NumgradValueError(f"{name}: takes matrices of rows, got shape {tuple(x.shape)}")
    return x


_OPTIONS = {
    "minkowski": ("p", "w"),
    "mahalanobis": ("VI",),
    "seuclidean": ("V",),
    "jensenshannon": (),
}
"""Options of metrics, of others ``w``."""


@lru_cache(64)
def _compiled(metric: str, options: tuple[str, ...], order: float | None) -> Callable[..., Any]:
    """Distances of rows of two arrays at given places, or of all pairs, as one loop."""
    from numgrad.compiler.api import jit

    fixed = {} if order is None else {"p": order}

    def distances(a: Any, b: Any, first: Any, second: Any, *values: Any) -> Any:
        if first is None:
            u, v = a[:, None, :], b[None, :, :]
        else:
            u, v = take(a, first, axis=0), take(b, second, axis=0)
        return METRICS[metric](u, v, **fixed, **dict(zip(options, values, strict=True)))

    return jit(distances)


def _distances(
    name: str, metric: Any, options: dict[str, Any], a: Any, b: Any, places: Any = (None, None)
) -> Any:
    """Distances of rows, by default of all pairs."""
    if callable(metric):
        given = partial(metric, **options)
        if places[0] is None:
            return vmap(lambda u: vmap(lambda v: given(u, v))(b))(a)
        return vmap(given)(take(a, places[0], axis=0), take(b, places[1], axis=0))
    known = _ALIASES.get(str(metric).lower(), str(metric).lower())
    if known not in METRICS:
        raise NumgradValueError(
            f"{name}: there is no metric {metric!r} with gradients; there are "
            f"{', '.join(METRICS)}, and functions of two vectors"
        )
    accepted = _OPTIONS.get(known, ("w",))
    unknown = options.keys() - set(accepted)
    if unknown:
        raise NumgradTypeError(
            f"{name}: metric {known!r} takes {', '.join(accepted) or 'no options'}, got "
            f"{', '.join(sorted(unknown))}"
        )
    values = {key: value for key, value in options.items() if value is not None}
    p = order(values.pop("p", 2.0)) if known == "minkowski" else None
    if known in ("seuclidean", "mahalanobis") and not values:
        rows = a if a is b else concat(a, b, axis=0)
        if known == "seuclidean":
            values["V"] = np.var(rows, axis=0, ddof=1)
        else:
            values["VI"] = inv(np.cov(matrix_transpose(rows)))
    for key, value in values.items():
        values[key] = weights(name, value) if key == "w" else operand(name, value)
    if isinstance(p, Tensor):
        values["p"], p = p, None
    return _compiled(known, tuple(values), p)(a, b, *places, *values.values())


def cdist(XA: Any, XB: Any, metric: Any = "euclidean", **kwargs: Any) -> Any:
    """Distances of each row of a matrix from each row of another, with gradients in all arrays.

    Parameters
    ----------
    XA : array_like of shape (n, d)
        Points in rows.
    XB : array_like of shape (m, d)
        Points in rows.
    metric : str or function
        Name of a metric in ``ng.spatial.distance``, or a function of two vectors.
    **kwargs
        Options of the metric: ``p``, ``w``, ``V`` (by default variances of all rows), ``VI`` (by
        default the inverse of their covariance).

    Returns
    -------
    Tensor
        Of shape (n, m).

    Raises
    ------
    NumgradValueError
        If shapes do not fit, or there is no such metric with gradients.

    Notes
    -----
    The gradient is 0 where points coincide. Distances by name are compiled, and no array of the
    differences of all pairs is made, neither here nor in the backward pass.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.spatial.distance.cdist([[0.0, 0.0], [3.0, 0.0]], [[3.0, 4.0]])
    tensor([[5.],
            [4.]])
    """
    a, b = _rows("cdist", XA), _rows("cdist", XB)
    if a.shape[1] != b.shape[1]:
        raise NumgradValueError(
            f"cdist: rows of shapes {tuple(a.shape)} and {tuple(b.shape)} must be of equal length"
        )
    return _distances("cdist", metric, kwargs, a, b)


def pdist(X: Any, metric: Any = "euclidean", **kwargs: Any) -> Any:
    """Distances of each pair of rows of a matrix, with gradients in all arrays.

    Parameters
    ----------
    X : array_like of shape (n, d)
        Points in rows.
    metric : str or function
        As of ``cdist``.
    **kwargs
        Options of the metric, as of ``cdist``.

    Returns
    -------
    Tensor
        Of shape ``(n * (n - 1) / 2,)``: of the first row from all behind it, then of the second.

    Raises
    ------
    NumgradValueError
        If shapes do not fit, or there is no such metric with gradients.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.spatial.distance.pdist([[0.0, 0.0], [3.0, 0.0], [3.0, 4.0]])
    tensor([3., 5., 4.])
    """
    x = _rows("pdist", X)
    places = np.triu_indices(int(x.shape[0]), 1)
    if not len(places[0]):
        return np.sum(x[:0], axis=1)
    return _distances("pdist", metric, kwargs, x, x, places)


def squareform(X: Any, force: str = "no", checks: bool = True) -> Any:
    """The matrix of distances of pairs, or pairs of a matrix.

    Parameters
    ----------
    X : array_like
        Distances as of ``pdist``, or a symmetric matrix of distances.
    force : {'no', 'tovector', 'tomatrix'}
        What is to come out; by default what ``X`` is not.
    checks : bool
        Whether a matrix must be symmetric with zeros on the diagonal.

    Returns
    -------
    Tensor
        A matrix or a vector.

    Raises
    ------
    NumgradValueError
        If there is no such number of pairs, or the matrix is none of distances.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.spatial.distance.squareform([3.0, 5.0, 4.0])
    tensor([[0., 3., 5.],
            [3., 0., 4.],
            [5., 4., 0.]])
    """
    x = operand("squareform", X)
    shapes = {"tomatrix": 1, "tovector": 2}
    if len(x.shape) not in (1, 2) or shapes.get(force, len(x.shape)) != len(x.shape):
        raise NumgradValueError(
            f"squareform: shape {tuple(x.shape)} with force={force!r}; a vector becomes a matrix, "
            "a matrix a vector"
        )
    if len(x.shape) == 1:
        count = int(x.shape[0])
        n = max(1, int(np.ceil(np.sqrt(2 * count))))
        if n * (n - 1) // 2 != count:
            raise NumgradValueError(
                f"squareform: {count} distances are not those of all pairs of n points, "
                "n * (n - 1) / 2"
            )
        if not count:
            return Tensor(np.zeros((1, 1)))
        places = np.zeros((n, n), np.int64)
        rows, columns = np.triu_indices(n, 1)
        places[rows, columns] = places[columns, rows] = np.arange(count)
        return OPS["where"](np.eye(n, dtype=bool), 0.0, take(x, places))
    n = int(x.shape[0])
    if n != x.shape[1]:
        raise NumgradValueError(f"squareform: a matrix of shape {tuple(x.shape)} is not square")
    if checks and at_once():
        numbers = x.detach().numpy()
        if not (np.allclose(numbers, numbers.T) and np.allclose(np.diag(numbers), 0.0)):
            raise NumgradValueError(
                "squareform: the matrix is not symmetric with zeros on the diagonal; checks=False "
                "takes its upper triangle"
            )
    rows, columns = np.triu_indices(n, 1)
    return take(OPS["reshape"](x, (-1,)), rows * n + columns)


def directed_hausdorff(u: Any, v: Any) -> tuple[Any, Any, Any]:
    """The largest distance of a point of one set from the nearest of another, with its gradient.

    Parameters
    ----------
    u, v : array_like of shapes (n, d) and (m, d)
        Points in rows.

    Returns
    -------
    distance : Tensor
        The distance.
    first, second : Tensor
        The rows of ``u`` and ``v`` that are so far apart.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.spatial.distance.directed_hausdorff([[0.0], [3.0]], [[0.0], [1.0]])
    (tensor(2.), tensor(1), tensor(1))
    """
    distances = cdist(u, v)
    nearest = np.argmin(distances, axis=1)
    least = np.min(distances, axis=1)
    first = np.argmax(least)
    return np.max(least), first, take(nearest, first)
