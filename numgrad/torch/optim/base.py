"""Optimizers: groups and state of parameters of this room, steps by numgrad's.

Note [Optimizers and their twins]
---------------------------------
``Optimizer`` is numgrad's, specialized (Note [Specialized modules]): groups, hooks, state. One of
PyTorch's algorithms has a twin, the optimizer of numgrad of the same name, which has the state and
the compiled step. A step first gives the twin's groups what users wrote into theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, ClassVar

from numgrad import optim as numgrad_optim
from numgrad.autograd.variable import set_gradient
from numgrad.torch.specialization import GIVEN, specialize
from numgrad.torch.wrapping import Tensor, listed, same, unwrap, user_function, wrap

_states = specialize("numgrad.optim.state_dict")
base = specialize("numgrad.optim.optimizer", {
    "gradient_of": lambda tensor: tensor.grad, "base_of": unwrap,
    "set_gradient": lambda tensor, gradient: set_gradient(tensor._tensor, unwrap(gradient)),
})  # fmt: skip
Optimizer: Any = base.Optimizer
GIVEN["Optimizer"] = Optimizer


class States(MutableMapping[Any, Any]):
    """A dictionary of numgrad's with wrappers in place of its Tensors, and nested ones as such."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def __getitem__(self, key: Any) -> Any:
        value = self._values[unwrap(key)]
        return States(value) if isinstance(value, dict) else same(value)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._values[unwrap(key)] = unwrap(value._values if isinstance(value, States) else value)

    def __delitem__(self, key: Any) -> None:
        del self._values[unwrap(key)]

    def __iter__(self) -> Iterator[Any]:
        return iter([same(key) for key in self._values])

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(dict(self))


class TwinOptimizer(Optimizer):
    """Base of optimizers whose steps are those of one of numgrad's.

    States of one number, such as ``step``, are float64, so that a run goes on as if it had not
    stopped; PyTorch has them in float32, and takes and gives either in files. ``foreach``,
    ``fused`` and ``capturable`` are accepted: there is one way to step, by one kernel a group.
    """

    _twin_class: ClassVar[type]

    def __init__(self, params: Any, *args: Any, **kwargs: Any) -> None:
        self._twin: Any = self._twin_class(listed(params), *map(unwrap, args), **unwrap(kwargs))
        self._add_hook_tables()
        self.defaults = same(self._twin.defaults)
        self.param_groups = same(self._twin.param_groups)

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
        twin.param_groups += [{} for _ in self.param_groups[len(twin.param_groups) :]]
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

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters, with options of its own."""
        twin = self._share_groups()
        twin.add_param_group(listed(param_group))
        self.param_groups.append(same(twin.param_groups[-1]))

    def _pack(self) -> dict[str, Any]:
        return same(self._share_groups().state_dict())

    def _unpack(self, packed: Any) -> None:
        twin = self._share_groups()
        twin.load_state_dict(listed(packed))
        for ours, group in zip(self.param_groups, twin.param_groups, strict=True):
            ours.update(same(group), params=ours["params"])

    def __getstate__(self) -> dict[str, Any]:
        return {name: v for name, v in self.__dict__.items() if not name.endswith("_hooks")}


def algorithm(name: str) -> type:
    """The class of an algorithm of numgrad's."""
    cls = getattr(numgrad_optim, name)
    return type(name, (TwinOptimizer,), {
        "_twin_class": cls, "_needs_closure": cls._needs_closure, "__doc__": cls.__doc__,
        "__module__": "numgrad.torch.optim",
    })  # fmt: skip
