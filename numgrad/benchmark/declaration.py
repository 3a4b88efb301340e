"""Declarations in a file of benchmarks: the functions, their arguments, their counterparts."""

from __future__ import annotations

import importlib.util
import inspect
import itertools
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from numgrad.core.arguments import signature_of
from numgrad.errors import NumgradTypeError, NumgradValueError

PREFIX = "bench_"
_LAZY = {
    "a generator function": inspect.isgeneratorfunction,
    "a coroutine function": inspect.iscoroutinefunction,
    "an asynchronous generator function": inspect.isasyncgenfunction,
}
ATTRIBUTE = "__numgrad_benchmark__"

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class Declared:
    """Declarations by the decorators of one function."""

    parameters: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    setup: Callable[..., Mapping[str, Any]] | None = None
    counterparts: dict[str, Callable[..., Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Benchmark:
    """A function and one choice of its parameters.

    Attributes
    ----------
    name
        The function's name without ``bench_``, and the parameters in brackets.
    """

    name: str
    function: Callable[..., Any]
    parameters: Mapping[str, Any]
    declared: Declared

    def arguments(self) -> dict[str, Any]:
        """The keyword arguments of a call, made anew.

        Raises
        ------
        NumgradTypeError
            If ``setup`` does not return arguments by name.
        """
        make = self.declared.setup
        made = self.parameters if make is None else make(**self.parameters)
        if not isinstance(made, Mapping):
            raise NumgradTypeError(
                f"{self.name}: setup returned {type(made).__name__}; return the arguments of the "
                "benchmark by name, such as {'x': x}"
            )
        return dict(made)

    def check(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
        """Raise unless a call of ``function``, this or a counterpart, does what is to be timed.

        Raises
        ------
        NumgradTypeError
            If the arguments do not fit, or a call only makes a generator or a coroutine.
        """
        for kind, is_one in _LAZY.items():
            if is_one(function):
                raise NumgradTypeError(
                    f"{self.name}: it is {kind}, whose body a call does not run; time a function "
                    "that runs it"
                )
        try:
            signature = signature_of(function)
        except (TypeError, ValueError):  # what is written in C may have none
            return
        try:
            signature.bind(**arguments)
        except TypeError as error:
            listing = ", ".join(arguments) or "nothing"
            raise NumgradTypeError(
                f"{self.name}: {error}; given is {listing}, and ng.benchmark.parametrize and "
                "ng.benchmark.setup say what a benchmark is given"
            ) from None


def _declared(function: Callable[..., Any]) -> Declared:
    declaration = getattr(function, ATTRIBUTE, None)
    if declaration is None:
        declaration = Declared()
        setattr(function, ATTRIBUTE, declaration)
    return declaration


def parametrize(name: str, values: Sequence[Any]) -> Callable[[F], F]:
    """Run a benchmark once for each value of a parameter; several decorators make all combinations.

    Parameters
    ----------
    name
        The parameter: a keyword argument of the benchmark, or of its ``setup``.
    values
        What it is in turn. They appear in names and files by their ``repr``.

    Raises
    ------
    NumgradValueError
        If there is no value, or the parameter has values already.

    Examples
    --------
    >>> import numgrad as ng
    >>> @ng.benchmark.parametrize("n", [10, 1_000])
    ... def bench_sum(n):
    ...     return ng.ones(n).sum()
    """
    choices = tuple(values)
    if not choices:
        raise NumgradValueError(f"parametrize({name!r}): there is no value; give at least one")

    def declare(function: F) -> F:
        parameters = _declared(function).parameters
        if name in parameters:
            raise NumgradValueError(
                f"parametrize({name!r}): {function.__name__} has values of {name!r} already"
            )
        parameters[name] = choices
        return function

    return declare


def setup(make: Callable[..., Mapping[str, Any]]) -> Callable[[F], F]:
    """Make the arguments of a benchmark outside the time that is taken.

    Parameters
    ----------
    make
        Takes the parameters by keyword, returns the benchmark's keyword arguments.

    Examples
    --------
    >>> import numpy as np
    >>> import numgrad as ng
    >>> @ng.benchmark.parametrize("n", [10, 1_000])
    ... @ng.benchmark.setup(lambda n: {"x": np.linspace(0.0, 1.0, n)})
    ... def bench_total(x):
    ...     return np.sum(np.exp(x))
    """

    def declare(function: F) -> F:
        _declared(function).setup = make
        return function

    return declare


def against(benchmark: Callable[..., Any], library: str) -> Callable[[F], F]:
    """Name what does in another library what a benchmark does: timed with ``--against library``.

    Parameters
    ----------
    benchmark
        The benchmark; the counterpart is called with the same arguments.
    library
        The library's name, such as ``"jax"`` or ``"torch"``. The counterpart runs in a process of
        its own, since thread pools of libraries disturb each other. Results of JAX are waited for.

    Examples
    --------
    >>> import numpy as np
    >>> import numgrad as ng
    >>> def bench_product(n=100):
    ...     return ng.ones((n, n)) @ ng.ones((n, n))
    >>> @ng.benchmark.against(bench_product, "numpy")
    ... def product_of_arrays(n=100):
    ...     return np.ones((n, n)) @ np.ones((n, n))
    """

    def declare(function: F) -> F:
        _declared(benchmark).counterparts[library] = function
        return function

    return declare


def collect(path: Path) -> dict[str, Benchmark]:
    """The benchmarks of a file by name, in the order of the file.

    Raises
    ------
    NumgradValueError
        If there is no such file, it fails to run, or it has no function ``bench_*``.
    """
    if not path.is_file():
        raise NumgradValueError(f"bench {path}: there is no such file")
    specification = importlib.util.spec_from_file_location(path.stem, path)
    if specification is None or specification.loader is None:
        raise NumgradValueError(f"bench {path}: not a Python file; its name has to end with .py")
    module = importlib.util.module_from_spec(specification)
    sys.modules.setdefault(path.stem, module)
    sys.path.insert(0, str(path.parent))
    try:
        specification.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise NumgradValueError(f"bench {path}: the file raises {error!r}") from error
    benchmarks: dict[str, Benchmark] = {}
    for name, function in vars(module).items():
        if name.startswith(PREFIX) and callable(function):
            for benchmark in _choices(name.removeprefix(PREFIX), function):
                benchmarks[benchmark.name] = benchmark
    if not benchmarks:
        raise NumgradValueError(
            f"bench {path}: no function whose name begins with {PREFIX!r}; name one so"
        )
    return benchmarks


def _choices(name: str, function: Callable[..., Any]) -> list[Benchmark]:
    declared = getattr(function, ATTRIBUTE, Declared())
    keys = tuple(reversed(declared.parameters))  # as they are read, from the top
    made = []
    for values in itertools.product(*(declared.parameters[key] for key in keys)):
        arguments = dict(zip(keys, values, strict=True))
        brackets = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        made.append(
            Benchmark(f"{name}[{brackets}]" if arguments else name, function, arguments, declared)
        )
    return made


def names_of(known: Iterable[str], text: str | None) -> list[str]:
    """The names that contain a text.

    Raises
    ------
    NumgradValueError
        If there is none.
    """
    known = list(known)
    names = [name for name in known if text is None or text in name]
    if not names:
        raise NumgradValueError(
            f"bench --only {text!r}: no benchmark is called so; there are {', '.join(known)}"
        )
    return names
