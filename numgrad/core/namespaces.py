"""Public namespaces: tables of names and their homes, and errors for names that are absent.

Note [Public namespaces]
------------------------
A module such as ``numgrad.special`` defines nothing: a table says from which module which names
come, and ``namespace`` puts them there. ``python -m numgrad stubs`` writes the same table as a
``.pyi``, which is what editors and type checkers read.

Note [Pickles by public names]
------------------------------
A pickle names the class of an object by ``__module__``. That stays the module that defines it,
where ``inspect.getsource`` and ``doctest`` look, and which may be another one in the next version.
So objects of public classes are pickled as ``_make`` of the public module and name. ``copyreg``
knows exact classes: a user's subclass is pickled as any other.
"""

import copyreg
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import Any

from numgrad.errors import NumgradAttributeError
from numgrad.libraries import LOADING, uncollected

HOMES: dict[str, dict[str, tuple[str, str]]] = {}
"""Public namespaces -> their names -> module and name there."""

_NOTHING: Mapping[str, str] = MappingProxyType({})


def namespace(
    public: dict[str, Any],
    homes: Mapping[str, str],
    instead: Mapping[str, str] = _NOTHING,
    late: Mapping[str, str] = _NOTHING,
    elsewhere: str = "",
) -> list[str]:
    """Put names of other modules into a public one: Note [Public namespaces].

    Parameters
    ----------
    public
        The globals of the public module, which get ``__all__``, ``__getattr__``, ``__dir__`` too.
    homes
        Modules -> the names that come from them, with blanks between; ``jn=jv`` is ``jv`` under
        another name. The public module itself stands for the modules in its folder.
    instead, elsewhere
        As for ``absent``.
    late
        The same as ``homes`` for names that are loaded when they are first asked for.

    Returns
    -------
    list of str
        The names in order.
    """
    module = public["__name__"]
    tables = _table(homes), _table(late)
    HOMES[module] = tables[0] | tables[1]
    names = sorted(HOMES[module])
    missing = absent(module, names, instead, elsewhere)

    def __getattr__(name: str) -> Any:
        if name not in tables[1]:
            return missing(name)
        with loading():
            public[name] = _imported(module, *tables[1][name])
        return public[name]

    for name, source in tables[0].items():
        public[name] = _imported(module, *source)
        _pickle_by_name(public[name], module, name)
    public["__getattr__"] = __getattr__ if late else missing
    public["__dir__"], public["__all__"] = lambda: names, names
    return names


@contextmanager
def loading() -> Iterator[None]:
    """Import what a name stands for, in one thread at a time.

    Python's locks are those of single modules: threads of which one loads a package and another a
    module in it wait for each other, which Python ends by an error.
    """
    with LOADING, uncollected():
        yield


def _table(homes: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Names -> module and name there."""
    return {
        name: (home, original or name)
        for home, text in homes.items()
        for name, _, original in (entry.partition("=") for entry in text.split())
    }


def _imported(module: str, home: str, name: str) -> Any:
    """An attribute of a module, or a module in the folder of the public one."""
    if home == module:
        return import_module(f"{home}.{name}")
    return getattr(import_module(home), name)


def _pickle_by_name(value: Any, module: str, name: str) -> None:
    """Pickle objects of a class of ours by its public name: Note [Pickles by public names]."""
    if not isinstance(value, type) or not value.__module__.startswith("numgrad."):
        return
    if (value.__reduce__, value.__reduce_ex__) == (object.__reduce__, object.__reduce_ex__):
        copyreg.pickle(value, partial(_reduced, module, name))


def _reduced(module: str, name: str, instance: Any) -> tuple[Any, ...]:
    """The parts that pickle stores of an object, its class as a public name."""
    make, arguments, *state = object.__reduce_ex__(instance, 2)
    if make is not copyreg.__newobj__:  # pyright: ignore[reportAttributeAccessIssue]
        return make, arguments, *state
    return _make, (module, name, *arguments[1:]), *state


def _make(module: str, name: str, *arguments: Any) -> Any:
    """An object of a public class, before its state is set; pickles name this function."""
    cls = getattr(import_module(module), name)
    return cls.__new__(cls, *arguments)


def absent(
    module: str, names: Iterable[str], instead: Mapping[str, str], elsewhere: str = ""
) -> Callable[[str], Any]:
    """``__getattr__`` of a module: it raises, and names what comes nearest or says why.

    Parameters
    ----------
    module
        Its name.
    names
        What it has.
    instead
        Names, or patterns of names, and what to do without them; ``*`` is for what nothing is near.
    elsewhere
        What is said besides.
    """

    def __getattr__(name: str) -> Any:
        fnmatchcase = import_module("fnmatch").fnmatchcase  # for errors only
        told = instead.get(name) or next(
            (text for key, text in instead.items() if len(key) > 1 and fnmatchcase(name, key)), None
        )
        if told is None and name[:1] != "_":
            close = close_matches(name, names, 1, 0.75)
            other = instead.get("*", "nothing comes near it")
            told = f"the nearest is {close[0]}" if close else other
            told += f"; {elsewhere}" if elsewhere else ""
        raise NumgradAttributeError(
            f"module {module!r} has no attribute {name!r}" + (f": {told}" if told else ""),
            name=name,
        )

    return __getattr__


def close_matches(name: str, names: Iterable[str], count: int, share: float) -> list[str]:
    """Close matches by ``difflib``, which is imported when needed: that takes a millisecond."""
    return import_module("difflib").get_close_matches(name, names, count, share)
