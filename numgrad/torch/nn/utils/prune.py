"""Masks that set parts of parameters to zero: ``torch.nn.utils.prune``."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from numbers import Integral
from typing import Any

import numpy as np

from numgrad.torch.creation import from_numpy, ones_like
from numgrad.torch.random import rand


class BasePruningMethod(ABC):
    """A rule that makes masks: ``compute_mask``; before each call the masked tensor is computed.

    The parameter becomes ``name_orig``, its mask the buffer ``name_mask``, and ``name`` their
    product. A second method prunes what the first has left.
    """

    PRUNING_TYPE = "unstructured"
    _tensor_name: str

    def __call__(self, module: Any, inputs: Any) -> None:
        """Compute the masked tensor, before a call of the module."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask for a tensor whose mask so far is ``default_mask``."""

    def apply_mask(self, module: Any) -> Any:
        """The parameter times its mask."""
        name = self._tensor_name
        mask, original = getattr(module, f"{name}_mask"), getattr(module, f"{name}_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(
        cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune a parameter of a module, which ``module``'s calls do from now on."""
        before = _methods(module, name)
        if len(before) > 1:
            raise AssertionError(f"{name} is pruned by {len(before)} hooks; make it one container")
        method = cls(*args, **kwargs)
        method._tensor_name = name
        original = getattr(module, name)
        scores = original if importance_scores is None else importance_scores
        if tuple(scores.shape) != tuple(original.shape):
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}"
            )
        default = ones_like(original)
        for old in before.values():
            default = getattr(module, f"{name}_mask").detach().clone()
            container = old if isinstance(old, PruningContainer) else PruningContainer(old)
            container.add_pruning_method(method)
            method = container
        mask = method.compute_mask(scores.detach(), default_mask=default)  # which may raise
        for key in before:
            del module._own_module_hooks().forward_pre[key]
        if not before:
            module.register_parameter(f"{name}_orig", module._parameters.pop(name))
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """A pruned version of a tensor."""
        scores = t if importance_scores is None else importance_scores
        if tuple(scores.shape) != tuple(t.shape):
            raise AssertionError("importance_scores should have the same shape as tensor t")
        mask = ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=mask)

    def remove(self, module: Any) -> None:
        """Make the pruned tensor an ordinary parameter."""
        name = self._tensor_name
        weight = self.apply_mask(module)
        module.__dict__.pop(name, None)
        original = module._parameters.pop(f"{name}_orig")
        original.data = weight.data
        del module._buffers[f"{name}_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods, one after the other."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        methods = args[0] if len(args) == 1 and not isinstance(args[0], BasePruningMethod) else args
        if not isinstance(methods, Iterable):
            raise TypeError(f"{methods!r} is not a BasePruningMethod subclass")
        for k, method in enumerate(methods):
            if k == 0 and isinstance(method, BasePruningMethod):
                self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a method for the same tensor."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, index: int) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask by the last method, of what the former have left."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            part: Any = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.dim()
            others = tuple(k for k in range(t.dim()) if k != dim)
            part = (slice(None),) * dim + (mask.sum(dim=others) != 0,)
        elif method.PRUNING_TYPE == "global":
            part = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        new = mask.clone()
        new[part] = method.compute_mask(t[part], default_mask=mask[part]).to(dtype=mask.dtype)
        return new


def _methods(module: Any, name: str) -> dict[int, BasePruningMethod]:
    hooks = module._own_module_hooks().forward_pre
    return {
        key: hook.function
        for key, hook in hooks.items()
        if isinstance(hook.function, BasePruningMethod) and hook.function._tensor_name == name
    }


class Identity(BasePruningMethod):
    """Prune nothing."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask so far."""
        return default_mask


class _LeastImportant(BasePruningMethod):
    """Prune a number, or a share, of the elements or of the channels of least importance."""

    dim: int | None = None

    def __init__(self, amount: Any) -> None:
        if not isinstance(amount, int | float | np.number):
            raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
        if amount < 0 or (not isinstance(amount, Integral) and amount > 1):
            raise ValueError(f"amount={amount} should be a number of units, or a share from 0 to 1")
        self.amount: Any = amount

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask without what is of least importance."""
        mask = default_mask.detach().numpy().copy()
        rows, values = mask.reshape(-1), t.detach().numpy().reshape(-1)
        if self.dim is not None:
            if t.dim() < 2:
                raise ValueError(f"Structured pruning needs 2 axes of a tensor, got {t.dim()}")
            if not -t.dim() <= self.dim < t.dim():
                raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
            rows, values = (np.moveaxis(a, self.dim, 0) for a in (mask, t.detach().numpy()))
        whole = isinstance(self.amount, Integral)
        count = int(self.amount) if whole else round(self.amount * len(rows))
        if count > len(rows):
            raise ValueError(
                f"amount={self.amount} should be smaller than the number of units, {len(rows)}"
            )
        rows[np.argsort(self.importance(values), kind="stable")[:count]] = 0
        return from_numpy(mask)

    def importance(self, rows: np.ndarray) -> np.ndarray:
        """A random number for each element or channel."""
        return rand(len(rows)).numpy()  # pyright: ignore


class RandomUnstructured(_LeastImportant):
    """Prune elements at random."""


class L1Unstructured(_LeastImportant):
    """Prune the elements of smallest absolute value."""

    def importance(self, rows: np.ndarray) -> np.ndarray:
        """Absolute values."""
        return np.abs(rows)


class RandomStructured(_LeastImportant):
    """Prune channels at random."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim


class LnStructured(RandomStructured):
    """Prune the channels of smallest norm."""

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def importance(self, rows: np.ndarray) -> np.ndarray:
        """Norms of order ``n``."""
        order = {"fro": 2, "nuc": None}.get(self.n, self.n)
        return np.linalg.norm(rows.reshape(len(rows), -1), ord=order, axis=1)


class CustomFromMask(BasePruningMethod):
    """Prune by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The product of both masks."""
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def _applied(cls: type[BasePruningMethod]) -> Callable[..., Any]:
    parameters = [*inspect.signature(cls).parameters, "importance_scores"]

    def prune(module: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        cls.apply(module, name, **dict(zip(parameters, args, strict=False)), **kwargs)
        return module

    prune.__doc__ = cls.__doc__
    return prune


identity, custom_from_mask = _applied(Identity), _applied(CustomFromMask)
random_unstructured, l1_unstructured = _applied(RandomUnstructured), _applied(L1Unstructured)
random_structured, ln_structured = _applied(RandomStructured), _applied(LnStructured)


def global_unstructured(
    parameters: Any, pruning_method: type[BasePruningMethod], importance_scores: Any = None,
    **kwargs: Any,
) -> None:  # fmt: skip
    """Prune several parameters together, as if they were one vector."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    pairs, given = list(parameters), importance_scores or {}
    if not isinstance(given, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            "Only 'unstructured' PRUNING_TYPE supported for the `pruning_method`. Found method "
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    tensors = [getattr(*pair) for pair in pairs]
    masks = [getattr(m, f"{name}_mask", ones_like(getattr(m, name))) for m, name in pairs]
    scores = [given.get(pair, tensor) for pair, tensor in zip(pairs, tensors, strict=True)]
    container = PruningContainer()
    container._tensor_name = method._tensor_name = "temp"
    container.add_pruning_method(method)
    final = container.compute_mask(*(
        from_numpy(np.concatenate([x.detach().numpy().ravel() for x in each]))
        for each in (scores, masks)
    ))  # fmt: skip
    parts = final.split([tensor.numel() for tensor in tensors])
    for (module, name), tensor, part in zip(pairs, tensors, parts, strict=True):
        custom_from_mask(module, name, mask=part.reshape(tensor.shape))


def remove(module: Any, name: str) -> Any:
    """Make what a pruned parameter is its value for good."""
    for key, method in _methods(module, name).items():
        method.remove(module)
        del module._own_module_hooks().forward_pre[key]
        return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before it is removed")


def is_pruned(module: Any) -> bool:
    """Whether a module or one inside of it has pruned parameters."""
    return any(
        isinstance(hook.function, BasePruningMethod)
        for m in module.modules()
        for hook in m._own_module_hooks().forward_pre.values()
    )
