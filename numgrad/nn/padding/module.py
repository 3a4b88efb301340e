"""Layers that pad the last axes of their input: see ``functional.pad``."""

from __future__ import annotations

from typing import Any

from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn.module.module import Module
from numgrad.nn.module.options import checked
from numgrad.nn.padding.functional import pad
from numgrad.operations.shape import as_operand
from numgrad.tensors.tensor import Tensor


class _Pad(Module):
    """What these layers have in common: widths for the last ``rank`` axes, and a mode."""

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
    given: tuple[Any, ...] = tuple(padding) if several else (padding,) * (2 * rank)
    try:
        given = tuple([n.__index__() for n in given])
    except (AttributeError, TypeError):
        raise NumgradTypeError(
            f"{name}: padding must be an integer or {2 * rank} of them, got {padding!r}"
        ) from None
    if len(given) != 2 * rank:
        raise NumgradValueError(
            f"{name}: padding must be an integer, or {2 * rank} of them, (before, behind) for each "
            f"axis, the last one first; got {padding!r}"
        )
    return given


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
