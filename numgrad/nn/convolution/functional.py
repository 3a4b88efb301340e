"""Convolutions with PyTorch's names and arguments.

Shapes: input ``(N, C, *positions)``, or ``(C, *positions)`` for one sample; one position in ``1d``
functions, rows and columns in ``2d`` ones. Options that differ along the axes are tuples.
"""

from __future__ import annotations

from typing import Any

from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn.convolution.operation import convolution, convolution_input
from numgrad.operations.shape import as_operand, expand_dims, reshape, squeeze
from numgrad.tensors.tensor import Tensor


def along_axes(operation: str, what: str, value: Any, rank: int, least: int) -> tuple[int, ...]:
    """An option as a tuple with an integer, at least ``least``, for each of ``rank`` axes."""
    several = isinstance(value, tuple | list) or getattr(value, "ndim", 0) == 1
    given: tuple[Any, ...] = tuple(value) if several else (value,)
    if len(given) == 1:
        given *= rank
    try:
        given = tuple([n.__index__() for n in given])
    except (AttributeError, TypeError):
        raise NumgradTypeError(
            f"{operation}: {what} must be an integer or a tuple of {rank}, got {value!r}"
        ) from None
    if len(given) != rank or min(given) < least:
        raise NumgradValueError(
            f"{operation}: {what} must be an integer, or a tuple of {rank}, of at least {least}; "
            f"got {value!r}"
        )
    return given


def check_output_padding(
    operation: str, extra: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]
) -> None:
    """Raise unless another stride would not give what ``output_padding`` asks for."""
    if any(e >= max(s, d) for e, s, d in zip(extra, stride, dilation, strict=True)):
        raise NumgradValueError(
            f"{operation}: output_padding {extra} must be less than stride {stride} or dilation "
            f"{dilation} along each axis"
        )


def same_padding(
    operation: str, kernel: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]
) -> tuple[tuple[int, int], ...]:
    """Padding that keeps the lengths of all axes; what is odd goes behind."""
    if any(s != 1 for s in stride):
        raise NumgradValueError(
            f"{operation}: padding='same' keeps the shape of the input, which stride {stride} does "
            "not; give the padding as numbers"
        )
    total = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    return tuple((t // 2, t - t // 2) for t in total)


def as_batch(operation: str, rank: int, x: Any, w: Any, b: Any) -> tuple[Any, Any, Any, bool]:
    """Input, weight and bias as operands, the input with samples, and whether it had them."""
    x, w, b = as_operand(x), as_operand(w), None if b is None else as_operand(b)
    if len(w.shape) != rank + 2 or len(x.shape) not in (rank + 1, rank + 2):
        raise NumgradValueError(
            f"{operation}: needs an input with {rank + 2} axes (samples, channels, positions), or "
            f"{rank + 1} for one sample, and a weight with {rank + 2}; got shapes "
            f"{tuple(x.shape)} and {tuple(w.shape)}"
        )
    dtypes = [a.dtype for a in (x, w, b) if a is not None]
    if len(set(dtypes)) > 1 or w.dtype.kind not in "fc":
        raise NumgradTypeError(
            f"{operation}: input, weight and bias need one floating dtype, got "
            f"{', '.join(map(str, dtypes))}; convert the input with astype, or make the layer with "
            "dtype=..."
        )
    if len(x.shape) == rank + 1:
        return expand_dims(x, axis=0), w, b, False
    return x, w, b, True


def pairs_of(
    operation: str,
    padding: Any,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
) -> tuple[tuple[int, int], ...]:
    """Padding before and behind each axis; it may be given by a word."""
    if padding == "same":
        return same_padding(operation, kernel, stride, dilation)
    if padding == "valid":
        return ((0, 0),) * len(kernel)
    if isinstance(padding, str):
        raise NumgradValueError(
            f"{operation}: padding {padding!r} is not available; use numbers, 'same' or 'valid'"
        )
    return tuple((p, p) for p in along_axes(operation, "padding", padding, len(kernel), 0))


def _convolve(
    rank: int, x: Any, w: Any, b: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    name = f"conv{rank}d"
    x, w, b, batched = as_batch(name, rank, x, w, b)
    stride = along_axes(name, "stride", stride, rank, 1)
    dilation = along_axes(name, "dilation", dilation, rank, 1)
    pairs = pairs_of(name, padding, tuple(w.shape[2:]), stride, dilation)
    y = convolution(x, w, b, stride=stride, padding=pairs, dilation=dilation, groups=groups)
    return y if batched else squeeze(y, axis=0)


def conv1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Correlation of a sequence with kernels: as ``conv2d``, along one axis.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x = ng.tensor([[1.0, 2.0, 4.0, 8.0]])
    >>> ng.nn.functional.conv1d(x, np.array([[[-1.0, 1.0]]]))
    tensor([[1., 2., 4.]])
    """
    return _convolve(1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Correlation of images with kernels.

    ``y[n, o] = bias[o] + sum over c, i, j of weight[o, c, i, j] x[n, c, i, j]``, with ``x`` read at
    ``stride`` times the place in ``y`` plus ``dilation`` times the place in the kernel, less the
    padding.

    Parameters
    ----------
    input
        Of shape (N, C, H, W) or (C, H, W), floating.
    weight
        Of shape (O, C / groups, rows, columns) and the dtype of the input.
    bias
        Of shape (O,), or None.
    stride
        Distance in the input of neighbours in the output.
    padding
        Zeros at both ends of each axis; ``"valid"`` for none, ``"same"`` for as many as keep the
        shape.
    dilation
        Distance in the input of neighbours in the kernel.
    groups
        Parts into which channels and outputs are divided, each convolved by itself.

    Returns
    -------
    Tensor
        Of shape (N, O, rows, columns), or without N.

    Raises
    ------
    NumgradTypeError
        If the dtypes differ or are not floating.
    NumgradValueError
        If shapes and options do not fit, or the kernel is larger than the padded input.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x = ng.tensor(np.arange(16.0).reshape(1, 1, 4, 4))
    >>> ng.nn.functional.conv2d(x, np.ones((1, 1, 2, 2)), stride=2)
    tensor([[[[10., 18.],
              [42., 50.]]]])
    """
    return _convolve(2, input, weight, bias, stride, padding, dilation, groups)


def check_transposed(operation: str, x: Any, w: Any, b: Any, groups: int) -> None:
    """Raise unless channels and bias of a transposed convolution fit its weight."""
    if groups < 1 or x.shape[1] != w.shape[0] or w.shape[0] % groups:
        raise NumgradValueError(
            f"{operation}: {x.shape[1]} channels of an input of shape {tuple(x.shape)} and a "
            f"weight of shape {tuple(w.shape)} do not fit for groups={groups}; the weight needs a "
            "shape (channels, outputs / groups, *kernel), channels divisible by groups"
        )
    outputs = w.shape[1] * groups
    if b is not None and b.shape != (outputs,):
        raise NumgradValueError(
            f"{operation}: a bias of shape {tuple(b.shape)} does not fit a weight of shape "
            f"{tuple(w.shape)}; it needs a number for each of the {outputs} outputs"
        )


def _transposed(
    rank: int,
    x: Any,
    w: Any,
    b: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> Tensor:
    name = f"conv_transpose{rank}d"
    x, w, b, batched = as_batch(name, rank, x, w, b)
    stride = along_axes(name, "stride", stride, rank, 1)
    dilation = along_axes(name, "dilation", dilation, rank, 1)
    padding = along_axes(name, "padding", padding, rank, 0)
    extra = along_axes(name, "output_padding", output_padding, rank, 0)
    check_output_padding(name, extra, stride, dilation)
    check_transposed(name, x, w, b, groups)
    kernel = w.shape[2:]
    shape = tuple(
        (n - 1) * s - 2 * p + d * (k - 1) + e + 1
        for n, k, s, p, e, d in zip(
            x.shape[2:], kernel, stride, padding, extra, dilation, strict=True
        )
    )
    if min(shape) < 1:
        raise NumgradValueError(
            f"{name}: an input of shape {tuple(x.shape)} and a weight of shape {tuple(w.shape)} "
            f"with padding {padding} give an output with axes {shape}; use less padding"
        )
    y = convolution_input(
        x,
        w,
        shape=shape,
        stride=stride,
        padding=tuple((p, p - e) for p, e in zip(padding, extra, strict=True)),
        dilation=dilation,
        groups=groups,
    )
    if b is not None:
        y = y + reshape(b, (*b.shape, *(1,) * rank))
    return y if batched else squeeze(y, axis=0)


def conv_transpose1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Transposed convolution of a sequence: as ``conv_transpose2d``, along one axis.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.nn.functional.conv_transpose1d(ng.tensor([[1.0, 2.0]]), np.array([[[1.0, 10.0]]]))
    tensor([[ 1., 12., 20.]])
    """
    return _transposed(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The gradient of ``conv2d`` with respect to its input, as an operation of its own.

    Each element of the input adds a kernel, times that element, to the output; neighbours add
    theirs ``stride`` apart.

    Parameters
    ----------
    input
        Of shape (N, C, H, W) or (C, H, W), floating.
    weight
        Of shape (C, O / groups, rows, columns) and the dtype of the input.
    bias
        Of shape (O,), or None.
    stride, dilation, groups
        Those of the convolution.
    padding
        That of the convolution: what is taken off at both ends of each axis here.
    output_padding
        Number of positions added behind: with a stride, convolutions of several lengths have the
        same output. Less than stride or dilation.

    Returns
    -------
    Tensor
        Of shape (N, O, rows, columns), or without N; an axis has length
        ``(n - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1``.

    Raises
    ------
    NumgradTypeError
        If the dtypes differ or are not floating.
    NumgradValueError
        If shapes and options do not fit.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x = ng.tensor([[[1.0, 2.0]]])
    >>> ng.nn.functional.conv_transpose2d(x, np.ones((1, 1, 2, 2)), stride=2)
    tensor([[[1., 1., 2., 2.],
             [1., 1., 2., 2.]]])
    """
    return _transposed(2, input, weight, bias, stride, padding, output_padding, groups, dilation)
