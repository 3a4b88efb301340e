"""The package as a graph of imports: no circles, and no module that something else hides."""

import ast
import importlib
import pkgutil
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import numgrad
from numgrad.core.op import OPS

ROOT = Path(numgrad.__file__).parent


def _modules() -> dict[str, Path]:
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _imports(name: str, path: Path, modules: dict[str, Path]) -> set[str]:
    """The modules of the package that a module imports, wherever in it, for its types too."""
    found = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {inner_name if inner_name in modules else node.module for inner_name in inner}
    return {module for module in found if module in modules} - {name}


def test_no_circles_of_imports():
    modules = _modules()
    graph = {name: _imports(name, path, modules) for name, path in modules.items()}
    TopologicalSorter(graph).prepare()  # a CycleError names the circle


def test_every_module_is_found_under_its_name():
    """``import numgrad.x.y as m`` gives the module: no function of that name hides it."""
    hidden = []
    for info in pkgutil.walk_packages(numgrad.__path__, "numgrad."):
        if info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        found = numgrad
        for part in info.name.split(".")[1:]:
            found = getattr(found, part)
        if found is not module:
            hidden.append(info.name)
    assert not hidden


def test_floors_below_nn_know_no_layer():
    """What an operation of a layer needs stands beside it, not in tables by name further down."""
    layers = {op.name for op in OPS.values() if op.__module__.startswith("numgrad.nn.")}
    assert "linear" in layers
    named = [
        (name, node.value)
        for name, path in _modules().items()
        if name.split(".")[1:2] in (["core"], ["operations"], ["autograd"], ["compiler"])
        and name != "numgrad.operations.quantiles"  # one of NumPy's methods is "linear"
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Constant)
        and node.value in layers
        # a straight line, in words of NumPy and SciPy
        and not (node.value in ("linear", "bilinear") and name.startswith("numgrad.operations."))
    ]
    assert not named


def test_every_class_has_a_name_of_its_own():
    places: dict[str, list[str]] = {}
    for name, path in _modules().items():
        if name.startswith("numgrad.torch."):  # whose names are PyTorch's, as many of ours are
            continue
        for node in _tree(path).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(name)
    assert not {cls: found for cls, found in places.items() if len(found) > 1}
