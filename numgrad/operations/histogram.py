"""Histograms. Counts have a gradient in the weights; where edges are is taken as constant."""

import builtins
from math import prod
from typing import Any

import numpy as np

from numgrad.core.declare import OPS, Meta, composite, ones, primitive, state, zeros
from numgrad.errors import NumgradError, NumgradTypeError, NumgradValueError
from numgrad.operations.choice import where
from numgrad.operations.cumulative import diff
from numgrad.operations.index import getitem
from numgrad.operations.join import concat, stack
from numgrad.operations.reduce import sum
from numgrad.operations.shape import as_operand, reshape
from numgrad.operations.shared_rules import no_shape
from numgrad.operations.take import take

_GIVE = "give bins as a number or as edges"


def _ours(operation: str, function: Any, *args: Any, **params: Any) -> Any:
    try:
        return function(*args, **params)
    except NumgradError:
        raise
    except (TypeError, ValueError) as error:
        kind = NumgradTypeError if isinstance(error, TypeError) else NumgradValueError
        raise kind(f"{operation}: {error}") from None


def _constant(operation: str, value: Any, what: str = "bins") -> Any:
    """Numbers that are parameters, with NumPy's names and tuples; edges that a trace has stay."""
    if hasattr(value, "shape"):
        known: Any = state.ground.numbers(value)
        if known is None:
            if what == "bins" and len(value.shape):
                return value
            whole: Any = value if hasattr(value, "_array") else state.ground.lift(value)
            return getattr(whole, "_array", whole).refuse(
                f"{operation} with {what}", f"give {what} as Python numbers, or a static argument"
            )
        value = known.tolist()
    if isinstance(value, list | tuple):
        return tuple([_constant(operation, v, what) for v in value])
    return value


def _is_traced(bins: Any) -> bool:
    """Whether edges are operands, as only a call of the compiled function has their numbers."""
    return any(map(_is_traced, bins)) if isinstance(bins, tuple) else hasattr(bins, "shape")


def _edges_operand(operation: str, bins: Any) -> Any:
    edges = as_operand(list(bins) if isinstance(bins, tuple) else bins)
    if len(edges.shape) != 1 or edges.dtype.kind == "c":
        raise NumgradValueError(
            f"{operation}: edges are real numbers along one axis, got shape {tuple(edges.shape)} "
            f"of dtype {edges.dtype}"
        )
    return edges


@primitive(internal=True, method=False, differentiable=False)
def given_edges(edges):
    """Edges, which have no gradient."""
    return edges.copy()


given_edges.shape(lambda edges: edges)


def _sums_at(bin_indices: Any, length: Any, dtype: Any, weights: Any) -> Any:
    """Counts, or sums of weights, of what is at each of ``length`` places; -1 is none of them."""
    source = (
        ones(bin_indices.shape, dtype) if weights is None else reshape(weights, bin_indices.shape)
    )
    bin_indices = where(bin_indices < 0, length, bin_indices)
    total = OPS["index_add"](zeros((length + 1,), dtype), bin_indices, source, axis=0)
    return getitem(total, slice(None, -1))


def _length(bins: Any) -> int | None:
    """Number of intervals, None if it depends on what is counted."""
    if isinstance(bins, str):
        return None
    return int(bins) if np.ndim(bins) == 0 else len(bins) - 1


def _padded(g: Any) -> Any:
    """``g`` with one axis, and a zero behind it for what is in no interval."""
    flat = reshape(g, (prod(g.shape),))
    return concat(flat, zeros((1,), g.dtype), axis=0)


def _places(x: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Number of the interval of each element; -1 outside."""
    n = len(edges) - 1
    if (edges[:-1] > edges[1:]).any():
        raise NumgradValueError("histogram: edges must increase monotonically")
    bin_indices = np.searchsorted(edges, x, side="right") - 1
    bin_indices[x == edges[-1]] = n - 1  # the last interval has both ends
    bin_indices[~((x >= edges[0]) & (x <= edges[-1]))] = -1
    return bin_indices


# -------------------------------------------------------------------------------------- one axis


@primitive(internal=True, method=False, differentiable=False)
def histogram_edges(x, weights=None, *, bins, range):
    """Edges of the intervals."""
    return _ours("histogram", np.histogram_bin_edges, x, bins, range, weights)


@histogram_edges.shape
def _edges_result(x, weights, *, bins, range):
    n: Any = _length(bins)
    if n is None:
        return no_shape("histogram", _GIVE)()
    dtype = np.result_type(np.float64 if np.ndim(bins) == 0 else np.asarray(bins).dtype)
    if np.ndim(bins) == 0 and x.dtype == np.float32:
        dtype = np.dtype(np.float32)
    return Meta((n + 1,), dtype)


@primitive(internal=True, method=False, differentiable=False)
def histogram_places(x, edges):
    """Number of the interval in which each element of the flattened operand is."""
    return _places(x.reshape(-1), edges)


histogram_places.shape(lambda x, edges: Meta((prod(x.shape),), np.dtype(np.int64)))


@primitive(internal=True, method=False, linear=True)
def histogram_sums(x, weights=None, *, bins, range):
    """How many elements are in each interval, or the sum of their weights."""
    return _ours("histogram", np.histogram, x, bins, range, weights=weights)[0]


@histogram_sums.shape
def _sums_result(x, weights, *, bins, range):
    n = _length(bins)
    if n is None:
        return no_shape("histogram", _GIVE)()
    return Meta((n,), np.dtype(np.int64) if weights is None else weights.dtype)


def _sums_vjp(g, x, meta_weights, bins, range):
    bin_indices = histogram_places(x, histogram_edges(x, bins=bins, range=range))
    return reshape(take(_padded(g), bin_indices), meta_weights.shape)


histogram_sums.no_derivative("x")
histogram_sums.vjp(weights=_sums_vjp)


def _counted(x: Any) -> Any:
    return x.astype(np.uint8) if x.dtype.kind == "b" else x


def _weights(operation: str, x: Any, weights: Any) -> Any:
    if weights is None:
        return None
    weights = as_operand(weights)
    if tuple(weights.shape) != tuple(x.shape):
        raise NumgradValueError(
            f"{operation}: weights of shape {tuple(weights.shape)} for elements of shape "
            f"{tuple(x.shape)}; they must be the same"
        )
    return weights


@composite(ref=np.histogram, method=False, smooth=True)
def histogram(x, bins=10, range=None, density=None, weights=None):
    """How many elements lie in intervals, or the sum of their weights, which have a gradient.

    Edges are constants to gradients, also where they follow from the elements.

    Parameters
    ----------
    bins : int, sequence or str
        Number of intervals of equal length, their edges, or NumPy's name of a rule.
    range : pair of floats
        First and last edge, by default those of the elements.
    density : bool
        Whether to divide so that the integral is 1.
    weights : array_like
        Of the shape of ``x``.

    Returns
    -------
    tuple of Tensors
        Counts, and edges.

    Examples
    --------
    >>> ng.histogram([1.0, 2.0, 2.5, 4.0], bins=3)
    (tensor([1, 2, 1]), tensor([1., 2., 3., 4.]))
    """
    x = _counted(as_operand(x))
    weights = _weights("histogram", x, weights)
    bins, range = _constant("histogram", bins), _constant("histogram", range, "range")
    if _is_traced(bins):
        edges = _edges_operand("histogram", bins)
        dtype = np.dtype(np.int64) if weights is None else weights.dtype
        sums = _sums_at(histogram_places(x, edges), edges.shape[0] - 1, dtype, weights)
        edges = given_edges(edges)
    else:
        sums = histogram_sums(x, weights, bins=bins, range=range)
        edges = histogram_edges(x, weights, bins=bins, range=range)
    if density:
        sums = sums * 1.0
        sums = sums / diff(edges) / sum(sums)
    return sums, edges


@composite(ref="numpy.histogram_bin_edges", method=False, differentiable=False)
def histogram_bin_edges(x, bins=10, range=None, weights=None):
    """Edges of the intervals of ``histogram``, without gradient.

    Parameters
    ----------
    bins : int, sequence or str
        Number of intervals of equal length, their edges, or NumPy's name of a rule.
    range : pair of floats
        First and last edge, by default those of the elements.
    weights : array_like
        Of the shape of ``x``.

    Returns
    -------
    Tensor
        With one axis.

    Examples
    --------
    >>> ng.histogram_bin_edges([1.0, 2.0, 4.0], bins=3)
    tensor([1., 2., 3., 4.])
    """
    x = _counted(as_operand(x))
    weights = _weights("histogram_bin_edges", x, weights)
    bins = _constant("histogram_bin_edges", bins)
    range = _constant("histogram_bin_edges", range, "range")
    if _is_traced(bins):
        return given_edges(_edges_operand("histogram_bin_edges", bins))
    return histogram_edges(x, weights, bins=bins, range=range)


# ---------------------------------------------------------------------------------- several axes


@primitive(internal=True, method=False, linear=True)
def histogramdd_sums(x, weights=None, *, bins, range):
    """How many points are in each box, or the sum of their weights."""
    return _ours("histogramdd", np.histogramdd, x, bins, range, weights=weights)[0]


@primitive(internal=True, method=False, differentiable=False, outputs=True)
def histogramdd_edges(x, *, bins, range):
    """Edges along each axis."""
    return tuple(_ours("histogramdd", np.histogramdd, x, bins, range)[1])


@primitive(internal=True, method=False, differentiable=False)
def histogramdd_places(x, *, bins, range):
    """Number, in C order, of the box of each point; -1 outside."""
    edges = _ours("histogramdd", np.histogramdd, x, bins, range)[1]
    result, outside = np.zeros(len(x), np.int64), np.zeros(len(x), bool)
    for column, e in zip(x.T, edges, strict=True):
        bin_index = _places(column, e)
        outside |= bin_index < 0
        result = result * (len(e) - 1) + bin_index
    return np.where(outside, -1, result)


def _lengths(x: Any, bins: Any) -> tuple[int, ...]:
    d = x.shape[1]
    return (int(bins),) * d if np.ndim(bins) == 0 else tuple([_length(b) for b in bins])  # pyright: ignore


histogramdd_sums.shape(lambda x, weights, *, bins, range: Meta(_lengths(x, bins), np.dtype(float)))
histogramdd_edges.shape(
    lambda x, *, bins, range: tuple([Meta((n + 1,), np.dtype(float)) for n in _lengths(x, bins)])
)
histogramdd_places.shape(lambda x, *, bins, range: Meta(x.shape[:1], np.dtype(np.int64)))
histogramdd_sums.no_derivative("x")
histogramdd_sums.vjp(
    weights=lambda g, x, bins, range: take(
        _padded(g), histogramdd_places(x, bins=bins, range=range)
    )
)


def _between_edges(sample: Any, bins: Any, range: Any, weights: Any) -> tuple[Any, list[Any]]:
    """Sums in boxes, and their edges, some of which are operands."""
    columns = [getitem(sample, (slice(None), k)) for k in builtins.range(sample.shape[1])]
    if not isinstance(bins, tuple):  # a row of edges for each axis
        bins = tuple([getitem(bins, k) for k in builtins.range(bins.shape[0])])
    if len(bins) != len(columns):
        raise NumgradValueError(f"histogramdd: {len(bins)} bins for {len(columns)} axes")
    edges: list[Any] = []
    result, inside, total = as_operand(0), True, 1
    for k, (x, binning) in enumerate(zip(columns, bins, strict=True)):
        if hasattr(binning, "shape") or isinstance(binning, tuple):
            e = given_edges(_edges_operand("histogramdd", binning))
        else:
            e = histogram_edges(x, None, bins=binning, range=None if range is None else range[k])
        edges.append(e.astype(np.float64))
        bin_index = histogram_places(x, edges[-1])
        length = edges[-1].shape[0] - 1
        result, inside, total = (
            bin_index + result * length,
            (bin_index >= 0) & inside,
            total * length,
        )
    sums = _sums_at(where(inside, result, -1), total, np.dtype(np.float64), weights)
    return reshape(sums, tuple([e.shape[0] - 1 for e in edges])), edges


@composite(ref=np.histogramdd, method=False, smooth=True)
def histogramdd(sample, bins=10, range=None, density=None, weights=None):
    """How many points lie in boxes, or the sum of their weights, which have a gradient.

    Parameters
    ----------
    sample : array_like
        A row for each point, or a sequence of coordinates of all points.
    bins : int or sequence
        Number of intervals along all axes, or for each axis a number or edges.
    range : sequence of pairs
        First and last edge for each axis, by default those of the points.
    density : bool
        Whether to divide so that the integral is 1.
    weights : array_like
        One for each point.

    Returns
    -------
    tuple
        Counts, and a list of the edges along each axis.

    Examples
    --------
    >>> points = ng.tensor([[0.0, 0.0], [0.2, 1.0], [1.0, 1.0]])
    >>> counts, edges = ng.histogramdd(points, bins=2)
    >>> counts
    tensor([[1., 1.],
            [0., 1.]])
    """
    listed = not hasattr(sample, "shape")
    sample = as_operand(sample)
    if len(sample.shape) < 2:
        sample = reshape(sample, (-1, 1))
    elif listed:
        sample = sample.T
    if len(sample.shape) != 2:
        raise NumgradValueError(
            f"histogramdd: needs a row for each point, got shape {tuple(sample.shape)}"
        )
    if weights is not None:
        weights = as_operand(weights)
        if tuple(weights.shape) != tuple(sample.shape[:1]):
            raise NumgradValueError(
                f"histogramdd: weights of shape {tuple(weights.shape)} for {sample.shape[0]} points"
            )
        weights = weights.astype(np.float64)
    bins, range = _constant("histogramdd", bins), _constant("histogramdd", range, "range")
    if _is_traced(bins):
        sums, edges = _between_edges(sample, bins, range, weights)
    else:
        sums = histogramdd_sums(sample, weights, bins=bins, range=range)
        edges = list(histogramdd_edges(sample, bins=bins, range=range))
    if density:
        total = sum(sums)
        for k, e in enumerate(edges):
            sums = sums / reshape(diff(e), (-1, *(1,) * (len(edges) - k - 1)))
        sums = sums / total
    return sums, edges


@composite(ref=np.histogram2d, method=False, smooth=True)
def histogram2d(x, y, bins=10, range=None, density=None, weights=None):
    """How many points of a plane lie in rectangles, or the sum of their weights.

    Parameters
    ----------
    x
        First coordinates.
    y
        Second coordinates.
    bins, range, density, weights
        As in ``histogramdd``; edges that are one sequence are those of both axes.

    Returns
    -------
    tuple of Tensors
        Counts, edges along the first axis, edges along the second.

    Examples
    --------
    >>> ng.histogram2d([0.0, 0.2, 1.0], [0.0, 1.0, 1.0], bins=2)[0]
    tensor([[1., 1.],
            [0., 1.]])
    """
    x, y = as_operand(x), as_operand(y)
    if len(x.shape) != 1 or tuple(x.shape) != tuple(y.shape):
        raise NumgradValueError(
            f"histogram2d: coordinates of shapes {tuple(x.shape)} and {tuple(y.shape)}; they have "
            "one axis and the same length"
        )
    bins = _constant("histogram2d", bins)
    several = isinstance(bins, tuple) or hasattr(bins, "shape")
    if several and len(bins) not in (1, 2):
        bins = (bins, bins)
    sums, edges = histogramdd(stack(x, y, axis=1), bins, range, density, weights)
    return sums, edges[0], edges[1]
