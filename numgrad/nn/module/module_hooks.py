"""Registering hooks with modules, one or all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.autograd.hooks import RemovableHandle, register
from numgrad.nn.module.hooked_call import GLOBAL, Hook, HookedCall

_registration: dict[str, dict[int, Callable[..., Any]]] = {
    "parameter": {},
    "buffer": {},
    "module": {},
}


class Hooked(HookedCall):
    """A call that runs hooks, and their registration."""

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before ``forward``.

        It may return other args: a tuple, or one argument.

        Parameters
        ----------
        hook
            The function.
        prepend
            Whether it runs before those there are.
        with_kwargs
            Whether it is called with ``(module, args, kwargs)``; it may then return a tuple of
            other args and kwargs.

        Returns
        -------
        RemovableHandle
            Its ``remove()`` takes the hook away.

        Examples
        --------
        >>> import numgrad as ng
        >>> module = ng.nn.Identity()
        >>> with module.register_forward_pre_hook(lambda module, args: args[0] * 2):
        ...     module(ng.tensor(3.0))
        tensor(6.)
        """
        return register(
            self._own_module_hooks().forward_pre, hook, Hook(hook, with_kwargs), prepend
        )

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after ``forward``; it may return another output.

        Parameters
        ----------
        hook
            The function.
        prepend
            Whether it runs before those there are.
        with_kwargs
            Whether it is called with ``(module, args, kwargs, output)``.
        always_call
            Whether it also runs when ``forward`` or another hook raises; the output is None then.

        Returns
        -------
        RemovableHandle
            Its ``remove()`` takes the hook away.

        Examples
        --------
        >>> import numgrad as ng
        >>> module = ng.nn.Identity()
        >>> handle = module.register_forward_hook(lambda module, args, output: output + 1)
        >>> module(ng.tensor(3.0))
        tensor(4.)
        """
        found = Hook(hook, with_kwargs, always_call)
        return register(self._own_module_hooks().forward, hook, found, prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` when the gradients of the results have arrived.

        ``grad_output`` is a tuple; the hook may return another.

        Returns
        -------
        RemovableHandle
            Its ``remove()`` takes the hook away.
        """
        return register(self._own_module_hooks().backward_pre, hook, Hook(hook), prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the module's backward is done.

        Both are tuples with None for what is no Tensor or has no gradient. The hook may return
        another ``grad_input``. Only positional arguments count. Arguments and results must not be
        changed in place while there are such hooks.

        Returns
        -------
        RemovableHandle
            Its ``remove()`` takes the hook away.

        Examples
        --------
        >>> import numgrad as ng
        >>> module = ng.nn.Identity()
        >>> handle = module.register_full_backward_hook(
        ...     lambda module, grad_input, grad_output: print(grad_input, grad_output)
        ... )
        >>> x = ng.tensor(1.0, requires_grad=True)
        >>> (3 * module(x)).backward()
        (tensor(3.),) (tensor(3.),)
        """
        return register(self._own_module_hooks().backward, hook, Hook(hook), prepend)


# ------------------------------------------------------------------------- hooks of all modules


def _for_all(handle: RemovableHandle) -> RemovableHandle:
    HookedCall._is_hooked = True
    return handle


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, args)`` before the forward of every module; it may return other args.

    Returns
    -------
    RemovableHandle
        Its ``remove()`` takes the hook away.

    Examples
    --------
    >>> import numgrad as ng
    >>> with ng.nn.register_module_forward_pre_hook(lambda module, args: print(module)):
    ...     y = ng.nn.Identity()(ng.ones(1))
    Identity()
    """
    return _for_all(register(GLOBAL.forward_pre, hook, Hook(hook)))


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after the forward of every module.

    It may return another output. Parameters are those of ``Module.register_forward_hook``.

    Examples
    --------
    >>> import numgrad as ng
    >>> with ng.nn.register_module_forward_hook(lambda module, args, output: 2 * output):
    ...     ng.nn.Identity()(ng.ones(1))
    tensor([2.])
    """
    return _for_all(register(GLOBAL.forward, hook, Hook(hook, with_kwargs, always_call)))


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` when gradients arrive at the results of any module.

    Examples
    --------
    >>> import numgrad as ng
    >>> with ng.nn.register_module_full_backward_pre_hook(lambda module, grad: print(grad)):
    ...     ng.nn.Linear(2, 1)(ng.ones(2)).sum().backward()
    (tensor([1.]),)
    """
    return _for_all(register(GLOBAL.backward_pre, hook, Hook(hook)))


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` when those of any module are computed.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.ones(2, requires_grad=True)
    >>> with ng.nn.register_module_full_backward_hook(lambda module, to, of: print(to, of)):
    ...     ng.nn.ReLU()(x).sum().backward()
    (tensor([1., 1.]),) (tensor([1., 1.]),)
    """
    return _for_all(register(GLOBAL.backward, hook, Hook(hook)))


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, parameter)`` when one is registered; it may return another.

    Examples
    --------
    >>> import numgrad as ng
    >>> names = []
    >>> note = lambda module, name, parameter: names.append(name)
    >>> with ng.nn.register_module_parameter_registration_hook(note):
    ...     layer = ng.nn.Linear(2, 1)
    >>> names
    ['weight', 'bias']
    """
    return register(_registration["parameter"], hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` when one is registered; it may return another.

    Examples
    --------
    >>> import numgrad as ng
    >>> names = []
    >>> with ng.nn.register_module_buffer_registration_hook(lambda m, name, b: names.append(name)):
    ...     layer = ng.nn.BatchNorm1d(2)
    >>> names
    ['running_mean', 'running_var', 'num_batches_tracked']
    """
    return register(_registration["buffer"], hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, submodule)`` when one is registered; it may return another.

    Examples
    --------
    >>> import numgrad as ng
    >>> names = []
    >>> with ng.nn.register_module_module_registration_hook(lambda m, name, s: names.append(name)):
    ...     model = ng.nn.Sequential(ng.nn.ReLU())
    >>> names
    ['0']
    """
    return register(_registration["module"], hook)


def registered(kind: str, module: Any, name: str, member: Any) -> Any:
    """A member as the hooks on registration leave it."""
    for hook in list(_registration[kind].values()):
        replacement = hook(module, name, member)
        if replacement is not None:
            member = replacement
    return member
