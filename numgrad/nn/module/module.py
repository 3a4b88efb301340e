"""``Module``: parameters, submodules and a ``forward`` that uses them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np

from numgrad.autograd.node import mark_written
from numgrad.autograd.variable import Tensor
from numgrad.codegen.expr import check_dtype
from numgrad.errors import NumgradAttributeError, NumgradTypeError, NumgradValueError
from numgrad.nn.module.members import KINDS
from numgrad.nn.module.module_hooks import Hooked
from numgrad.nn.module.registry import Registry
from numgrad.nn.module.state_dict import State
from numgrad.nn.module.walkers import Walkers

_ABSENT = {
    "cuda": "numgrad computes on the CPU",
    "share_memory": "parameters are ordinary arrays of one process",
    "half": "there are no kernels for float16; use float()",
    "bfloat16": "there are no kernels for bfloat16; use float()",
}
"""Methods of PyTorch's modules that cannot be, and why."""


class Module(Hooked, State, Walkers):
    """A function with parameters: derive a class, make members in ``__init__``, write ``forward``.

    Parameters, Buffers and Modules that are assigned to attributes become members, which
    ``parameters()``, ``state_dict()`` and others walk over. Calling the module runs ``forward``
    and the hooks.

    Attributes
    ----------
    training
        Whether the module is being trained; ``train()`` and ``eval()`` set it for all inside.

    Examples
    --------
    >>> import numgrad as ng
    >>> class Line(ng.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.slope = ng.nn.Parameter(ng.tensor(2.0))
    ...
    ...     def forward(self, x):
    ...         return self.slope * x
    >>> line = Line()
    >>> line(ng.tensor([1.0, 2.0])).sum().backward()
    >>> line.slope.grad
    tensor(3.)
    """

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result: to be overridden."""
        raise NotImplementedError(
            f"{type(self).__name__}: defines no forward, so it cannot be called"
        )

    def __getattr__(self, name: str) -> Any:
        # found only what is nowhere else: Note [Members are attributes]
        if "_modules" not in self.__dict__ and not name.startswith("__"):
            reason = "; was super().__init__() called in its __init__?"
        else:
            reason = f": {_ABSENT[name]}" if name in _ABSENT else ""
        raise NumgradAttributeError(
            f"{type(self).__name__} has no attribute {name!r}{reason}", name=name, obj=self
        )

    def __dir__(self) -> list[str]:
        return sorted(name for name in super().__dir__() if not name[0].isdigit())

    # ------------------------------------------------------------------------------- switches

    def train(self, mode: bool = True) -> Self:
        """Set ``training`` of this module and all inside.

        Raises
        ------
        NumgradValueError
            If ``mode`` is no bool.
        """
        if not isinstance(mode, bool):
            raise NumgradValueError(f"train: mode is True or False, got {mode!r}")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set ``training`` to False in this module and all inside."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set ``requires_grad`` of all parameters."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zeros."""
        for param in self.parameters():
            if set_to_none:
                param.grad = None
                continue
            g = param.grad
            if g is None:
                continue
            if g.grad_fn is not None:
                g.detach_()
            else:
                g.requires_grad_(False)
            g.zero_()

    # --------------------------------------------------------------------------------- dtypes

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the values of all parameters, their gradients and buffers by those of ``fn``.

        Parameters stay the objects that they are, since optimizers know them.
        """
        if recurse:
            for module in self.children():
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

    # --------------------------------------------------------------------------------- copies

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        for kind in KINDS:
            for name in state.get(kind, ()):
                state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for kind in KINDS:
            members = self.__dict__.get(kind)
            if members is not None and getattr(members, "owner", None) is not self:
                self.__dict__[kind] = Registry(self, members)

    # --------------------------------------------------------------------------------- texts

    def extra_repr(self) -> str:
        """What ``repr`` shows of this module besides its submodules: to be overridden."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        single = len(lines) == 1 and not self._modules
        lines += _described(self._modules.items())
        if not lines:
            body = ""
        else:
            body = lines[0] if single else "\n  " + "\n  ".join(lines) + "\n"
        return f"{self._get_name()}({body})"


def _described(modules: Iterable[tuple[str, Any]]) -> list[str]:
    """A line, or several, for each submodule."""
    return [f"({name}): {indented(repr(module))}" for name, module in modules]


def indented(text: str) -> str:
    """A text whose lines but the first are moved in."""
    return text.replace("\n", "\n  ")


def _converted(tensor: Tensor, dtype: np.dtype) -> Tensor:
    """A leaf with the values of a tensor in another dtype; itself if it has that."""
    if tensor.dtype == dtype:
        return tensor
    array = tensor.numpy(force=True)
    if array.dtype.kind == "c" and dtype.kind != "c":
        warnings.warn(
            f"conversion of a module from {array.dtype} to {dtype} drops the imaginary parts of "
            "its parameters",
            stacklevel=5,
        )
        array = np.real(array)
    return Tensor(array.astype(dtype), tensor.requires_grad and dtype.kind in "fc")
