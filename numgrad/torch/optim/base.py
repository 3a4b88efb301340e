"""Optimizers: groups and state of parameters of this room, steps by numgrad's.

Note [Optimizers and their twins]
---------------------------------
``Optimizer`` is numgrad's, specialized (Note [Specialized modules]): groups, hooks, state. One of
PyTorch's algorithms has a twin, the optimizer of numgrad of the same name, which has the state and
the compiled step. A step first gives the twin's groups what users wrote into theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, ClassVar

from numgrad import optim as numgrad_optim
from numgrad.autograd.variable import Tensor as Base, set_gradient
from numgrad.torch.specialization import GIVEN, specialize
from numgrad.torch.wrapping import Tensor, same, unwrap, user_function, wrap


def _set_gradient(tensor: Any, gradient: Any) -> None:
    tensor.grad = gradient


_states = specialize("numgrad.optim.state_dict")
base = specialize(
    "numgrad.optim.optimizer",
    {
        "gradient_of": lambda tensor: tensor.grad,
        "set_gradient": _set_gradient,
        "base_of": unwrap,
    },
)
Optimizer: Any = base.Optimizer
GIVEN["Optimizer"] = Optimizer


class States(MutableMapping[Any, Any]):
    """A dictionary of numgrad's with wrappers in place of its Tensors, and nested ones as such."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def __getitem__(self, key: Any) -> Any:
        value = self._values[unwrap(key)]
        return States(value) if isinstance(value, dict) else _seen(value)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._values[unwrap(key)] = unwrap(value._values if isinstance(value, States) else value)

    def __delitem__(self, key: Any) -> None:
        del self._values[unwrap(key)]

    def __iter__(self) -> Iterator[Any]:
        return iter([_seen(key) for key in self._values])

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(dict(self))


def _seen(value: Any) -> Any:
    """A value with the wrappers that users know."""
    if isinstance(value, Base):
        return same(value)
    if isinstance(value, dict):
        return {_seen(key): _seen(each) for key, each in value.items()}
    return type(value)(map(_seen, value)) if type(value) in (list, tuple) else value


class TwinOptimizer(Optimizer):
    """Base of optimizers whose steps are those of one of numgrad's.

    States of one number, such as ``step``, are float64, so that a run goes on as if it had not
    stopped; PyTorch has them in float32, and takes and gives either in files. ``foreach``,
    ``fused`` and ``capturable`` are accepted: there is one way to step, by one kernel a group.
    """

    _twin_class: ClassVar[type]

    @property
    def _needs_closure(self) -> bool:
        return self._twin._needs_closure

    def __init__(self, params: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                "but got torch.Tensor"
            )
        given: list[Any] = list(params)
        self._twin: Any = self._twin_class(_bases(given), *map(unwrap, args), **unwrap(kwargs))
        self._add_hook_tables()
        self.defaults = _seen(self._twin.defaults)
        self.param_groups = [self._group(group) for group in self._twin.param_groups]

    @staticmethod
    def _group(group: dict[str, Any]) -> dict[str, Any]:
        return {name: _seen(value) for name, value in group.items()}

    @property
    def state(self) -> States:
        """What is remembered of each parameter, by the parameter."""
        return States(self._twin.state)

    @state.setter
    def state(self, values: Any) -> None:
        self._twin.state.clear()
        self.state.update(values)

    def _share_groups(self) -> Any:
        """The twin, with what users wrote into the groups."""
        twin = self._twin
        while len(twin.param_groups) < len(self.param_groups):
            twin.param_groups.append({})
        del twin.param_groups[len(self.param_groups) :]
        for ours, group in zip(self.param_groups, twin.param_groups, strict=True):
            for name, value in ours.items():
                group[name] = value._tensor if isinstance(value, Tensor) else value
            group["params"] = [p._tensor for p in ours["params"]]
        twin.defaults.update(unwrap(self.defaults))
        return twin

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters by their gradients."""
        twin = self._share_groups()
        function = None if closure is None else user_function(closure)
        return wrap(self._twin_class.step.__wrapped__(twin, function))

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters."""
        if not set_to_none:
            super().zero_grad(False)
            return
        for group in self.param_groups:
            for p in group["params"]:
                set_gradient(p._tensor, None)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters, with options of its own."""
        twin = self._share_groups()
        group = dict(param_group) if isinstance(param_group, dict) else param_group
        if isinstance(group, dict) and "params" in group:
            params: Any = group["params"]
            listed = not isinstance(params, Iterable) or isinstance(params, Tensor | set)
            group["params"] = unwrap(params) if listed else _bases(list(params))
        twin.add_param_group(unwrap(group))
        self.param_groups.append(self._group(twin.param_groups[-1]))

    def state_dict(self) -> dict[str, Any]:
        """The state and the options of all groups, with parameters by their position."""
        for hook in list(self._optimizer_state_dict_pre_hooks.values()):
            hook(self)
        out = _seen(self._share_groups().state_dict())
        for hook in list(self._optimizer_state_dict_post_hooks.values()):
            replaced = hook(self, out)
            out = out if replaced is None else replaced
        return out

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over a state that ``state_dict`` made; parameters are matched by position."""
        loaded: Any = dict(state_dict)
        for hook in list(self._optimizer_load_state_dict_pre_hooks.values()):
            replaced = hook(self, loaded)
            loaded = loaded if replaced is None else replaced
        twin = self._share_groups()
        twin.load_state_dict(unwrap(_plain(loaded)))
        for ours, group in zip(self.param_groups, twin.param_groups, strict=True):
            ours.update(self._group(group), params=ours["params"])
        for hook in list(self._optimizer_load_state_dict_post_hooks.values()):
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        return {name: value for name, value in state.items() if not name.endswith("_hooks")}


def _plain(value: Any) -> Any:
    """Mappings as dictionaries, so that ``unwrap`` goes through them."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _bases(params: list[Any]) -> list[Any]:
    """Parameters, pairs of name and parameter, or groups, as numgrad takes them."""
    out = []
    for param in params:
        if isinstance(param, dict):
            group = dict(param)
            values: Any = group.get("params", [])
            single = not isinstance(values, Iterable) or isinstance(values, Tensor | set)
            group["params"] = unwrap(values) if single else _bases(list(values))
            if "params" not in param:
                del group["params"]
            out.append({name: unwrap(value) for name, value in group.items()})
        else:
            out.append(unwrap(param))
    return out


def algorithm(name: str) -> type:
    """The class of an algorithm of numgrad's."""
    cls = getattr(numgrad_optim, name)
    namespace = {"_twin_class": cls, "__doc__": cls.__doc__, "__module__": "numgrad.torch.optim"}
    return type(name, (TwinOptimizer,), namespace)
