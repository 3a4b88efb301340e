"""Base of all optimizers: groups of parameters, their state, hooks around a step."""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, TypeVar, dataclass_transform

from numgrad.autograd.hooks import RemovableHandle, register
from numgrad.autograd.modes import enable_grad, no_grad, set_grad_enabled
from numgrad.autograd.variable import constant, gradient_of, set_gradient
from numgrad.core.arguments import REQUIRED
from numgrad.core.interpreter import state
from numgrad.core.options import Option, declare, option
from numgrad.errors import (
    NumgradNotImplementedError,
    NumgradRuntimeError,
    NumgradTraceError,
    NumgradTypeError,
    NumgradValueError,
    warn,
)
from numgrad.optim import state_dict as states
from numgrad.tensors.tensor import Tensor

_global_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_post_hooks: OrderedDict[int, Callable] = OrderedDict()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before each step of every optimizer.

    As in PyTorch ``args`` begin with the optimizer: ``(optimizer,)`` or ``(optimizer, closure)``.
    The hook returns None, or new arguments as a pair ``(args, kwargs)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor(1.0, requires_grad=True)
    >>> optimizer = ng.optim.SGD([x])
    >>> with ng.optim.register_optimizer_step_pre_hook(lambda *_: print("a step")):
    ...     optimizer.step()
    a step
    """
    return register(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after each step of every optimizer.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor(1.0, requires_grad=True)
    >>> with ng.optim.register_optimizer_step_post_hook(lambda *_: print("done")):
    ...     ng.optim.SGD([x]).step()
    done
    """
    return register(_global_post_hooks, hook)


def hooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """``step`` with its hooks around it: global pre, own pre, own post, global post."""

    @functools.wraps(step)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        if state.ground.deferred:
            return _deferred_step(self, *args, **kwargs)
        before = self._optimizer_step_pre_hooks
        after = self._optimizer_step_post_hooks
        if not (before or after or _global_pre_hooks or _global_post_hooks):
            return step(self, *args, **kwargs)
        arguments: tuple[Any, ...] = (self, *args)
        for hook in list(chain(_global_pre_hooks.values(), before.values())):
            changed = hook(self, arguments, kwargs)
            if changed is None:
                continue
            pair = isinstance(changed, tuple) and len(changed) == 2
            if not (pair and isinstance(changed[0], tuple) and changed[0][:1] == (self,)):
                raise NumgradRuntimeError(
                    f"{type(self).__name__}.step: a pre-hook returned {changed!r}; it must return "
                    "None or a pair (args, kwargs), of which args begin with the optimizer"
                )
            arguments, kwargs = changed
        out = step(*arguments, **kwargs)
        for hook in list(chain(after.values(), _global_post_hooks.values())):
            hook(self, arguments, kwargs)
        return out

    wrapper.hooked = True  # type: ignore[attr-defined]
    return wrapper


def _deferred_step(optimizer: Any, closure: Callable[[], Any] | None = None) -> Any:
    """A step in a function that is being compiled: the real one, at each call.

    It gets the gradients that the function computed; every parameter has a new value from then on.
    """
    if optimizer._needs_closure:
        raise NumgradTraceError(
            f"{type(optimizer).__name__}.step: calls the closure as often as it likes, so it "
            "cannot be part of a compiled function; compile the closure, and take the step outside"
        )
    loss = optimizer._evaluate(closure)
    params = [base_of(p) for group in optimizer.param_groups for p in group["params"]]
    stepped = [p for p in params if state.ground.gradient(p) is not None]

    def step(*gradients: Any) -> tuple:
        before = [p._grad for p in params]
        try:
            for p in params:
                p._grad = None
            for p, g in zip(stepped, gradients, strict=True):
                p._grad = constant(g)
            optimizer.step()
        finally:
            for p, g in zip(params, before, strict=True):
                p._grad = g
        return tuple(p._array for p in stepped)

    state.ground.effect(step, [state.ground.gradient(p) for p in stepped], stepped)
    return loss


def base_of(parameter: Any) -> Tensor:
    """The Tensor whose memory a step changes: here the parameter itself."""
    return parameter


_Class = TypeVar("_Class", bound=type)
_ACCEPTED = "Accepted for compatibility: there is one kernel, which steps all tensors at once."

COMMON: dict[str, Option] = {
    "params": Option(doc="Tensors, pairs ``(name, Tensor)``, or groups as dictionaries."),
    "lr": Option(
        doc=r"Learning rate :math:`\eta`, a number or a Tensor of one element.", at_least=0
    ),
    "betas": Option(doc="Decay rates of the averages.", at_least=0, below=1, after="eps"),
    "eps": Option(doc="Added to the denominator.", at_least=0),
    "momentum": Option(doc=r"Decay rate :math:`\mu` of the momentum.", at_least=0),
    "weight_decay": Option(doc="Factor by which parameters are drawn to zero.", at_least=0),
    "decoupled_weight_decay": Option(
        doc="Let parameters shrink at the rate ``lr * weight_decay`` rather than add a penalty."
    ),
    "maximize": Option(doc="Climb instead of descending."),
    "differentiable": Option(doc="Record the step itself, so that it can be differentiated."),
    "foreach": Option(doc=_ACCEPTED),
    "capturable": Option(doc=_ACCEPTED),
    "fused": Option(doc=_ACCEPTED[:-1] + "; excludes ``foreach`` and ``differentiable``."),
}
"""The vocabulary: range and sentence of options that mean the same in every optimizer."""


@dataclass_transform(field_specifiers=(option,))
def declared(cls: _Class) -> _Class:
    """Give an optimizer the constructor, checks and defaults that its class body declares.

    See Note [Declared options]; names in ``COMMON`` need neither a range nor a sentence.

    Examples
    --------
    >>> from typing import Any
    >>> import numgrad as ng
    >>> from numgrad.optim.optimizer import declared, option
    >>> @declared
    ... class Fixed(ng.optim.Optimizer):
    ...     params: Any
    ...     lr: float = 0.5
    ...     width: float = option(default=1.0, above=0, doc="Of the region.")
    >>> Fixed([ng.ones(2, requires_grad=True)], width=0)
    Traceback (most recent call last):
    numgrad.errors.NumgradValueError: Fixed: width is 0; it must be positive
    """
    declare(cls, COMMON)
    made: Any = cls
    made._take_up_options()
    return cls


class Optimizer:
    """Base of all optimizers.

    Parameters
    ----------
    params
        Tensors, pairs ``(name, Tensor)``, or dictionaries: groups with ``params`` and options of
        their own.
    defaults
        Options of groups that do not give them.

    Attributes
    ----------
    param_groups
        One dictionary a group: ``params`` and its options, which may be changed between steps.
    state
        What is remembered of each parameter, by the parameter.

    Raises
    ------
    NumgradTypeError, NumgradValueError
        If ``params`` is a Tensor, empty, or holds what is neither a leaf nor retains its gradient;
        if a parameter is in two groups.

    Notes
    -----
    A step that raises leaves parameters and state as they were, also if a closure or a pre-hook
    raised. A post-hook runs when the step is complete.
    """

    _array_states: tuple[str, ...] = ()
    """States that are arrays: ndarrays in a loaded state become Tensors there."""
    _options: dict[str, Option] = {}  # noqa: RUF012 - replaced, never written to
    _checked: tuple[Option, ...] = ()
    """Options that have a range, in the order in which they are checked."""
    _needs_closure = False
    """Whether a step calls its closure several times."""
    _optimizer_step_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_step_post_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_load_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_load_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = hooked(cls.__dict__["step"])

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._add_hook_tables()
        if isinstance(params, Tensor):
            raise NumgradTypeError(
                f"{self._name}: params is a Tensor of shape {params.shape}; give a list of "
                "Tensors, [x], or of groups"
            )
        self.state: defaultdict[Tensor, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(self._iterated(params))
        if not groups:
            raise NumgradValueError(
                f"{self._name}: got no parameters to optimize; give at least one Tensor"
            )
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    @classmethod
    def _take_up_options(cls) -> None:
        """Called when the options of a class are known."""

    def _set_up(self, options: dict[str, Any]) -> None:
        """Check the options and add the groups, for a constructor: Note [Declared options]."""
        params = options.pop("params")
        self._check_options(options)
        Optimizer.__init__(self, params, options)

    def _check_options(self, options: dict[str, Any]) -> None:
        """Raise unless each option is in its range, and options do not contradict each other."""
        self._check_ranges(self._name, options)
        if options.get("fused"):
            for other in ("differentiable", "foreach"):
                if options[other]:
                    raise NumgradRuntimeError(
                        f"{self._name}: fused and {other} exclude each other; leave one of them out"
                    )

    def _check_ranges(self, where: str, options: Mapping[str, Any]) -> None:
        """Raise unless each option that is given is in its range."""
        for limited in self._checked:
            if limited.name in options:
                limited.check(where, options[limited.name])

    def _iterated(self, params: Any) -> Iterable[Any]:
        """Parameters or groups, if that is what they can be."""
        if isinstance(params, Iterable):
            return params
        remedy = "give module.parameters()" if hasattr(params, "parameters") else "give a list"
        raise NumgradTypeError(
            f"{self._name}: params is a {type(params).__name__}, neither Tensors nor groups of "
            f"them; {remedy}"
        )

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _add_hook_tables(self) -> None:
        for name in _HOOK_TABLES:
            setattr(self, name, OrderedDict())

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOK_TABLES:
            if name not in self.__dict__:
                setattr(self, name, OrderedDict())

    def __repr__(self) -> str:
        lines = [f"{self._name} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])

    # ------------------------------------------------------------------------------------- hooks

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step.

        ``args`` begin with the optimizer. The hook returns None, or new arguments as a pair
        ``(args, kwargs)``; anything else is a NumgradRuntimeError.
        """
        return register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[[Any], None], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer)`` before ``state_dict`` looks at anything."""
        return register(self._optimizer_state_dict_pre_hooks, hook, prepend=prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` at the end of ``state_dict``; it may replace it."""
        return register(self._optimizer_state_dict_post_hooks, hook, prepend=prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` with a shallow copy before it is loaded.

        What it returns, unless None, is loaded instead.
        """
        return register(self._optimizer_load_state_dict_pre_hooks, hook, prepend=prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[[Any], None], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer)`` after a state was loaded."""
        return register(self._optimizer_load_state_dict_post_hooks, hook, prepend=prepend)

    # ------------------------------------------------------------------------------------- state

    def state_dict(self) -> dict[str, Any]:
        """The state and the options of all groups, with parameters by their position.

        Returns
        -------
        dict
            ``{"state": {position: {...}}, "param_groups": [{..., "params": [positions]}]}``. Its
            Tensors are those of the optimizer, not copies.

        Examples
        --------
        >>> import numgrad as ng
        >>> x = ng.tensor([1.0], requires_grad=True)
        >>> ng.optim.SGD([x], lr=0.1).state_dict()["param_groups"][0]["lr"]
        0.1
        """
        for hook in list(self._optimizer_state_dict_pre_hooks.values()):
            hook(self)
        out: Any = self._pack()
        for hook in list(self._optimizer_state_dict_post_hooks.values()):
            replaced = hook(self, out)
            out = out if replaced is None else replaced
        return out

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over a state that ``state_dict`` made; parameters are matched by position.

        Floating state is converted to the dtype of its parameter (step counts and their like are
        float64). Arrays are copied; they may be ndarrays or those of another library (what has
        ``__array__``, such as PyTorch's). Options that the state lacks stay as they are.

        Raises
        ------
        NumgradTypeError
            If the state, or an array in it, is of another type.
        NumgradValueError
            If the groups differ in number or size, one has no ``lr``, or what is there of a
            parameter is incomplete or of another shape. Nothing is changed then.
        """
        loaded: Any = dict(state_dict) if isinstance(state_dict, Mapping) else state_dict
        for hook in list(self._optimizer_load_state_dict_pre_hooks.values()):
            replaced = hook(self, loaded)
            loaded = loaded if replaced is None else replaced
        self._unpack(loaded)
        for hook in list(self._optimizer_load_state_dict_post_hooks.values()):
            hook(self)

    def _pack(self) -> dict[str, Any]:
        """Groups and state, with parameters by their position."""
        return states.pack(self.param_groups, self.state)

    def _unpack(self, packed: Any) -> None:
        """Take over groups and state."""
        state, groups = states.unpack(
            self._name, packed, self.param_groups, self._array_states, self._layout
        )
        for number, group in enumerate(groups):
            self._check_ranges(f"{self._name}.load_state_dict, group {number}", group)
        self.__setstate__({"state": state, "param_groups": groups})

    def _layout(self, param: Tensor, group: dict[str, Any]) -> states.Layout | None:
        """Shape and dtype of the states of a parameter; None if they are not known beforehand."""
        return None

    # ------------------------------------------------------------------------------------ groups

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters, with options of its own.

        Raises
        ------
        NumgradTypeError
            If the group is no dictionary, its parameters are a set (which has no order) or are no
            Tensors.
        NumgradValueError
            If a parameter is neither a leaf nor retains its gradient, is in another group already,
            if an option is missing, or if only some parameters are named.
        """
        if not isinstance(param_group, dict):
            raise NumgradTypeError(
                f"{self._name}: a group must be a dict, got {type(param_group).__name__}"
            )
        group = dict(param_group)
        if "params" not in group:
            raise NumgradValueError(
                f"{self._name}: a group has no 'params', only {', '.join(map(repr, group))}"
            )
        self._check_ranges(f"{self._name}, a group", group)
        params = group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise NumgradTypeError(
                f"{self._name}: parameters must have an order, which a set has not; use a list"
            )
        names, tensors = _split_names(self._name, list(self._iterated(params)))
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                raise NumgradTypeError(
                    f"{self._name}: can optimize Tensors only, got {type(tensor).__name__}"
                )
            if not self.defaults.get("differentiable") and not (
                tensor.is_leaf or tensor.retains_grad
            ):
                raise NumgradValueError(
                    f"{self._name}: a tensor of shape {tensor.shape} is the result of an operation "
                    "and keeps no gradient; give leaves, or call retain_grad() on it"
                )
        group["params"] = tensors
        if names:
            group["param_names"] = names
        for name, default in self.defaults.items():
            if default is REQUIRED and name not in group:
                raise NumgradValueError(
                    f"{self._name}: a group gives no {name!r}, which has no default"
                )
            group.setdefault(name, default)
        if len(set(tensors)) != len(tensors):
            warn(
                f"{self._name}: a parameter occurs twice in a group and will be updated twice a "
                "step; give each once",
                UserWarning,
            )
        if self.param_groups and ("param_names" in self.param_groups[0]) != (
            "param_names" in group
        ):
            raise NumgradValueError(
                f"{self._name}: either all groups have named parameters or none; got "
                f"{'a named' if names else 'an unnamed'} group after others"
            )
        present = {tensor for other in self.param_groups for tensor in other["params"]}
        if not present.isdisjoint(tensors):
            raise NumgradValueError(
                f"{self._name}: a parameter is in two groups; give each to one only"
            )
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters.

        Parameters
        ----------
        set_to_none
            Set them to None, so that the next backward stores rather than adds; else to zeros.
        """
        for group in self.param_groups:
            for tensor in group["params"]:
                grad = None if set_to_none else gradient_of(tensor)
                if grad is None:
                    set_gradient(tensor, None)
                    continue
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                with no_grad():
                    grad.zero_()

    # -------------------------------------------------------------------------------------- step

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters; returns what ``captures``, which computes the loss, returned."""
        raise NumgradNotImplementedError(
            f"{self._name}.step: an optimizer must say how it updates; define step(closure=None)"
        )

    def _evaluate(self, closure: Callable[[], Any] | None) -> Any:
        """The loss, computed with gradients whatever the mode around the step."""
        if closure is None:
            return None
        with enable_grad():
            return closure()

    def _updating(self) -> Any:
        """The mode in which parameters are changed."""
        return set_grad_enabled(bool(self.defaults.get("differentiable")))


_HOOK_TABLES = tuple(name for name in Optimizer.__annotations__ if name.endswith("_hooks"))


def _split_names(optimizer: str, params: Iterable[Any]) -> tuple[list[str], list[Any]]:
    """Names and Tensors of parameters given as such or as pairs."""
    names, tensors = [], []
    for param in params:
        if isinstance(param, tuple):
            names.append(param[0])
            param = param[1]
        tensors.append(param)
    if names and len(names) != len(tensors):
        raise NumgradValueError(
            f"{optimizer}: {len(names)} of {len(tensors)} parameters are named; name all or none"
        )
    return names, tensors
