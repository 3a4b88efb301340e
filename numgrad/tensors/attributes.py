"""Attributes of a Tensor: its array's, its gradient, its place in the graph.

Note [Members of Tensor]
------------------------
The class ``Tensor`` stands on a floor below the engine, hooks and operations, which its methods
need. So they stand in the bodies of ``TensorAttributes`` and ``TensorConversions``, and
``numgrad.tensors.tensor`` moves them onto ``Tensor``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.autograd import hooks, versions
from numgrad.autograd.engine import backward as engine
from numgrad.autograd.row_sparse_tensor import RowSparseTensor
from numgrad.autograd.variable import Tensor, gradient_of, refresh, root, set_gradient
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.errors import NumgradAttributeError, NumgradRuntimeError, NumgradTypeError, warn
from numgrad.tensors import inplace as methods, missing
from numgrad.tensors.indexing import Flat, subscript

_warned_of_data = False


class TensorAttributes(Tensor):
    """Members of ``Tensor``; there are no objects of this class: Note [Members of Tensor]."""

    __slots__ = ()
    is_sparse = False

    # ------------------------------------------------------------------------------ the array

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self._array.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._array.ndim

    @property
    def flat(self) -> Any:
        """The elements in C order, to be read, gone through and written to."""
        return Flat(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        Flat(self)[:] = value

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._array.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype of the elements."""
        return self._array.dtype

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._array.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._array.nbytes

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes between neighbours along each axis."""
        return self._array.strides

    @property
    def T(self) -> Tensor:
        """The axes in reverse order."""
        return OPS["permute_dims"](self)

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged."""
        return OPS["matrix_transpose"](self)

    @property
    def real(self) -> Tensor:
        """Real part."""
        return OPS["real"](self)

    @property
    def imag(self) -> Tensor:
        """Imaginary part."""
        return OPS["imag"](self)

    # ------------------------------------------------------------------------------- gradients

    @property
    def grad(self) -> Tensor | None:
        """Gradient accumulated by ``backward``; None before the first."""
        gradient = gradient_of(self)
        if gradient is None and state.ground.deferred:
            state.ground.lacks_gradient(self)
        if gradient is None and self._requires_grad and self.grad_fn is not None:
            if hooks.retains_grad(self):
                return None
            warn(
                "the .grad of a tensor that is the result of an operation is not kept; call "
                "retain_grad() before backward, use autograd.grad, or look at the leaf",
                UserWarning,
            )
        return gradient

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is None:
            set_gradient(self, None)
            return
        if not isinstance(value, Tensor | RowSparseTensor):
            raise NumgradTypeError(f"grad: must be a Tensor or None, got {type(value).__name__}")
        if value is self:
            raise NumgradRuntimeError("grad: a tensor cannot be its own gradient")
        if value._array.shape != self._array.shape:
            raise NumgradRuntimeError(
                f"grad: has shape {value._array.shape}, the tensor {self._array.shape}"
            )
        if value._array.dtype != self._array.dtype:
            raise NumgradRuntimeError(
                f"grad: has dtype {value._array.dtype}, the tensor {self._array.dtype}"
            )
        set_gradient(self, value)

    @grad.deleter
    def grad(self) -> None:
        set_gradient(self, None)

    @property
    def grad_fn(self) -> Any:
        """Node that made this tensor; None for a leaf."""
        refresh(self)
        if self._grad_fn is None and state.ground.inner:
            state.ground.ask("grad_fn", self)
        return self._grad_fn

    @property
    def output_nr(self) -> int:
        """The number of this output of ``grad_fn``."""
        return max(self._slot - 1, 0)

    @property
    def is_leaf(self) -> bool:
        """Whether no operation made it."""
        refresh(self)
        if self._grad_fn is None and state.ground.inner:
            state.ground.ask("is_leaf", self)
        return self._grad_fn is None

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded."""
        refresh(self)
        if not self._requires_grad and state.ground.inner:
            state.ground.ask("requires_grad", self)
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        value = bool(value)
        if value == self._requires_grad:
            return
        if self._grad_fn is not None:
            raise NumgradRuntimeError(
                "requires_grad: can be changed on leaves only, and this tensor is the result of "
                f"{self._grad_fn.name()}; use detach() for a leaf with its values"
            )
        if value:
            check_differentiable(self._array.dtype)
            if versions.version_of(self) is versions.INFERENCE and not state.inference:
                raise NumgradRuntimeError(
                    "requires_grad: the tensor was made in inference mode and cannot be recorded; "
                    "clone() it outside"
                )
        self._requires_grad = value

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise NumgradRuntimeError("requires_grad: cannot be deleted; set it to False")

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set ``requires_grad`` and return the tensor.

        Examples
        --------
        >>> import numgrad as ng
        >>> ng.zeros(2).requires_grad_()
        tensor([0., 0.], requires_grad=True)
        """
        if not (requires_grad and self._requires_grad):
            self.requires_grad = requires_grad
        return self

    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Accumulate the gradients of this tensor into ``.grad`` of the leaves it depends on.

        Parameters are those of ``ng.autograd.backward``.

        Examples
        --------
        >>> import numgrad as ng
        >>> x = ng.tensor([1.0, 2.0], requires_grad=True)
        >>> (x**2).sum().backward()
        >>> x.grad
        tensor([2., 4.])
        """
        if gradient is None and inputs is None and not create_graph and engine.is_loss(self):
            engine.backward_from_loss(self, retain_graph)
        else:
            engine.backward(self, gradient, retain_graph, create_graph, inputs)

    # of these functions the first parameter is called ``tensor``
    retain_grad = hooks.retain_grad  # pyright: ignore[reportAssignmentType]
    register_hook = hooks.register_hook  # pyright: ignore[reportAssignmentType]
    register_post_accumulate_grad_hook = (  # pyright: ignore[reportAssignmentType]
        hooks.register_post_accumulate_grad_hook
    )

    @property
    def retains_grad(self) -> bool:
        """Whether ``retain_grad`` made a result keep its gradient."""
        return hooks.retains_grad(self)

    def detach(self) -> Tensor:
        """A tensor over the same memory that no graph leads to.

        Examples
        --------
        >>> import numgrad as ng
        >>> ng.tensor([1.0], requires_grad=True).detach()
        tensor([1.])
        """
        return Tensor(state.ground.detached(self), memory=versions.shared_version(self))

    def clone(self) -> Tensor:
        """A copy, through which gradients flow.

        Examples
        --------
        >>> import numgrad as ng
        >>> ng.tensor([1.0], requires_grad=True).clone()
        tensor([1.], grad_fn=<PositiveBackward>)
        """
        return OPS["positive"](self) if self.dtype.kind != "b" else Tensor(self._array.copy())

    @property
    def data(self) -> Tensor:
        """The values over the same memory, without history and version: prefer ``detach()``."""
        global _warned_of_data
        if self._requires_grad and not _warned_of_data:
            _warned_of_data = True
            warn(
                ".data hides changes from the check that a backward finds what was saved, so "
                "gradients may be wrong silently; detach() has the same values and keeps the check",
                UserWarning,
            )
        return Tensor(state.ground.detached(self))

    @data.setter
    def data(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise NumgradTypeError(f"data: must be a Tensor, got {type(value).__name__}")
        if self._requires_grad:
            check_differentiable(value._array.dtype)
        old, new = self._array, state.ground.replaced(self, value)
        known = type(old) is np.ndarray and self._memory is not versions.INFERENCE
        if known and (new.shape != old.shape or new.dtype != old.dtype):
            # else kernels of backwards that saved it read beyond the array
            versions.mark_replaced(self)
        self._array = new

    @data.deleter
    def data(self) -> None:
        raise NumgradRuntimeError("data: cannot be deleted; drop the tensor itself")

    def __getattr__(self, name: str) -> Any:
        """Raise, and name what comes nearest."""
        if name[0] == "_":  # what protocols ask for
            raise AttributeError(f"'Tensor' object has no attribute {name!r}")
        raise NumgradAttributeError(missing.said(name, dir(Tensor)), name=name)

    # ---------------------------------------------------------------------------------- memory

    @property
    def _version(self) -> int:
        """Number of in-place changes to this tensor's memory."""
        if versions.version_of(self) is versions.INFERENCE:
            raise NumgradRuntimeError(
                "_version: tensors made in inference mode count no versions; clone() it outside"
            )
        return versions.write_count(self)

    @property
    def _base(self) -> Tensor | None:
        """The tensor whose memory a view shows; None if this is no view."""
        owner = root(self)
        return None if owner is self else owner

    def _is_view(self) -> bool:
        """Whether the tensor shows the memory of another."""
        return root(self) is not self

    def is_inference(self) -> bool:
        """Whether the tensor was made in inference mode."""
        return versions.version_of(self) is versions.INFERENCE

    detach_ = methods.detach_
    copy_ = methods.copy_
    fill_ = methods.fill_
    fill_diagonal_ = methods.fill_diagonal_
    zero_ = methods.zero_
    __setitem__ = methods.setitem
    __getitem__ = subscript
    __imatmul__ = methods.matmul_augmented


def check_differentiable(dtype: np.dtype) -> None:
    """Raise unless tensors of ``dtype`` can require grad."""
    if dtype.kind not in "fc":
        raise NumgradRuntimeError(
            f"requires_grad: tensors of dtype {dtype} have no gradients; use a floating or complex "
            "dtype, for example dtype=ng.float64"
        )
