"""Distances of two vectors, or of stacks of them along the last axis.

Note [Distances at coinciding points]
-------------------------------------
A distance has a kink where its vectors are equal. The gradient there is 0, as that of ``ng.norm``
at 0, so that sums over all pairs, of points with themselves too, have gradients.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.core.op import OPS
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.choice import where
from numgrad.operations.shape import as_operand, astype
from numgrad.random.generator import at_once
from numgrad.tensors.tensor import Tensor


def operand(name: str, x: Any) -> Any:
    """A real array as a Tensor of floating numbers."""
    x = as_operand(x)
    if x.dtype.kind == "c":
        raise NumgradTypeError(f"{name}: takes real vectors, got dtype {x.dtype}")
    x = x if isinstance(x, Tensor) else Tensor(np.array(x))
    return x if x.dtype.kind == "f" else astype(x, dtype=np.float64)


def root(s: Any, p: Any = 2.0) -> Any:
    """``s ** (1 / p)``: Note [Distances at coinciding points]."""
    zero = s == 0
    inner = where(zero, 1.0, s)
    power = np.sqrt(inner) if isinstance(p, float) and p == 2 else inner ** (1.0 / p)
    return where(zero, 0.0, power)


def _total(x: Any, w: Any) -> Any:
    return np.sum(x if w is None else x * w, axis=-1)


def _minkowski(u: Any, v: Any, w: Any = None, p: Any = 2.0) -> Any:
    d = np.abs(u - v)
    if isinstance(p, int | float) and p == np.inf:
        return _chebyshev(u, v, w)
    if isinstance(p, int | float) and p == 1:
        return _total(d, w)
    zero = d == 0
    return root(_total(where(zero, 0.0, where(zero, 1.0, d) ** p), w), p)


def _euclidean(u: Any, v: Any, w: Any = None) -> Any:
    return root(_sqeuclidean(u, v, w))


def _sqeuclidean(u: Any, v: Any, w: Any = None) -> Any:
    d = u - v
    return _total(d * d, w)


def _cityblock(u: Any, v: Any, w: Any = None) -> Any:
    return _total(np.abs(u - v), w)


def _chebyshev(u: Any, v: Any, w: Any = None) -> Any:
    d = np.abs(u - v)
    return np.max(d if w is None else where(w > 0, d, 0.0), axis=-1)


def _cosine(u: Any, v: Any, w: Any = None) -> Any:
    size = np.sqrt(_total(u * u, w) * _total(v * v, w))
    return np.clip(1.0 - _total(u * v, w) / size, 0.0, 2.0)


def _correlation(u: Any, v: Any, w: Any = None, centered: bool = True) -> Any:
    if not centered:
        return _cosine(u, v, w)
    whole = u.shape[-1] if w is None else np.sum(w)
    u, v = (x - _total(x, w)[..., None] / whole for x in (u, v))
    return _cosine(u, v, w)


def _canberra(u: Any, v: Any, w: Any = None) -> Any:
    size = np.abs(u) + np.abs(v)
    zero = size == 0
    return _total(where(zero, 0.0, np.abs(u - v) / where(zero, 1.0, size)), w)


def _braycurtis(u: Any, v: Any, w: Any = None) -> Any:
    return _total(np.abs(u - v), w) / _total(np.abs(u + v), w)


def _hamming(u: Any, v: Any, w: Any = None) -> Any:
    differ = astype(u != v, dtype=np.float64)
    return np.mean(differ, axis=-1) if w is None else _total(differ, w) / np.sum(w)


def _mahalanobis(u: Any, v: Any, VI: Any) -> Any:
    d = u - v
    return root(np.sum(d @ VI * d, axis=-1))


def _seuclidean(u: Any, v: Any, V: Any) -> Any:
    d = u - v
    return root(np.sum(d * d / V, axis=-1))


def _jensenshannon(u: Any, v: Any) -> Any:
    p, q = (x / np.sum(x, axis=-1, keepdims=True) for x in (u, v))
    middle = (p + q) / 2
    return root(np.sum(_entropy(p, middle) + _entropy(q, middle), axis=-1) / 2)


def _entropy(p: Any, q: Any) -> Any:
    zero = (p == 0) | (p == q)
    return where(zero, 0.0, p * np.log(where(zero, 1.0, p) / where(zero, 1.0, q)))


METRICS: dict[str, Callable[..., Any]] = {
    formula.__name__[1:]: formula
    for formula in (
        _braycurtis, _canberra, _chebyshev, _cityblock, _correlation, _cosine, _euclidean, _hamming,
        _jensenshannon, _mahalanobis, _minkowski, _seuclidean, _sqeuclidean,
    )
}  # fmt: skip
"""Names of metrics -> their formulas along the last axis."""


def weights(name: str, w: Any) -> Any:
    """Weights, none of which is negative."""
    if w is None:
        return None
    w = operand(name, w)
    if at_once() and np.any(w.detach() < 0):
        raise NumgradValueError(f"{name}: weights w are not negative")
    return w


def _of_vectors(name: str, u: Any, v: Any, w: Any = None, **options: Any) -> Any:
    u, v = operand(name, u), operand(name, v)
    if len(u.shape) != 1 or tuple(u.shape) != tuple(v.shape):
        raise NumgradValueError(
            f"{name}: takes two vectors of the same length, got shapes {tuple(u.shape)} and "
            f"{tuple(v.shape)}; cdist takes matrices of rows"
        )
    w = weights(name, w)
    return METRICS[name](u, v, **({} if w is None else {"w": w}), **options)


def _weighted(name: str, what: str, formula: str, value: str) -> Callable[..., Any]:
    """A metric with weights as a function of vectors."""

    def metric(u: Any, v: Any, w: Any = None) -> Any:
        return _of_vectors(name, u, v, w)

    metric.__name__ = metric.__qualname__ = name
    metric.__doc__ = f"""{what}: ``{formula}``, with gradients in all arrays.

    Parameters
    ----------
    u, v : array_like of shape (n,)
        Real vectors.
    w : array_like of shape (n,)
        Weights of components, by default 1.

    Returns
    -------
    Tensor
        The distance.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.spatial.distance.{name}([1.0, 2.0], [3.0, 5.0])
    tensor({value})
    """
    return metric


euclidean = _weighted("euclidean", "Euclidean distance", "sqrt(sum(w * (u - v)**2))", "3.60555128")
sqeuclidean = _weighted("sqeuclidean", "Squared distance", "sum(w * (u - v)**2)", "13.")
cityblock = _weighted("cityblock", "Manhattan distance", "sum(w * abs(u - v))", "5.")
chebyshev = _weighted("chebyshev", "Largest difference", "max(abs(u - v))`` where ``w > 0", "3.")
cosine = _weighted("cosine", "Cosine distance", "1 - u @ v / (norm(u) * norm(v))", "0.00294551")
canberra = _weighted(
    "canberra", "Canberra distance", "sum(w * abs(u - v) / (abs(u) + abs(v)))", "0.92857143"
)
braycurtis = _weighted(
    "braycurtis", "Bray-Curtis distance", "sum(w * abs(u - v)) / sum(w * abs(u + v))", "0.45454545"
)
hamming = _weighted(
    "hamming", "Share of components that differ", "sum(w * (u != v)) / sum(w)", "1."
)


def correlation(u: Any, v: Any, w: Any = None, centered: bool = True) -> Any:
    """Cosine distance of deviations from the mean, with gradients in all arrays.

    Parameters
    ----------
    u, v : array_like of shape (n,)
        Real vectors.
    w : array_like of shape (n,)
        Weights of components, by default 1.
    centered : bool
        Whether means are subtracted.

    Returns
    -------
    Tensor
        The distance.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.spatial.distance.correlation([1.0, 2.0, 4.0], [1.0, 3.0, 2.0])
    tensor(0.67267316)
    """
    return _of_vectors("correlation", u, v, w, centered=centered)


def minkowski(u: Any, v: Any, p: Any = 2, w: Any = None) -> Any:
    """Minkowski distance ``sum(w * abs(u - v)**p)**(1 / p)``, with gradients in all arrays.

    Parameters
    ----------
    u, v : array_like of shape (n,)
        Real vectors.
    p : float
        Order, which is positive and may be infinite.
    w : array_like of shape (n,)
        Weights of components, by default 1.

    Returns
    -------
    Tensor
        The distance.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.spatial.distance.minkowski([1.0, 2.0], [3.0, 5.0], 3)
    tensor(3.27106631)
    """
    return _of_vectors("minkowski", u, v, w, p=order(p))


def order(p: Any) -> Any:
    """An order of a Minkowski distance."""
    if isinstance(p, int | float | np.number):
        if not p > 0:
            raise NumgradValueError(f"minkowski: the order p is positive, got {p}")
        return float(p)
    return operand("minkowski", p)


def mahalanobis(u: Any, v: Any, VI: Any) -> Any:
    """Mahalanobis distance ``sqrt((u - v) @ VI @ (u - v))``, with gradients in all arrays.

    Parameters
    ----------
    u, v : array_like of shape (n,)
        Real vectors.
    VI : array_like of shape (n, n)
        Inverse of a covariance.

    Returns
    -------
    Tensor
        The distance.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.spatial.distance.mahalanobis([1.0, 2.0], [3.0, 5.0], [[1.0, 0.5], [0.5, 1.0]])
    tensor(4.35889894)
    """
    return _of_vectors("mahalanobis", u, v, VI=operand("mahalanobis", VI))


def seuclidean(u: Any, v: Any, V: Any) -> Any:
    """Standardized distance ``sqrt(sum((u - v)**2 / V))``, with gradients in all arrays.

    Parameters
    ----------
    u, v : array_like of shape (n,)
        Real vectors.
    V : array_like of shape (n,)
        Variances of components.

    Returns
    -------
    Tensor
        The distance.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.spatial.distance.seuclidean([1.0, 2.0], [3.0, 5.0], [1.0, 9.0])
    tensor(2.23606798)
    """
    return _of_vectors("seuclidean", u, v, V=operand("seuclidean", V))


def jensenshannon(
    p: Any, q: Any, base: float | None = None, *, axis: int = 0, keepdims: bool = False
) -> Any:
    """Square root of the Jensen-Shannon divergence of two distributions, with gradients in both.

    Parameters
    ----------
    p, q : array_like
        Probabilities along an axis, which are divided by their sums.
    base : float
        Base of the logarithm, by default e.
    axis : int
        The axis.
    keepdims : bool
        Whether it stays, with length 1.

    Returns
    -------
    Tensor
        The distance, without the axis.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.spatial.distance.jensenshannon([1.0, 0.0], [0.0, 1.0], 2.0)
    tensor(1.)
    """
    p, q = (np.moveaxis(operand("jensenshannon", x), axis, -1) for x in (p, q))
    result = _jensenshannon(p, q)
    if base is not None:
        result = result / np.sqrt(np.log(base))
    return OPS["expand_dims"](result, axis) if keepdims else result
