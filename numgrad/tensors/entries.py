"""The functions behind calls of operations in eager code.

Note [Hot path]
---------------
The common case of a planned operation is a function with everything written out: Tensors, arrays
and numbers whose plan exists, over contiguous memory. Everything else, from a list to a missing
plan, goes through ``interpret``, which makes the plan the hot path finds next time. The function is
made from one template, as source text that is compiled once for all operations of a shape: how many
operands there are, and whether the last may be left out. First the kinds of the operands are
found, one after the other, and with them the key of the plan; the kernel is called; then comes what
every recorded operation does: what its formulas need is saved, edges lead to where the operands
come from. Arrays have the name of their operand and ``_``.

The most common calls machine code takes off it, where that is in use: Note [Recorder] in
``codegen.cpython.recorded_calls``. Until then it counts
calls, for Note [Hot paths] in ``hot_paths`` there.

Note [Watched entries]
----------------------
A function behind calls is held in many places: by operators, by methods, by whoever imported the
operation. While calls are to be noted (``watch``), all of these functions therefore get other
code, made of the same template with two readings of a clock and a note in it, and their own back
afterwards. So what is not watched costs nothing.

Of prepared operations the plan is found by dtypes and shapes, and by parameters as they were
written; it computes on arrays of any strides. What is composed of others is called as the function
it is where no interpreter gives it another meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from types import CodeType
from typing import Any
from weakref import WeakSet

import numpy as np

from numgrad.autograd.node import Node
from numgrad.autograd.saved import keep
from numgrad.autograd.variable import Parameter, Tensor, refresh
from numgrad.codegen.cpython import hot_paths
from numgrad.codegen.locks import ENTRIES
from numgrad.core.arguments import UnknownParameter, complete
from numgrad.core.axis import AxisOp
from numgrad.core.elementwise import SMALL
from numgrad.core.interpreter import interpret, state
from numgrad.core.op import Op
from numgrad.core.plan import Planned, remember
from numgrad.core.prepared import Prepared
from numgrad.core.primitive import Composite
from numgrad.dataclass import dataclass
from numgrad.errors import generated
from numgrad.tensors.learned_calls import learned_by
from numgrad.tensors.recorder import MOST_OPERANDS, recorded_by, stand_aside
from numgrad.tensors.recording import new_tensor

_NUMBER, _ARRAY, _TENSOR, _NOTHING = "number", "array", "tensor", "nothing"
_MISSING: Any = object()
_made: WeakSet[Any] = WeakSet()
"""All functions behind calls."""
_watching: tuple[dict[str, Any], tuple[str, ...]] | None = None
"""Names, and source that notes a call, while calls are to be noted."""


def eager_entry(op: Op) -> Callable[..., Any]:
    """The function behind ``op(...)``: Note [Hot path]."""
    if isinstance(op, AxisOp):
        entry = _compiled(Template(1, axes=True))(op, op.quick, _planner(op))
    elif isinstance(op, Prepared):
        template = PreparedTemplate(len(op.inputs), bool(op.auxiliaries), op.outputs)
        entry = _compiled(template)(op, op.quick, _preparer(op))
    elif isinstance(op, Composite):
        entry = _compiled(ComposedTemplate())(op, None, None)
    elif isinstance(op, Planned) and len(op.inputs) <= MOST_OPERANDS:
        checked, optional = op.check is not None, op.defaults[-1:] == (None,)
        template = Template(len(op.inputs), optional, checked, op.whole)
        entry = _compiled(template)(op, op.plans, None)
    else:
        entry = _compiled(Template(0, whole=hasattr(op, "bind")))(op, None, None)
    with ENTRIES:
        _made.add(entry)
        _recode(entry)
    op.in_python = entry
    return recorded_by(op, learned_by(op, entry))


def watch(names: dict[str, Any] | None, noting: Sequence[str] = ()) -> None:
    """Note each call of an operation from now on, or with None no longer: Note [Watched entries].

    Parameters
    ----------
    names
        ``clock()`` gives the time, and what ``noting`` needs. Calls that do not take the hot path
        are made by ``call(op, function, args, params)``, whose function takes the latter two.
    noting
        Lines of source, run when a call ends that took the hot path: it began at ``begin`` and did
        what ``plan`` says, and ``number`` is that of the node, -1 if there is none.
    """
    global _watching
    with ENTRIES:
        stand_aside(names is not None)
        _watching = None if names is None else (names, tuple(noting))
        for entry in _made:
            _recode(entry)


def _recode(entry: Any) -> None:
    """Let an entry note its calls, if they are to be noted."""
    template = entry.__globals__["template"]
    noting = None
    if _watching is not None:
        names, noting = _watching
        entry.__globals__.update(names, partial=partial)
    code = _code(template, noting)
    if entry.__code__ is not code:
        entry.__code__ = code


@lru_cache
def _code(template: Any, noting: tuple[str, ...] | None) -> CodeType:
    """The code of an entry."""
    if noting is None:
        return _compiled(template)(None, None, None).__code__
    scope: dict[str, Any] = {"missing": None}
    name = generated(f"watched entry of {template}")
    exec(compile(replace(template, watched=True, noting=noting).source(), name, "exec"), scope)
    return scope["make"](None, None, None).__code__


def _planner(op: AxisOp) -> Callable[..., Any]:
    """Make the function that calls an operation along axes in a new way, and notes its plan."""

    def call(key: tuple, args: tuple, params: dict[str, Any]) -> Any:
        out = interpret(op, args, params)
        try:
            args, params = complete(op, args, params)
        except UnknownParameter:  # of NumPy's, which has been answered
            return out
        plan = op.plan(args[0]._array, params)
        if plan.simple and len(args) == 1:
            remember(op.quick, key, plan)
        return out

    return call


def _preparer(op: Prepared) -> Callable[..., Any]:
    """Make the function that calls a prepared operation in a new way, and notes its plan."""

    def call(key: tuple, args: tuple, params: dict[str, Any]) -> Any:
        out = interpret(op, args, params)
        try:
            args, params = complete(op, args, params)
        except UnknownParameter:  # of NumPy's, which has been answered
            return out
        arrays = [a._array if isinstance(a, Tensor) else a for a in args]
        plan = op.plan(arrays, params)
        if plan.nout:
            remember(op.quick, key, plan)
        return out

    return call


# ----------------------------------------------------------------------------------- the template


@dataclass(frozen=True)
class Template:
    """The source of the functions behind calls of a family of operations: Note [Hot path].

    Parameters
    ----------
    count
        How many operands there are.
    optional
        Whether the last one may be None or left out.
    checked
        Whether the operation looks at integers before it computes with them.
    whole
        That of ``Planned``; of others whether they look at operands first.
    axes
        Whether the plan follows from the parameters too, as they were written.
    watched
        Whether calls are noted: Note [Watched entries].
    noting
        That of ``watch``.
    """

    count: int
    optional: bool = False
    checked: bool = False
    whole: bool = False
    axes: bool = False
    watched: bool = False
    noting: tuple[str, ...] = ()

    def source(self) -> str:
        """Source that makes the function behind a call: of an operation, plans and a planner."""
        first = "".join(f"{a}=missing, " for a in self.names) + "/, " * bool(self.count)
        body = [f"def entry({first}*rest, **params):"]
        if not self.count:
            body.append(f"    {self.bound('rest')}")
        else:
            body += ["    begin = clock()"] * self.watched
            body += [
                "    mode = state.mode",
                *inside(self.axis_plan() if self.axes else self.plan()),
                *inside([] if self.whole else ["if waiting:", "    count_call()"]),
                "    out = plan.empty(plan.allocate, plan.dtype)",
                *inside(self.axis_call() if self.axes else self.call(self.optional)),
                *inside(self.recorded()),
            ]
        return "\n".join(["def make(op, plans, planner):", *inside(body), "    return entry"])

    @property
    def names(self) -> str:
        """Names of the operands."""
        return "abc"[: self.count]

    def bind(self) -> str:
        """The call by way of the interpreter, of operands that may be missing."""
        operands = f"[v for v in ({', '.join(self.names)}, *rest) if v is not missing]"
        return self.bound(f"tuple({operands})")

    def bound(self, operands: str) -> str:
        """The call by way of the interpreter; the operation may look at operands first."""
        bind = "op.bind" if self.whole else "interpret"
        if self.watched:
            return f"return call(op, partial({bind}, op), {operands}, params)"
        return f"return {bind}(op, {operands}, params)"

    def plan(self) -> list[str]:
        """Find arrays, ``plan`` and, of several operands, ``mask``."""
        start = ["if not mode or rest or params:", f"    {self.bind()}"]
        if self.count > 1:
            start.append("mask = 0")
        return start + self.by_kinds(())

    def by_kinds(self, kinds: tuple[str, ...]) -> list[str]:
        """The same where the first operands are of known kinds."""
        position = len(kinds)
        if position == self.count:
            return self.known_plan(kinds)
        a, last = self.names[position], position == self.count - 1
        tensor, code = array_of(a), [f"{a}_ = {a}"]
        if self.count > 1:
            tensor += [f"if {a}._requires_grad:", f"    mask += {1 << position}"]
        branches = [(is_tensor(a), tensor, _TENSOR)]
        if self.count > 1 and (_TENSOR in kinds or not last):  # else there would be none
            if self.count == 2:
                branches.append((f"kind_{a} is float or kind_{a} is int", code, _NUMBER))
            branches.append((f"kind_{a} is ndarray", code, _ARRAY))
        if self.optional and last and _TENSOR in kinds:
            branches.insert(0, (f"{a} is None or {a} is missing", [f"{a}_ = None"], _NOTHING))
        lines = [f"kind_{a} = type({a})"]
        for number, (test, lines_of_kind, kind) in enumerate(branches):
            lines.append(f"{'el' * (number > 0)}if {test}:")
            lines += inside([*lines_of_kind, *self.by_kinds((*kinds, kind))])
        return [*lines, "else:", f"    {self.bind()}"]

    def known_plan(self, kinds: tuple[str, ...]) -> list[str]:
        """Look up the plan, and give a kernel that takes no axes arrays of one."""
        pairs = list(zip(self.names, kinds, strict=True))
        arrays = [a for a, kind in pairs if kind in (_TENSOR, _ARRAY)]
        key = [
            f"{a}_.dtype, {a}_.shape" if a in arrays else f"kind_{a}"
            for a, kind in pairs
            if kind != _NOTHING
        ]
        ready = [f"{a}_.flags.c_contiguous" for a in arrays]
        unready = f"not ({' and '.join(ready)})"
        if self.count > 1 and not self.whole:  # small ones are raveled, which makes them contiguous
            unready += f" and (plan.flat or {' + '.join(f'{a}_.size' for a in arrays)} > {SMALL})"
        if self.checked or _NUMBER in kinds:  # the range of integers is looked at elsewhere
            unready = f"not plan.floating or {unready}"
        refused = self.bound(f"({', '.join(self.names)},)")
        lines = [
            f"plan = plans.get(({', '.join(key)}))",
            f"if plan is None or {unready}:",
            f"    {self.bind() if _NOTHING in kinds else refused}",
        ]
        if self.count > 1 and not self.whole:
            lines += ["if not plan.flat:", *(f"    {a}_ = {a}_.ravel()" for a in arrays)]
        return lines

    def call(self, optional: bool) -> list[str]:
        """Call the kernel."""
        if optional:
            fewer = replace(self, count=self.count - 1)
            without = inside(fewer.call(False))
            return [f"if {self.names[-1]}_ is None:", *without, "else:", *inside(self.call(False))]
        operands = ", ".join(f"{a}_" for a in self.names)
        lines = [f"plan.entry({operands}, out)"]
        if not self.whole:
            lines = ["if plan.flat:", *inside(lines), "else:", *inside(self.raveled_call(operands))]
        if self.count == 2 and not self.whole:  # an integer that no float can hold
            refused = self.bound(f"({', '.join(self.names)})")
            lines = [
                "try:",
                *inside(lines),
                "except (TypeError, OverflowError):",
                *inside([refused]),
            ]
        return lines

    def raveled_call(self, operands: str) -> list[str]:
        """Call the kernel with the lengths of axes, where it has several."""
        if self.count == 1:
            return [f"plan.entry({operands}.ravel(), out.ravel())"]
        return [
            "dims = plan.dims",
            "if not dims:",
            f"    plan.entry({operands}, out.ravel())",
            "elif len(dims) == 2:",  # unpacking costs less than a starred argument
            "    rows, columns = dims",
            f"    plan.entry({operands}, out.ravel(), rows, columns)",
            "else:",
            f"    plan.entry({operands}, out.ravel(), *dims)",
        ]

    def axis_plan(self) -> list[str]:
        """Find ``plan`` by the parameters as they were written."""
        bound = self.bound("(a, *rest)")
        planned = "call(op, partial(planner, key), " if self.watched else "planner(key, "
        return [
            "kind_a = type(a)",
            f"if not (mode and ({is_tensor('a')})):",
            f"    {self.bind()}",
            *array_of("a"),
            "try:",
            "    key = a_.dtype, a_.shape",
            "    if rest or params:",
            "        key += (*rest, *params.items())",
            "    plan = plans.get(key)",
            "except TypeError:",  # an axis given as a list
            f"    {bound}",
            "if plan is None:",
            f"    return {planned}(a, *rest), params)",
            "if not a_.flags.c_contiguous:",
            f"    {bound}",
        ]

    def axis_call(self) -> list[str]:
        """Call the kernel with the lengths along, before and after the axes."""
        return ["plan.entry(a_.ravel(), *plan.scalars, out.ravel(), *plan.sizes)"]

    def recorded(self) -> list[str]:
        """Return the result, with a node if gradients may be asked for."""
        mask, lines = "mask", ["mask &= plan.grad_mask", "if not mask or mode != 2:"]
        if self.count == 1:
            mask, lines = "1", ["if not (a._requires_grad and mode == 2 and plan.grad_mask):"]
        lines += [
            *inside(self.noted("Tensor(out) if mode != 3 else new_tensor(out)", "-1")),
            f"save_mask = plan.save_masks[{mask}]",
            *self.saved(),
        ]
        for position, a in enumerate(self.names):
            edge = edge_of(a)
            if self.count > 1:
                edge = [f"edge_{a} = None", f"if mask & {1 << position}:", *inside(edge)]
            lines += edge
        edges = "".join(f"edge_{a}, " for a in self.names)
        node = f"Node(plan, {mask}, ({edges}), saved)"
        if not self.watched:
            return [*lines, f"return Tensor(out, True, {node})"]
        return [*lines, f"node = {node}", *self.noted("Tensor(out, True, node)", "node.sequence")]

    def noted(self, result: str, sequence: str) -> list[str]:
        """Return the result; where calls are watched, with a note."""
        if not self.watched:
            return [f"return {result}"]
        return [f"result = {result}", f"number = {sequence}", *self.noting, "return result"]

    def saved(self, values_before: str = "", position: int = 0) -> list[str]:
        """Collect what a backward needs, operands by bits of ``save_mask``, then the result."""
        values = []
        for a in self.names:
            plain = f"{a}._memory is None"
            if self.count > 1:
                plain = f"({is_tensor(a)}) and {plain}"
            values.append(f"{a} if {plain} else keep({a})")
        values = values[:2] if self.whole else [*values, "out"]
        if position == len(values):
            return [f"saved = ({values_before})"]
        return [
            f"if save_mask & {1 << position}:",
            *inside(self.saved(f"{values_before}{values[position]}, ", position + 1)),
            "else:",
            *inside(self.saved(values_before, position + 1)),
        ]


@lru_cache
def _compiled(template: Any) -> Callable[..., Any]:
    """Compile a template's source, which defines ``make``."""
    scope: dict[str, Any] = {
        "Node": Node, "Parameter": Parameter, "Tensor": Tensor,
        "UnknownParameter": UnknownParameter, "interpret": interpret,
        "count_call": hot_paths.count_call, "keep": keep, "missing": _MISSING,
        "ndarray": np.ndarray, "new_tensor": new_tensor, "refresh": refresh,
        "state": state, "template": template, "waiting": hot_paths.waiting,
    }  # fmt: skip
    exec(compile(template.source(), generated(f"entry of {template}"), "exec"), scope)
    return scope["make"]


# ----------------------------------------------------------------- prepared and composed operations


@dataclass(frozen=True)
class PreparedTemplate:
    """The source of the functions behind calls of prepared operations.

    Parameters
    ----------
    count
        How many operands there are.
    notes
        Whether there are auxiliaries.
    outputs
        Whether there are several outputs.
    watched, noting
        Those of ``Template``.
    """

    count: int
    notes: bool = False
    outputs: bool = False
    watched: bool = False
    noting: tuple[str, ...] = ()

    def source(self) -> str:
        """Source that makes the function behind a call: of an operation, plans and a planner."""
        names = [f"x{k}" for k in range(self.count)]
        body = [
            f"def entry({', '.join(f'{a}=missing' for a in names)}, /, *rest, **params):",
            *inside(["begin = clock()"] * self.watched),
            *inside(self.plan(names)),
            *inside(self.computed(names)),
        ]
        return "\n".join(["def make(op, plans, planner):", *inside(body), "    return entry"])

    def bound(self, names: list[str]) -> str:
        """The call by way of the interpreter, of operands that may be missing."""
        operands = f"tuple([v for v in ({', '.join(names)}, *rest) if v is not missing])"
        if self.watched:
            return f"return call(op, partial(interpret, op), {operands}, params)"
        return f"return interpret(op, {operands}, params)"

    def plan(self, names: list[str]) -> list[str]:
        """Find arrays, ``mask`` and ``plan``."""
        bound = self.bound(names)
        lines = ["mode = state.mode", "if not mode:", f"    {bound}", "mask = 0"]
        for position, a in enumerate(names):
            lines += [
                f"kind_{a} = type({a})",
                f"if {is_tensor(a)}:",
                *inside(array_of(a)),
                f"    if {a}._requires_grad:",
                f"        mask += {1 << position}",
            ]
            if self.count > 1:
                lines += [f"elif kind_{a} is ndarray:", f"    {a}_ = {a}"]
            lines += ["else:", f"    {bound}"]
        arguments = f"({', '.join(names)}, *rest), params"
        planned = f"return planner(key, {arguments})"
        if self.watched:
            planned = f"return call(op, partial(planner, key), {arguments})"
        return [
            *lines,
            f"key = {', '.join(f'{a}_.dtype, {a}_.shape' for a in names)}",
            "try:",
            "    if rest or params:",
            "        key += (*rest, *params.items())",
            "    plan = plans.get(key)",
            "except TypeError:",  # a parameter that is no part of a key
            f"    {bound}",
            "if plan is None:",
            f"    {planned}",
        ]

    def computed(self, names: list[str]) -> list[str]:
        """Compute, and return the result, with a node if gradients may be asked for."""
        operands = ", ".join(f"{a}_" for a in names)
        saved = [f"{a} if ({is_tensor(a)}) and {a}._memory is None else keep({a})" for a in names]
        lines = [
            f"out{', aux' * self.notes} = plan.compute({operands})",
            "mask &= plan.grad_mask",
            "if not mask or mode != 2:",
            *inside(self.constant()),
            "picked = plan.picks.get(mask)",
            "if picked is None:",
            "    picked = plan.pick(mask)",
            "keeps, pick = picked",
            *(
                f"kept_{a} = ({saved[k]}) if keeps & {1 << k} else None"
                for k, a in enumerate(names)
            ),
            f"saved = pick(({', '.join(f'kept_{a}' for a in names)}, {'*aux, ' * self.notes}out))",
        ]
        for position, a in enumerate(names):
            lines += [f"edge_{a} = None", f"if mask & {1 << position}:", *inside(edge_of(a))]
        edges = "".join(f"edge_{a}, " for a in names)
        lines.append(f"node = Node(plan, mask, ({edges}), saved)")
        if not self.outputs:
            return [*lines, *self.noted("Tensor(out, True, node)", "node.sequence")]
        each = "Tensor(y, True, node, slot) if slot else Tensor(y)"
        together = f"tuple([{each} for y, slot in zip(out, plan.slots)])"
        return [*lines, *self.noted(together, "node.sequence")]

    def constant(self) -> list[str]:
        """Return the result without a node."""
        if self.outputs:
            return self.noted("tuple(map(new_tensor, out))", "-1")
        return self.noted("Tensor(out) if mode != 3 else new_tensor(out)", "-1")

    def noted(self, result: str, sequence: str) -> list[str]:
        """Return the result; where calls are watched, with a note."""
        if not self.watched:
            return [f"return {result}"]
        return [f"result = {result}", f"number = {sequence}", *self.noting, "return result"]


@dataclass(frozen=True)
class ComposedTemplate:
    """The source of the functions behind calls of what is composed of other operations.

    Some operands say themselves what an operation means: ``interpret`` asks them.
    """

    watched: bool = False
    noting: tuple[str, ...] = ()

    def source(self) -> str:
        """Source that makes the function behind a call, of an operation."""
        body = ["def entry(*args, **params):", *inside(self.called())]
        return "\n".join(["def make(op, plans, planner):", *inside(body), "    return entry"])

    def called(self) -> list[str]:
        """Call the function, or leave the call to an interpreter."""
        if self.watched:
            return ["return call(op, partial(interpret, op), args, params)"]
        return [
            "if state.mode:",
            "    for a in args:",
            "        if getattr(type(a), '_applies', False):",
            "            break",
            "    else:",
            "        try:",
            "            return op.expanded(args, params)",
            "        except UnknownParameter as error:",
            "            return error.as_numpy(op, args, params)",
            "return interpret(op, args, params)",
        ]


def inside(lines: Iterable[str]) -> Iterator[str]:
    """Lines of a block."""
    return (f"    {line}" for line in lines)


def is_tensor(a: str) -> str:
    """Whether an operand is a Tensor, after its type was looked at."""
    return f"kind_{a} is Tensor or kind_{a} is Parameter"


def array_of(a: str) -> list[str]:
    """Find the array of a Tensor, and bring its history up to date."""
    return [f"{a}_ = {a}._array", f"if {a}._memory is not None:", f"    refresh({a})"]


def edge_of(a: str) -> list[str]:
    """Find the edge that leads to a Tensor."""
    return [
        f"edge_{a} = {a}._grad_fn",
        f"if edge_{a} is None:",
        f"    edge_{a} = {a}",
        f"elif {a}._slot:",
        f"    edge_{a} = edge_{a}, {a}._slot - 1",
    ]
