"""Rows of the tables of names, and the functions and methods that follow from them.

Note [Rows of names]
--------------------
A row says what a name of PyTorch's is in terms of numgrad: ``name(parameters): expression``, with
PyTorch's names of parameters, and an expression of Tensors of numgrad (``torch.Tensor``s never get
there). ``{acos=arccos cos}(input): ng.@(input)`` are a row for each name in braces, with ``@`` for
the name or what stands behind its ``=``. An expression that begins with ``op == `` is that
operation for operands of one floating dtype, and such calls are done by machine code. A row with
``-> values indices`` before the colon has a named tuple of so many results. One with
``if condition`` there raises a RuntimeError that says so unless that is true of its arguments.

A line in brackets before rows says for those below how which operands are promoted, by their
positions (``number 2``: the first two; ``float 1:3``: the second and third; ``first 0,2``: the
first and third):

``number``
    to their common dtype, Note [Promotion by category] in ``dtypes``;
``float``
    the same, and integers to the default dtype;
``whole``
    the same, and booleans and short integers to int64, in which their sums are;
``inexact``
    the same, and integers raise;
``first``
    to the dtype of the first one;
``equal``
    not at all, and Tensors of several dtypes raise;
``same``
    not at all: these are just what has to be Tensors;
``own``
    by the expression, which takes Tensors and numbers.

and what else there is: ``inplace``, a form ``name_`` that writes into the first operand, with
``restrides`` one that sees its memory otherwise; ``function`` and ``method``, that it is only the
one or the other, ``property``, that it is one, ``reflected``, that it is a method of the second
operand; ``sizes=1``, that from the second parameter on integers may be written without
parentheses; ``dtype``, that the parameter of this name is a dtype to which the first operand is
converted before; ``axes``, that ``dim`` are axes: all if it is None or empty; ``axis``, that it is
one, which the expression gets counted from the first; ``indices``, that other indices out of range
are a RuntimeError. A Tensor without axes counts as having one of one element where ``axes`` or
``axis`` stand, and the results have none again. ``copies narrow`` is the row ``narrow_copy``,
whose results share no memory. Rows that turn out to be one operation (Note [Learning of calls] in
``tensors.learned_calls``) are done by machine code unless they look at numbers, as ``values`` says;
``learned`` says that only such calls are those of the operation, and ``facts`` that results are
numbers that follow from dtypes and shapes.
"""

from __future__ import annotations

import re
import warnings
from collections import namedtuple
from collections.abc import Callable, Iterable
from copy import copy
from functools import cache, partial
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from numgrad.autograd.forward_ad import has_tangent
from numgrad.autograd.history import check_view
from numgrad.autograd.modes import enable_grad, no_grad
from numgrad.autograd.variable import NO_GRAD_VIEW, Tensor as Base, root
from numgrad.autograd.versions import mark_written
from numgrad.codegen.cpython import argument_calls, hot_paths
from numgrad.core.abstract import AbstractLength
from numgrad.core.axis import AxisOp
from numgrad.core.elementwise import Elementwise
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.errors import (
    NumgradError,
    NumgradIndexError,
    NumgradRuntimeError,
    NumgradTypeError,
    NumgradValueError,
)
from numgrad.tensors.inplace import as_before, check_history, inplace as write_operation
from numgrad.tensors.learned_calls import LearnedEntry
from numgrad.tensors.recorder import CallRecorder, MachineEntry, late_method, takes
from numgrad.torch import dtypes
from numgrad.torch.arguments import (
    NUMBERS,
    RAISED,
    REFUSED,
    SEVERAL,
    NotTensorError,
    check_dtypes,
    translated,
)  # fmt: skip
from numgrad.torch.missing import refuse
from numgrad.torch.wrapping import Parameter, Tensor, named, unwrap, wrap

_SPELLINGS = {"axis": "dim", "keepdims": "keepdim", "x": "input", "x1": "input", "x2": "other"}
"""NumPy's names of arguments, which PyTorch takes too."""


class Section(NamedTuple):
    """The line in brackets: Note [Rows of names]."""

    kind: str
    operands: tuple[int, ...]
    flags: frozenset[str]
    sizes: int | None

    @classmethod
    def read(cls, text: str) -> Section:
        """Read it."""
        kind, span, *flags = text.split()
        first, _, last = span.rpartition(":")
        places = map(int, span.split(",")) if "," in span else range(int(first or 0), int(last))
        sizes = [int(flag.partition("=")[2]) for flag in flags if flag.startswith("sizes=")]
        return cls(kind, tuple(places), frozenset(flags), sizes[0] if sizes else None)


class TableRow:
    """A name of PyTorch's: Note [Rows of names].

    Attributes
    ----------
    space, name, function
        The module and the name; what it is, a function of numgrad's Tensors.
    body
        The expression, as written.
    kind, operands
        How which parameters are promoted.
    op
        The operation that it is for operands of one floating dtype.
    named
        Class of the named tuple of several results.
    refuses
        Kinds of dtypes that it is not made for.
    condition, holds
        That of its arguments, and the function that says whether it is true.
    sizes
        The first parameter that may be written as several integers.
    flags
        The others of its section.
    """

    public: Any = None
    """The function that users call."""
    entry: Any = None
    """Its machine code, once it is in use."""

    def __init__(
        self, space: str, name: str, function: Any, section: Section, fields: str = "",
        body: str = "", op: Any = None, condition: str = "", holds: Any = None,
    ) -> None:  # fmt: skip
        self.space, self.name, self.function, self.body, self.op = space, name, function, body, op
        self.kind, self.sizes, self.flags = section.kind, section.sizes, section.flags
        self.methods: list[Callable[..., Any]] = []
        function.__name__ = function.__qualname__ = name
        code = function.__code__
        self.parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self.positional = self.parameters[: code.co_argcount]
        self.operands = tuple([self.parameters[k] for k in section.operands])
        defaults = function.__defaults__ or ()
        self.defaults = dict(zip(self.positional[::-1], defaults[::-1], strict=False))
        self.named = named_tuple(f"{space}_{name}".lstrip("_"), fields.split()) if fields else None
        self.refuses = REFUSED.get(name, "")
        self.condition, self.holds = condition, holds

    def base(self, args: Iterable[Any], params: dict[str, Any]) -> Any:
        """The result as Tensors of numgrad."""
        given = [unwrap(a) for a in args]
        options = {self.spelled(name): unwrap(value) for name, value in params.items()}
        if self.sizes is not None and len(given) > self.sizes:
            first = given[self.sizes]
            if not isinstance(first, tuple | list):
                given[self.sizes :] = [tuple(given[self.sizes :])]
        bare = False
        try:
            if self.operands and len(given) <= len(self.positional):
                named = dict(zip(self.positional, given, strict=False))
                if named.keys().isdisjoint(options):
                    given, options = [], named | options
                    self.promote(options)
                    bare = self.count_axes(options)
            if self.holds is not None and not self.holds(*given, **options):
                raise self.refusal(given, options)
            result = self.function(*given, **options)
            if bare:
                result = of_each(lambda x: OPS["reshape"](x, shape=()), result)
        except RAISED as error:
            said = translated(self, error, given, options)
            if said is None:
                raise
            raise said from error
        d = options.get("dtype") if "dtype" in self.flags else None
        if d is not None:  # numgrad has sums of short integers in int64
            result = cast(result, d)
        return of_each(OPS["copy"], result) if "copies" in self.flags else result

    def refusal(self, given: list[Any], options: dict[str, Any]) -> NumgradError:
        """The error about arguments for which the condition is not true."""
        bound = signature(self.function).bind(*given, **options)
        bound.apply_defaults()
        seen = [
            f"{name} {f'of shape {[*value.shape]}' if isinstance(value, Base) else repr(value)}"
            for name, value in bound.arguments.items()
            if re.search(rf"\b{name}\b", self.condition)
        ]
        return NumgradRuntimeError(f"{self.name}(): needs {self.condition}, got {', '.join(seen)}")

    def name_results(self, result: Any) -> Any:
        """A tuple of results as the named one, if it has so many."""
        named = self.named
        if named is None or not isinstance(result, tuple) or len(result) != len(named._fields):
            return result
        return named(*result)

    def spelled(self, name: str) -> str:
        """The name of a parameter, which may be written as NumPy calls it."""
        other = _SPELLINGS.get(name, name)
        return other if name not in self.parameters and other in self.parameters else name

    def promote(self, options: dict[str, Any]) -> None:
        """Give operands their common dtype."""
        values = [options[name] for name in self.operands if name in options]
        self.check(values)
        d = options.get("dtype") if "dtype" in self.flags else None
        if d is None and (self.kind not in ("same", "own") or self.refuses):
            d = self.common_dtype(values)
            if not any(isinstance(v, Base | list | tuple) for v in values):
                options[self.operands[0]] = Base(np.asarray(values[0], d))  # as in add(2, 3)
        if d is None:
            return
        # masks beside numbers are such for NumPy, too, and the call stays one operation
        masks = isinstance(self.op, Elementwise) and d in [getattr(v, "dtype", 0) for v in values]
        for name in self.operands:
            if name in options:
                value = options[name]
                if masks and d.kind in "fc" and getattr(value, "dtype", d).kind == "b":
                    continue
                several = isinstance(value, tuple | list)
                options[name] = [cast(v, d) for v in value] if several else cast(value, d)

    def check(self, values: list[Any]) -> None:
        """Raise where the first operand is none."""
        first = values[0] if values else None
        if self.operands[0] in SEVERAL:
            if isinstance(first, tuple | list) and all(isinstance(x, Base) for x in first):
                return
        elif isinstance(first, Base) or (isinstance(first, NUMBERS) and len(values) > 1):
            return
        shown = type(first).__name__ if values else "nothing"
        raise NotTensorError(f"{self.name}(): {self.operands[0]!r} must be a Tensor, not {shown}")

    def common_dtype(self, values: list[Any]) -> np.dtype[Any] | None:
        """The dtype that operands get; None if they are as they should be."""
        flat = [v for each in values for v in (each if isinstance(each, tuple | list) else [each])]
        given = {v.dtype: None for v in flat if isinstance(v, Base)}
        if self.refuses:
            check_dtypes(self.name, [*given], dtypes.common_dtype(flat), self.refuses)
        if self.kind == "equal":
            check_equal(self.name, given)
        if self.kind in ("same", "own", "equal", "first"):
            return next(iter(given)) if self.kind == "first" else None
        d = dtypes.common_dtype(flat)
        if d is None or d.kind in "fc" or self.kind == "number":
            return d
        if self.kind == "inexact":
            shown = f"{dtypes.OF[d]!r}; convert it with x.float()"
            raise NumgradRuntimeError(
                f"{self.name}(): takes floats and complex numbers, not {shown}"
            )
        return np.dtype(np.int64) if self.kind == "whole" else dtypes.get_default_dtype().numpy

    def count_axes(self, options: dict[str, Any]) -> bool:
        """Count axes from the first; whether the operand has none, and got one."""
        if self.flags.isdisjoint(("axis", "axes")):
            return False
        first = self.parameters[0]
        x, bare = options[first], not options[first].ndim
        for name in _AXES.intersection(self.parameters):
            dim = options.get(name, self.defaults.get(name))
            if isinstance(dim, int) and not isinstance(dim, bool):
                options[name] = axis_of(self.name, x, dim)
            elif isinstance(dim, tuple | list):
                options[name] = tuple([axis_of(self.name, x, d) for d in dim])
        if "axes" in self.flags:
            if bare or options.get("dim") == ():
                options["dim"] = None
            return False
        if bare:
            options[first] = OPS["reshape"](x, shape=(1,))
        return bare


_AXES = frozenset(("dim", "dim0", "dim1", "dims", "dimension"))


def axis_of(name: str, x: Any, dim: int) -> int:
    """An axis counted from the first; an array without axes counts as having one."""
    rank = max(x.ndim, 1)
    if not -rank <= dim < rank:
        raise NumgradIndexError(f"{name}: dimension {dim} is out of range [{-rank}, {rank - 1}]")
    return dim % rank


def check_equal(name: str, given: Iterable[Any]) -> None:
    """Raise for several dtypes."""
    shown = " and ".join(sorted({repr(dtypes.OF[d]) for d in given}))
    if " " in shown:
        raise NumgradRuntimeError(f"{name}: needs the same dtype, got {shown}; use x.to()")


def of_each(function: Callable[[Any], Any], result: Any) -> Any:
    """A function of the Tensor, or the Tensors, of a result."""
    if isinstance(result, tuple | list):
        return tuple([of_each(function, each) for each in result])
    return function(result) if isinstance(result, Base) else result


def cast(value: Any, d: Any) -> Any:
    """A Tensor in a dtype of NumPy's; numbers, which take on any dtype, as they are."""
    if isinstance(value, Base):
        return value if value.dtype == d else OPS["astype"](value, dtype=d)
    if isinstance(value, np.generic):
        value = value.item()  # which takes on dtypes as Python's numbers do
    if d.kind in "iu" and isinstance(value, int | np.integer):
        return int(np.array(value).astype(d)) if not isinstance(value, bool) else int(value)
    if d.kind == "b" and isinstance(value, int | float):
        return bool(value)
    return value


RETURN_TYPES: dict[str, Any] = {}
"""Classes of named tuples: ``torch.return_types``."""


def named_tuple(name: str, fields: list[str]) -> Any:
    """A class of named tuples, as ``torch.return_types`` has it."""
    kind: Any = namedtuple(name, fields, module="numgrad.torch.return_types")
    kind.__repr__ = _show_results
    RETURN_TYPES[name] = kind
    return kind


def _show_results(results: Any) -> str:
    pairs = zip(results._fields, results, strict=True)
    shown = ",\n".join([f"{name}={value!r}" for name, value in pairs])
    return f"torch.return_types.{type(results).__name__}(\n{shown})"


# ------------------------------------------------------------------------------ reading of tables


ROWS: dict[str, dict[str, TableRow]] = {}
"""Rows by module of PyTorch's (empty for its topmost) and name."""
_ROW = re.compile(r"({[^}]*}|\w+)\((.*?)\)(?: -> ([\w ]+?))?(?: if (.*?))?: (.*)")


def table(space: str, scope: dict[str, Any], text: str) -> dict[str, TableRow]:
    """Read rows of a module, whose expressions have the names of ``scope``."""
    rows = ROWS.setdefault(space, {})
    section = Section.read("same 0")
    for line in re.split(r"\n(?=\S)", text.strip()):
        if line.startswith("["):
            section = Section.read(line.strip("[]"))
        elif line.startswith("aliases "):
            rows.update({name: rows[other] for name, other in pairs(line[8:])})
        elif line.startswith("copies "):
            for name in line.split()[1:]:
                rows[f"{name}_copy"] = copied = copy(rows[name])
                copied.name, copied.methods = f"{name}_copy", []
                copied.flags = rows[name].flags - {"method", "inplace", "restrides"} | {"copies"}
        else:
            match = _ROW.fullmatch(re.sub(r"\n\s+", " ", line))
            assert match is not None, line
            names = match[1].strip("{}")
            for name, own in pairs(names):
                parameters, fields, condition, body = [
                    (part or "").replace("@", own) for part in match.groups()[1:]
                ]
                op, _, rest = body.partition(" == ")
                body = rest if op in OPS else body
                function = eval(f"lambda {parameters}: ({body})", scope)
                holds = eval(f"lambda {parameters}: ({condition})", scope) if condition else None
                rows[name] = TableRow(
                    space, name, function, section, fields, body, OPS.get(op), condition, holds
                )
    return rows


def pairs(text: str) -> list[tuple[str, str]]:
    """Names, and what stands behind their ``=``, or the names again."""
    parts = [entry.partition("=") for entry in text.split()]
    return [(name, own or name) for name, _, own in parts]


# ---------------------------------------------------------------------------------------- results


def write(name: str, out: Any, result: Any) -> Any:
    """Write a result into ``out``, which is returned."""
    if isinstance(result, tuple | list):
        return tuple([write(name, *pair) for pair in zip(out, result, strict=True)])
    if not isinstance(out, Tensor):
        raise NumgradTypeError(f"{name}(): argument 'out' must be Tensor, got {out!r:.40}")
    target = out._tensor
    check_cast(result, target)
    followed = state.grad_enabled and (target.requires_grad or result.requires_grad)
    if followed or has_tangent(target) or has_tangent(result):
        raise NumgradRuntimeError(
            f"{name}(): out= is not differentiated; use copy_, or torch.no_grad()"
        )
    if tuple(target.shape) != tuple(result.shape):
        if target.size:
            text = f"{name}(): an output with elements was resized from {[*target.shape]} to "
            text += f"{[*result.shape]}; resize it to zero elements before, t.resize_(0)"
            warnings.warn(text, UserWarning, stacklevel=3)
        target.data = Base(np.empty(result.shape, target.dtype))
    target.copy_(result)  # pyright: ignore
    return out


def check_cast(result: Any, target: Any) -> None:
    """Raise where a result's category is above that of where it is written."""
    ours, theirs = dtypes.OF[result.dtype], dtypes.OF[target.dtype]
    if not dtypes.can_cast(ours, theirs):
        raise NumgradRuntimeError(f"a result of type {ours!r} can't be cast to {theirs!r}")


def store(row: TableRow, target: Any, result: Any) -> None:
    """Write a result into the first operand."""
    check_cast(result, target)
    if tuple(result.shape) != tuple(target.shape):
        shapes = f"{[*result.shape]}, which that of shape {[*target.shape]} cannot hold"
        raise NumgradRuntimeError(f"{row.name}_(): the result has the shape {shapes}")
    target.copy_(result)


# ------------------------------------------------------------------------------ functions, methods


class Function:
    """A function of the module, which no class binds as a method."""

    __slots__ = ("__name__", "__qualname__", "row")
    __module__ = "numgrad.torch"

    def __init__(self, row: TableRow) -> None:
        self.row, self.__name__ = row, row.name
        self.__qualname__ = row.name

    @property
    def __signature__(self) -> Any:
        return signature(self.row.function)

    def __repr__(self) -> str:
        return f"<function torch.{self.__name__}>"

    def __reduce__(self) -> str:
        return self.__name__


def in_python(row: TableRow) -> Callable[..., Any]:
    """The function behind calls of a row, in Python."""

    def call(*args: Any, **params: Any) -> Any:
        if hot_paths.waiting:
            hot_paths.count_call()
        elif row.entry is None:
            _enter(row)
        out = params.pop("out", None) if params else None
        for a in args:
            kind = type(a)
            if kind is not Tensor and hasattr(kind, "__torch_function__"):
                return kind.__torch_function__(FUNCTIONS[row.name], (kind,), args, params)
        if isinstance(row.op, AxisOp) and len(args) == 1 and not params and out is None:
            given = _plain(row, args)
            if given is not None and given[0].size:
                # the plan of all elements, which machine code learns
                return wrap(row.op(*given))
        result = row.base(args, params)
        if out is None and args and type(args[0]) is Tensor and result is args[0]._tensor:
            return args[0]
        return row.name_results(wrap(result) if out is None else write(row.name, out, result))

    return named(call, row.name)


FUNCTIONS: dict[str, Any] = {}
"""Functions by name."""


@cache
def function_of(row: TableRow) -> Any:
    """The function of a row, one for all names and modules that it has."""
    call = in_python(row)
    home = f"numgrad.torch.{row.space}".rstrip(".")
    members = {"__call__": staticmethod(call), "__slots__": (), "__doc__": row.function.__doc__}
    members["__module__"] = home  # by which it is pickled
    row.public = type(row.name, (Function,), members)(row)
    return row.public


def method_of(function: Any) -> Callable[..., Any]:
    """The method of a row."""
    enter = type(function).__call__

    def method(self: Tensor, *args: Any, **params: Any) -> Any:
        return enter(self, *args, **params)

    return _listed(function, method)


def operator_of(function: Any) -> Callable[..., Any]:
    """An operator of two operands."""
    enter = type(function).__call__

    def method(self: Tensor, other: Any) -> Any:
        kind = type(other)
        if kind is Tensor or kind is float or kind is int:
            return enter(self, other)
        return enter(self, other) if acceptable(other) else NotImplemented

    return _listed(function, method)


def property_of(row: TableRow) -> property:
    """The property; that of a function can be written to, as it is a view."""
    read = method_of(function_of(row))

    def write(self: Tensor, value: Any) -> None:
        read(self).copy_(value)

    return property(read, None if "method" in row.flags else write, doc=f"``{row.name}``.")


def reflected_of(function: Any) -> Callable[..., Any]:
    """An operator of a Tensor on the right, or a method of the second operand."""
    enter = type(function).__call__

    def method(self: Tensor, other: Any, *rest: Any) -> Any:
        return enter(other, self, *rest) if acceptable(other) else NotImplemented

    return _listed(function, method)


def inplace_of(row: TableRow, operator: bool = False) -> Callable[..., Any]:
    """The method that writes into its object; as an operator it leaves unknown ones to them."""
    names = row.name + "_"

    def write(self: Tensor, *args: Any, **params: Any) -> Any:
        if operator and not acceptable(args[0]):
            return NotImplemented
        target = self._tensor
        if "restrides" in row.flags:
            restride(self, names, row, args, params)
            return self
        if row.op is not None and (not params or [*params] == ["alpha"]):
            given = _plain(row, (self, *args))
            if given is not None and len(given) == len(row.op.inputs):
                try:
                    if params and type(args[0]) is Tensor:  # by machine code, both
                        return method(self, FUNCTIONS["mul"](args[0], params["alpha"]))
                    if params:
                        given = (target, given[1] * params["alpha"])
                    write_operation(row.op, names, target, given[1:], {})
                except (NumgradTypeError, NumgradValueError):
                    pass  # which the general way refuses with PyTorch's class of errors
                else:
                    return self
        before = self
        if state.grad_enabled and target.requires_grad:
            before = wrap(as_before(target))  # what is saved of it is what it was
        result = row.base((before, *[before if a is self else a for a in args]), params)
        store(row, target, result)
        return self

    machine = partial(
        MachineEntry, row.op, recorder=RECORDER, operands_of=lambda args, out: _plain(row, args),
        inplace=True,
    )  # fmt: skip
    by_machine = isinstance(row.op, Elementwise) and takes(row.op)
    method = named(late_method(write, RECORDER, machine if by_machine else None), names)
    return method


def restride(x: Tensor, name: str, row: TableRow, args: tuple, params: dict[str, Any]) -> None:
    """Let a Tensor show its memory otherwise; where nothing is recorded, a leaf remains one."""
    target = x._tensor
    check_history(name, target)
    if state.grad_enabled and root(target)._requires_grad:
        check_view(name, target)
    if state.interpreters or (target.requires_grad and not target.is_leaf):
        with enable_grad():  # what it is made of is known, also where nothing is computed
            x._tensor = row.base((x, *args), params)
        return
    with no_grad():
        target.data = row.base((x, *args), params)
    if not target.is_inference():
        mark_written(target)


def acceptable(other: Any) -> bool:
    """Whether operators compute with an operand."""
    return isinstance(other, (Tensor, Base, np.ndarray, AbstractLength, *NUMBERS))


def _listed(function: Any, method: Callable[..., Any]) -> Callable[..., Any]:
    function.row.methods.append(method)
    return named(method, function.__name__, function.__doc__)


# ------------------------------------------------------------------------------------ machine code


def _plain(row: TableRow, args: tuple) -> tuple | None:
    """Operands as Tensors of numgrad, if all are of one floating dtype, or numbers of its kind."""
    d, given = None, []
    for a in args:
        kind = type(a)
        if kind is Tensor or kind is Parameter:
            a = a._tensor
            own = a.dtype
            if own.kind not in "fc" or own.kind in row.refuses or (d is not None and own != d):
                return None
            d = own
        elif kind is not float and kind is not int:
            return None
        given.append(a)
    return tuple(given)


def _operands_of(row: TableRow, args: tuple, out: Any) -> tuple | None:
    return _plain(row, args) if type(out) is Tensor else None


def _enter(row: TableRow) -> None:
    """Put machine code behind a function and its methods, if it is in use."""
    if not (RECORDER.in_use and ARGUMENTS.in_use):
        return
    python = slow = type(row.public).__call__
    if "values" not in row.flags:
        facts = "facts" in row.flags
        row.entry = LearnedEntry(row.name, python, row.base, ARGUMENTS, unwrap, facts)
        slow = row.entry.call
    if row.op is not None and takes(row.op) and "learned" not in row.flags:
        row.entry = MachineEntry(row.op, python, RECORDER, partial(_operands_of, row), slow=slow)
    if row.entry is None:
        row.entry = python
        return
    type(row.public).__call__ = staticmethod(row.entry.call)  # pyright: ignore
    for method in row.methods:
        place = method.__code__.co_freevars.index("enter")
        method.__closure__[place].cell_contents = row.entry.call  # pyright: ignore


def _nothing() -> None:
    """Rows are entered when they are called."""


_CLASSES: dict[str, Any] = {"WRAPPER": Tensor, "WRAPPED_PARAMETER": Parameter}
RECORDER = CallRecorder("torch_recorder", _nothing, **_CLASSES)
"""Machine code behind calls of this room that are operations of Tensors and numbers."""
ARGUMENTS = CallRecorder(
    "torch_arguments", _nothing, argument_calls.text, **_CLASSES, WRAP=wrap, ERROR=NumgradError,
    NO_GRAD_VIEW=NO_GRAD_VIEW,
)  # fmt: skip
"""That behind calls with arguments: Note [Learning of calls] in ``tensors.learned_calls``."""


# --------------------------------------------------------------------------------------- modules

_OPERATORS = (
    "add sub mul div=truediv floor_divide=floordiv remainder=mod pow matmul bitwise_and=and "
    "bitwise_or=or bitwise_xor=xor bitwise_left_shift=lshift bitwise_right_shift=rshift"
)
_COMPARISONS = "eq ne lt le gt ge"
_UNARY = "neg abs bitwise_not=invert positive=pos"
"""Rows, and the operators of Python that they are."""


def publish(space: str, public: dict[str, Any], rows: dict[str, TableRow]) -> None:
    """Put the functions of rows into a module, and those of the topmost one on ``Tensor``."""
    if space:
        public["__getattr__"] = refuse(public)
    for name, row in rows.items():
        function = function_of(row)
        if "method" not in row.flags:
            public[name] = function
        if space:
            continue
        FUNCTIONS[name] = function
        if "property" in row.flags:
            setattr(Tensor, name, property_of(row))
        elif "function" not in row.flags:
            of = reflected_of if "reflected" in row.flags else method_of
            setattr(Tensor, name, of(function))
        if "inplace" in row.flags:
            setattr(Tensor, f"{name}_", inplace_of(row))
            public[f"{name}_"] = vars(Tensor)[f"{name}_"]


def publish_operators() -> None:
    """Set Python's operators on ``Tensor``."""
    for name, dunder in pairs(_OPERATORS):
        function = FUNCTIONS[name]
        setattr(Tensor, f"__{dunder}__", operator_of(function))
        setattr(Tensor, f"__r{dunder}__", reflected_of(function))
        if "inplace" in function.row.flags:
            setattr(Tensor, f"__i{dunder}__", inplace_of(function.row, True))
    Tensor.__rdiv__ = vars(Tensor)["__rtruediv__"]  # pyright: ignore
    for name in _COMPARISONS.split():
        setattr(Tensor, f"__{name}__", operator_of(FUNCTIONS[name]))
    for name, dunder in pairs(_UNARY):
        setattr(Tensor, f"__{dunder}__", method_of(FUNCTIONS[name]))
