"""Elements of images moved between places and channels."""

from __future__ import annotations

from math import prod
from typing import Any

from numgrad.core.options import option
from numgrad.errors import NumgradValueError
from numgrad.nn.applied import Applied, along_axes, applies
from numgrad.nn.padding import pad
from numgrad.operations.arrangement import permute_dims, swapaxes
from numgrad.operations.scatter import index_add
from numgrad.operations.shape import as_index, as_operand, reshape
from numgrad.operations.take import take
from numgrad.tensors.creation import arange, zeros
from numgrad.tensors.tensor import Tensor


def _factor(name: str, what: str, value: Any) -> int:
    factor = as_index(name, value, what)
    if factor < 1:
        raise NumgradValueError(f"{name}: {what} is {value}; it must be positive")
    return factor


def _image(name: str, x: Any) -> Any:
    x = as_operand(x)
    if len(x.shape) < 3:
        raise NumgradValueError(
            f"{name}: needs an input (..., channels, height, width), got shape {tuple(x.shape)}"
        )
    return x


def pixel_shuffle(input: Any, upscale_factor: int) -> Tensor:
    """Channels laid out as blocks of ``upscale_factor`` by ``upscale_factor`` places.

    Parameters
    ----------
    input
        Of shape (..., C * r * r, H, W).
    upscale_factor
        The length ``r`` of the blocks.

    Returns
    -------
    Tensor
        Of shape (..., C, H * r, W * r).

    Raises
    ------
    NumgradValueError
        If the channels cannot be divided so.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.nn.functional.pixel_shuffle(np.arange(4.0).reshape(4, 1, 1), 2)
    tensor([[[0., 1.],
             [2., 3.]]])
    """
    name = "pixel_shuffle"
    x, r = _image(name, input), _factor(name, "upscale_factor", upscale_factor)
    *lead, channels, height, width = x.shape
    if channels % (r * r):
        raise NumgradValueError(
            f"{name}: {channels} channels of an input of shape {tuple(x.shape)} are no multiple of "
            f"{r * r}, the elements of a block"
        )
    k = len(lead)
    x = reshape(x, (*lead, channels // (r * r), r, r, height, width))
    x = permute_dims(x, axes=(*range(k + 1), k + 3, k + 1, k + 4, k + 2))
    return reshape(x, (*lead, channels // (r * r), height * r, width * r))


def pixel_unshuffle(input: Any, downscale_factor: int) -> Tensor:
    """The inverse of ``pixel_shuffle``: blocks of places as channels.

    Parameters
    ----------
    input
        Of shape (..., C, H * r, W * r).
    downscale_factor
        The length ``r`` of the blocks.

    Returns
    -------
    Tensor
        Of shape (..., C * r * r, H, W).

    Raises
    ------
    NumgradValueError
        If the images cannot be divided so.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.nn.functional.pixel_unshuffle(np.arange(4.0).reshape(1, 2, 2), 2).shape
    (4, 1, 1)
    """
    name = "pixel_unshuffle"
    x, r = _image(name, input), _factor(name, "downscale_factor", downscale_factor)
    *lead, channels, height, width = x.shape
    if height % r or width % r:
        raise NumgradValueError(
            f"{name}: images of shape {(height, width)} cannot be divided into blocks of {r} by {r}"
        )
    k = len(lead)
    x = reshape(x, (*lead, channels, height // r, r, width // r, r))
    x = permute_dims(x, axes=(*range(k + 1), k + 2, k + 4, k + 1, k + 3))
    return reshape(x, (*lead, channels * r * r, height // r, width // r))


def channel_shuffle(input: Any, groups: int) -> Tensor:
    """Channels of several groups interleaved: the first of each group, the second, ...

    Parameters
    ----------
    input
        Of shape (batch, channels, ...).
    groups
        Number of groups.

    Raises
    ------
    NumgradValueError
        If the channels cannot be divided so.

    References
    ----------
    X. Zhang et al., "ShuffleNet", CVPR 2018.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.nn.functional.channel_shuffle(np.arange(4.0).reshape(1, 4, 1), 2)[0, :, 0]
    tensor([0., 2., 1., 3.])
    """
    name = "channel_shuffle"
    x, groups = as_operand(input), _factor(name, "groups", groups)
    shape = tuple(x.shape)
    if len(shape) < 3 or shape[1] % groups:
        raise NumgradValueError(
            f"{name}: needs an input (batch, channels, ...), the channels a multiple of groups="
            f"{groups}; got shape {shape}"
        )
    x = reshape(x, (shape[0], groups, shape[1] // groups, *shape[2:]))
    return reshape(swapaxes(x, axis1=1, axis2=2), shape)


# --------------------------------------------------------------------------------- patches


class _Patches:
    """Where patches lie in padded images, and how many there are."""

    def __init__(
        self,
        name: str,
        size: tuple[int, ...],
        kernel: Any,
        dilation: Any,
        padding: Any,
        stride: Any,
    ) -> None:
        self.kernel = along_axes(name, "kernel_size", kernel, 2, 1)
        self.dilation = along_axes(name, "dilation", dilation, 2, 1)
        self.padding = along_axes(name, "padding", padding, 2, 0)
        self.stride = along_axes(name, "stride", stride, 2, 1)
        self.padded = tuple(n + 2 * p for n, p in zip(size, self.padding, strict=True))
        reach = [d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True)]
        self.counts = tuple(
            (n - r) // s + 1 for n, r, s in zip(self.padded, reach, self.stride, strict=True)
        )
        if any(n < r for n, r in zip(self.padded, reach, strict=True)):
            raise NumgradValueError(
                f"{name}: a kernel of shape {self.kernel} with dilation {self.dilation} is larger "
                f"than an image of shape {size} with padding {self.padding}"
            )

    @property
    def covered(self) -> int:
        """Elements of a patch in one channel."""
        return prod(self.kernel)

    @property
    def number(self) -> int:
        """Number of patches."""
        return prod(self.counts)

    def places(self) -> Any:
        """Places of all elements in the flattened padded image: those of the kernel come first."""
        along = []
        for axis in range(2):
            inside = arange(self.kernel[axis]) * self.dilation[axis]
            starts = arange(self.counts[axis]) * self.stride[axis]
            along.append(reshape(inside, (-1, 1)) + starts)
        rows, columns = along
        rows = reshape(rows, (self.kernel[0], 1, self.counts[0], 1))
        columns = reshape(columns, (1, self.kernel[1], 1, self.counts[1]))
        return reshape(rows * self.padded[1] + columns, (-1,))


def unfold(
    input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Patches of images as columns.

    Parameters
    ----------
    input
        Of shape (N, C, H, W) or (C, H, W).
    kernel_size
        Shape of the patches: an integer or a tuple, as all that follow.
    dilation
        Distance of neighbours in a patch.
    padding
        Zeros at both ends of each axis.
    stride
        Distance of neighbouring patches.

    Returns
    -------
    Tensor
        Of shape (N, C * elements of a patch, number of patches), or without N.

    Raises
    ------
    NumgradValueError
        If a patch does not fit, or the input has other axes.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.nn.functional.unfold(np.arange(6.0).reshape(1, 2, 3), 2)
    tensor([[0., 1.],
            [1., 2.],
            [3., 4.],
            [4., 5.]])
    """
    x = as_operand(input)
    if len(x.shape) not in (3, 4):
        raise NumgradValueError(
            f"unfold: needs an input (N, C, H, W) or (C, H, W), got shape {tuple(x.shape)}"
        )
    *lead, channels, height, width = x.shape
    patches = _Patches("unfold", (height, width), kernel_size, dilation, padding, stride)
    if any(patches.padding):
        (top, left) = patches.padding
        x = pad(x, (left, left, top, top))
    x = reshape(x, (*lead, channels, prod(patches.padded)))
    x = take(x, patches.places(), axis=-1)
    return reshape(x, (*lead, channels * patches.covered, patches.number))


def fold(
    input: Any,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """Images that columns, patch by patch, are added up to: the transpose of ``unfold``.

    Parameters
    ----------
    input
        Of shape (N, C * elements of a patch, number of patches), or without N.
    output_size
        Height and width of the images.
    kernel_size, dilation, padding, stride
        As for ``unfold``.

    Returns
    -------
    Tensor
        Of shape (N, C, H, W) or (C, H, W).

    Raises
    ------
    NumgradValueError
        If the input does not have as many columns, or rows, as there are patches.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.fold(ng.ones((4, 2)), (2, 3), 2)
    tensor([[[1., 2., 1.],
             [1., 2., 1.]]])
    """
    name = "fold"
    x = as_operand(input)
    size = along_axes(name, "output_size", output_size, 2, 1)
    patches = _Patches(name, size, kernel_size, dilation, padding, stride)
    shape = tuple(x.shape)
    if len(shape) not in (2, 3) or shape[-2] % patches.covered or shape[-1] != patches.number:
        raise NumgradValueError(
            f"{name}: an input of shape {shape} does not fit; it needs shape (N, C * "
            f"{patches.covered}, {patches.number}), or this without N, for kernel_size="
            f"{patches.kernel} and output_size={size}"
        )
    lead, channels = shape[:-2], shape[-2] // patches.covered
    x = reshape(x, (*lead, channels, patches.covered * patches.number))
    empty = zeros((*lead, channels, prod(patches.padded)), dtype=x.dtype)
    x = index_add(empty, patches.places(), x, axis=len(lead) + 1)
    x = reshape(x, (*lead, channels, *patches.padded))
    (top, left) = patches.padding
    return pad(x, (-left, -left, -top, -top)) if top or left else x


@applies(pixel_shuffle)
class PixelShuffle(Applied):
    """Channels laid out as blocks of places.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.PixelShuffle(3)(ng.ones((2, 18, 4, 5))).shape
    (2, 2, 12, 15)
    """

    upscale_factor: int = option(above=0)


@applies(pixel_unshuffle)
class PixelUnshuffle(Applied):
    """Blocks of places as channels.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.PixelUnshuffle(3)(ng.ones((2, 2, 12, 15))).shape
    (2, 18, 4, 5)
    """

    downscale_factor: int = option(above=0)


@applies(channel_shuffle)
class ChannelShuffle(Applied):
    """Channels of several groups interleaved.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.ChannelShuffle(2)(ng.ones((2, 4, 3, 3))).shape
    (2, 4, 3, 3)
    """

    groups: int = option(above=0)


class _OfPatches(Applied):
    """Base of layers with patches."""

    def _check_options(self, options: dict[str, Any]) -> None:
        least = {"output_size": 1, "kernel_size": 1, "dilation": 1, "padding": 0, "stride": 1}
        for name, value in options.items():
            along_axes(type(self).__name__, name, value, 2, least[name])


@applies(unfold)
class Unfold(_OfPatches):
    """Patches of images as columns.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Unfold(kernel_size=(2, 3))(ng.ones((2, 5, 3, 4))).shape
    (2, 30, 4)
    """

    kernel_size: Any
    dilation: Any = 1
    padding: Any = 0
    stride: Any = 1


@applies(fold)
class Fold(_OfPatches):
    """Images that columns, patch by patch, are added up to.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Fold(output_size=(4, 5), kernel_size=(2, 2))(ng.ones((1, 12, 12))).shape
    (1, 3, 4, 5)
    """

    output_size: Any
    kernel_size: Any = option(doc="Shape of the patches: an integer or a tuple.")
    dilation: Any = option(default=1, doc="Distance of neighbours in a patch.")
    padding: Any = option(default=0, doc="Zeros that were added at both ends of each axis.")
    stride: Any = option(default=1, doc="Distance of neighbouring patches.")
