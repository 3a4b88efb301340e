"""Pooling with PyTorch's names and arguments.

Shapes: input ``(N, C, *positions)``, or ``(C, *positions)`` for one sample.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from numgrad.errors import NumgradValueError
from numgrad.nn.convolution.functional import along_axes
from numgrad.nn.pooling import operation as ops
from numgrad.operations.shape import as_index, as_operand
from numgrad.tensors.tensor import Tensor


def as_image(operation: str, rank: int, x: Any) -> Any:
    """``x`` as an operand, with channels and ``rank`` axes of positions."""
    x = as_operand(x)
    if len(x.shape) not in (rank + 1, rank + 2):
        raise NumgradValueError(
            f"{operation}: needs an input with {rank + 2} axes (samples, channels, positions), or "
            f"{rank + 1} for one sample; got shape {tuple(x.shape)}"
        )
    return x


def windows_along(
    operation: str, rank: int, kernel_size: Any, stride: Any, padding: Any
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Kernel, stride and padding along each axis."""
    kernel = along_axes(operation, "kernel_size", kernel_size, rank, 1)
    given = kernel if stride is None else along_axes(operation, "stride", stride, rank, 1)
    return kernel, given, along_axes(operation, "padding", padding, rank, 0)


def spans(kernel: tuple[int, ...], dilation: tuple[int, ...]) -> tuple[int, ...]:
    """How far a window reaches along each axis."""
    return tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))


def check_padding(operation: str, padding: tuple[int, ...], reach: tuple[int, ...]) -> None:
    """Raise unless each window, half of it outside at most, has an element of the input."""
    if any(2 * p > r for p, r in zip(padding, reach, strict=True)):
        raise NumgradValueError(
            f"{operation}: padding {padding} is more than half of what a window spans, {reach}; "
            "use less padding or a larger window"
        )


def _max_pool(
    rank: int,
    x: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    name = f"max_pool{rank}d"
    x = as_image(name, rank, x)
    kernel, stride, padding = windows_along(name, rank, kernel_size, stride, padding)
    dilation = along_axes(name, "dilation", dilation, rank, 1)
    check_padding(name, padding, spans(kernel, dilation))
    options = {
        "kernel": kernel,
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "ceil_mode": bool(ceil_mode),
    }
    y = ops.max_pool(x, **options)
    return (y, ops.max_pool_indices(x, **options)) if return_indices else y


def max_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Largest element of windows of a sequence: as ``max_pool2d``, along one axis.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.max_pool1d(ng.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[3., 2.]])
    """
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Largest element of windows that slide over images.

    NaN counts as largest. The first of equal elements gets the whole gradient.

    Parameters
    ----------
    input
        Of shape (N, C, H, W) or (C, H, W), of real numbers.
    kernel_size
        Shape of the windows: an integer or a tuple, as all that follow.
    stride
        Distance of neighbouring windows, by default ``kernel_size``.
    padding
        Positions added at both ends of each axis, never chosen; at most half of what a window
        spans.
    dilation
        Distance of neighbours in a window.
    ceil_mode
        Whether windows that begin in the input, or the padding before it, may end behind it.
    return_indices
        Whether to return also the place of each element in its flattened image.

    Returns
    -------
    Tensor or tuple of two
        Of shape (N, C, rows, columns), or without N.

    Raises
    ------
    NumgradTypeError
        If the elements are no real numbers.
    NumgradValueError
        If the options do not fit the shape.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x = ng.tensor(np.arange(16.0).reshape(1, 4, 4))
    >>> y, indices = ng.nn.functional.max_pool2d(x, 2, return_indices=True)
    >>> y
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    >>> indices.tolist()
    [[[5, 7], [13, 15]]]
    """
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@lru_cache(1024)
def windows_of_average(
    name: str,
    lengths: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> tuple[ops.Axis, ...]:
    """Windows of an average, whose divisors are their number of elements unless one is given."""
    windows = []
    for axis, (n, k, s, p) in enumerate(zip(lengths, kernel, stride, padding, strict=True)):
        count = ops.output_length(name, lengths, axis, k, s, p, 1, ceil_mode)
        along = []
        for start in range(-p, -p + count * s, s):
            lo, hi = max(start, 0), min(start + k, n)
            size = min(start + k, n + p) - start if count_include_pad else hi - lo
            if divisor is not None:
                size = divisor if axis == 0 else 1
            along.append((lo, max(lo, hi), size))
        windows.append(tuple(along))
    return tuple(windows)


def check_divisor(operation: str, divisor: Any) -> None:
    """Raise unless ``divisor`` is an integer to divide by, or None."""
    if divisor is not None and as_index(operation, divisor, "divisor_override") == 0:
        raise NumgradValueError(f"{operation}: divisor_override must not be 0")


def _avg_pool(
    rank: int,
    x: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> Tensor:
    name = f"avg_pool{rank}d"
    x = as_image(name, rank, x)
    kernel, stride, padding = windows_along(name, rank, kernel_size, stride, padding)
    check_padding(name, padding, kernel)
    check_divisor(name, divisor)
    lengths = tuple(x.shape[-rank:])
    windows = windows_of_average(
        name, lengths, kernel, stride, padding, bool(ceil_mode), bool(count_include_pad), divisor
    )
    return ops.average_windows(x, windows=windows)


def avg_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Mean of windows of a sequence: as ``avg_pool2d``, along one axis.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.avg_pool1d(ng.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[2., 1.]])
    """
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Mean of windows that slide over images.

    Parameters
    ----------
    input
        Of shape (N, C, H, W) or (C, H, W), floating.
    kernel_size
        Shape of the windows: an integer or a tuple, as stride and padding.
    stride
        Distance of neighbouring windows, by default ``kernel_size``.
    padding
        Zeros added at both ends of each axis, at most half of a window.
    ceil_mode
        Whether windows that begin in the input, or the padding before it, may end behind it.
    count_include_pad
        Whether the zeros of the padding count as elements.
    divisor_override
        What sums are divided by, instead of the number of elements.

    Returns
    -------
    Tensor
        Of shape (N, C, rows, columns), or without N.

    Raises
    ------
    NumgradTypeError
        If the dtype is not floating.
    NumgradValueError
        If the options do not fit the shape.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x = ng.tensor(np.arange(16.0).reshape(1, 4, 4))
    >>> ng.nn.functional.avg_pool2d(x, 2)
    tensor([[[ 2.5,  4.5],
             [10.5, 12.5]]])
    """
    return _avg_pool(
        2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


@lru_cache(1024)
def divided(lengths: tuple[int, ...], output: tuple[int, ...]) -> tuple[ops.Axis, ...]:
    """Windows that divide each axis into parts of equal length, as nearly as can be."""
    return tuple(
        tuple(
            (k * n // m, -(-(k + 1) * n // m), -(-(k + 1) * n // m) - k * n // m) for k in range(m)
        )
        for n, m in zip(lengths, output, strict=True)
    )


def parts(operation: str, output_size: Any, lengths: tuple[int, ...]) -> tuple[int, ...]:
    """Into how many parts axes of these lengths are divided; None keeps the length."""
    rank = len(lengths)
    several = isinstance(output_size, tuple | list) or getattr(output_size, "ndim", 0) == 1
    given = tuple(output_size) if several else (output_size,) * rank
    if len(given) == rank:
        given = tuple(n if m is None else m for m, n in zip(given, lengths, strict=True))
    return along_axes(operation, "output_size", given, rank, 0)


def _adaptive_avg_pool(rank: int, x: Any, output_size: Any) -> Tensor:
    name = f"adaptive_avg_pool{rank}d"
    x = as_image(name, rank, x)
    lengths = tuple(x.shape[-rank:])
    output = parts(name, output_size, lengths)
    if 0 in lengths:
        raise NumgradValueError(
            f"{name}: an input of shape {tuple(x.shape)} has nothing to average"
        )
    return ops.average_windows(x, windows=divided(lengths, output))


def adaptive_avg_pool1d(input: Any, output_size: Any) -> Tensor:
    """Means of a given number of parts of a sequence: as ``adaptive_avg_pool2d``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.adaptive_avg_pool1d(ng.tensor([[1.0, 3.0, 2.0]]), 2)
    tensor([[2. , 2.5]])
    """
    return _adaptive_avg_pool(1, input, output_size)


def adaptive_avg_pool2d(input: Any, output_size: Any) -> Tensor:
    """Means of windows that divide images into a given number of rows and columns.

    Window ``k`` of ``m`` along an axis of length ``n`` reaches from ``floor(k n / m)`` to
    ``ceil((k + 1) n / m)``.

    Parameters
    ----------
    input
        Of shape (N, C, H, W) or (C, H, W), floating.
    output_size
        Numbers of rows and columns; one for both, None for that of the input.

    Returns
    -------
    Tensor
        Of shape (N, C, rows, columns), or without N.

    Raises
    ------
    NumgradTypeError
        If the dtype is not floating.
    NumgradValueError
        If the input has other axes, or empty ones.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x = ng.tensor(np.arange(16.0).reshape(1, 4, 4))
    >>> ng.nn.functional.adaptive_avg_pool2d(x, (1, None))
    tensor([[[6., 7., 8., 9.]]])
    """
    return _adaptive_avg_pool(2, input, output_size)
