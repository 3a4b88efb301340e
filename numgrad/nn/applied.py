"""Options of layers: shared ranges, tuples along axes, and modules that apply a function.

Note [Applied functions]
------------------------
The body of a module that applies a function of ``nn.functional`` declares its options as in Note
[Declared options]; they become attributes. ``forward`` calls the function: parameters that are
options get the attributes, ``training`` that of the module, and those without a default are the
inputs. What an option means stands in the docstring of the function.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, dataclass_transform

from numgrad.core import options
from numgrad.core.options import Option, compiled_method, declare, option
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn.module.module import Module

_SIZE, _COUNT = Option(at_least=0), Option(above=0)


RANGES: dict[str, Option] = {
    **dict.fromkeys(
        [
            *("in_features", "out_features", "in2_features", "in_channels", "out_channels"),
            *("num_features", "num_channels", "num_embeddings", "embedding_dim"),
            *("input_size", "proj_size", "kdim", "vdim"),
        ],
        _SIZE,
    ),
    **dict.fromkeys(
        [
            *("in1_features", "hidden_size", "num_layers", "embed_dim", "num_heads"),
            *("groups", "num_groups", "num_parameters", "d_model", "nhead", "dim_feedforward"),
            *("num_encoder_layers", "num_decoder_layers"),
        ],
        _COUNT,
    ),
    **dict.fromkeys(["eps", "layer_norm_eps"], Option(at_least=0)),
    "dropout": Option(at_least=0, at_most=1),
}
"""The vocabulary: Note [Declared options]."""


checked = options.checked(RANGES)


def along_axes(operation: str, what: str, value: Any, rank: int, least: int) -> tuple[int, ...]:
    """An option as a tuple with an integer, at least ``least``, for each of ``rank`` axes."""
    several = isinstance(value, tuple | list) or getattr(value, "ndim", 0) == 1
    entries: tuple[Any, ...] = tuple(value) if several else (value,)
    if len(entries) == 1:
        entries *= rank
    try:
        entries = tuple([n.__index__() for n in entries])
    except (AttributeError, TypeError):
        raise NumgradTypeError(
            f"{operation}: {what} must be an integer or a tuple of {rank}, got {value!r}"
        ) from None
    if len(entries) != rank or min(entries) < least:
        raise NumgradValueError(
            f"{operation}: {what} must be an integer, or a tuple of {rank}, of at least {least}; "
            f"got {value!r}"
        )
    return entries


_Class = TypeVar("_Class", bound=type)

COMMON: dict[str, Option] = {
    "inplace": Option(doc="Write to the input."),
    "reduction": Option(doc='``"mean"``, ``"sum"`` or ``"none"``.'),
    "dim": Option(doc="The axis; without one it is guessed, with a warning."),
    "alpha": Option(doc="Scale of what is not positive."),
}
"""The vocabulary, for functions that do not describe these themselves."""


class Applied(Module):
    """Base of modules that apply a function: Note [Applied functions]."""

    _options: ClassVar[dict[str, Option]] = {}
    _checked: ClassVar[tuple[Option, ...]] = ()
    shown: ClassVar[tuple[str, ...] | None] = None
    """The options that ``repr`` shows, by default all; a flag only where it is set."""

    def _set_up(self, options: dict[str, Any]) -> None:
        """Check and set the options: the body of a declared constructor."""
        super().__init__()
        for limited in self._checked:
            limited.check(type(self).__name__, options[limited.name])
        self._check_options(options)
        for name, value in options.items():
            setattr(self, name, value)

    def _check_options(self, options: dict[str, Any]) -> None:
        """Raise unless the options can be used together; may convert them."""

    def extra_repr(self) -> str:
        """The options."""
        names = [o.name for o in type(self)._options.values() if o.init]
        if self.shown is None:
            names = [name for name in names if name != "inplace" or self.inplace]
        else:
            names = [name for name in self.shown if name in names]
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)


@dataclass_transform(field_specifiers=(option,))
def applies(
    function: Callable[..., Any] | None = None, like: Callable[..., Any] | None = None
) -> Callable[[_Class], _Class]:
    """Give a subclass of ``Applied`` its constructor and a ``forward`` that calls ``function``.

    Parameters
    ----------
    function
        Of ``nn.functional``; None for a base class, which declares options alone.
    like
        The function whose docstring describes the parameters, if that of ``function`` refers to it.

    Examples
    --------
    >>> import numgrad as ng
    >>> from numgrad.nn.applied import Applied, applies
    >>> @applies(ng.nn.functional.gelu)
    ... class FastGELU(Applied):
    ...     approximate: str = "tanh"
    >>> FastGELU()
    FastGELU(approximate='tanh')
    """

    def decorate(cls: _Class) -> _Class:
        described = {name: Option(doc=doc) for name, doc in _described(like or function).items()}
        options = declare(cls, {**COMMON, **described})
        if function is not None:
            made: Any = cls
            made.forward = _forward(cls, function, options)
        return cls

    return decorate


def _forward(cls: type, function: Callable[..., Any], options: Any) -> Callable[..., Any]:
    """``forward`` of a class, compiled from source: it costs no more than one written out."""
    inputs, arguments, by_name = [], [], False
    for name, parameter in inspect.signature(function).parameters.items():
        by_name = by_name or parameter.kind is parameter.KEYWORD_ONLY
        if name in options or name == "training":
            arguments.append(f"{name}=self.{name}" if by_name else f"self.{name}")
        elif parameter.default is parameter.empty:
            inputs.append(name)
            arguments.append(name)
        else:
            by_name = True
    body = f"return _given({', '.join(arguments)})"
    forward: Any = compiled_method(cls, "forward", ["self", *inputs], body, function)
    forward.__doc__ = f"Apply ``functional.{function.__name__}``."
    forward.__annotations__ = dict.fromkeys(inputs, "Any") | {"return": "Any"}
    return forward


_ENTRY = re.compile(r"^(\w+(?:, \w+)*)(?: : .*)?\n((?:    .*\n?|\n(?=    ))+)", re.MULTILINE)


def _described(function: Callable[..., Any] | None) -> dict[str, str]:
    """Sentences of the docstring of a function, by its parameters."""
    doc = (function and inspect.getdoc(function)) or ""
    section = re.search(r"^Parameters\n-+\n(.*?)(?:\n\n\w|\Z)", doc, re.MULTILINE | re.DOTALL)
    if not section:
        return {}
    return {
        name: " ".join(text.split())
        for names, text in _ENTRY.findall(section[1] + "\n")
        for name in names.split(", ")
    }
