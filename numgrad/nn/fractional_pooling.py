"""Pooling by largest elements of windows at random positions (Graham, 2014)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.errors import NumgradValueError
from numgrad.nn.applied import Applied, along_axes, applies
from numgrad.nn.pooling_windows import as_image
from numgrad.operations.join import concat
from numgrad.operations.reduce import argmax
from numgrad.operations.shape import reshape
from numgrad.operations.take import take_along_axis
from numgrad.random.generator import Generator, generator_of
from numgrad.tensors.creation import asarray, tensor


def _lengths(
    name: str, x: Any, rank: int, kernel: Sequence[int], output_size: Any, output_ratio: Any
) -> tuple[int, ...]:
    if (output_size is None) == (output_ratio is None):
        raise NumgradValueError(f"{name}: give one of output_size and output_ratio")
    lengths = x.shape[-rank:]
    if output_size is None:
        ratios = output_ratio if isinstance(output_ratio, Sequence) else (output_ratio,) * rank
        if len(ratios) != rank or not all(0 < r < 1 for r in ratios):
            raise NumgradValueError(
                f"{name}: output_ratio is a number between 0 and 1, or {rank}; got {output_ratio}"
            )
        output_size = [int(int(n) * r) for n, r in zip(lengths, ratios, strict=True)]
    counts = along_axes(name, "output_size", output_size, rank, 0)
    for n, k, out in zip(lengths, kernel, counts, strict=True):
        if out + k - 1 > n:
            raise NumgradValueError(
                f"{name}: {out} windows of length {k} are too large relative to input length {n}: "
                "they do not begin at different places"
            )
    return counts


def _begins(sample: Any, length: Any, kernel: int, out: int) -> Any:
    """Where windows begin: steps that are one of two neighbours, the last one at the end."""
    sample = sample[..., None]
    last = (0 * sample).astype(np.int64) + (length - kernel)
    if out <= 1:
        return last[..., :out]
    step = (length - kernel) / (out - 1)
    places = (tensor(np.arange(out - 1.0)) + sample) * step
    return concat([places.astype(np.int64) - (sample * step).astype(np.int64), last], axis=-1)


def _pool(
    rank: int, input: Any, kernel_size: Any, output_size: Any, output_ratio: Any,
    return_indices: bool, samples: Any,
) -> Any:  # fmt: skip
    name = f"fractional_max_pool{rank}d"
    x = as_image(name, rank, input)
    kernel = along_axes(name, "kernel_size", kernel_size, rank, 1)
    output = _lengths(name, x, rank, kernel, output_size, output_ratio)
    single = len(x.shape) == rank + 1
    x = x[None] if single else x
    count, channels, lengths = x.shape[0], x.shape[1], x.shape[2:]
    if samples is None:
        samples = Generator(generator_of(name, None)).random((count, channels, rank))
    drawn = asarray(samples).detach()
    if drawn.shape != (count, channels, rank):
        raise NumgradValueError(
            f"{name}: Expect _random_samples of shape {(count, channels, rank)}, got {drawn.shape}"
        )
    # the flat place of each element of each window, from the first axis on
    places: Any = 0
    for k, (n, size, out) in enumerate(zip(lengths, kernel, output, strict=True)):
        # samples are in the order x, y, of volumes in that of the axes
        sample = drawn[..., k if rank == 3 else rank - 1 - k]
        along = _begins(sample, n, size, out)[..., None] + tensor(np.arange(size))
        shape = [count, channels, *(1,) * (2 * rank)]
        shape[2 + k], shape[2 + rank + k] = out, size
        places = places * n + reshape(along, shape)
    flat = reshape(x, (count, channels, prod(lengths)))
    table = reshape(places, (count, channels, prod(output) * prod(kernel)))
    windows = reshape(
        take_along_axis(flat, table, axis=2), (count, channels, prod(output), prod(kernel))
    )
    best = argmax(windows, axis=-1, keepdims=True)
    shape = (count, channels, *output)[single:]
    out = reshape(take_along_axis(windows, best, axis=-1), shape)
    if not return_indices:
        return out
    return out, reshape(take_along_axis(reshape(table, windows.shape), best, axis=-1), shape)


def fractional_max_pool2d(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:
    """Largest elements of windows of images that begin at random places.

    Parameters
    ----------
    input
        Images, of shape ``(samples, channels, height, width)``, or without samples.
    kernel_size
        Rows and columns of a window.
    output_size
        How many windows there are along each axis.
    output_ratio
        The same as a part of the lengths, between 0 and 1.
    return_indices
        Whether to return where in the flattened image each element was as well.
    _random_samples
        Numbers from 0 to 1, of shape (samples, channels, axes), that say where windows begin; by
        default they are drawn.

    Returns
    -------
    Tensor or tuple
        The elements, or these and their places.

    Raises
    ------
    NumgradValueError
        If not one of ``output_size`` and ``output_ratio`` is given, or windows do not fit.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.fractional_max_pool2d(ng.ones((2, 3, 8, 8)), 2, output_size=5).shape
    (2, 3, 5, 5)
    """
    return _pool(2, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)


def fractional_max_pool3d(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:
    """Largest elements of windows of volumes that begin at random places.

    Parameters are those of ``fractional_max_pool2d``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.fractional_max_pool3d(ng.ones((1, 4, 4, 4)), 2, output_ratio=0.5).shape
    (1, 2, 2, 2)
    """
    return _pool(3, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)


@applies(fractional_max_pool2d)
class _FractionalMaxPool(Applied):
    """Base of layers that take the largest element of windows at random places."""

    kernel_size: Any
    output_size: Any = None
    output_ratio: Any = None
    return_indices: bool = False
    _random_samples: Any = None


@applies(fractional_max_pool2d)
class FractionalMaxPool2d(_FractionalMaxPool):
    """Largest elements of windows of images that begin at random places.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.FractionalMaxPool2d(3, output_size=(13, 12))(ng.ones((2, 4, 50, 32))).shape
    (2, 4, 13, 12)
    """


@applies(fractional_max_pool3d)
class FractionalMaxPool3d(_FractionalMaxPool):
    """Largest elements of windows of volumes that begin at random places.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.FractionalMaxPool3d(3, output_size=4)(ng.ones((1, 2, 9, 9, 9))).shape
    (1, 2, 4, 4, 4)
    """
