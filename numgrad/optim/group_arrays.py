"""The arrays that a step of an optimizer reads and writes, as long as its states are the same ones.

A hundred small tensors take the processor as long as Python takes to look up five of their arrays
each, so machine code does that once it is in use: Note [Hot paths] in
``codegen.cpython.hot_paths``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from operator import is_
from typing import Any

import numpy as np

from numgrad.autograd.variable import Parameter
from numgrad.codegen.cpython import hot_paths
from numgrad.codegen.cpython.c_api import ObjectTable, Words
from numgrad.tensors.tensor import Tensor

_objects = ObjectTable(TENSOR=Tensor, PARAMETER=Parameter, DICT=dict, NONE=None)
_machine_form: Callable[..., Any] | None = None
_form: Callable[..., Any] | None = None
"""``known_arrays`` in machine code, if in use."""


@cache
def _machine_code() -> Any:
    from numgrad.codegen.cpython import group_arrays  # LLVM comes with the first kernel
    from numgrad.codegen.cpython.builtin import Builtin

    return Builtin("known_arrays", group_arrays.text(_objects))


def _install() -> None:
    global _machine_form
    _machine_form = _machine_code().function("known_arrays", Words.of(_objects))
    _switch()


def _switch() -> None:
    global _form
    _form = _machine_form if hot_paths.enabled() else None


hot_paths.waiting.append(hot_paths.HotPath(lambda: _machine_code().cached, _install))
hot_paths.on_switch(_switch)


def known_arrays(
    params: list[Tensor],
    state: Mapping[Tensor, Any],
    names: tuple[str, ...],
    known: list[np.ndarray],
) -> list[np.ndarray] | None:
    """The arrays of parameters that have a gradient, of these gradients, and of each state.

    Parameters
    ----------
    params
        Those of a group.
    state
        A dictionary with that of each parameter.
    names
        The states in use.
    known
        Their arrays at the last step, those of a name after each other.

    Returns
    -------
    list of ndarray or None
        None if there are no states, a gradient is not dense, or a state is not the known one.
    """
    if _form is not None:
        return _form(params, state, names, known)
    if hot_paths.waiting:
        hot_paths.count_call()
    return _in_python(params, state, names, known)


def _in_python(
    params: list[Tensor],
    state: Mapping[Tensor, Any],
    names: tuple[str, ...],
    known: list[np.ndarray],
) -> list[np.ndarray] | None:
    params = [param for param in params if param._grad is not None]
    grads: list[Any] = [param._grad for param in params]
    if not names or any([type(grad) is not Tensor for grad in grads]):
        return None
    try:
        states = [state[param] for param in params]
        arrays = [own[name]._array for name in names for own in states]
    except (KeyError, AttributeError):  # not there yet, or no Tensors
        return None
    if len(known) != len(arrays) or not all(map(is_, known, arrays)):
        return None
    return [p._array for p in params] + [g._array for g in grads] + arrays
