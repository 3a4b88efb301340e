"""Compiled functions written to files: ``ng.export``.

Note [Exports]
--------------
An export is an object for linkers, a shared library, a header for C and C++, and a description from
which ``ng.load_native`` makes functions. The library is written without a linker where the system
has ELF (Note [Link editing] in ``codegen.native.elf``); elsewhere a C compiler links it, if there
is one, and if not an image is written, which ``load_native`` copies to memory (Note [Images] in
``codegen.c_library``). Whatever is not written is named by the result.
"""

from __future__ import annotations

import inspect
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numgrad
from numgrad.codegen import c_library
from numgrad.codegen.c_entry import kept_name
from numgrad.codegen.c_library import ExportedFunction
from numgrad.codegen.compile import load_or_compile
from numgrad.codegen.native import elf, machine, objects
from numgrad.compiler.call.signature import STATIC, Arguments
from numgrad.compiler.native.callbacks import forms
from numgrad.compiler.native.function import NativeFunction
from numgrad.compiler.native.header import header
from numgrad.compiler.native.program import identifier
from numgrad.core.tree import container_of
from numgrad.errors import (
    NumgradNotImplementedError,
    NumgradTypeError,
    NumgradValueError,
)

_CONSTANTS = (bool, int, float, str, type(None))


class Export:
    """What ``ng.export`` wrote.

    Attributes
    ----------
    files
        The files, by what they are: ``"object"``, ``"library"`` or ``"image"``, ``"header"``,
        ``"description"``, ``"module"``.
    missing
        Why there is no shared library; empty if there is one.
    """

    def __init__(self, files: dict[str, Path], missing: str, cpu: str) -> None:
        self.files, self.missing, self.cpu = files, missing, cpu

    def __repr__(self) -> str:
        lines = [f"export for {self.cpu}", *(f"  {k}: {v}" for k, v in self.files.items())]
        return "\n".join([*lines, *([f"  no library: {self.missing}"] if self.missing else [])])


def export(
    function: Any,
    path: str | os.PathLike[str],
    *examples: Any,
    cpu: str = "native",
    shapes: Literal["fixed", "free"] = "free",
    threads: int = 1,
    workspace: bool = False,
    module: bool = False,
    **named: Any,
) -> Export:
    """Write a compiled function to files that C, C++, ... link, and ``load_native`` loads.

    Parameters
    ----------
    function
        A function of ``ng.jit``, with examples of its arguments; what ``.native`` of one returned;
        or a dictionary of these, by their names in C, for one library of several functions.
    path
        Where to write: ``"model"`` makes ``model.so`` (``.dylib``, ``.dll``), ``model.o``,
        ``model.h`` and ``model.json``; ``model.image`` for ``load_native`` where nothing links a
        library, as for macOS and Windows without a C compiler.
    *examples, shapes, threads, workspace, **named
        As of ``ng.jit(f).native``; not where that was called.
    cpu
        ``"native"``, this one; ``"generic"``, any of its kind; ``"x86-64-v2"``, ``"x86-64-v3"``,
        ``"x86-64-v4"``, ``"neoverse-n1"`` or ``"apple-m1"``.
    module
        Whether to write ``model_native.py`` too, a module that has the functions with NumPy alone,
        also where numgrad is not installed, within milliseconds.

    Returns
    -------
    Export
        With ``.files``, and in ``.missing`` why there is no shared library, if there is none.

    Raises
    ------
    NumgradNotImplementedError
        If something in it cannot leave the process, as ``.native`` does, with the operation and the
        line; where it calls SciPy.
    NumgradTypeError, NumgradValueError
        For other functions, names that C does not take, other CPUs; beside a ``model.py``, which
        Python would import no more.

    Notes
    -----
    Values have the bits of what ``.native`` returns where the CPU is this one and no product of
    matrices has more than 262,144 multiplications, which ``ng.jit`` leaves to BLAS.

    Examples
    --------
    >>> import tempfile, numpy as np, numgrad as ng
    >>> @ng.jit
    ... def energy(x):
    ...     return ng.value_and_grad(lambda x: np.sum(x * x))(x)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = ng.export(energy, f"{folder}/model", np.zeros(3)).files
    ...     print(*sorted(files))
    description header library object
    """
    path = Path(os.fspath(path))
    stem = identifier(path.name, set())
    several = isinstance(function, Mapping)
    options = {"shapes": shapes} if shapes != "free" else {}
    options |= {"threads": threads} if threads != 1 else {}
    options |= {"workspace": workspace} if workspace else {}
    if several:
        if examples or named or options:
            raise NumgradTypeError(
                "export: takes no examples beside several functions, and no options of .native; "
                'give {"f": f.native(x), ...}'
            )
        natives = {name: _native(f, name, (), {}) for name, f in function.items()}
    else:
        native = _native(function, "", examples, {**named, **options})
        natives = {stem if native.name.startswith("lambda_") else native.name: native}
    _check_names(natives, stem)
    if path.with_name(f"{path.name}.py").exists():
        raise NumgradValueError(
            f"export: {path.name}.so beside {path.name}.py would hide it from import; choose "
            "another name"
        )
    names = [*natives, *[f"{name}_{form}" for name, f in natives.items() for form in forms(f)]]
    target = objects.target_of(cpu)
    functions = {name: _described(name, native) for name, native in natives.items()}
    files, missing, image = _write_code(path, natives, names, target)
    written = files.get("library") or files.get("image")
    about: dict[str, Any] = {
        "format": c_library.FORMAT,
        "name": stem,
        "several": several,
        "library": files["library"].name if "library" in files else None,
        "build": elf.build_id(written.read_bytes()).hex() if written else "",
        **({"image": image} if image else {}),
        "target": target._asdict() | {"name": cpu},
        "versions": {"numgrad": numgrad.__version__, **machine.versions()},
        "messages": c_library.MESSAGES,
        "functions": functions,
    }
    loaded = [ExportedFunction(described, 0) for described in functions.values()]
    files["header"] = path.with_name(f"{path.name}.h")
    files["header"].write_text(
        header(stem, loaded, f"{target.cpu}, {target.triple}"), encoding="utf-8"
    )
    files["description"] = path.with_name(f"{path.name}.json")
    files["description"].write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    if module:
        files["module"] = path.with_name(f"{path.name}_native.py")
        files["module"].write_text(_module_text(about), encoding="utf-8")
    return Export(files, missing, f"{cpu}, {target.triple}")


def _native(
    function: Any, name: str, examples: Sequence[Any], named: Mapping[str, Any]
) -> NativeFunction:
    if isinstance(function, NativeFunction):
        if examples or named:
            raise NumgradTypeError(
                f"export: {function.name} is a native function, which has its examples; give none, "
                "and no options of .native"
            )
        return function
    if name or not hasattr(function, "native"):
        what = f"{name} is " if name else "got "
        raise NumgradTypeError(
            f"export: {what}a {type(function).__name__}, expected "
            + ("ng.jit(f).native(*examples)" if name else "ng.jit(f) and examples of arguments")
        )
    return function.native(*examples, **named)


def _check_names(natives: Mapping[str, NativeFunction], stem: str) -> None:
    """Raise for names that C does not take, its library has, or the header gives to others."""
    if not natives:
        raise NumgradValueError("export: got no function")
    names = [f"{stem}_message"]
    for name, native in natives.items():
        if not isinstance(name, str) or not name.isascii() or identifier(name, set()) != name:
            raise NumgradValueError(f"export: {name!r} is no name of a function in C")
        if name in objects.NAMES_OF_C:
            raise NumgradValueError(
                f"export: {name} is a function of the C library, whose place it would take; choose "
                f'another name: {{"my_{name}": f.native(x)}}'
            )
        words = {"nested", "result", *native.examples.parameters.names, *forms(native)}
        names += [name, *[f"{name}_{word}" for word in words]]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise NumgradValueError(
            f"export: {twice[0]} would be the name of two things in {stem}.h; choose other names"
        )


# ----------------------------------------------------------------------------------- descriptions


def _described(name: str, native: NativeFunction) -> dict[str, Any]:
    """The description of a function, with how its arguments and results are nested."""
    program, arguments = native.program, native.examples
    parameters = arguments.parameters
    layout = program.layout
    pairs = zip(program.returned, layout.results, strict=True)
    leaves: list[Any] = [
        "*" if r is not None else {"value": result.constant} for r, result in pairs
    ]
    for leaf in leaves:
        if leaf != "*" and not isinstance(leaf["value"], _CONSTANTS):
            raise NumgradNotImplementedError(
                f"export: {name} returns a constant {type(leaf['value']).__name__}, which is "
                "nothing that a file holds"
            )
    return program.about | {
        "name": name,
        "workspace": native.workspace_size,
        "positional": parameters.positional,
        "star": parameters.star,
        "double_star": parameters.double_star,
        "parameters": _parameters(arguments),
        "results": _nesting(layout.nesting, iter(leaves), name),
    }


def _parameters(arguments: Arguments) -> dict[str, Any]:
    """How each argument is nested, by its name; constants of the examples as their texts."""
    leaves = iter([repr(x.value) if x.kind == STATIC else "*" for x in arguments.leaves])
    pairs = zip(arguments.parameters.names, arguments.nestings, strict=True)
    return {k: _nesting(nesting[0], leaves, k) for k, nesting in pairs if nesting is not None}


def _module_text(about: Mapping[str, Any]) -> str:
    """A module that loads a library by itself: Note [Standing alone] in ``codegen.c_library``."""
    own = inspect.getsource(c_library).partition("from __future__")
    head = (
        f'"""Functions compiled by numgrad {numgrad.__version__}, loaded with NumPy alone."""\n\n'
    )
    return "".join([head, *own[1:], f"""

ABOUT = {about!r}
globals().update(loaded(ABOUT, os.path.dirname(os.path.abspath(__file__))))
"""])  # fmt: skip


def _nesting(nesting: Any, leaves: Any, name: str) -> Any:
    if nesting is None:
        return next(leaves)
    kind, keys, children = nesting
    container: Any = container_of(kind)
    items = [_nesting(child, leaves, name) for child in children]
    if issubclass(kind, dict):
        if not all(isinstance(key, str) for key in keys):
            raise NumgradNotImplementedError(
                f"export: {name} has a dictionary whose keys are no strings: {keys}"
            )
        return {"kind": "dict", "keys": list(keys), "items": items}
    if container.fields and all(container.fields):
        return {"kind": "fields", "keys": list(container.fields), "items": items}
    if issubclass(kind, list | tuple):
        return {"kind": "list" if issubclass(kind, list) else "tuple", "items": items}
    raise NumgradNotImplementedError(
        f"export: {name} has a {kind.__name__}, a container that a file does not describe; use a "
        "dictionary, a list, a tuple or a dataclass"
    )


# ------------------------------------------------------------------------------------------- code


def _object(
    natives: Mapping[str, NativeFunction], names: Sequence[str], target: machine.Target
) -> bytes:
    """The object of functions, from disk if it was made before."""

    def compiled() -> bytes:
        with machine.targeting(target):
            texts = [t for name, f in natives.items() for t in f.program.modules(name, forms(f))]
        texts = list(dict.fromkeys(texts))  # kernels that several functions call
        return objects.relocatable(texts, names, target)

    parts = [t for name, f in natives.items() for t in f.program.identity(name, forms(f))]
    return load_or_compile(kept_name("export", *target, *parts), bytes, compiled)[0]


def _write_code(
    path: Path,
    natives: Mapping[str, NativeFunction],
    names: Sequence[str],
    target: machine.Target,
) -> tuple[dict[str, Path], str, dict[str, Any]]:
    """Write object and library or image; return files, why there is no library, the image."""
    data = _object(natives, names, target)
    is_elf = data[:4] == b"\x7fELF"
    as_elf = target if is_elf else target._replace(triple=f"{target.triple}-elf")
    code = data if is_elf else _object(natives, names, as_elf)
    imports = elf.ElfObject(code).imports
    foreign = objects.foreign(imports)
    if foreign:
        raise NumgradNotImplementedError(
            f"export: {', '.join(foreign)} is no function of ours or of the C library, and cannot "
            "leave this process"
        )
    files = {"object": path.with_name(f"{path.name}.o")}
    files["object"].parent.mkdir(parents=True, exist_ok=True)
    files["object"].write_bytes(data)
    end = "dylib" if "apple" in target.triple else "dll" if "windows" in target.triple else "so"
    library = path.with_name(f"{path.name}.{end}")
    if is_elf:
        whole = elf.shared_library(data, library.name, names, objects.libraries(imports))
        _replace(library, whole)
        return files | {"library": library}, "", {}
    missing = _linked(files["object"], library, target)
    if not missing:
        return files | {"library": library}, "", {}
    image = elf.memory_image(code, names)
    files["image"] = path.with_name(f"{path.name}.image")
    _replace(files["image"], image.content)
    about = {"file": files["image"].name, **image._asdict()}
    del about["content"]
    return files, missing, about


def _replace(path: Path, content: bytes) -> None:
    """Write a file beside the old one, which may be loaded."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_bytes(content)
    fresh.chmod(0o755)
    fresh.replace(path)


def _linkers() -> Iterator[list[str]]:
    """Commands of compilers that link."""
    for command in (["clang"], ["cc"], ["gcc"], ["zig", "cc"]):
        if shutil.which(command[0]) is not None:
            yield command
    if find_spec("ziglang") is not None:  # a package of PyPI
        yield [sys.executable, "-m", "ziglang", "cc"]


_ARM = ("arm64", "aarch64")


def _is_of_this_system(triple: str) -> bool:
    own = machine.triple()
    systems = [next(s for s in ("apple", "windows", "") if s in x) for x in (triple, own)]
    return systems[0] == systems[1] and triple.startswith(_ARM) == own.startswith(_ARM)


def _linked(code: Path, library: Path, target: machine.Target) -> str:
    """Link a library by a compiler of this system; return why there is none."""
    if not _is_of_this_system(target.triple):
        return f"nothing here links for {target.triple}; link {code.name} there"
    for linker in _linkers():
        command = [*linker, "-shared", "-o", str(library), str(code)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return f"{' '.join(command)} failed: {done.stderr.strip()}" if done.returncode else ""
    return "no clang, cc, gcc or zig was found (python -m pip install ziglang brings one)"
