"""Convolutions: functions and layers.

Shapes: input ``(N, C, *positions)``, or ``(C, *positions)`` for one sample; one position in ``1d``
functions, rows and columns in ``2d`` ones, depth before them in ``3d`` ones. Options that differ
along the axes are tuples.
"""

from __future__ import annotations

from typing import Any

from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn import init
from numgrad.nn.applied import along_axes, checked
from numgrad.nn.convolution_primitives import convolution
from numgrad.nn.module.members import empty_parameter
from numgrad.nn.module.module import Module
from numgrad.nn.padding import MODES, pad
from numgrad.operations.shape import as_operand, expand_dims, squeeze
from numgrad.tensors.tensor import Tensor


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


def conv3d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Correlation of volumes with kernels: as ``conv2d``, along three axes.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.nn.functional.conv3d(ng.ones((1, 1, 2, 3, 3)), np.ones((1, 1, 2, 2, 2)))
    tensor([[[[[8., 8.],
               [8., 8.]]]]])
    """
    return _convolve(3, input, weight, bias, stride, padding, dilation, groups)


_CONVOLVE = (conv1d, conv2d, conv3d)


_PADDING_MODES = ("zeros", *(mode for mode in MODES if mode != "constant"))


class _Convolution(Module):
    """Base of all these layers: options, a weight and maybe a bias."""

    rank: int
    transposed = False

    @checked
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        output_padding: Any,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        name, rank = type(self).__name__, self.rank
        if in_channels % groups or out_channels % groups:
            raise NumgradValueError(
                f"{name}: in_channels {in_channels} and out_channels {out_channels} must be "
                f"divisible by groups; got {groups}"
            )
        modes = ("zeros",) if self.transposed else _PADDING_MODES
        if padding_mode not in modes:
            raise NumgradValueError(
                f"{name}: padding_mode {padding_mode!r} is not available; use one of {modes}"
            )
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = along_axes(name, "kernel_size", kernel_size, rank, 1)
        self.stride = along_axes(name, "stride", stride, rank, 1)
        self.dilation = along_axes(name, "dilation", dilation, rank, 1)
        self.padding_mode = padding_mode
        self.padding: Any = padding
        if not isinstance(padding, str):
            self.padding = along_axes(name, "padding", padding, rank, 0)
        elif self.transposed or padding not in ("same", "valid"):
            raise NumgradValueError(
                f"{name}: padding {padding!r} is not available; use numbers"
                + ("" if self.transposed else ", 'same' or 'valid'")
            )
        elif padding == "same":
            same_padding(name, self.kernel_size, self.stride, self.dilation)  # refuses strides
        self.output_padding = along_axes(name, "output_padding", output_padding, rank, 0)
        check_output_padding(name, self.output_padding, self.stride, self.dilation)
        first, second = in_channels, out_channels
        if not self.transposed:
            first, second = second, first
        shape = (first, second // groups, *self.kernel_size)
        self.weight = empty_parameter(shape, dtype, device)
        self.register_parameter(
            "bias", empty_parameter((out_channels,), dtype, device) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values of the parameters."""
        init.reset_weight_and_bias(self.weight, self.bias)

    def extra_repr(self) -> str:
        """The arguments of the constructor that are not the default."""
        none, one = (0,) * self.rank, (1,) * self.rank
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"
        text += f", stride={self.stride}"
        for name, default in (
            ("padding", none), ("dilation", one), ("output_padding", none), ("groups", 1),
        ):  # fmt: skip
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _Forward(_Convolution):
    """A convolution."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self, input: Any) -> Tensor:
        """Apply the layer."""
        convolve = _CONVOLVE[self.rank - 1]
        padding = self.padding
        if self.padding_mode != "zeros":
            input = pad(input, self._widths(), mode=self.padding_mode)
            padding = 0
        return convolve(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )

    def _widths(self) -> list[int]:
        """Padding as ``pad`` takes it, the last axis first."""
        if self.padding == "same":
            name = type(self).__name__
            pairs = same_padding(name, self.kernel_size, self.stride, self.dilation)
        elif self.padding == "valid":
            pairs = ()
        else:
            pairs = tuple((p, p) for p in self.padding)
        return [width for pair in reversed(pairs) for width in pair]


class Conv1d(_Forward):
    """Convolution of sequences: as ``Conv2d``, along one axis.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.Conv1d(3, 8, 5, padding="same")
    >>> layer(ng.ones((2, 3, 20))).shape
    (2, 8, 20)
    """

    rank = 1


class Conv2d(_Forward):
    """Convolution of images, with weights that are learned.

    Parameters
    ----------
    in_channels, out_channels
        Lengths of axis 1 of input and output, both divisible by ``groups``.
    kernel_size
        Shape of the kernel: an integer or a tuple, as stride, padding and dilation.
    stride
        Distance in the input of neighbours in the output.
    padding
        Positions added at both ends of each axis, or ``"same"`` or ``"valid"``.
    dilation
        Distance in the input of neighbours in the kernel.
    groups
        Parts into which channels and outputs are divided, each convolved by itself.
    bias
        Whether there is one.
    padding_mode
        What is added: ``"zeros"``, or as in ``functional.pad`` ``"reflect"``, ``"replicate"`` or
        ``"circular"``.
    device
        None or ``"cpu"``.
    dtype
        Of the parameters, by default float64.

    Attributes
    ----------
    weight
        Of shape (out_channels, in_channels / groups, rows, columns); at first evenly spread between
        ``-k`` and ``k``, ``k`` one over the root of the number of inputs of an output.
    bias
        Of shape (out_channels,), or None; at first as the weight.

    Raises
    ------
    NumgradValueError
        If the options do not fit each other.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.Conv2d(1, 16, 3, padding=1)
    >>> layer
    Conv2d(1, 16, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
    >>> layer(ng.ones((5, 1, 8, 8))).shape
    (5, 16, 8, 8)
    """

    rank = 2


class Conv3d(_Forward):
    """Convolution of volumes: as ``Conv2d``, along three axes.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Conv3d(3, 8, (1, 3, 3), padding=(0, 1, 1))(ng.ones((2, 3, 4, 5, 6))).shape
    (2, 8, 4, 5, 6)
    """

    rank = 3
