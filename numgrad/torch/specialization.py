"""Modules of numgrad executed again with the classes of this room: ``Module``, hooks, containers.

Note [Specialized modules]
--------------------------
What registers parameters, runs hooks, writes states, holds modules, or schedules learning rates
never computes: it asks for classes (``isinstance(x, Parameter)``) and calls methods that numgrad
and PyTorch have both. So its source is a template in the classes ``Tensor``, ``Parameter``,
``Module`` and ``Optimizer``. ``specialize`` executes it a second time under another name, where
imports give this room's classes, as C++ instantiates a template or SML applies a functor: Leroy,
"A modular module system", 2000. A function or class of the source that is among the given names is
left out, and the given one stands in its place.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType, ModuleType
from typing import Any

from numgrad.torch.wrapping import Parameter, Tensor

GIVEN: dict[str, Any] = {"Tensor": Tensor, "Parameter": Parameter}
"""What names mean in specialized modules, wherever these import them from."""
_MODULES: dict[str, ModuleType] = {}
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class _Names:
    """A module as a specialized one imports from it."""

    def __init__(self, name: str) -> None:
        self._module, self._name = _MODULES.get(name) or import_module(name), name

    def __getattr__(self, name: str) -> Any:
        if name in GIVEN:
            return GIVEN[name]
        inside = _MODULES.get(f"{self._name}.{name}")
        return getattr(self._module, name) if inside is None else inside


def _import(
    name: str, scope: Any = None, local: Any = None, names: Any = (), level: int = 0
) -> Any:
    if names and name.startswith("numgrad."):
        return _Names(name)
    return builtins.__import__(name, scope, local, names, level)


def specialize(name: str, late: Mapping[str, Any] = _NOTHING, **given: Any) -> Any:
    """Execute a module of numgrad again: Note [Specialized modules].

    Parameters
    ----------
    name
        The module.
    late
        Values that names get at the end, those of imports among them.
    **given
        What names mean in it besides those of ``GIVEN``.
    """
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    with open(spec.origin, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    module = ModuleType(name.replace("numgrad.", f"{__name__}.", 1))
    scope = module.__dict__
    scope.update(__builtins__={**vars(builtins), "__import__": _import}, __file__=spec.origin)
    scope.update({**GIVEN, **given})
    tree.body = [node for node in tree.body if getattr(node, "name", None) not in scope]
    _MODULES[name] = sys.modules[module.__name__] = module
    exec(compile(tree, spec.origin, "exec"), scope)
    scope.update(late)
    return module


def expose(public: dict[str, Any], home: str, *modules: Any) -> None:
    """Give a module the public names of one of numgrad's, from specialized modules."""
    names = {name for name in dir(import_module(home)) if name[0] != "_"}
    for module in modules:
        for name in names & vars(module).keys():
            if getattr(vars(module)[name], "__module__", None) == module.__name__:
                public[name] = vars(module)[name]
