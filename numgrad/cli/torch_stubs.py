"""Stubs of the face for PyTorch, from its tables: functions of the module, members of Tensor."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numgrad.torch as torch
from numgrad.libraries import PACKAGE
from numgrad.torch import dtypes, wrapping
from numgrad.torch.calls import ROWS, TableRow

_WRITTEN = ("__getattr__", "__new__", "__init__", "__hash__", "__slots__", "__dict__")


def stub_of_tensor(head: tuple[str, ...]) -> str:
    """The stub of the module that defines ``torch.Tensor``."""
    lines = [*head, "from typing import Any", ""]
    for name, value in vars(wrapping).items():
        if inspect.isfunction(value) and value.__module__ == wrapping.__name__ and name[0] != "_":
            lines.append(f"def {name}({_parameters(inspect.signature(value))}) -> Any: ...")
    lines += [
        "",
        "class Tensor:",
        "    def __init__(self, *args: Any, **options: Any) -> None: ...",
    ]
    lines.append("    _tensor: Any")
    for name, value in sorted(vars(wrapping.Tensor).items()):
        lines += [f"    {line}" for line in _member(name, value)]
    lines += ["", "class Parameter(Tensor):"]
    lines.append("    def __init__(self, data: Any = None, requires_grad: Any = True) -> None: ...")
    return "\n".join([*lines, ""])


def functions_of_torch() -> str:
    """Functions and dtypes of the topmost module."""
    lines = [f"{name}: _dtype" for name in (*dtypes.DTYPES, *dtypes.ALIASES)]
    for name, row in sorted(ROWS[""].items()):
        if "method" not in row.flags and hasattr(torch, name):
            lines.append(f"def {name}({_of_row(row)}) -> {_result(row)}: ...")
    lines.append("def __getattr__(name: str) -> Any: ...")
    first = "from typing import Any\n\nfrom numgrad.torch.dtypes import dtype as _dtype\n"
    return "\n".join([first, *lines, ""])


def paths() -> dict[str, Path]:
    """The files."""
    return {name: Path(PACKAGE, "torch", f"{name}.pyi") for name in ("__init__", "wrapping")}


def _member(name: str, value: Any) -> Iterator[str]:
    if name in _WRITTEN or (name[0] == "_" and name[:2] != "__" and name != "_version"):
        return
    if isinstance(value, property):
        yield "@property"
        yield f"def {name}(self) -> Any: ..."
        if value.fset is not None:
            yield f"@{name}.setter"
            yield f"def {name}(self, value: Any) -> None: ..."
    elif inspect.isfunction(value):
        row = ROWS[""].get(name if name in ROWS[""] else name.removesuffix("_"))
        is_row = row is not None and value.__module__ == "numgrad.torch.calls"
        parameters = _of_row(row) if is_row and row else _parameters(inspect.signature(value))
        first, _, rest = parameters.partition(", ")
        given = ", ".join(part for part in ("self", rest) if part and first)
        ignore = "  # pyright: ignore" if name in ("__eq__", "__ne__") else ""
        yield f"def {name}({given}) -> {_result(row) if is_row and row else 'Any'}: ...{ignore}"


def _of_row(row: TableRow) -> str:
    signature = inspect.signature(row.function)
    shown = _parameters(signature, stars=row.sizes)
    has_out = not any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    star = "" if "*" in shown else "*, "
    return f"{shown}, {star}out: Any = None" if has_out else shown


def _result(row: TableRow) -> str:
    return "Tensor" if row.op is not None or "inplace" in row.flags else "Any"


def _parameters(signature: inspect.Signature, stars: int | None = None) -> str:
    """Parameters as written; from the position ``stars`` on integers may follow each other."""
    parts: list[str] = []
    for k, p in enumerate(signature.parameters.values()):
        if stars is not None and k == stars:
            parts.append(f"*{p.name}: Any")
            continue
        if p.kind is p.KEYWORD_ONLY and not any(part[0] == "*" for part in parts):
            parts.append("*")
        sign = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        plain = isinstance(p.default, int | float | str | tuple | None)
        default = "" if p.default is p.empty else f" = {p.default!r}" if plain else " = ..."
        typed = "" if p.name == "self" else ": Any"
        parts.append(f"{sign}{p.name}{typed}{default}")
    return ", ".join(parts)
