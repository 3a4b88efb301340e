"""Hooks of modules, of one or of all of them, and how a call runs them.

Note [Hooks of a module]
------------------------
Forward: those of all modules before the module's own, each in the order of registration (or first,
where registered with ``prepend``): pre-hooks, ``forward``, hooks. For backward hooks the arguments
and the results of the call pass through a node each (see ``backward_hooks``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.autograd.hooks import name_of
from numgrad.core.interpreter import state
from numgrad.errors import NumgradRuntimeError, warn
from numgrad.nn.module.backward_hooks import BackwardHooks


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

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
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
                            f"{type(error).__name__} while another error was on its way: {error}",
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
        found = hook.function(module, args)
        if found is None:
            return args, kwargs
        return found if isinstance(found, tuple) else (found,), kwargs
    found = hook.function(module, args, kwargs)
    if found is None:
        return args, kwargs
    if not (isinstance(found, tuple) and len(found) == 2):
        raise NumgradRuntimeError(
            f"{name_of(hook.function)}: a forward pre-hook with keyword arguments returned "
            f"{type(found).__name__}; return None, or a tuple of the new args and kwargs"
        )
    return found


def _run_forward_hook(
    hook: Hook, module: object, args: tuple, kwargs: dict[str, Any], result: Any
) -> Any:
    if hook.keywords:
        return hook.function(module, args, kwargs, result)
    return hook.function(module, args, result)
