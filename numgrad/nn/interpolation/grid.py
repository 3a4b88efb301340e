"""Images seen through a grid of places, with PyTorch's names and arguments."""

from __future__ import annotations

from itertools import product
from math import prod
from operator import index
from typing import Any

import numpy as np

from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn.activation.operation import hardtanh
from numgrad.nn.interpolation.axis import cubic_weights
from numgrad.operations.choice import where
from numgrad.operations.matmul import matmul
from numgrad.operations.shape import as_operand, broadcast_to, expand_dims, reshape
from numgrad.operations.take import take_along_axis
from numgrad.tensors.creation import tensor
from numgrad.tensors.tensor import Tensor

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
    """What images have at the places of a grid, interpolated.

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
    for chosen in product(*taps):
        place, weight = None, None
        for n, (k, w) in zip(lengths, chosen, strict=True):
            place = k if place is None else place * n + k
            weight = w if weight is None else weight * w
        assert place is not None
        places = broadcast_to(expand_dims(place, 1), (samples, channels, place.shape[1]))
        part = take_along_axis(flat, places, axis=2) * expand_dims(weight, 1)
        total = part if total is None else total + part
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
        weight = 1 + where(np.isfinite(at), at, 0.0) * 0 if at.requires_grad else 1.0
        return [_tap(np.round(at.detach()), weight, n, padding)]
    low = np.floor(at.detach())
    return [_tap(low, 1 - (at - low), n, padding), _tap(low + 1, at - low, n, padding)]


def _tap(place: Any, weight: Any, n: int, padding: str) -> tuple[Any, Any]:
    seen = np.logical_and(place >= 0, place <= n - 1)
    found = where(seen, place, 0.0).astype(np.int64)
    # border and reflection lie inside, but for a neighbour whose weight is 0
    return found, where(seen, weight, 0.0) if padding == "zeros" else weight * seen


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
