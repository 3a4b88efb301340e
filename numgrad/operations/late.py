"""Operations that are declared when one of their names is first asked for.

A program uses few of them, and declaring one takes about 0.1 ms: what most scripts call is
declared at import, the rest stands in the tables below. ``ng.sort``, ``tensor.sort()`` and
``np.sort(tensor)`` ask for a name; ``np.linalg.solve(tensor, b)`` for a namespace.
"""

from importlib import import_module
from typing import Any

import numpy as np

from numgrad.core.op import OPS, Op

_MODULES: dict[str, str] = {}
"""Modules of this package -> public names that they declare."""

LATE = {name: f"{__package__}.{home}" for home, names in _MODULES.items() for name in names.split()}
"""Public names of ``numgrad`` -> modules that declare them."""

_METHODS: dict[str, str] = {}
"""The same modules -> those of their names that are methods of Tensor too."""

METHODS = frozenset(name for names in _METHODS.values() for name in names.split())
"""Names of methods of Tensor among them."""

NAMESPACES: dict[str, str] = {}
"""Modules of NumPy and SciPy -> modules of ours, whose import declares what stands for theirs."""


def declared(name: str) -> Op:
    """The operation of a name in ``LATE``."""
    import_module(LATE[name])
    return next(op for op in OPS.values() if name in op.names)


def declare_for(function: Any) -> bool:
    """Declare what may stand for a function of NumPy's or SciPy's; False if nothing more can."""
    name = function.__name__
    home = getattr(function, "__module__", None) or "numpy"
    if isinstance(function, np.ufunc):
        home = "numpy" if getattr(np, name, None) is function else "scipy.special"
    module = LATE.get(name) if home == "numpy" else NAMESPACES.get(home)
    known = len(OPS)
    if module is not None:
        import_module(module)
    return len(OPS) > known


def declare_all() -> None:
    """Declare all operations of both tables."""
    for module in {*LATE.values(), *NAMESPACES.values()}:
        import_module(module)
