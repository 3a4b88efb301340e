"""Load PyTorch's public tests, and what they stand on, with any library as ``torch``.

Modules of the checkout are read statement by statement: what needs an internal of PyTorch becomes
an ``Absent``, which fails the tests that use it and not the file. Modules that no library but
PyTorch has (``torch._C``, ``torch._dynamo``) are ``Absent`` as a whole.
"""

from __future__ import annotations

import ast
import importlib
import sys
import types
import unittest
import warnings
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

TEXTS = (
    "torch.testing._utils",
    "torch.testing._creation",
    "torch.testing._internal.common_utils",
    "torch.testing._internal.common_dtype",
    "torch.testing._internal.common_device_type",
    "torch.testing._internal.common_nn",
    "torch.testing._internal.common_optimizers",
    "torch.utils._pytree",
)
"""Modules that are read from the checkout."""

OTHERS = ("backends", "distributed", "fx", "jit", "library", "nested", "onnx", "ops", "package",
          "quantization", "sparse", "testing", "utils._", "utils.cpp_extension",
          "utils.flop_counter", "utils.hooks")  # fmt: skip
"""Modules of which no library but PyTorch has a like."""

FALSE = ("TEST_", "IS_", "PLATFORM_", "SM", "PYTORCH_", "NO_", "HAS_")
"""Beginnings of names of flags that are off."""


class Internal(unittest.SkipTest):
    """Raised where a test uses an internal of PyTorch."""


class Absent(types.ModuleType):
    """An internal of PyTorch: it may be imported and named, and raises where it is used."""

    def __init__(self, name: str, reason: str = "an internal of PyTorch") -> None:
        super().__init__(name)
        self.__path__ = []
        self.__dict__["_reason"] = reason

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        if name.startswith(FALSE):
            return False
        return Absent(f"{self.__name__}.{name}", self._reason)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and isinstance(args[0], types.FunctionType | type):
            return args[0]  # a decorator
        if self.__name__.rpartition(".")[2].startswith(
            ("skip", "expected", "only", "xfail", "tf32")
        ):
            return lambda test: test
        raise Internal(f"{self.__name__}: {self._reason}")

    def __bool__(self) -> bool:
        return False

    def __iter__(self) -> Any:
        return iter(())

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return (_AbsentBase,)


class _AbsentBase:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise Internal(f"{type(self).__name__} derives from an internal of PyTorch")


def load(path: Path, module: types.ModuleType, before: dict[str, Any] | None = None) -> None:
    """Execute a file statement by statement; a name whose definition fails is ``Absent``.

    ``before`` are names that stay as given, whatever the file defines.
    """
    namespace = module.__dict__
    given = before or {}
    namespace.update(given, __file__=str(path))
    for node in _statements(path):
        if isinstance(node, ast.If) and "__main__" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.ClassDef):
            node.body = [_guarded(item) for item in node.body]
        tree = ast.fix_missing_locations(ast.Module([node], []))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(tree, str(path), "exec"), namespace)
        except Exception as error:
            if isinstance(node, ast.Expr):  # tests of one class for each device
                namespace.setdefault("failed_statements", []).append(
                    f"{ast.unparse(node)[:60]}: {error!r}"
                )
            several = isinstance(node, ast.ImportFrom) and len(node.names) > 1
            for name in _one_by_one(node, namespace) if several else _bound(node):
                if isinstance(node, ast.Import) and name in namespace:
                    continue  # ``import torch.x`` after ``import torch``
                namespace[name] = Absent(f"{module.__name__}.{name}", f"{error!r} ({name})")
        namespace.update({k: v for k, v in given.items() if k in _bound(node)})


def _one_by_one(node: ast.ImportFrom, namespace: dict[str, Any]) -> list[str]:
    """Import each name of a statement by itself; those that are not there."""
    lacking = []
    for name in node.names:
        tree = ast.Module([ast.ImportFrom(node.module, [name], node.level)], [])
        try:
            exec(compile(ast.fix_missing_locations(tree), "import", "exec"), namespace)
        except Exception:
            lacking.append(name.asname or name.name)
    return lacking


def _statements(path: Path) -> list[ast.stmt]:
    """Statements of a file; each name that is imported is a statement of its own."""
    body: list[ast.stmt] = []
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            body += [
                ast.copy_location(ast.ImportFrom(node.module, [name], node.level), node)
                for name in node.names
            ]
        else:
            body.append(node)
    return body


def _guarded(node: ast.stmt) -> ast.stmt:
    """A method whose decorators fail is a test that fails, not a class without tests."""
    if not isinstance(node, ast.FunctionDef) or not node.decorator_list:
        return node
    fallback = ast.parse(
        f"def {node.name}(self, *args, _error=_error, **kwargs): raise _error from None"
    ).body
    handler = ast.ExceptHandler(ast.Name("Exception", ast.Load()), "_raised", [
        *ast.parse("_error = _raised").body, *fallback
    ])  # fmt: skip
    return ast.Try([node], [handler], [], [])


def _bound(node: ast.stmt) -> list[str]:
    """Names that a statement defines."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [a.asname or a.name.partition(".")[0] for a in node.names]
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    names = [n for n in ast.walk(node) if isinstance(n, ast.Name | ast.ClassDef | ast.FunctionDef)]
    return [
        n.id if isinstance(n, ast.Name) else n.name
        for n in names
        if not isinstance(n, ast.Name) or isinstance(n.ctx, ast.Store)
    ]


class _Testing(Absent):
    """``torch.testing`` of a library that has none."""

    @property
    def make_tensor(self) -> Any:
        """The checkout's."""
        return importlib.import_module("torch.testing._creation").make_tensor


def flags() -> dict[str, dict[str, Any]]:
    """What names of the checkout's modules mean: there is one device, and NumPy and SciPy."""
    name = "torch.testing._internal.common_device_type"
    utils = {"NATIVE_DEVICES": ("cpu",), "TEST_NUMPY": True, "TEST_SCIPY": True}
    utils |= dict.fromkeys(("TEST_MKL", "TEST_MPS", "TEST_XPU", "TEST_HPU", "TEST_ACL"), False)
    bases = dict.fromkeys(
        ("get_device_type_test_bases", "get_desired_device_type_test_bases"),
        lambda *args: [sys.modules[name].CPUTestBase],
    )
    skipped = unittest.skip("the database of operations is an internal of PyTorch")
    database = {"ops": lambda *args, **options: skipped}
    return {"torch.testing._internal.common_utils": utils, name: utils | bases | database}


class Checkout(MetaPathFinder, Loader):
    """Finds ``torch.testing._internal`` in a checkout, and gives ``Absent`` for other internals."""

    def __init__(self, folder: Path, given: dict[str, dict[str, Any]]) -> None:
        self.folder, self.given = folder, given

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        first, _, rest = fullname.partition(".")
        internal = any(part.startswith("_") and part[1] != "_" for part in rest.split("."))
        if first in ("functorch", "expecttest", "torchvision") or (
            first == "torch" and (fullname in TEXTS or internal or rest.startswith(OTHERS))
        ):
            return ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        known = spec.name in TEXTS
        if spec.name == "functorch":  # another name of torch.func
            module = Absent(spec.name)
            func = importlib.import_module("torch.func")
            vars(module).update({name: getattr(func, name) for name in func.__all__})
            return module
        if spec.name == "torch.testing":
            return _Testing(spec.name)
        return types.ModuleType(spec.name) if known else Absent(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        if module.__name__ in TEXTS:
            path = self.folder / (module.__name__.replace(".", "/") + ".py")
            load(path, module, self.given.get(module.__name__))
            if module.__name__.endswith("common_utils"):
                missing = Absent(module.__name__)
                module.__getattr__ = lambda name: getattr(missing, name)  # type: ignore[method-assign]


def install(library: Any, folder: Path, given: dict[str, dict[str, Any]]) -> None:
    """Make ``torch`` the library to the process's end, with what ``Checkout`` finds."""
    finder = Checkout(folder, given)
    if library.__name__ == "torch":  # PyTorch itself, with the checkout's test tools
        sys.meta_path.insert(0, _Only(finder))
    else:
        importlib.import_module("numgrad.torch.substitution").install()
        # what torch.func.vmap was called before
        library._vmap_internals = types.SimpleNamespace(_vmap=library.func.vmap)
        sys.meta_path.insert(1, finder)
        # not PyTorch's own package of that name
        sys.modules["functorch"] = finder.create_module(ModuleSpec("functorch", finder))


class _Only(MetaPathFinder):
    """Gives what is read from the checkout, and nothing else."""

    def __init__(self, finder: Checkout) -> None:
        self.finder = finder

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        mine = fullname.startswith("torch.testing._internal") and fullname in TEXTS
        return self.finder.find_spec(fullname, path) if mine else None
