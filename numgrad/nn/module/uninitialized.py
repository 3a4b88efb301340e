"""Parameters and buffers of lazy layers, which have no shape before the first call."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

import numpy as np

from numgrad.autograd.variable import Parameter, Tensor
from numgrad.autograd.versions import mark_written
from numgrad.errors import NumgradRuntimeError, NumgradValueError
from numgrad.nn.module.members import Buffer


class UninitializedError(NumgradValueError, NumgradRuntimeError):
    """The use of what a lazy layer has before its first call."""


class Uninitialized:
    """A parameter or buffer without a shape: Note [Lazy layers] in ``nn.lazy``."""

    __slots__ = ()
    _applies = True
    """It says itself what operations on it mean: ``core.interpreter.bind``."""
    cls_to_become: ClassVar[Any] = Tensor
    _array: np.ndarray

    def apply(self, op: Any, args: tuple, params: dict[str, Any]) -> NoReturn:
        """Refuse an operation."""
        raise self._refusal(op.name)

    def _refusal(self, what: str) -> UninitializedError:
        return UninitializedError(
            f"{what} of an uninitialized {self.cls_to_become.__name__.lower()}: lazy layers have "
            "uninitialized parameters. Call the model once with an input, or materialize(shape)"
        )

    @property
    def shape(self) -> Any:
        """Refuse: there is none."""
        raise self._refusal("shape")

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become a parameter or buffer of a shape, whose values may be anything.

        Parameters
        ----------
        shape
            Lengths of the axes, an integer for one.
        device
            Ignored: it is on the CPU.
        dtype
            By default the one that it has.

        Examples
        --------
        >>> import numgrad as ng
        >>> p = ng.nn.UninitializedParameter()
        >>> p.materialize((2, 3))
        >>> type(p).__name__, p.shape
        ('Parameter', (2, 3))
        """
        self._array = np.empty(shape, self._array.dtype if dtype is None else dtype)
        mark_written(self)  # pyright: ignore[reportArgumentType]
        self.__class__ = self.cls_to_become

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class UninitializedParameter(Uninitialized, Parameter):  # pyright: ignore
    """A parameter of a lazy layer, which has no elements before the layer's first call.

    Parameters
    ----------
    requires_grad
        Whether gradients are wanted.
    device
        Ignored: it is on the CPU.
    dtype
        By default float64.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.LazyLinear(3).weight
    <UninitializedParameter>
    """

    __slots__ = ()
    cls_to_become = Parameter

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        Parameter.__init__(self, np.empty(0, dtype), requires_grad)


class UninitializedBuffer(Uninitialized, Buffer):  # pyright: ignore
    """A buffer of a lazy layer, which has no elements before the layer's first call.

    Parameters
    ----------
    requires_grad, device
        Ignored.
    dtype
        By default float64.
    persistent
        Whether ``state_dict`` contains it.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.LazyBatchNorm1d().running_mean
    <UninitializedBuffer>
    """

    __slots__ = ()
    cls_to_become = Buffer

    def __init__(
        self,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> None:
        Buffer.__init__(self, np.empty(0, dtype), persistent=persistent)
