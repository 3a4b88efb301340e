"""Layers of convolutions and transposed convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.autograd.variable import Tensor
from numgrad.errors import NumgradValueError
from numgrad.nn import init
from numgrad.nn.convolution import functional
from numgrad.nn.convolution.functional import along_axes, check_output_padding, same_padding
from numgrad.nn.convolution.volume import conv3d, conv_transpose3d
from numgrad.nn.module.module import Module
from numgrad.nn.module.options import checked
from numgrad.nn.module.parameter import empty_parameter
from numgrad.nn.padding import MODES, pad

_CONVOLVE = (functional.conv1d, functional.conv2d, conv3d)
_TRANSPOSE = (functional.conv_transpose1d, functional.conv_transpose2d, conv_transpose3d)
_PADDING_MODES = ("zeros", *(mode for mode in MODES if mode != "constant"))


class _Convolution(Module):
    """What all these layers have: options, a weight and maybe a bias."""

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


class _Transposed(_Convolution):
    """A transposed convolution."""

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding,
            groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self, input: Any, output_size: Sequence[int] | None = None) -> Tensor:
        """Apply the layer; ``output_size``, with or without other axes, chooses output padding.

        Raises
        ------
        NumgradValueError
            If no output padding gives that size.
        """
        extra = self.output_padding
        if output_size is not None:
            extra = self._output_padding(input.shape, tuple(output_size))
        transpose = _TRANSPOSE[self.rank - 1]
        return transpose(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups,
            self.dilation,
        )  # fmt: skip

    def _output_padding(self, shape: tuple[int, ...], size: tuple[int, ...]) -> tuple[int, ...]:
        name, rank = type(self).__name__, self.rank
        if len(size) == len(shape):
            size = size[len(shape) - rank :]
        least = tuple(
            (n - 1) * s - 2 * p + d * (k - 1) + 1
            for n, s, p, d, k in zip(
                shape[len(shape) - rank :], self.stride, self.padding, self.dilation,
                self.kernel_size, strict=True,
            )
        )  # fmt: skip
        most = tuple(n + s - 1 for n, s in zip(least, self.stride, strict=True))
        if len(size) != rank or any(
            not lo <= n <= hi for lo, n, hi in zip(least, size, most, strict=True)
        ):
            raise NumgradValueError(
                f"{name}: an input of shape {shape} cannot give output_size {size}; it can be from "
                f"{least} to {most}"
            )
        return tuple(n - lo for n, lo in zip(size, least, strict=True))


class ConvTranspose1d(_Transposed):
    """Transposed convolution of sequences: as ``ConvTranspose2d``, along one axis.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.ConvTranspose1d(3, 8, 4, stride=2, padding=1)(ng.ones((2, 3, 5))).shape
    (2, 8, 10)
    """

    rank = 1


class ConvTranspose2d(_Transposed):
    """Transposed convolution of images, with weights that are learned.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride, dilation, groups, bias, device, dtype
        As in ``Conv2d``.
    padding
        What is taken off at both ends of each axis.
    output_padding
        Number of positions added behind; less than stride or dilation.
    padding_mode
        ``"zeros"``.

    Attributes
    ----------
    weight
        Of shape (in_channels, out_channels / groups, rows, columns).
    bias
        Of shape (out_channels,), or None.

    Raises
    ------
    NumgradValueError
        If the options do not fit each other.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.ConvTranspose2d(4, 2, 3, stride=2, padding=1)
    >>> x = ng.ones((1, 4, 5, 5))
    >>> layer(x).shape, layer(x, output_size=(10, 10)).shape
    ((1, 2, 9, 9), (1, 2, 10, 10))
    """

    rank = 2


class ConvTranspose3d(_Transposed):
    """Transposed convolution of volumes: as ``ConvTranspose2d``, along three axes.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.ConvTranspose3d(4, 2, 2, stride=2)(ng.ones((1, 4, 3, 4, 5))).shape
    (1, 2, 6, 8, 10)
    """

    rank = 3
