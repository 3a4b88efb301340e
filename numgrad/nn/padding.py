"""Elements added at the ends of axes, with PyTorch's names and arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn.applied import checked
from numgrad.nn.module.module import Module
from numgrad.operations import extend
from numgrad.operations.index import getitem
from numgrad.operations.shape import as_index, as_operand
from numgrad.tensors.tensor import Tensor

MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
"""Names of the modes in NumPy."""


def pad(
    input: Any, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """The input with elements added at the ends of its last axes.

    Parameters
    ----------
    input
        Array with axes.
    pad
        Pairs of numbers of elements before and behind, the last axis first: ``(left, right, top,
        bottom)``. Negative numbers take elements away; ``"circular"`` goes on with what is left.
    mode
        ``"constant"``; ``"reflect"``, which mirrors at the elements at the ends;
        ``"replicate"``, which repeats those; ``"circular"``, which goes on at the other end.
    value
        What ``"constant"`` adds, 0 by default.

    Raises
    ------
    NumgradValueError
        If ``pad`` has an odd length or pairs for more axes than there are, the mode is unknown, or
        an axis is too short to mirror or to repeat it.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([[1.0, 2.0, 3.0]])
    >>> ng.nn.functional.pad(x, (1, 2))
    tensor([[0., 1., 2., 3., 0., 0.]])
    >>> ng.nn.functional.pad(x, (2, 1), mode="reflect")
    tensor([[3., 2., 1., 2., 3., 2.]])
    """
    x = as_operand(input)
    shape = tuple(x.shape)
    widths = [as_index("pad", n, "a width") for n in pad]
    if len(widths) % 2 or len(widths) > 2 * len(shape):
        raise NumgradValueError(
            f"pad: widths {tuple(pad)} must be pairs (before, behind), the last axis first, for at "
            f"most the {len(shape)} axes of shape {shape}"
        )
    if mode not in MODES:
        raise NumgradValueError(f"pad: mode {mode!r} is not available; use one of {tuple(MODES)}")
    if mode != "constant" and value:
        raise NumgradValueError(f"pad: mode {mode!r} takes no value; leave it out")
    pairs = list(zip(widths[::2], widths[1::2], strict=True))[::-1]
    pairs = [(0, 0)] * (len(shape) - len(pairs)) + pairs
    for axis, (n, width) in enumerate(zip(shape, pairs, strict=True)):
        remaining = n + sum([min(count, 0) for count in width])
        most = {"reflect": n - 1, "circular": remaining}.get(mode)
        if most is not None and max(width) > max(most, 0):
            raise NumgradValueError(
                f"pad: mode {mode!r} can add at most {most} elements at an end of axis {axis} of "
                f"shape {shape}, got {width}"
            )
        if n + sum(width) < 0 or (mode == "circular" and remaining < 0):
            raise NumgradValueError(
                f"pad: widths {width} take more than there is of axis {axis} of shape {shape}"
            )
    added = [(max(before, 0), max(behind, 0)) for before, behind in pairs]
    options = {"constant_values": value or 0} if mode == "constant" else {}
    if mode == "circular":  # what is taken away does not come back at the other end
        return extend.pad(_without(x, pairs), added, MODES[mode])
    return _without(extend.pad(x, added, MODES[mode], **options), pairs)


def _without(x: Tensor, pairs: list[tuple[int, int]]) -> Tensor:
    """The elements that negative widths leave."""
    if min(map(min, pairs), default=0) >= 0:
        return x
    slices = [
        slice(max(-before, 0), n - max(-behind, 0))
        for (before, behind), n in zip(pairs, x.shape, strict=True)
    ]
    return getitem(x, tuple(slices))


class _Pad(Module):
    """Base of layers that pad: widths for the last ``rank`` axes, and a mode."""

    rank: int
    mode = "constant"
    value: float | None = None

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _widths(type(self).__name__, padding, self.rank)

    def forward(self, input: Any) -> Tensor:
        """Pad the input, whose last axes are positions.

        Raises
        ------
        NumgradValueError
            If the input has other axes, or is too short to be mirrored or to go on.
        """
        input = as_operand(input)
        shape = tuple(input.shape)
        free = self.mode == "constant"
        if len(shape) < self.rank or not (free or len(shape) in (self.rank + 1, self.rank + 2)):
            raise NumgradValueError(
                f"{type(self).__name__}: needs an input with {self.rank + 2} axes (samples, "
                f"channels, positions), or {self.rank + 1} for one sample; got shape {shape}"
            )
        return pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        """The widths."""
        return str(self.padding)


def _widths(name: str, padding: Any, rank: int) -> tuple[int, ...]:
    """A width for both ends of each axis, the last one first."""
    several = isinstance(padding, tuple | list) or getattr(padding, "ndim", 0) == 1
    widths: tuple[Any, ...] = tuple(padding) if several else (padding,) * (2 * rank)
    try:
        widths = tuple([n.__index__() for n in widths])
    except (AttributeError, TypeError):
        raise NumgradTypeError(
            f"{name}: padding must be an integer or {2 * rank} of them, got {padding!r}"
        ) from None
    if len(widths) != 2 * rank:
        raise NumgradValueError(
            f"{name}: padding must be an integer, or {2 * rank} of them, (before, behind) for each "
            f"axis, the last one first; got {padding!r}"
        )
    return widths


class _ConstantPad(_Pad):
    """Padding with a value."""

    @checked
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        """Widths and value."""
        return f"padding={self.padding}, value={self.value}"


class _Zeros(_Pad):
    """Padding with zeros."""

    value = 0.0


class _Mirrored(_Pad):
    """Padding with the mirror image."""

    mode = "reflect"


class _Repeated(_Pad):
    """Padding with the elements at the ends."""

    mode = "replicate"


class _Circular(_Pad):
    """Padding that goes on at the other end."""

    mode = "circular"


class ConstantPad1d(_ConstantPad):
    """Pad sequences with a value.

    Parameters
    ----------
    padding
        Numbers of elements before and behind, or one for both; negative ones take away.
    value
        What is added.

    Raises
    ------
    NumgradValueError
        If ``padding`` has another length.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.ConstantPad1d(1, 5.0)(ng.tensor([[1.0, 2.0]]))
    tensor([[5., 1., 2., 5.]])
    """

    rank = 1


class ConstantPad2d(_ConstantPad):
    """Pad images with a value.

    As ``ConstantPad1d``, with ``padding`` ``(left, right, top, bottom)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.ConstantPad2d((1, 1, 2, 0), 0.5)(ng.ones((1, 2, 3, 3))).shape
    (1, 2, 5, 5)
    """

    rank = 2


class ConstantPad3d(_ConstantPad):
    """Pad volumes with a value.

    As ``ConstantPad1d``, with ``padding`` ``(left, right, top, bottom, front, back)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.ConstantPad3d((1, 1, 2, 0, 0, 1), 0.5)(ng.ones((1, 2, 3, 3, 3))).shape
    (1, 2, 4, 5, 5)
    """

    rank = 3


class ZeroPad1d(_Zeros):
    """Pad sequences with zeros.

    Parameters
    ----------
    padding
        Numbers of elements before and behind, or one for both; negative ones take away.

    Raises
    ------
    NumgradValueError
        If ``padding`` has another length.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.ZeroPad1d(1)(ng.tensor([[1.0, 2.0]]))
    tensor([[0., 1., 2., 0.]])
    """

    rank = 1


class ZeroPad2d(_Zeros):
    """Pad images with zeros.

    As ``ZeroPad1d``, with ``padding`` ``(left, right, top, bottom)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.ZeroPad2d((1, 1, 2, 0))(ng.ones((1, 2, 3, 3))).shape
    (1, 2, 5, 5)
    """

    rank = 2


class ZeroPad3d(_Zeros):
    """Pad volumes with zeros.

    As ``ZeroPad1d``, with ``padding`` ``(left, right, top, bottom, front, back)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.ZeroPad3d((1, 1, 2, 0, 0, 1))(ng.ones((1, 2, 3, 3, 3))).shape
    (1, 2, 4, 5, 5)
    """

    rank = 3


class ReflectionPad1d(_Mirrored):
    """Pad sequences with their mirror image, the ends not repeated.

    Parameters
    ----------
    padding
        Numbers of elements before and behind, or one for both; negative ones take away.

    Raises
    ------
    NumgradValueError
        If ``padding`` has another length.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.ReflectionPad1d(1)(ng.tensor([[1.0, 2.0]]))
    tensor([[2., 1., 2., 1.]])
    """

    rank = 1


class ReflectionPad2d(_Mirrored):
    """Pad images with their mirror image, the ends not repeated.

    As ``ReflectionPad1d``, with ``padding`` ``(left, right, top, bottom)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.ReflectionPad2d((1, 1, 2, 0))(ng.ones((1, 2, 3, 3))).shape
    (1, 2, 5, 5)
    """

    rank = 2


class ReflectionPad3d(_Mirrored):
    """Pad volumes with their mirror image, the ends not repeated.

    As ``ReflectionPad1d``, with ``padding`` ``(left, right, top, bottom, front, back)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.ReflectionPad3d((1, 1, 2, 0, 0, 1))(ng.ones((1, 2, 3, 3, 3))).shape
    (1, 2, 4, 5, 5)
    """

    rank = 3


class ReplicationPad1d(_Repeated):
    """Pad sequences with the elements at their ends.

    Parameters
    ----------
    padding
        Numbers of elements before and behind, or one for both; negative ones take away.

    Raises
    ------
    NumgradValueError
        If ``padding`` has another length.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.ReplicationPad1d(1)(ng.tensor([[1.0, 2.0]]))
    tensor([[1., 1., 2., 2.]])
    """

    rank = 1


class ReplicationPad2d(_Repeated):
    """Pad images with the elements at their ends.

    As ``ReplicationPad1d``, with ``padding`` ``(left, right, top, bottom)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.ReplicationPad2d((1, 1, 2, 0))(ng.ones((1, 2, 3, 3))).shape
    (1, 2, 5, 5)
    """

    rank = 2


class ReplicationPad3d(_Repeated):
    """Pad volumes with the elements at their ends.

    As ``ReplicationPad1d``, with ``padding`` ``(left, right, top, bottom, front, back)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.ReplicationPad3d((1, 1, 2, 0, 0, 1))(ng.ones((1, 2, 3, 3, 3))).shape
    (1, 2, 4, 5, 5)
    """

    rank = 3


class CircularPad1d(_Circular):
    """Pad sequences with what comes at the other end.

    Parameters
    ----------
    padding
        Numbers of elements before and behind, or one for both; negative ones take away.

    Raises
    ------
    NumgradValueError
        If ``padding`` has another length.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.CircularPad1d(1)(ng.tensor([[1.0, 2.0]]))
    tensor([[2., 1., 2., 1.]])
    """

    rank = 1


class CircularPad2d(_Circular):
    """Pad images with what comes at the other end.

    As ``CircularPad1d``, with ``padding`` ``(left, right, top, bottom)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.CircularPad2d((1, 1, 2, 0))(ng.ones((1, 2, 3, 3))).shape
    (1, 2, 5, 5)
    """

    rank = 2


class CircularPad3d(_Circular):
    """Pad volumes with what comes at the other end.

    As ``CircularPad1d``, with ``padding`` ``(left, right, top, bottom, front, back)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.CircularPad3d((1, 1, 2, 0, 0, 1))(ng.ones((1, 2, 3, 3, 3))).shape
    (1, 2, 4, 5, 5)
    """

    rank = 3
