"""Images of another size, with PyTorch's names and arguments."""

from __future__ import annotations

from math import floor
from operator import index
from typing import Any

from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn.convolution.functional import along_axes
from numgrad.nn.interpolation import axis as of_axis
from numgrad.nn.pooling.functional import adaptive_avg_pool1d, adaptive_avg_pool2d
from numgrad.nn.pooling.volume import adaptive_avg_pool3d
from numgrad.operations.arrangement import moveaxis
from numgrad.operations.matmul import matmul
from numgrad.operations.shape import as_operand, reshape
from numgrad.operations.take import take
from numgrad.tensors.creation import tensor
from numgrad.tensors.tensor import Tensor

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
    given = [index(n) for n in x.shape[2:]]
    lengths, factors = _lengths(name, given, size, scale_factor)
    if 0 in given:
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
    name: str, given: list[int], size: Any, scale_factor: Any
) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """The lengths wanted, and the factors they come from."""
    rank = len(given)
    if (size is None) == (scale_factor is None):
        raise NumgradValueError(f"{name}: takes a size or a scale_factor, one of them")
    if size is not None:
        return along_axes(name, "size", size, rank, 1), (None,) * rank
    factors = factors_of(name, scale_factor, rank)
    lengths = tuple(floor(n * f) for n, f in zip(given, factors, strict=True))
    if min(lengths) < 1:
        raise NumgradValueError(
            f"{name}: scale_factor {scale_factor} leaves nothing of lengths {tuple(given)}"
        )
    return lengths, factors


def factors_of(name: str, scale_factor: Any, rank: int) -> tuple[float, ...]:
    """A factor for each axis."""
    several = isinstance(scale_factor, tuple | list)
    found = tuple(scale_factor) if several else (scale_factor,) * rank
    try:
        factors = tuple(float(f) for f in found)
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
        matrix = of_axis.antialiased_weights(n, m, factor, align, kind).astype(x.dtype)
        return moveaxis(
            matmul(moveaxis(x, source=axis, destination=-1), tensor(matrix.T)),
            source=-1,
            destination=axis,
        )
    if mode.startswith("nearest"):
        taps = of_axis.nearest_taps(n, m, factor, mode == "nearest-exact")
    elif mode == "bicubic":
        taps = of_axis.cubic_taps(n, m, factor, align)
    else:
        taps = of_axis.linear_taps(n, m, factor, align)
    total = None
    for places, weights in taps:
        part = take(x, tensor(places), axis=axis)
        if weights is not None:
            shape = (m, *(1,) * (len(x.shape) - axis - 1))
            part = part * reshape(tensor(weights.astype(x.dtype)), shape)
        total = part if total is None else total + part
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
