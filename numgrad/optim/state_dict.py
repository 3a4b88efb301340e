"""An optimizer's state as a dictionary without Tensors for keys, and back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import chain
from typing import Any

import numpy as np

from numgrad.errors import NumgradValueError
from numgrad.tensor import Tensor


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


def unpack(
    optimizer: str,
    loaded: Mapping[str, Any],
    groups: Sequence[dict[str, Any]],
    uniform: Sequence[str],
) -> tuple[defaultdict[Any, Any], list[dict[str, Any]]]:
    """State and groups for the parameters of ``groups`` from what ``pack`` made."""
    saved = loaded["param_groups"]
    if len(saved) != len(groups):
        raise NumgradValueError(
            f"{optimizer}.load_state_dict: the state has {len(saved)} parameter groups, the "
            f"optimizer {len(groups)}"
        )
    sizes = [
        (len(old["params"]), len(new["params"])) for old, new in zip(saved, groups, strict=True)
    ]
    for number, (old, new) in enumerate(sizes):
        if old != new:
            raise NumgradValueError(
                f"{optimizer}.load_state_dict: group {number} of the state has {old} parameters, "
                f"that of the optimizer {new}"
            )
    tensors = dict(
        zip(
            chain.from_iterable(group["params"] for group in saved),
            chain.from_iterable(group["params"] for group in groups),
            strict=True,
        )
    )
    state: defaultdict[Any, Any] = defaultdict(dict)
    for key, value in loaded["state"].items():
        if key in tensors:
            state[tensors[key]] = _fitted(value, tensors[key], uniform)
        else:
            state[key] = value
    return state, [_merged(old, new) for old, new in zip(saved, groups, strict=True)]


def _merged(saved: Mapping[str, Any], group: Mapping[str, Any]) -> dict[str, Any]:
    """The saved options for the parameters of a group."""
    options = deepcopy({name: value for name, value in saved.items() if name != "params"})
    if "param_names" in group and "param_names" not in options:
        options["param_names"] = group["param_names"]
    return {**options, "params": group["params"]}


def _fitted(value: Any, param: Tensor, uniform: Sequence[str], key: str = "") -> Any:
    """A copy of a saved value with floating arrays in the dtype of the parameter."""
    if key in uniform and isinstance(value, Tensor | np.ndarray | int | float):
        array = value.detach().numpy() if isinstance(value, Tensor) else value
        return Tensor(np.array(array, np.float64))
    if isinstance(value, Tensor):
        array = value.detach().numpy().copy()
        if array.dtype.kind in "fc" and param.dtype.kind in "fc":
            real = array.dtype.kind == "f"  # LBFGS has real vectors for complex parameters
            dtype = np.finfo(param.dtype).dtype if real else param.dtype
            array = array.astype(dtype, copy=False)
        return Tensor(array)
    if isinstance(value, Mapping):
        return {name: _fitted(part, param, uniform, name) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_fitted(part, param, uniform, key) for part in value)
    return deepcopy(value)
