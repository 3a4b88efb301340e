"""Weights computed before each call, in PyTorch's older manner: see ``parametrizations``."""

from __future__ import annotations

from typing import Any

from numgrad.autograd.modes import no_grad
from numgrad.autograd.variable import Parameter
from numgrad.errors import NumgradRuntimeError, NumgradValueError
from numgrad.nn.module.module import Module
from numgrad.nn.utils.parametrizations import (
    PowerIteration,
    check_iterations,
    directed,
    norm_except,
    rows_axis,
)


class _BeforeCall:
    """A hook that computes a tensor before ``forward``."""

    name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute(module))

    def compute(self, module: Any) -> Any:
        """The tensor."""
        raise NotImplementedError

    def hang_up(self, module: Module) -> Module:
        """Hang the hook up."""
        module.register_forward_pre_hook(self)
        return module

    word: str


def _parameter(word: str, module: Module, name: str) -> Parameter:
    parameter = module._parameters.get(name)
    if parameter is None:
        raise NumgradValueError(f"{word}: {type(module).__name__} has no parameter {name!r}")
    return parameter


def _refuse_second(word: str, module: Module, member: str) -> None:
    if member in module._parameters:
        raise NumgradRuntimeError(
            f"{word}: {type(module).__name__} has it already, with the parameter {member!r}"
        )


def _removed(kind: type[_BeforeCall], module: Module, name: str) -> Any:
    """The hook, which is taken down."""
    hooks = module._own_module_hooks().forward_pre
    for key, hook in hooks.items():
        if isinstance(hook.function, kind) and hook.function.name == name:
            del hooks[key]
            return hook.function
    raise NumgradValueError(f"{kind.word}: {type(module).__name__} has none on {name!r}")


class _NormBeforeCall(_BeforeCall):
    word = "weight_norm"

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, dim

    def compute(self, module: Any) -> Any:
        g, v = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        return directed(g, v, self.dim)


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Learn norm and direction of a weight, as parameters ``weight_g`` and ``weight_v``.

    What ``parametrizations.weight_norm`` does, with the names of older checkpoints: the weight is
    an attribute, computed before each call.

    Parameters
    ----------
    module
        A module with a parameter of that name.
    name
        The parameter.
    dim
        The axis along which there is a norm for each element; None for one norm of all.

    Raises
    ------
    NumgradRuntimeError
        If it is normalized already.
    NumgradValueError
        If there is no such parameter.

    Examples
    --------
    >>> import numgrad as ng
    >>> list(ng.nn.utils.weight_norm(ng.nn.Linear(20, 40)).state_dict())
    ['bias', 'weight_g', 'weight_v']
    """
    _refuse_second("weight_norm", module, f"{name}_g")
    weight = _parameter("weight_norm", module, name)
    delattr(module, name)
    with no_grad():
        norms = norm_except(weight, dim)
    module.register_parameter(f"{name}_g", Parameter(norms.detach()))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    hook = _NormBeforeCall(name, dim)
    setattr(module, name, hook.compute(module))
    return hook.hang_up(module)


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Make a weight of ``weight_norm`` an ordinary parameter again.

    Raises
    ------
    NumgradValueError
        If it is none.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.utils.weight_norm(ng.nn.Linear(20, 40))
    >>> list(ng.nn.utils.remove_weight_norm(layer).state_dict())
    ['bias', 'weight']
    """
    hook = _removed(_NormBeforeCall, module, name)
    with no_grad():
        weight = hook.compute(module)
    for member in (name, f"{name}_g", f"{name}_v"):
        delattr(module, member)
    module.register_parameter(name, Parameter(weight.detach()))
    return module


class _SpectralBeforeCall(PowerIteration, _BeforeCall):
    word = "spectral_norm"
    from_right = False

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def compute(self, module: Any) -> Any:
        weight = getattr(module, f"{self.name}_orig")
        vectors = [getattr(module, f"{self.name}_{end}") for end in "uv"]
        matrix, (u, v) = self.as_matrix(weight), vectors
        if module.training:
            u, v = self.stepped(matrix, u, v, self.n_power_iterations)
            with no_grad():
                for vector, values in zip(vectors, (u, v), strict=True):
                    vector.copy_(values)
        return weight / self.value(matrix, u.detach().clone(), v.detach().clone())


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a weight by its largest singular value; the parameter is ``weight_orig``.

    What ``parametrizations.spectral_norm`` does, with the names of older checkpoints, whose
    arguments it has: the weight is an attribute, computed before each call.

    Raises
    ------
    NumgradRuntimeError
        If it is normalized already.
    NumgradValueError
        If there is no such parameter.

    Examples
    --------
    >>> import numgrad as ng
    >>> list(ng.nn.utils.spectral_norm(ng.nn.Linear(20, 40)).state_dict())
    ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    check_iterations(n_power_iterations)
    _refuse_second("spectral_norm", module, f"{name}_orig")
    weight = _parameter("spectral_norm", module, name)
    hook = _SpectralBeforeCall(name, n_power_iterations, rows_axis(module, dim), eps)
    u, v = hook.started(weight)
    delattr(module, name)
    module.register_parameter(f"{name}_orig", weight)
    module.register_buffer(f"{name}_u", u)
    module.register_buffer(f"{name}_v", v)
    setattr(module, name, weight.detach())
    return hook.hang_up(module)


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Make a weight of ``spectral_norm`` an ordinary parameter again, with the value it has.

    Raises
    ------
    NumgradValueError
        If it is none.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.utils.spectral_norm(ng.nn.Linear(20, 40))
    >>> list(ng.nn.utils.remove_spectral_norm(layer).state_dict())
    ['bias', 'weight']
    """
    hook: Any = _removed(_SpectralBeforeCall, module, name)
    with no_grad():
        weight = getattr(module, f"{name}_orig")
        u, v = (getattr(module, f"{name}_{end}") for end in "uv")
        value = weight / hook.value(hook.as_matrix(weight), u, v)
    for member in (name, f"{name}_orig", f"{name}_u", f"{name}_v"):
        delattr(module, member)
    module.register_parameter(name, Parameter(value.detach()))
    return module
