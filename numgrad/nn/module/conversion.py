"""Converting the parameters and buffers of modules to other dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.autograd.versions import mark_written
from numgrad.codegen.dtypes import check_dtype
from numgrad.errors import NumgradTypeError, NumgradValueError, warn
from numgrad.nn.module.members import Members


class Converted(Members):
    """What changes the dtype of a module's members."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the values of all parameters, their gradients and buffers by those of ``fn``.

        Parameters stay the objects that they are, since optimizers know them.
        """
        if recurse:
            for module in dict.fromkeys(filter(None, self._modules.values())):
                module._apply(fn)
        for param in self._parameters.values():
            if param is None:
                continue
            replaced = [(t, fn(t.detach())) for t in (param, param.grad) if t is not None]
            for tensor, new in replaced:
                if new._array is not tensor._array:
                    tensor._array = new._array
                    mark_written(tensor)  # what saved it for a backward finds it changed
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, dtype: Any = None, device: Any = None, **ignored: Any) -> Self:
        """Convert floating and complex parameters and buffers, in place; returns the module.

        Parameters
        ----------
        *args
            A floating or complex dtype, a Tensor whose dtype is meant, or ``"cpu"``.
        dtype, device
            The same by name.
        **ignored
            ``non_blocking`` and ``copy``, which mean nothing here.

        Raises
        ------
        NumgradTypeError
            If the dtype is not floating or complex.
        NumgradValueError
            If the device is not ``"cpu"``.

        Examples
        --------
        >>> import numgrad as ng
        >>> ng.nn.Linear(1, 1).to(ng.float32).weight.dtype
        dtype('float32')
        """
        for name in ignored:
            if name not in ("non_blocking", "copy"):
                raise NumgradTypeError(f"to: takes no argument {name!r}")
        for given in args:
            if isinstance(given, Tensor):
                dtype = given.dtype
            elif isinstance(given, str) and (given == "cpu" or given.startswith("cuda")):
                device = given
            elif given is not None and not isinstance(given, bool):
                dtype = given
        if device is not None and str(device) != "cpu":
            raise NumgradValueError(f"to: the device is 'cpu', there is no {str(device)!r}")
        if dtype is None:
            return self
        dtype = np.dtype(dtype)
        check_dtype("to", dtype)
        if dtype.kind not in "fc":
            raise NumgradTypeError(
                f"to: the parameters of a module are floating or complex, not {dtype}; use type() "
                "to convert everything all the same"
            )
        return self._apply(lambda t: _converted(t, dtype) if t.dtype.kind in "fc" else t)

    def float(self) -> Self:
        """Convert floating parameters and buffers to float32."""
        return self._convert_real(np.dtype(np.float32))

    def double(self) -> Self:
        """Convert floating parameters and buffers to float64."""
        return self._convert_real(np.dtype(np.float64))

    def _convert_real(self, dtype: np.dtype) -> Self:
        return self._apply(lambda t: _converted(t, dtype) if t.dtype.kind == "f" else t)

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers, integers too."""
        dtype = np.dtype(dst_type)
        check_dtype("type", dtype)
        return self._apply(lambda t: _converted(t, dtype))

    def cpu(self) -> Self:
        """Return the module: it is on the CPU."""
        return self


def _converted(tensor: Tensor, dtype: np.dtype) -> Tensor:
    """A leaf with the values of a tensor in another dtype; itself if it has that."""
    if tensor.dtype == dtype:
        return tensor
    array = tensor.numpy(force=True)
    if array.dtype.kind == "c" and dtype.kind != "c":
        warn(
            f"conversion of a module from {array.dtype} to {dtype} drops the imaginary parts of "
            "its parameters",
        )
        array = np.real(array)
    return Tensor(array.astype(dtype), tensor.requires_grad and dtype.kind in "fc")
