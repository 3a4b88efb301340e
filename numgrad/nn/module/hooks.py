"""Hooks of modules, of one or of all of them: how they are registered, and how a call runs them.

Note [Hooks of a module]
------------------------
Forward: those of all modules before the module's own, each in the order of registration (or first,
where registered with ``prepend``): pre-hooks, ``forward``, hooks. For backward hooks the arguments
and the results of the call pass through a node each (Note [Passages]).

Note [Passages]
---------------
The arguments of a module with backward hooks that require grad pass through a node, and so do its
results. When the gradients of the results arrive at theirs, the backward pre-hooks run; when those
of the arguments have been computed and arrive at theirs, the backward hooks do. So in between run
the hooks of the module's parameters, and after it the hooks of its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar

from numgrad.autograd.function.function import Function
from numgrad.autograd.hooks import RemovableHandle, name_of, register
from numgrad.autograd.variable import Tensor
from numgrad.core.interpreter import state
from numgrad.errors import NumgradRuntimeError, warn

Hooks = Sequence[Callable[..., Any]]
P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class _Passage(Function):
    """The identity, which shows the gradients that pass to ``watch``."""

    own_rule = False

    generate_vmap_rule = True

    @staticmethod
    def forward(watch: Callable[[tuple], tuple], *tensors: Tensor) -> tuple[Tensor, ...]:
        return tensors

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
        ctx.watch = inputs[0]
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple:
        return None, *ctx.watch(grads)

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Any) -> tuple:
        return tangents


class BackwardHooks:
    """The backward hooks of one call of a module."""

    def __init__(self, module: object, pre: Hooks, post: Hooks) -> None:
        self.module, self.pre, self.post = module, pre, post
        self.grad_outputs: tuple | None = None
        self.has_inputs = False
        self.arguments = 0

    def watch_arguments(self, args: tuple) -> tuple:
        """The arguments, those that require grad led through a node."""
        self.arguments = len(args)
        places = _differentiable(args)
        self.has_inputs = bool(places)
        if not places:
            return args

        def watch(grads: tuple) -> tuple:
            grad_inputs: list[Any] = [None] * len(args)
            for place, g in zip(places, grads, strict=True):
                grad_inputs[place] = g
            returned = self._run_post(tuple(grad_inputs))
            return tuple(returned[place] for place in places)

        return _led_through(watch, args, places)

    def watch_result(self, result: Any) -> Any:
        """The result of the call, its Tensors led through a node."""
        single = isinstance(result, Tensor)
        if not single and not isinstance(result, tuple):
            warn(
                f"{type(self.module).__name__}: backward hooks do not run; the result of forward "
                f"should be a Tensor or a tuple of Tensors, got {type(result).__name__}"
            )
            return result
        results: tuple = (result,) if single else result
        places = _differentiable(results)
        if not places:
            return result

        def watch(grads: tuple) -> tuple:
            grad_outputs: list[Any] = [None] * len(results)
            for place, g in zip(places, grads, strict=True):
                grad_outputs[place] = g
            returned = self._run_pre(tuple(grad_outputs))
            return tuple(returned[place] for place in places)

        results = _led_through(watch, results, places)
        return results[0] if single else _of_kind(type(result), results)

    def _run_pre(self, grad_outputs: tuple) -> tuple:
        for hook in self.pre:
            returned = hook(self.module, grad_outputs)
            if returned is not None:
                grad_outputs = _replacement(hook, "pre-hook", returned, grad_outputs)
        if self.has_inputs:
            self.grad_outputs = grad_outputs
            return grad_outputs
        # no gradient of an argument will come
        for hook in self.post:
            returned = hook(self.module, (None,) * self.arguments, grad_outputs)
            nothing = isinstance(returned, tuple) and all(g is None for g in returned)
            if returned is not None and not nothing:
                raise NumgradRuntimeError(
                    f"{name_of(hook)}: a backward hook returned gradients of arguments "
                    "that do not require any; return None"
                )
        return grad_outputs

    def _run_post(self, grad_inputs: tuple) -> tuple:
        if self.grad_outputs is None:  # the gradient came by another way than the results
            return grad_inputs
        grad_outputs, self.grad_outputs = self.grad_outputs, None
        for hook in self.post:
            returned = hook(self.module, grad_inputs, grad_outputs)
            if returned is not None:
                grad_inputs = _replacement(hook, "hook", returned, grad_inputs)
        return grad_inputs


def _differentiable(values: tuple) -> list[int]:
    return [
        k for k, value in enumerate(values) if isinstance(value, Tensor) and value.requires_grad
    ]


def _led_through(watch: Callable[[tuple], tuple], values: tuple, places: list[int]) -> tuple:
    passed: Iterator[Any] = iter(_Passage.apply(watch, *[values[k] for k in places]))
    return tuple(next(passed) if k in places else value for k, value in enumerate(values))


def _of_kind(kind: type[tuple], values: tuple) -> tuple:
    """A tuple as one of its subclass, such as a named tuple."""
    if kind is tuple:
        return values
    return kind(*values) if hasattr(kind, "_fields") else kind(values)


def _replacement(hook: Any, what: str, grads: Any, before: tuple) -> tuple:
    grads = grads if isinstance(grads, tuple) else (grads,)
    if len(grads) != len(before):
        raise NumgradRuntimeError(
            f"{name_of(hook)}: a backward {what} returned {len(grads)} gradients in place "
            f"of {len(before)}"
        )
    return grads


class Hook:
    """A registered function and how it wants to be called."""

    __slots__ = ("always", "function", "keywords")

    def __init__(
        self, function: Callable[..., Any], keywords: bool = False, always: bool = False
    ) -> None:
        self.function, self.keywords, self.always = function, keywords, always


class ModuleHooks:
    """Hooks of a call by handle number: of one module, or of all."""

    __slots__ = ("backward", "backward_pre", "forward", "forward_pre")

    def __init__(self) -> None:
        self.forward_pre: dict[int, Hook] = {}
        self.forward: dict[int, Hook] = {}
        self.backward_pre: dict[int, Hook] = {}
        self.backward: dict[int, Hook] = {}

    def any(self) -> bool:
        """Whether there are hooks."""
        return bool(self.forward_pre or self.forward or self.backward_pre or self.backward)


GLOBAL = ModuleHooks()
"""Hooks of all modules."""


NONE = ModuleHooks()


class HasForward(Protocol[P, R]):
    """A module as its caller sees it: called as its ``forward`` is."""

    _is_hooked: bool

    @property
    def forward(self) -> Callable[P, R]: ...  # noqa: D102

    def _call_hooked(self, args: tuple, kwargs: dict[str, Any]) -> Any: ...


class HookedCall:
    """A call that runs hooks.

    Note [Hooked modules]
    ---------------------
    A module without hooks must not pay for them: ``__call__`` tests one attribute, ``_is_hooked``.
    A module that gets a hook of its own has it set on the instance; a hook of all modules sets it
    on the class, where instances find it. It is taken back by the first call that finds no hook.
    """

    _is_hooked = False
    _module_hooks: ModuleHooks | None = None
    forward: Callable[..., Any]

    def __call__(self: HasForward[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run ``forward`` and the hooks: Note [Hooks of a module]."""
        if self._is_hooked:
            return self._call_hooked(args, kwargs)
        return self.forward(*args, **kwargs)

    def _own_module_hooks(self) -> ModuleHooks:
        attributes = self.__dict__
        if self._module_hooks is None:
            attributes["_module_hooks"] = ModuleHooks()
        attributes["_is_hooked"] = True
        return attributes["_module_hooks"]

    def _call_hooked(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        own = self._module_hooks or NONE
        if not own.any() and not GLOBAL.any():
            HookedCall._is_hooked = False
            self.__dict__.pop("_is_hooked", None)
        ran: set[int] = set()
        try:
            return self._call_with(own, args, kwargs, ran)
        except Exception:
            # hooks that are always to run see what there is of a result: nothing
            for number, hook in [*GLOBAL.forward.items(), *own.forward.items()]:
                if hook.always and number not in ran:
                    try:
                        _run_forward_hook(hook, self, args, kwargs, None)
                    except Exception as error:
                        warn(
                            f"{name_of(hook.function)}: a forward hook with always_call raised "
                            f"{type(error).__name__} while another error was on its way: {error}"
                        )
            raise

    def _call_with(
        self, own: ModuleHooks, args: tuple, kwargs: dict[str, Any], ran: set[int]
    ) -> Any:
        for hook in [*GLOBAL.forward_pre.values(), *own.forward_pre.values()]:
            args, kwargs = _run_forward_pre_hook(hook, self, args, kwargs)
        backward = None
        pre = [*GLOBAL.backward_pre.values(), *own.backward_pre.values()]
        post = [*GLOBAL.backward.values(), *own.backward.values()]
        if (pre or post) and state.grad_enabled:
            backward = BackwardHooks(self, [h.function for h in pre], [h.function for h in post])
            args = backward.watch_arguments(args)
        result = self.forward(*args, **kwargs)
        for number, hook in [*GLOBAL.forward.items(), *own.forward.items()]:
            ran.add(number)
            replacement = _run_forward_hook(hook, self, args, kwargs, result)
            if replacement is not None:
                result = replacement
        return result if backward is None else backward.watch_result(result)


def _run_forward_pre_hook(
    hook: Hook, module: object, args: tuple, kwargs: dict[str, Any]
) -> tuple[tuple, dict[str, Any]]:
    if not hook.keywords:
        returned = hook.function(module, args)
        if returned is None:
            return args, kwargs
        return returned if isinstance(returned, tuple) else (returned,), kwargs
    returned = hook.function(module, args, kwargs)
    if returned is None:
        return args, kwargs
    if not (isinstance(returned, tuple) and len(returned) == 2):
        raise NumgradRuntimeError(
            f"{name_of(hook.function)}: a forward pre-hook with keyword arguments returned "
            f"{type(returned).__name__}; return None, or a tuple of the new args and kwargs"
        )
    return returned


def _run_forward_hook(
    hook: Hook, module: object, args: tuple, kwargs: dict[str, Any], result: Any
) -> Any:
    if hook.keywords:
        return hook.function(module, args, kwargs, result)
    return hook.function(module, args, result)


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
        entry = Hook(hook, with_kwargs, always_call)
        return register(self._own_module_hooks().forward, hook, entry, prepend)

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
