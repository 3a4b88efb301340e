"""Pruning: masks that set the less important elements or channels of parameters to zero.

A pruned parameter ``weight`` becomes the parameter ``weight_orig``, its mask the buffer
``weight_mask``, and ``weight`` their product, computed before each call (S. Han et al., "Learning
both weights and connections for efficient neural networks", 2015). ``remove`` makes the product an
ordinary parameter again.

>>> import numgrad as ng
>>> from numgrad.nn.utils import prune
>>> layer = ng.nn.Linear(3, 1)
>>> _ = prune.l1_unstructured(layer, "weight", amount=2)
>>> int((layer.weight != 0).sum()), [name for name, _ in layer.named_parameters()]
(1, ['bias', 'weight_orig'])
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from math import prod
from numbers import Integral
from typing import Any

import numpy as np

from numgrad.errors import (
    NumgradAssertionError,
    NumgradIndexError,
    NumgradTypeError,
    NumgradValueError,
)
from numgrad.tensors.creation import asarray, ones_like


def in_dtype(mask: Any, tensor: Any) -> Any:
    """A mask in the dtype of a tensor."""
    return mask if mask.dtype == tensor.dtype else mask.astype(tensor.dtype)


def uniform(count: int) -> Any:
    """Random numbers, as a tensor."""
    return asarray(np.random.random_sample(count))


def _numbers(tensor: Any) -> np.ndarray:
    return tensor.detach().numpy()


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
        return in_dtype(mask, original) * original

    @classmethod
    def apply(
        cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune a parameter of a module, which ``module``'s calls do from now on."""
        before = _methods(module, name)
        if len(before) > 1:
            raise NumgradAssertionError(
                f"{name} is pruned by {len(before)} hooks; make it one container"
            )
        method = cls(*args, **kwargs)
        method._tensor_name = name
        original = getattr(module, name)
        scores = original if importance_scores is None else importance_scores
        if tuple(scores.shape) != tuple(original.shape):
            raise NumgradAssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}"
            )
        default = ones_like(original).detach()
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
            raise NumgradAssertionError("importance_scores should have the same shape as tensor t")
        mask = ones_like(t).detach() if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=mask)

    def remove(self, module: Any) -> None:
        """Make the pruned tensor an ordinary parameter."""
        name = self._tensor_name
        weight = self.apply_mask(module)
        module.__dict__.pop(name, None)
        original = module._parameters.pop(f"{name}_orig")
        original.data = weight.detach()
        del module._buffers[f"{name}_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods, one after the other."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        methods = args[0] if len(args) == 1 and not isinstance(args[0], BasePruningMethod) else args
        if not isinstance(methods, Iterable):
            raise NumgradTypeError(f"{methods!r} is not a BasePruningMethod subclass")
        for k, method in enumerate(methods):
            if k == 0 and isinstance(method, BasePruningMethod):
                self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a method for the same tensor."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise NumgradTypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise NumgradValueError(
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
        mask = in_dtype(default_mask, t)
        if method.PRUNING_TYPE == "unstructured":
            part: Any = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.ndim
            others = tuple(k for k in range(t.ndim) if k != dim)
            part = (slice(None),) * dim + (asarray(_numbers(mask).sum(others) != 0),)
        elif method.PRUNING_TYPE == "global":
            part = (slice(None),) * t.ndim
        else:
            raise NumgradValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        new = mask.clone()
        new[part] = in_dtype(method.compute_mask(t[part], default_mask=mask[part]), mask)
        return new


def _methods(module: Any, name: str) -> dict[int, BasePruningMethod]:
    hooks = module._own_module_hooks().forward_pre
    return {
        key: hook.function
        for key, hook in hooks.items()
        if isinstance(hook.function, BasePruningMethod) and hook.function._tensor_name == name
    }


class IdentityMask(BasePruningMethod):
    """Prune nothing."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask so far."""
        return default_mask


Identity = IdentityMask  # the name in PyTorch


class _LeastImportant(BasePruningMethod):
    """Prune a number, or a share, of the elements or of the channels of least importance."""

    dim: int | None = None

    def __init__(self, amount: Any) -> None:
        if not isinstance(amount, int | float | np.number):
            raise NumgradTypeError(f"Invalid type for amount: {amount}. Must be int or float.")
        if amount < 0 or (not isinstance(amount, Integral) and amount > 1):
            raise NumgradValueError(
                f"amount={amount} should be a number of units, or a share from 0 to 1"
            )
        self.amount: Any = amount

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask without what is of least importance."""
        mask = _numbers(default_mask).copy()
        rows, values = mask.reshape(-1), _numbers(t).reshape(-1)
        if self.dim is not None:
            if t.ndim < 2:
                raise NumgradValueError(
                    f"Structured pruning needs 2 axes of a tensor, got {t.ndim}"
                )
            if not -t.ndim <= self.dim < t.ndim:
                raise NumgradIndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
            rows, values = (np.moveaxis(a, self.dim, 0) for a in (mask, _numbers(t)))
        whole = isinstance(self.amount, Integral)
        count = int(self.amount) if whole else round(self.amount * len(rows))
        if count > len(rows):
            raise NumgradValueError(
                f"amount={self.amount} should be smaller than the number of units, {len(rows)}"
            )
        rows[np.argsort(self.importance(values), kind="stable")[:count]] = 0
        return asarray(mask)

    def importance(self, rows: np.ndarray) -> np.ndarray:
        """A random number for each element or channel."""
        return _numbers(uniform(len(rows)))


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
        return default_mask * in_dtype(self.mask, default_mask)


def identity(module: Any, name: str) -> Any:
    """Give a parameter a mask of ones; returns the module.

    Examples
    --------
    >>> import numgrad as ng
    >>> from numgrad.nn.utils import prune
    >>> prune.is_pruned(prune.identity(ng.nn.Linear(2, 2), "bias"))
    True
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Prune a number, or a share, of the elements of a parameter at random; returns the module.

    Examples
    --------
    >>> import numgrad as ng
    >>> from numgrad.nn.utils import prune
    >>> layer = prune.random_unstructured(ng.nn.Linear(4, 2), "weight", amount=0.25)
    >>> int(layer.weight_mask.sum())
    6
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """Prune the elements of smallest absolute value, or score; returns the module.

    Examples
    --------
    >>> import numgrad as ng
    >>> from numgrad.nn.utils import prune
    >>> layer = ng.nn.Linear(2, 1)
    >>> layer.weight.data = ng.tensor([[0.5, -2.0]])
    >>> prune.l1_unstructured(layer, "weight", amount=1).weight.tolist()
    [[0.0, -2.0]]
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Prune a number, or a share, of the channels along an axis at random; returns the module.

    Examples
    --------
    >>> import numgrad as ng
    >>> from numgrad.nn.utils import prune
    >>> layer = prune.random_structured(ng.nn.Linear(3, 2), "weight", amount=1, dim=0)
    >>> sorted(layer.weight_mask.sum(axis=1).tolist())
    [0.0, 3.0]
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None
) -> Any:
    """Prune the channels along an axis whose norms of order ``n`` are smallest; returns the module.

    Examples
    --------
    >>> import numgrad as ng
    >>> from numgrad.nn.utils import prune
    >>> layer = ng.nn.Linear(2, 2)
    >>> layer.weight.data = ng.tensor([[3.0, 4.0], [1.0, 1.0]])
    >>> prune.ln_structured(layer, "weight", amount=1, n=2, dim=0).weight_mask
    tensor([[1., 1.],
            [0., 0.]])
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Any) -> Any:
    """Prune a parameter by a mask of ones and zeros; returns the module.

    Examples
    --------
    >>> import numgrad as ng
    >>> from numgrad.nn.utils import prune
    >>> layer = prune.custom_from_mask(ng.nn.Linear(1, 2), "bias", ng.tensor([1.0, 0.0]))
    >>> layer.bias_mask
    tensor([1., 0.])
    """
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Any, pruning_method: type[BasePruningMethod], importance_scores: Any = None,
    **kwargs: Any,
) -> None:  # fmt: skip
    """Prune several parameters, pairs of modules and names, as if they were one vector.

    Examples
    --------
    >>> import numgrad as ng
    >>> from numgrad.nn.utils import prune
    >>> model = ng.nn.Sequential(ng.nn.Linear(2, 3), ng.nn.Linear(3, 1))
    >>> pairs = [(layer, "weight") for layer in model]
    >>> prune.global_unstructured(pairs, prune.L1Unstructured, amount=4)
    >>> sum(int(layer.weight_mask.sum()) for layer in model)
    5
    """
    if not isinstance(parameters, Iterable):
        raise NumgradTypeError("global_unstructured(): parameters is not an Iterable")
    pairs, given = list(parameters), importance_scores or {}
    if not isinstance(given, dict):
        raise NumgradTypeError("global_unstructured(): importance_scores must be of type dict")
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise NumgradTypeError(
            "Only 'unstructured' PRUNING_TYPE supported for the `pruning_method`. Found method "
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    tensors = [getattr(*pair) for pair in pairs]
    masks = [getattr(m, f"{name}_mask", ones_like(getattr(m, name)).detach()) for m, name in pairs]
    scores = [given.get(pair, tensor) for pair, tensor in zip(pairs, tensors, strict=True)]
    container = PruningContainer()
    container._tensor_name = method._tensor_name = "temp"
    container.add_pruning_method(method)
    final = container.compute_mask(*(
        asarray(np.concatenate([_numbers(x).ravel() for x in each])) for each in (scores, masks)
    ))  # fmt: skip
    ends = np.cumsum([prod(tensor.shape) for tensor in tensors])
    parts = np.split(_numbers(final), ends[:-1])
    for (module, name), tensor, part in zip(pairs, tensors, parts, strict=True):
        custom_from_mask(module, name, mask=asarray(part.reshape(tensor.shape)))


def remove(module: Any, name: str) -> Any:
    """Make the product of a pruned parameter its value for good; returns the module.

    Examples
    --------
    >>> import numgrad as ng
    >>> from numgrad.nn.utils import prune
    >>> layer = prune.random_unstructured(ng.nn.Linear(2, 2), "weight", amount=1)
    >>> prune.is_pruned(prune.remove(layer, "weight"))
    False
    """
    for key, method in _methods(module, name).items():
        method.remove(module)
        del module._own_module_hooks().forward_pre[key]
        return module
    raise NumgradValueError(
        f"Parameter '{name}' of module {module} has to be pruned before it is removed"
    )


def is_pruned(module: Any) -> bool:
    """Whether a module or one inside of it has pruned parameters.

    Examples
    --------
    >>> import numgrad as ng
    >>> from numgrad.nn.utils import prune
    >>> prune.is_pruned(ng.nn.Linear(2, 2))
    False
    """
    return any(
        isinstance(hook.function, BasePruningMethod)
        for m in module.modules()
        for hook in m._own_module_hooks().forward_pre.values()
    )
