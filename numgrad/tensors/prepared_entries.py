"""The source of functions behind calls of operations that are no plain formula.

They are made, called and watched as Note [Hot path] and Note [Watched entries] in ``entries`` say.
Of prepared operations the plan is found by dtypes and shapes, and by parameters as they were
written; it computes on arrays of any strides. What is composed of others is called as the function
it is where no interpreter gives it another meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


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
        """What makes, of an operation, its plans and a planner, the function behind a call."""
        names = [f"x{k}" for k in range(self.count)]
        body = [
            f"def entry({', '.join(f'{a}=missing' for a in names)}, /, *rest, **params):",
            *inside(["begin = clock()"] * self.watched),
            *inside(self.found(names)),
            *inside(self.computed(names)),
        ]
        return "\n".join(["def make(op, plans, planner):", *inside(body), "    return entry"])

    def bound(self, names: list[str]) -> str:
        """The call by way of the interpreter, of operands that may be missing."""
        given = f"tuple([v for v in ({', '.join(names)}, *rest) if v is not missing])"
        if self.watched:
            return f"return call(op, partial(bind, op), {given}, params)"
        return f"return bind(op, {given}, params)"

    def found(self, names: list[str]) -> list[str]:
        """Find arrays, ``mask`` and ``plan``."""
        bound = self.bound(names)
        lines = ["mode = state.mode", "if not mode:", f"    {bound}", "mask = 0"]
        for place, a in enumerate(names):
            lines += [
                f"kind_{a} = type({a})",
                f"if {is_tensor(a)}:",
                *inside(array_of(a)),
                f"    if {a}._requires_grad:",
                f"        mask += {1 << place}",
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
        given = ", ".join(f"{a}_" for a in names)
        kept = [f"{a} if ({is_tensor(a)}) and {a}._memory is None else keep({a})" for a in names]
        lines = [
            f"out{', aux' * self.notes} = plan.compute({given})",
            "mask &= plan.grad_mask",
            "if not mask or mode != 2:",
            *inside(self.constant()),
            "picked = plan.picks.get(mask)",
            "if picked is None:",
            "    picked = plan.pick(mask)",
            "keeps, pick = picked",
            *(f"kept_{a} = ({kept[k]}) if keeps & {1 << k} else None" for k, a in enumerate(names)),
            f"saved = pick(({', '.join(f'kept_{a}' for a in names)}, {'*aux, ' * self.notes}out))",
        ]
        for place, a in enumerate(names):
            lines += [
                f"edge_{a} = None",
                f"if mask & {1 << place}:",
                *inside(edge_of(a)),
            ]
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

    Some operands say themselves what an operation means: ``bind`` asks them.
    """

    watched: bool = False
    noting: tuple[str, ...] = ()

    def source(self) -> str:
        """What makes, of an operation, the function behind a call."""
        body = ["def entry(*args, **params):", *inside(self.called())]
        return "\n".join(["def make(op, plans, planner):", *inside(body), "    return entry"])

    def called(self) -> list[str]:
        """Call the function, or leave the call to an interpreter."""
        if self.watched:
            return ["return call(op, partial(bind, op), args, params)"]
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
            "return bind(op, args, params)",
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
