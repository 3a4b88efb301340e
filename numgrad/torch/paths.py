"""Paths of PyTorch's modules that are one module here: ``torch.nn.modules.loss``, or a table."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from numgrad.torch.missing import refuse


class _Path(ModuleType):
    """A module under another path, with all its names; it is loaded when one is asked for."""

    def __init__(self, name: str, home: str) -> None:
        super().__init__(name, f"``{home}`` under another path.")
        self.__dict__["_home"], self.__dict__["__path__"] = home, []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(import_module(self._home), name)

    def __dir__(self) -> list[str]:
        return [*dir(import_module(self._home))]


def module_of(path: str, doc: str, members: dict[str, Any]) -> None:
    """Make a module below ``numgrad.torch`` of what it has; without a path, add that to it."""
    name = f"numgrad.torch.{path}".rstrip(".")
    module = sys.modules.get(name) or ModuleType(name, doc)
    module.__dict__.update(members)
    if path:
        module.__dict__["__getattr__"] = refuse(module.__dict__)
        sys.modules[name] = module
        parent, _, last = name.rpartition(".")
        setattr(sys.modules[parent], last, module)


def alias(home: str, text: str) -> None:
    """Give a module other paths below ``numgrad.torch``, with blanks between."""
    for path in text.split():
        name = f"numgrad.torch.{path}"
        parent, _, last = name.rpartition(".")
        sys.modules[name] = module = _Path(name, home)
        if last not in vars(sys.modules[parent]):
            setattr(sys.modules[parent], last, module)
