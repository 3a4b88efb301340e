"""An optimizer's state as a dictionary without Tensors for keys, and back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from copy import deepcopy
from itertools import chain
from typing import Any

import numpy as np

from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.nn.module.state_dict import array_of, is_array
from numgrad.tensors.tensor import Tensor


def pack(groups: Sequence[dict[str, Any]], state: Mapping[Any, Any]) -> dict[str, Any]:
    """Groups and state, with the position of each parameter in place of itself."""
    position: dict[int, int] = {}
    for tensor in chain.from_iterable(group["params"] for group in groups):
        position.setdefault(id(tensor), len(position))
    packed = [
        {**group, "params": [position[id(tensor)] for tensor in group["params"]]}
        for group in groups
    ]
    return {
        "state": {
            position[id(key)] if isinstance(key, Tensor) else key: value
            for key, value in state.items()
        },
        "param_groups": packed,
    }


Layout = dict[str, tuple[tuple[int, ...], np.dtype]]
"""Shape and dtype of each state that a parameter needs."""


def unpack(
    optimizer: str,
    loaded: Any,
    groups: Sequence[dict[str, Any]],
    names: Collection[str],
    layout: Callable[[Tensor, dict[str, Any]], Layout | None],
) -> tuple[defaultdict[Any, Any], list[dict[str, Any]]]:
    """State and groups for the parameters of ``groups`` from what ``pack`` made.

    Parameters
    ----------
    optimizer
        Its name, for errors.
    names
        The states that are arrays, which may have been saved as those of another library.
    layout
        What states a parameter needs in a group; None if the optimizer does not say.

    Raises
    ------
    NumgradTypeError, NumgradValueError
        If the state does not fit.
    """
    where = f"{optimizer}.load_state_dict"
    saved = _listed(where, loaded)
    if len(saved) != len(groups):
        raise NumgradValueError(
            f"{where}: the state has {len(saved)} parameter groups, the optimizer {len(groups)}"
        )
    tensors: dict[Any, Tensor] = {}
    merged: dict[Any, dict[str, Any]] = {}
    for number, (old, new) in enumerate(zip(saved, groups, strict=True)):
        if len(old["params"]) != len(new["params"]):
            raise NumgradValueError(
                f"{where}: group {number} of the state has {len(old['params'])} parameters, that "
                f"of the optimizer {len(new['params'])}"
            )
        if "lr" in new and "lr" not in old:
            raise NumgradValueError(
                f"{where}: group {number} of the state has no 'lr' among its options "
                f"({', '.join(map(str, old))}); give what state_dict() returned"
            )
        merged[number] = _merged(old, new)
        tensors.update(zip(old["params"], new["params"], strict=True))
    group_of = {id(t): group for group in merged.values() for t in group["params"]}
    state: defaultdict[Any, Any] = defaultdict(dict)
    for key, value in loaded["state"].items():
        if key not in tensors:
            if isinstance(key, int) or (isinstance(key, str) and key.isdigit()):
                raise NumgradValueError(
                    f"{where}: a state belongs to parameter {key!r}, and the groups have "
                    f"{', '.join(map(repr, tensors)) or 'none'}; keys are as state_dict() gave them"
                )
            state[key] = value
            continue
        param = tensors[key]
        wanted = layout(param, group_of[id(param)])
        entries = _Fitting(f"{where}: parameter {key}", param, names, wanted).fitted(value, ())
        if wanted is not None:
            entries = _complete(f"{where}: parameter {key}", entries, wanted)
        state[param] = entries
    return state, list(merged.values())


def _listed(where: str, loaded: Any) -> list[Any]:
    """The groups of a state, after a look at whether it is one."""
    if not isinstance(loaded, Mapping):
        raise NumgradTypeError(f"{where}: takes a dictionary, got {type(loaded).__name__}")
    for name, kind in (("state", Mapping), ("param_groups", list | tuple)):
        if not isinstance(loaded.get(name), kind):
            raise NumgradValueError(
                f"{where}: the state of an optimizer has 'state', a dictionary, and "
                f"'param_groups', a list; got keys {list(loaded)[:8]} with "
                f"{type(loaded.get(name)).__name__} for {name!r}"
            )
    groups = list(loaded["param_groups"])
    for number, group in enumerate(groups):
        params = group.get("params") if isinstance(group, Mapping) else None
        if not isinstance(params, list | tuple) or not all(isinstance(p, Hashable) for p in params):
            raise NumgradValueError(
                f"{where}: group {number} of the state is no dictionary with a list 'params' of "
                "positions; give what state_dict() returned"
            )
    return groups


def _merged(saved: Mapping[str, Any], group: Mapping[str, Any]) -> dict[str, Any]:
    """The saved options for the parameters of a group, whose own are taken where one is lacking."""
    options = {name: _option(value) for name, value in saved.items() if name != "params"}
    return {**group, **options, "params": group["params"]}


def _option(value: Any) -> Any:
    if is_array(value) and not isinstance(value, Tensor | np.ndarray):
        return Tensor(np.array(array_of(value)))
    return deepcopy(value)


def _complete(where: str, state: Any, wanted: Layout) -> dict[str, Any]:
    """The states of a parameter, after a look at whether they are all there."""
    if not isinstance(state, dict):
        raise NumgradValueError(f"{where} has a state of type {type(state).__name__}, not a dict")
    # PyTorch has None for what is not there yet
    state = {name: value for name, value in state.items() if value is not None}
    lacking = [name for name in wanted if name not in state]
    if state and lacking:
        raise NumgradValueError(
            f"{where} has no {', '.join(lacking)} among its states ({', '.join(map(str, state))});"
            " was the state of another optimizer given?"
        )
    return state


class _Fitting:
    """Copies of saved values, as the states of a parameter; ``where`` begins messages."""

    def __init__(
        self, where: str, param: Tensor, names: Collection[str], layout: Layout | None
    ) -> None:
        self.where, self.param, self.names = where, param, names
        self.layout = layout or {}

    def fitted(self, value: Any, path: tuple[Any, ...]) -> Any:
        """A copy of a value with arrays as Tensors, floating ones in the parameter's dtype."""
        name = path[0] if path else ""
        if len(path) == 1 and name in self.layout and value is not None:
            return self._state(name, value)
        if isinstance(value, Mapping):
            return {key: self.fitted(part, (*path, key)) for key, part in value.items()}
        if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
            return type(value)(self.fitted(part, path) for part in value)
        if not is_array(value) or (isinstance(value, np.ndarray) and name not in self.names):
            return deepcopy(value)
        array = self._array(name, value)
        dtype = array_of(self.param).dtype
        if name != "step" and array.dtype.kind in "fc" and dtype.kind in "fc":
            real = array.dtype.kind == "f"  # LBFGS has real vectors for complex parameters
            array = array.astype(np.finfo(dtype).dtype if real else dtype, copy=False)
        return Tensor(np.array(array))

    def _state(self, name: str, value: Any) -> Tensor:
        """A state that the optimizer reads in its own shape and dtype."""
        shape, dtype = self.layout[name]
        number = isinstance(value, int | float | np.generic)  # of steps, in older files
        array = np.asarray(value) if number else self._array(name, value)
        if array.size == 1 and shape == ():
            array = array.reshape(())
        if array.shape != shape or (array.dtype.kind == "c" and dtype.kind != "c"):
            raise NumgradValueError(
                f"{self.where} has a {name} of shape {array.shape} and dtype {array.dtype} where "
                f"shape {shape} and dtype {dtype} belong; was the state of other parameters given?"
            )
        return Tensor(np.array(array, dtype, order="C"))

    def _array(self, name: str, value: Any) -> np.ndarray:
        if not is_array(value):
            raise NumgradTypeError(
                f"{self.where}: {name} is a {type(value).__name__}, and a Tensor or an array is "
                "needed"
            )
        try:
            return array_of(value)
        except NumgradTypeError as error:
            raise NumgradTypeError(f"{self.where}: {name} {error}") from None


def check_state(
    where: str, name: str, value: Any, shape: tuple[int, ...], dtype: np.dtype, written: bool = True
) -> None:
    """Raise unless a gradient or state is a Tensor as its parameter needs it.

    ``where`` begins the message: the step, and which parameter it is.
    """
    if not isinstance(value, Tensor):
        raise NumgradTypeError(
            f"{where} has a {name} of type {type(value).__name__}, where a Tensor belongs; put "
            "ng.tensor(...) of it there, or load it with load_state_dict"
        )
    array = value._array
    fits = array.shape == shape or (shape == () and array.size == 1)
    if not fits or array.dtype != dtype:
        raise NumgradRuntimeError(
            f"{where} has a {name} of shape {array.shape} and dtype {array.dtype} where shape "
            f"{shape} and dtype {dtype} belong; was the parameter replaced, or the state of "
            "another one loaded?"
        )
    if written and not array.flags.writeable:
        raise NumgradRuntimeError(
            f"{where} has a {name} in memory that must not be written; put a copy there"
        )


def check_real(
    where: str, param: Tensor, state: dict[str, Any], layout: Layout, instead: str
) -> None:
    """Raise unless a real parameter, its dense gradient and its states can be used.

    ``instead`` is the optimizer for complex parameters.
    """
    grad: Any = param._grad
    if param.dtype.kind == "c":
        raise NumgradRuntimeError(f"{where} is complex; optimize its parts, or use {instead}")
    if grad.is_sparse:
        raise NumgradRuntimeError(
            f"{where} has a row-sparse gradient; use SparseAdam, or an Embedding with sparse=False"
        )
    if not param._array.flags.writeable:
        raise NumgradRuntimeError(
            f"{where} lies in memory that must not be written; optimize a copy"
        )
    check_state(where, "gradient", grad, param.shape, param.dtype, written=False)
    for name, (shape, dtype) in layout.items():
        if name in state:
            check_state(where, name, state[name], shape, dtype)
