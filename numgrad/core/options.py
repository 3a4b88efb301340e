"""Options of a constructor, each declared once in the body of its class.

Note [Declared options]
-----------------------
A class says its options as a dataclass does, ``name: type = default`` in their order, those after
``_: KW_ONLY`` by keyword only; ``option(...)`` in place of a default adds a range and a sentence.
A family of classes has a vocabulary besides, with the range and the sentence of names that mean
the same everywhere. From these follow the signature of ``__init__``, which editors read from the
class body as it stands (PEP 681), the checks, and the Parameters section of the docstring. The
constructor hands what it got to ``_set_up(options)``. Declared names are no attributes of
the class, and a subclass that declares nothing has the constructor of its base. A constructor that
is written out has the same checks by ``@checked``, from its annotations and a vocabulary.
"""

import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, replace
from functools import cached_property, wraps
from itertools import groupby
from math import inf, prod
from operator import index
from typing import Any, TypeVar

from numgrad.core.arguments import REQUIRED
from numgrad.dataclass import dataclass
from numgrad.errors import NumgradTypeError, NumgradValueError, generated

_NUMBERS = (float, int)
_KINDS = {"float": "a number", "int": "an integer", "bool": "True or False"}
_Constructor = TypeVar("_Constructor", bound=Callable[..., Any])


@dataclass(frozen=True)
class Option:
    """One option of a constructor.

    Parameters
    ----------
    default
        Its value if none is given. Of a tuple each part is checked; a part whose default is None
        may be None.
    doc
        What it means, one sentence; that of the vocabulary if left out.
    at_least, above, at_most, below
        The range.
    one_of
        The values there are, if these are words.
    after
        The option that is checked before this one, where that is not the order of declaration.
    brings
        The state that is kept where the option is on.
    init
        False for what a class fixes.
    name, annotation, keyword_only
        Where it stands in the class body. An annotation ``float``, ``int`` or ``bool``, maybe
        ``| None``, says the kind that is checked.
    """

    default: Any = REQUIRED
    doc: str = ""
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    one_of: tuple[str, ...] = ()
    after: str = ""
    brings: str = ""
    init: bool = True
    name: str = ""
    annotation: str = "Any"
    keyword_only: bool = False

    @cached_property
    def limits(self) -> tuple[float, float, tuple[float, ...]]:
        """The least and the largest value, and which of these are not in the range."""
        lows, highs = (self.at_least, self.above), (self.at_most, self.below)
        low = next((bound for bound in lows if bound is not None), -inf)
        high = next((bound for bound in highs if bound is not None), inf)
        return low, high, tuple(b for b in (self.above, self.below) if b is not None)

    @property
    def range(self) -> str:
        """The range in words, empty if there is none."""
        low, high, _ = self.limits
        if high < inf:
            left, right = "[" if self.above is None else "(", "]" if self.below is None else ")"
            return f"in {left}{low:g}, {high:g}{right}"
        if self.above is not None:
            return "positive" if low == 0 else f"above {low:g}"
        return "" if low == -inf else f"at least {low:g}"

    @cached_property
    def kind(self) -> str:
        """The kind of its values in words, empty if any will do."""
        if self.one_of:
            none = ["None"] if "None" in self.annotation else []
            return " or ".join([*map(repr, self.one_of), *none])
        kinds = [
            kind_name
            for kind_name in self.annotation.split(" | ")
            if kind_name not in ("None", "Tensor")
        ]
        known = _KINDS.get(kinds[0], "") if len(kinds) == 1 else ""
        return known or ("a number" if self.range else "")

    def check(self, owner: str, value: Any) -> None:
        """Raise unless ``value``, or each of its parts, is of the kind and in the range."""
        low, high, excluded = self.limits
        if type(self.default) is tuple:
            if not isinstance(value, tuple | list) or len(value) != len(self.default):
                raise NumgradTypeError(
                    f"{owner}: {self.name} is {value!r}; it must be {len(self.default)} numbers, "
                    f"as {self.default}"
                )
            for number, element in enumerate(value):
                if element is not self.default[number]:  # a None
                    name = f"{self.name}[{number}]"
                    replace(self, default=REQUIRED, name=name, annotation="float").check(
                        owner, element
                    )
            return
        if type(value) in _NUMBERS and self.kind == "a number":  # as nearly always
            if low <= value <= high and value not in excluded:
                return
        elif value is None and "None" in self.annotation:
            return
        shape = getattr(value, "shape", ())
        if prod(shape) != 1:
            raise NumgradValueError(
                f"{owner}: {self.name} is a Tensor of shape {shape}; it must have one element"
            )
        try:
            outside = not self._fits(value)
        except TypeError:
            expected = ", ".join(filter(None, (self.kind, self.range)))
            raise NumgradTypeError(
                f"{owner}: {self.name} is {value!r}; it must be {expected}"
            ) from None
        if outside:
            expected = self.range or self.kind
            seen = repr(value) if self.one_of else value
            raise NumgradValueError(f"{owner}: {self.name} is {seen}; it must be {expected}")

    def _fits(self, value: Any) -> bool:
        """Whether a value is in the range; a TypeError if it is of another kind."""
        if self.one_of:
            return value in self.one_of
        low, high, excluded = self.limits
        if self.kind == "True or False":
            if value is None or value in (0, 1):
                return True
            raise TypeError
        if self.kind == "an integer":
            if isinstance(value, bool):
                raise TypeError
            value = index(value)
        return low <= value <= high and value not in excluded


def option(**arguments: Any) -> Any:
    """Declare an option in a class body, with the fields of ``Option`` by name."""
    return Option(**arguments)


def declare(cls: type, known: Mapping[str, Option]) -> dict[str, Option]:
    """Give a class the constructor of the options that its body declares, and return these.

    ``known`` is the vocabulary. Options of a base class come first, in their places; those by
    keyword only come last.
    """
    options: dict[str, Option] = dict(getattr(cls, "_options", {}))
    keyword_only = False
    for name, annotation in inspect.get_annotations(cls).items():
        if annotation is KW_ONLY or annotation == "KW_ONLY":
            keyword_only = True
            continue
        if not isinstance(annotation, str):  # without ``from __future__ import annotations``
            annotation = inspect.formatannotation(annotation)
        if not annotation.startswith("ClassVar"):
            declared, usual = cls.__dict__.get(name, REQUIRED), known.get(name, Option())
            if not isinstance(declared, Option):
                declared = replace(usual, default=declared)
            if name in cls.__dict__:
                delattr(cls, name)
            options[name] = replace(
                declared,
                doc=declared.doc or usual.doc,
                name=name,
                annotation=annotation,
                keyword_only=keyword_only,
            )
    options = dict(sorted(options.items(), key=lambda entry: entry[1].keyword_only))
    made: Any = cls
    made._options = options
    made._checked = in_order(options.values())
    made.__init__ = _constructor(cls, options)
    made.__doc__ = _documented(cls.__doc__, options.values())
    return options


def in_order(options: Any) -> tuple[Option, ...]:
    """Options that have a kind or a range, in the order in which they are checked."""
    limited = [o for o in options if o.kind]
    order = [o for o in limited if not o.after]
    for late in [o for o in limited if o.after]:
        names = [o.name for o in order]
        order.insert(names.index(late.after) + 1 if late.after in names else 0, late)
    return tuple(order)


def checked(known: Mapping[str, Option]) -> Callable[[_Constructor], _Constructor]:
    """Check the arguments of a constructor that is written out: Note [Declared options]."""

    def decorate(constructor: _Constructor) -> _Constructor:
        parameters = inspect.signature(constructor).parameters
        options = [
            replace(known.get(name, Option()), name=name, annotation=parameter.annotation)
            for name, parameter in parameters.items()
            if isinstance(parameter.annotation, str)
        ]
        limited = in_order(options)

        @wraps(constructor)
        def construct(self: Any, *args: Any, **kwargs: Any) -> None:
            arguments = dict(zip(list(parameters)[1:], args, strict=False)) | kwargs
            for o in limited:
                if o.name in arguments:
                    o.check(type(self).__name__, arguments[o.name])
            constructor(self, *args, **kwargs)

        made: Any = construct
        return made

    return decorate


def _constructor(cls: type, options: Mapping[str, Option]) -> Any:
    """An ``__init__`` with the signature that the options say."""
    arguments = [o for o in options.values() if o.init]
    parameters = ["self"]
    for o in arguments:
        if o.keyword_only and "*" not in parameters:
            parameters.append("*")
        parameters.append(o.name if o.default is REQUIRED else f"{o.name}=_given[{o.name!r}]")
    values = [f"{n!r}: {n if o.init else f'_given[{n!r}]'}" for n, o in options.items()]
    made = compiled_method(
        cls,
        "__init__",
        parameters,
        f"self._set_up({{{', '.join(values)}}})",
        {o.name: o.default for o in options.values()},
    )
    made.__annotations__ = {**{o.name: o.annotation for o in arguments}, "return": "None"}
    return made


def compiled_method(
    cls: type, name: str, parameters: Sequence[str], body: str, captured: Any
) -> Callable[..., Any]:
    """A method of ``cls``, compiled from source in which ``_given`` stands for ``given``."""
    source = (
        f"def make(_given):\n    def {name}({', '.join(parameters)}):\n"
        f"        {body}\n    return {name}\n"
    )
    scope: dict[str, Any] = {}
    code = compile(source, generated(f"{name} of {cls.__name__}"), "exec")
    exec(code, vars(sys.modules[cls.__module__]), scope)
    made = scope["make"](captured)
    made.__qualname__ = f"{cls.__qualname__}.{name}"
    return made


# ------------------------------------------------------------------------------- documentation

_SECTION = re.compile(r"^(Raises|Warns|See Also|Notes|References|Examples)\n-+\n", re.MULTILINE)
_RAISES = "Raises\n------\nNumgradValueError\n    If an option is outside its range.\n\n"


def _documented(doc: str | None, options: Any) -> str | None:
    """A docstring with its Parameters section, which stands before the sections that follow."""
    if doc is None:  # python -OO
        return None
    text = inspect.cleandoc(doc)
    result = _SECTION.search(text)
    at = result.start() if result else len(text)
    shown = [o for o in options if o.init]
    section = "\n".join(["Parameters", "----------", *_entries(shown), "", ""]) if shown else ""
    if "\nRaises\n" not in text and any(o.range for o in shown):
        section += _RAISES
    return f"{text[:at].rstrip()}\n\n{section}{text[at:]}".rstrip() + "\n"


def _entries(options: Sequence[Option]) -> Iterator[str]:
    """Entries of options; neighbours with the same sentence share one."""
    for doc, same in groupby(options, key=lambda o: o.doc):
        members = list(same)
        head = ", ".join(o.name for o in members)
        if len(members) == 1:
            only = members[0]
            default = "" if only.default is REQUIRED else f"default {only.default!r}"
            state = f"with state ``{only.brings}``" if only.brings else ""
            about = [only.annotation.replace("Any", ""), default, only.range, state]
            head += f" : {', '.join(filter(None, about))}" if any(about) else ""
        yield head
        yield textwrap.fill(doc, 96, initial_indent="    ", subsequent_indent="    ")
