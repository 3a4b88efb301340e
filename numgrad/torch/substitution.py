"""``import torch`` that gives ``numgrad.torch``, for scripts that are run unchanged.

Note [Substituted modules]
--------------------------
``install`` puts a finder in front of the others, which answers for ``torch`` and all below it with
the module of the same path in ``numgrad.torch``: one object under two names, so that classes and
state are the same by whichever name they are reached.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from numgrad.errors import NumgradImportError


class _Finder(MetaPathFinder, Loader):
    """Finds modules of ``torch`` in ``numgrad.torch``."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname != "torch" and not fullname.startswith("torch."):
            return None
        try:
            module = import_module(f"numgrad.{fullname}")
        except NumgradImportError:  # other finders, the last of which says the same
            return None
        return ModuleSpec(fullname, self, is_package=hasattr(module, "__path__"))

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(f"numgrad.{spec.name}")
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None and spec.loader is self:  # the module stays what it is
            module.__spec__ = spec.loader_state
        for name, each in list(sys.modules.items()):  # or ``import`` would set attributes anew
            if name.startswith("numgrad.torch."):
                sys.modules.setdefault(name.removeprefix("numgrad."), each)


def install() -> _Finder:
    """Let ``import torch`` give ``numgrad.torch`` from now on."""
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    return finder


def _names() -> dict[str, ModuleType]:
    return {n: m for n, m in sys.modules.items() if n == "torch" or n.startswith("torch.")}


@contextmanager
def substituted() -> Iterator[None]:
    """Let ``import torch`` give ``numgrad.torch`` inside of a ``with`` block.

    Modules that were imported as ``torch`` before have their names again afterwards.
    """
    before = _names()
    for name in before:
        del sys.modules[name]
    finder = install()
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in _names():
            del sys.modules[name]
        sys.modules.update(before)
