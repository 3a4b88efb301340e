"""Images of another size, or seen through a grid of places."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import floor, prod
from operator import index
from typing import Any

import numpy as np

from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn.activation_formulas import hardtanh
from numgrad.nn.applied import Applied, along_axes, applies
from numgrad.nn.average_pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from numgrad.operations.arrangement import moveaxis
from numgrad.operations.choice import where
from numgrad.operations.matmul import matmul
from numgrad.operations.shape import as_operand, broadcast_to, expand_dims, reshape
from numgrad.operations.take import take, take_along_axis
from numgrad.tensors.creation import tensor
from numgrad.tensors.tensor import Tensor

Taps = tuple[tuple[np.ndarray, np.ndarray | None], ...]
"""Places to read for each element and their weights, for one term of the sum after the other."""


_SHARPNESS = -0.75


_SHARPNESS_ANTIALIASED = -0.5
"""The parameter of cubic convolution: https://doi.org/10.1109/TASSP.1981.1163711."""


def _step(n: int, m: int, scale: float | None, align_corners: bool) -> float:
    """Distance in the given axis of neighbours in the new one."""
    if align_corners:
        return (n - 1) / (m - 1) if m > 1 else 0.0
    return 1 / scale if scale is not None and scale > 0 else n / m


def _centers(n: int, m: int, scale: float | None, align_corners: bool) -> np.ndarray:
    step = _step(n, m, scale, align_corners)
    places = np.arange(m)
    return places * step if align_corners else (places + 0.5) * step - 0.5


@lru_cache(256)
def nearest_taps(n: int, m: int, scale: float | None, exact: bool) -> Taps:
    """The element that is nearest, or the one before."""
    step = _step(n, m, scale, False)
    at = (np.arange(m) + (0.5 if exact else 0.0)) * step
    floors = np.floor(at.astype(np.float32))  # so that what rounding leaves below a number counts
    return ((np.minimum(floors, n - 1).astype(np.int64), None),)


@lru_cache(256)
def linear_taps(n: int, m: int, scale: float | None, align_corners: bool) -> Taps:
    """Two neighbours, by their distances."""
    at = np.maximum(_centers(n, m, scale, align_corners), 0.0)
    low = np.minimum(at.astype(np.int64), n - 1)
    share = at - low
    return ((low, 1 - share), (np.minimum(low + 1, n - 1), share))


def _inner(x: Any, a: float) -> Any:
    """Weight of a neighbour at a distance ``x`` up to 1."""
    return ((a + 2) * x - (a + 3)) * x * x + 1


def _outer(x: Any, a: float) -> Any:
    """Weight of a neighbour at a distance ``x`` from 1 to 2."""
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


def cubic_weights(t: Any) -> tuple[Any, ...]:
    """Weights of four neighbours of a place ``t`` behind the second of them."""
    a = _SHARPNESS
    return _outer(t + 1, a), _inner(t, a), _inner(1 - t, a), _outer(2 - t, a)


@lru_cache(256)
def cubic_taps(n: int, m: int, scale: float | None, align_corners: bool) -> Taps:
    """Four neighbours, those outside replaced by the ends."""
    at = _centers(n, m, scale, align_corners)
    low = np.floor(at)
    return tuple(
        (np.clip(low + (k - 1), 0, n - 1).astype(np.int64), weight)
        for k, weight in enumerate(cubic_weights(at - low))
    )


@lru_cache(64)
def antialiased_weights(
    n: int, m: int, scale: float | None, align_corners: bool, mode: str
) -> np.ndarray:
    """A matrix (new, given) whose rows average over what a new element covers."""
    step = _step(n, m, scale, align_corners)
    stretch = max(step, 1.0)
    support = (1.0 if mode == "linear" else 2.0) * stretch
    matrix = np.zeros((m, n))
    for k in range(m):
        center = step * (k + 0.5)
        low = max(floor(center - support + 0.5), 0)
        high = min(floor(center + support + 0.5), n)
        far = np.abs((np.arange(low, high) - center + 0.5) / stretch)
        if mode == "linear":
            row = np.maximum(1 - far, 0)
        else:
            a = _SHARPNESS_ANTIALIASED
            row = np.where(far < 1, _inner(far, a), np.where(far < 2, _outer(far, a), 0))
        matrix[k, low:high] = row / row.sum()
    return matrix


MODES = {
    "nearest": None, "nearest-exact": None, "area": None, "linear": 1, "bilinear": 2, "bicubic": 2,
    "trilinear": 3,
}  # fmt: skip
"""The modes, and how many axes each is for."""


def check_mode(name: str, mode: str, align_corners: bool | None) -> None:
    """Raise unless the mode exists and takes ``align_corners`` where that is given."""
    if mode not in MODES:
        raise NumgradValueError(f"{name}: mode is {mode!r}; it must be one of {tuple(MODES)}")
    if align_corners is not None and MODES[mode] is None:
        takes = tuple(m for m, rank in MODES.items() if rank)
        raise NumgradValueError(
            f"{name}: mode {mode!r} takes no align_corners, those that do are {takes}; leave it out"
        )


def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Sequences, images or volumes of another size.

    Parameters
    ----------
    input
        Of shape (N, C, length), (N, C, H, W) or (N, C, D, H, W).
    size
        Lengths of the axes after N and C, or one for all.
    scale_factor
        What these lengths are multiplied by, and rounded down, instead of ``size``.
    mode
        ``"nearest"``, ``"nearest-exact"`` or ``"area"`` (means of what an element covers) for any,
        ``"linear"`` for sequences, ``"bilinear"`` or ``"bicubic"`` for images, ``"trilinear"`` for
        volumes.
    align_corners
        Whether the centers of the elements at the corners stay where they are, rather than the
        corners themselves; False if left out.
    recompute_scale_factor
        Whether places follow from the lengths, rounded as they are, rather than from
        ``scale_factor``.
    antialias
        Whether elements of a smaller image average over what they cover; with ``"bilinear"`` and
        ``"bicubic"``.

    Returns
    -------
    Tensor
        With the axes N and C of the input.

    Raises
    ------
    NumgradTypeError
        If the dtype is not floating and elements are averaged.
    NumgradValueError
        If options do not fit each other or the shape.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> ng.nn.functional.interpolate(x, scale_factor=2)
    tensor([[[[1., 1., 2., 2.],
              [1., 1., 2., 2.],
              [3., 3., 4., 4.],
              [3., 3., 4., 4.]]]])
    >>> ng.nn.functional.interpolate(x, size=(1, 3), mode="bilinear", align_corners=True)
    tensor([[[[1. , 1.5, 2. ]]]])
    """
    name = "interpolate"
    x = as_operand(input)
    rank = len(x.shape) - 2
    check_mode(name, mode, align_corners)
    if rank not in (1, 2, 3) or MODES[mode] not in (None, rank):
        raise NumgradValueError(
            f"{name}: mode {mode!r} for an input of shape {tuple(x.shape)}; inputs are (N, C, "
            "length) for 'linear', (N, C, H, W) for 'bilinear' and 'bicubic', (N, C, D, H, W) for "
            "'trilinear', any of these for the others"
        )
    if mode not in ("nearest", "nearest-exact") and x.dtype.kind not in "fc":
        raise NumgradTypeError(
            f"{name}: mode {mode!r} needs a floating dtype, got {x.dtype}; convert it with astype"
        )
    if antialias and mode not in ("bilinear", "bicubic"):
        raise NumgradValueError(
            f"{name}: antialias=True is for the modes 'bilinear' and 'bicubic', got {mode!r}"
        )
    sizes = [index(n) for n in x.shape[2:]]
    lengths, factors = _lengths(name, sizes, size, scale_factor)
    if 0 in sizes:
        raise NumgradValueError(
            f"{name}: an input of shape {tuple(x.shape)} has nothing to interpolate"
        )
    if recompute_scale_factor:
        if scale_factor is None:
            raise NumgradValueError(
                f"{name}: recompute_scale_factor=True with a size; leave it out, or give "
                "scale_factor"
            )
        factors = (None,) * rank
    if mode == "area":
        pool = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[rank - 1]
        return pool(x, lengths)
    for k in range(rank - 1, -1, -1):
        x = _resized(x, k + 2, lengths[k], factors[k], mode, bool(align_corners), antialias)
    return x


def _lengths(
    name: str, sizes: list[int], size: Any, scale_factor: Any
) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """The lengths wanted, and the factors they come from."""
    rank = len(sizes)
    if (size is None) == (scale_factor is None):
        raise NumgradValueError(f"{name}: takes a size or a scale_factor, one of them")
    if size is not None:
        return along_axes(name, "size", size, rank, 1), (None,) * rank
    factors = factors_of(name, scale_factor, rank)
    lengths = tuple(floor(n * f) for n, f in zip(sizes, factors, strict=True))
    if not 1 <= min(lengths) <= max(lengths) < 2**48:
        what = "leaves nothing" if min(lengths) < 1 else "makes more than memory has"
        raise NumgradValueError(f"{name}: scale_factor {scale_factor} {what} of {tuple(sizes)}")
    return lengths, factors


def factors_of(name: str, scale_factor: Any, rank: int) -> tuple[float, ...]:
    """A factor for each axis."""
    several = isinstance(scale_factor, tuple | list)
    entries = tuple(scale_factor) if several else (scale_factor,) * rank
    try:
        factors = tuple(float(f) for f in entries)
    except (TypeError, ValueError):
        raise NumgradTypeError(
            f"{name}: scale_factor is a number or a tuple of {rank}, got {scale_factor!r}"
        ) from None
    if len(factors) != rank or not all(0 < f < float("inf") for f in factors):
        raise NumgradValueError(
            f"{name}: scale_factor is a positive number or a tuple of {rank}, got {scale_factor!r}"
        )
    return factors


def _resized(
    x: Any, axis: int, m: int, factor: float | None, mode: str, align: bool, antialias: bool
) -> Any:
    """``x`` with ``m`` elements along one axis."""
    n = index(x.shape[axis])
    if antialias:
        kind = "linear" if mode == "bilinear" else "cubic"
        matrix = antialiased_weights(n, m, factor, align, kind).astype(x.dtype)
        return moveaxis(
            matmul(moveaxis(x, source=axis, destination=-1), tensor(matrix.T)),
            source=-1,
            destination=axis,
        )
    if mode.startswith("nearest"):
        taps = nearest_taps(n, m, factor, mode == "nearest-exact")
    elif mode == "bicubic":
        taps = cubic_taps(n, m, factor, align)
    else:
        taps = linear_taps(n, m, factor, align)
    total = None
    for places, weights in taps:
        values = take(x, tensor(places), axis=axis)
        if weights is not None:
            shape = (m, *(1,) * (len(x.shape) - axis - 1))
            values = values * reshape(tensor(weights.astype(x.dtype)), shape)
        total = values if total is None else total + values
    return total


def upsample(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """``interpolate`` under its older name; arguments as there.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.upsample(ng.ones((1, 1, 3)), 5).shape
    (1, 1, 5)
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Tensor:
    """``interpolate`` with ``mode="nearest"``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.upsample_nearest(ng.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Tensor:
    """``interpolate`` with ``mode="bilinear"`` and ``align_corners=True``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.upsample_bilinear(ng.tensor([[[[1.0, 3.0]]]]), size=(1, 3))
    tensor([[[[1., 2., 3.]]]])
    """
    return interpolate(input, size, scale_factor, "bilinear", True)


_MODES = ("bilinear", "nearest", "bicubic")


_PADDINGS = ("zeros", "border", "reflection")


def affine_grid(theta: Any, size: Any, align_corners: bool | None = None) -> Tensor:
    """The grid that ``grid_sample`` sees an affinely transformed image through.

    Parameters
    ----------
    theta
        Matrices (N, 2, 3) for images, or (N, 3, 4) for volumes.
    size
        The shape of the result of ``grid_sample``: (N, C, H, W) or (N, C, D, H, W).
    align_corners
        Whether -1 and 1 are the centers of the elements at the corners, rather than the corners.

    Returns
    -------
    Tensor
        Of shape (N, H, W, 2) or (N, D, H, W, 3).

    Raises
    ------
    NumgradValueError
        If the shapes do not fit.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.affine_grid([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]], (1, 1, 1, 2))
    tensor([[[[-0.5,  0. ],
              [ 0.5,  0. ]]]])
    """
    name = "affine_grid"
    theta = as_operand(theta)
    lengths = tuple(index(n) for n in size)
    rank = len(lengths) - 2
    if theta.dtype.kind != "f":
        raise NumgradTypeError(f"{name}: theta must be real and floating, got {theta.dtype}")
    if rank not in (2, 3) or tuple(theta.shape) != (lengths[0], rank, rank + 1):
        raise NumgradValueError(
            f"{name}: theta of shape {tuple(theta.shape)} for a size {lengths}; it needs shape "
            "(N, 2, 3) for a size (N, C, H, W), or (N, 3, 4) for (N, C, D, H, W)"
        )
    axes = []
    for n in lengths[2:]:
        places = np.linspace(-1, 1, n) if n > 1 else np.zeros(n)
        axes.append(places if align_corners else places * ((n - 1) / max(n, 1)))
    mesh = np.meshgrid(*axes, indexing="ij")[::-1]
    base = np.stack([*mesh, np.ones(lengths[2:])], axis=-1).reshape(-1, rank + 1)
    grid = matmul(tensor(base.astype(theta.dtype)), theta.swapaxes(1, 2))
    return reshape(grid, (lengths[0], *lengths[2:], rank))


def grid_sample(
    input: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Values of images at the places of a grid, interpolated.

    Parameters
    ----------
    input
        Of shape (N, C, H, W) or (N, C, D, H, W), real and floating.
    grid
        Places, (N, rows, columns, 2) or (N, slices, rows, columns, 3): the last axis has the place
        along W first. -1 and 1 are the ends of an image.
    mode
        ``"bilinear"``, ``"nearest"``, or for images ``"bicubic"``.
    padding_mode
        What lies outside: ``"zeros"``, the ``"border"``, or its ``"reflection"``.
    align_corners
        Whether -1 and 1 are the centers of the elements at the corners, rather than the corners.

    Returns
    -------
    Tensor
        Of shape (N, C, rows, columns) or (N, C, slices, rows, columns).

    Raises
    ------
    NumgradTypeError
        If dtypes are not real and floating, and the same.
    NumgradValueError
        If shapes do not fit, or there is no such mode.

    References
    ----------
    M. Jaderberg et al., "Spatial transformer networks", NeurIPS 2015.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> ng.nn.functional.grid_sample(x, [[[[0.0, 0.0], [0.5, -0.5]]]])
    tensor([[[[2.5, 2. ]]]])
    """
    name = "grid_sample"
    x, grid = as_operand(input), as_operand(grid)
    rank = len(x.shape) - 2
    if x.dtype.kind != "f" or x.dtype != grid.dtype:
        raise NumgradTypeError(
            f"{name}: input and grid need one real floating dtype, got {x.dtype} and {grid.dtype}"
        )
    fits = len(x.shape) == len(grid.shape) and x.shape[0] == grid.shape[0]
    if rank not in (2, 3) or not fits or grid.shape[-1] != rank or 0 in x.shape[1:]:
        raise NumgradValueError(
            f"{name}: an input of shape {tuple(x.shape)} and a grid of shape {tuple(grid.shape)} "
            "do not fit; they need (N, C, H, W) and (N, rows, columns, 2), or (N, C, D, H, W) and "
            "(N, slices, rows, columns, 3)"
        )
    if mode not in _MODES or (mode == "bicubic" and rank == 3):
        raise NumgradValueError(
            f"{name}: mode {mode!r} is not available; use one of {_MODES}, the last for images only"
        )
    if padding_mode not in _PADDINGS:
        raise NumgradValueError(
            f"{name}: padding_mode is {padding_mode!r}; it must be one of {_PADDINGS}"
        )
    samples, channels, *lengths = x.shape
    lengths = [index(n) for n in lengths]
    shape = tuple(grid.shape[1:-1])
    align = bool(align_corners)
    taps = []
    for axis, n in enumerate(lengths):
        at = reshape(grid[..., rank - 1 - axis], (samples, -1))
        at = (at + 1) * ((n - 1) / 2) if align else ((at + 1) * n - 1) / 2
        taps.append(_taps(at, n, mode, padding_mode, align))
    flat = reshape(x, (samples, channels, prod(lengths)))
    total = None
    for combination in product(*taps):
        place, weight = None, None
        for n, (k, w) in zip(lengths, combination, strict=True):
            place = k if place is None else place * n + k
            weight = w if weight is None else weight * w
        assert place is not None
        places = broadcast_to(expand_dims(place, 1), (samples, channels, place.shape[1]))
        values = take_along_axis(flat, places, axis=2) * expand_dims(weight, 1)
        total = values if total is None else total + values
    return reshape(total, (samples, channels, *shape))


def _taps(at: Any, n: int, mode: str, padding: str, align: bool) -> list[tuple[Any, Any]]:
    """Elements of an axis to read, and their weights."""
    if mode == "bicubic":
        low = np.floor(at)
        return [
            _tap(_inside(low.detach() + (k - 1), n, padding, align), weight, n, padding)
            for k, weight in enumerate(cubic_weights(at - low.detach()))
        ]
    at = _inside(at, n, padding, align)
    if mode == "nearest":
        # the derivative in the place is zero, rather than none
        weight = 1 + where(np.isfinite(at), at, 0.0) * 0 if at.requires_grad else at.dtype.type(1)
        return [_tap(np.round(at.detach()), weight, n, padding)]
    low = np.floor(at.detach())
    return [_tap(low, 1 - (at - low), n, padding), _tap(low + 1, at - low, n, padding)]


def _tap(place: Any, weight: Any, n: int, padding: str) -> tuple[Any, Any]:
    inside = np.logical_and(place >= 0, place <= n - 1)
    position = where(inside, place, 0.0).astype(np.int64)
    # border and reflection lie inside, but for a neighbour whose weight is 0
    return position, where(inside, weight, 0.0) if padding == "zeros" else weight * inside


def _inside(at: Any, n: int, padding: str, align: bool) -> Any:
    """Places outside of an axis moved inside; there, gradients are those of PyTorch."""
    if padding == "zeros":
        return at
    if padding == "reflection":
        low, high = (0.0, n - 1.0) if align else (-0.5, n - 0.5)
        if high == low:
            at = at * 0
        else:
            far = np.abs(at - low)
            beyond = np.fmod(far, high - low)
            odd = np.floor(far.detach() / (high - low)) % 2 == 1
            at = where(odd, high - beyond, beyond + low)
    return hardtanh(at, 0.0, n - 1.0)


class _Upsample(Applied):
    """Base of layers that resize."""

    def _check_options(self, options: dict[str, Any]) -> None:
        name = type(self).__name__
        mode = options.get("mode", "nearest")
        check_mode(name, mode, options.get("align_corners"))
        factor = options["scale_factor"]
        if factor is not None:
            several = isinstance(factor, tuple | list)
            factors = factors_of(name, factor, len(factor) if several else 1)
            options["scale_factor"] = factors if several else factors[0]

    def extra_repr(self) -> str:
        """The size or the factor, and the mode."""
        named = "size" if self.scale_factor is None else "scale_factor"
        return f"{named}={getattr(self, named)}, mode={self.mode!r}"


@applies(interpolate)
class Upsample(_Upsample):
    """Sequences, images or volumes of another size.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.Upsample(scale_factor=2, mode="bilinear")
    >>> layer
    Upsample(scale_factor=2.0, mode='bilinear')
    >>> layer(ng.ones((1, 3, 4, 5))).shape
    (1, 3, 8, 10)
    """

    size: Any = None
    scale_factor: Any = None
    mode: str = "nearest"
    align_corners: bool | None = None
    recompute_scale_factor: bool | None = None


@applies(upsample_nearest, like=interpolate)
class UpsamplingNearest2d(_Upsample):
    """``Upsample`` with ``mode="nearest"``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.UpsamplingNearest2d(scale_factor=2)(ng.ones((1, 3, 4, 5))).shape
    (1, 3, 8, 10)
    """

    mode = "nearest"
    size: Any = None
    scale_factor: Any = None


@applies(upsample_bilinear, like=interpolate)
class UpsamplingBilinear2d(_Upsample):
    """``Upsample`` with ``mode="bilinear"`` and ``align_corners=True``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.UpsamplingBilinear2d(size=(8, 9))(ng.ones((1, 3, 4, 5))).shape
    (1, 3, 8, 9)
    """

    mode = "bilinear"
    size: Any = None
    scale_factor: Any = None
