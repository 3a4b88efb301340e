"""Calling a module with other parameters than its own, and stacking those of several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from numgrad.autograd.variable import Tensor
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.nn.module.members import Registry
from numgrad.nn.module.module import Module
from numgrad.operations.join import stack

Values = Mapping[str, Any]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Values | Sequence[Values],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with the given parameters and buffers in place of its own.

    Parameters
    ----------
    module
        The module; afterwards, and if it raises, it has its own again.
    parameter_and_buffer_dicts
        Tensors by dotted name, or a sequence of such dictionaries. What is not named stays. What
        the module replaces, such as a running mean, is put into the dictionary.
    args
        The arguments: a tuple, or a single one.
    kwargs
        Arguments by name.
    tie_weights
        Whether a parameter with several names is replaced under all of them by what one is given.
    strict
        Whether all parameters and buffers have to be given.

    Returns
    -------
    Any
        What the module returns.

    Raises
    ------
    NumgradRuntimeError
        If the module has no member of a name given, or with ``strict`` lacks values.
    NumgradValueError
        If two names of one parameter are given different values, or two dictionaries the same name.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.Linear(2, 1, bias=False)
    >>> def loss(weight):
    ...     return ng.nn.functional_call(layer, {"weight": weight}, ng.ones(2)).sum()
    >>> ng.grad(loss)(ng.zeros((1, 2)))
    tensor([[1., 1.]])
    """
    dictionaries = _dictionaries(parameter_and_buffer_dicts)
    values = _merged(dictionaries)
    places = {name: (owner, key) for name, owner, key in _places(module)}
    _check(values, places, strict)
    if tie_weights:
        values = _tied(values, places)
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(values, places):
        result = module(*positional, **(kwargs or {}))
        after = {name: places[name][0].get(places[name][1]) for name in values}
    for dictionary in dictionaries:
        for name in list(dictionary):
            if after[name] is not dictionary[name]:
                dictionary[name] = after[name]  # pyright: ignore
    return result


def stack_module_state(models: Iterable[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of several modules of one kind, stacked along a first axis.

    Returns
    -------
    tuple
        Two dictionaries by dotted name: parameters, new leaves that require grad as those of the
        models do, and buffers.

    Raises
    ------
    NumgradValueError
        If there are no models, they are of several classes, some are in training mode and others
        not, or they disagree about which parameters require grad.

    Examples
    --------
    >>> import numgrad as ng
    >>> parameters, buffers = ng.nn.stack_module_state([ng.nn.Linear(3, 2) for _ in range(4)])
    >>> parameters["weight"].shape
    (4, 2, 3)
    """
    models = list(models)
    if not models:
        raise NumgradValueError("stack_module_state: there are no models")
    first = models[0]
    if any(type(model) is not type(first) for model in models):
        raise NumgradValueError(
            "stack_module_state: the models are of several classes: "
            f"{', '.join(sorted({type(model).__name__ for model in models}))}"
        )
    if any(model.training != first.training for model in models):
        raise NumgradValueError(
            "stack_module_state: some models are in training mode and some are not; call train() "
            "or eval() on all"
        )
    parameters = {
        name: _stacked(name, [dict(model.named_parameters())[name] for model in models])
        for name, _ in first.named_parameters()
    }
    buffers = {
        name: _stacked(name, [dict(model.named_buffers())[name] for model in models])
        for name, _ in first.named_buffers()
    }
    return parameters, buffers


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Let normalizations take the statistics of each batch and keep none.

    A model that is called for several examples or several sets of parameters at once (``ng.vmap``)
    cannot write one set of running statistics.

    Returns
    -------
    Module
        ``root``, changed in place.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.replace_all_batch_norm_modules_(ng.nn.BatchNorm1d(2))
    >>> layer.running_mean is None, layer.track_running_stats
    (True, False)
    """
    for module in root.modules():
        if hasattr(module, "track_running_stats"):
            module.track_running_stats = False
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                setattr(module, name, None)
    return root


def _stacked(name: str, tensors: list[Tensor]) -> Tensor:
    requires_grad = tensors[0].requires_grad
    if any(tensor.requires_grad != requires_grad for tensor in tensors):
        raise NumgradValueError(
            f"stack_module_state: {name!r} requires grad in some models and not in others"
        )
    stacked = stack([tensor.detach() for tensor in tensors])
    return stacked.requires_grad_() if requires_grad else stacked


def _dictionaries(members: Any) -> list[Values]:
    dictionaries = [members] if isinstance(members, Mapping) else list(members)
    if not all(isinstance(values, Mapping) for values in dictionaries):
        raise NumgradTypeError(
            "functional_call: takes a dictionary of Tensors by name, or a sequence of them"
        )
    return dictionaries


def _merged(dictionaries: Sequence[Values]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for values in dictionaries:
        twice = [name for name in values if name in merged]
        if twice:
            raise NumgradValueError(
                f"functional_call: several dictionaries have values for {', '.join(twice)}"
            )
        merged.update(values)
    return merged


def _places(module: Module) -> Iterator[tuple[str, Registry[Any], str]]:
    """All names of all parameters and buffers, and where they are kept."""
    for prefix, inner in module.named_modules(remove_duplicate=False):
        for registry in (inner._parameters, inner._buffers):
            for key, member in registry.items():
                if member is not None:
                    yield f"{prefix}.{key}" if prefix else key, registry, key


def _check(values: Values, places: Mapping[str, Any], strict: bool) -> None:
    unexpected = [name for name in values if name not in places]
    if unexpected:
        raise NumgradRuntimeError(
            f"functional_call: the module has no parameter or buffer {', '.join(unexpected)}"
        )
    for name, value in values.items():
        if not isinstance(value, Tensor):
            raise NumgradTypeError(
                f"functional_call: {name!r} is to be a Tensor, got {type(value).__name__}"
            )
    if strict:
        replaced = {id(places[name][0][places[name][1]]) for name in values}
        missing = [
            name
            for name, (registry, key) in places.items()
            if name not in values and id(registry[key]) not in replaced
        ]
        if missing:
            raise NumgradRuntimeError(
                f"functional_call: values are missing for {', '.join(missing)}"
            )


def _tied(values: Values, places: Mapping[str, Any]) -> dict[str, Any]:
    """The values under all names of the members they are for."""
    by_member: dict[int, Any] = {}
    for name, value in values.items():
        registry, key = places[name]
        before = by_member.setdefault(id(registry[key]), value)
        if before is not value:
            raise NumgradValueError(
                f"functional_call: {name!r} is another name of a parameter that is given another "
                "value; give one, or set tie_weights=False"
            )
    return {
        name: by_member[id(registry[key])]
        for name, (registry, key) in places.items()
        if id(registry[key]) in by_member
    }


@contextmanager
def _replaced(values: Values, places: Mapping[str, Any]) -> Iterator[None]:
    """Put values in the places of members for the time of the block."""
    before = [(*places[name], places[name][0][places[name][1]]) for name in values]
    try:
        for (registry, key, _), value in zip(before, values.values(), strict=True):
            registry[key] = value
        yield
    finally:
        for registry, key, member in before:
            registry[key] = member
