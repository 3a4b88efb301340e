"""Derivatives of a kernel, of any order, as operations of their own.

Note [Operations of a kernel]
-----------------------------
A kernel ``f`` is an operation, and so are its two derivatives, which take the same operands ``x``
and more: gradients ``w`` of its outputs, and directions ``t1 ... tn`` of its operands::

    vjp(x, w, t1, ..., tn, v) = D^n (J' w)(x) t1 ... tn  +  D^(n-1) (J' v)(x) t1 ... t(n-1)
    jvp(x, t1, ..., tn)       = D^n f(x) t1 ... tn

So ``vjp`` without directions is the gradient, with one a product with the Hessian; ``v`` is what
``w`` changes by along the last direction, and may be left out. Parameters say ``which`` outputs
have gradients, by which operands gradients are ``wanted``, and which operands each of the
``directions`` has. As ``<w, D^n f t1 ... tn>`` is symmetric and linear in the directions,
derivatives of the two are made of the two: forward mode over reverse mode serves all of them
(Griewank and Walther, Evaluating Derivatives, 2008, sections 5.1 and 13.3).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from numgrad.codegen.adjoint.program import DerivativeProgram
from numgrad.core.batching import BatchOperand
from numgrad.core.formula import GradientFormula
from numgrad.core.interpreter import bind, state
from numgrad.core.primitive import Primitive
from numgrad.errors import NumgradKernelError

Kernel = Any
"""A ``KernelOperation``, whose module imports this one."""
Places = tuple[int, ...]
Rule = Callable[[Places], Sequence[Any]]
"""The gradients by operands at some places of a group."""


class Vectors(NamedTuple):
    """Tangents of operands, or gradients of outputs, at some places."""

    places: Places
    values: tuple[Any, ...]

    @property
    def is_zero(self) -> bool:
        """Whether all are known to be zero."""
        return all(map(_is_zero, self.values))

    def filled(self, like: Vectors) -> Vectors:
        """These with zeros in place of None, as arrays like others at the same places."""
        pairs = zip(self.values, like.values, strict=True)
        return Vectors(self.places, tuple([np.zeros_like(b) if a is None else a for a, b in pairs]))

    @property
    def moving(self) -> Vectors:
        """Those that there are, without the places of None."""
        pairs = [(k, a) for k, a in zip(self.places, self.values, strict=True) if a is not None]
        return Vectors(tuple([k for k, _ in pairs]), tuple([a for _, a in pairs]))


class KernelDerivative(Primitive):
    """A derivative of a kernel as an operation: Note [Operations of a kernel].

    Attributes
    ----------
    word, settings
        "vjp" or "jvp", and the names of its parameters.
    """

    implied = ("index",)
    materializes_tangents = False
    word = ""
    settings: tuple[str, ...] = ()

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        names = ", ".join(self.settings)
        pairs = ", ".join(f"{name}={name}" for name in self.settings)
        space: dict[str, Any] = {"by": self._gradient, "along": self._tangent}
        exec(
            f"def form(*inputs, {names}): ...\n"
            f"def gradient(g, inputs, index, {names}):\n"
            f"    return by(g, inputs, index, dict({pairs}))\n"
            f"def tangent(t_inputs, inputs, {names}):\n"
            f"    return along(t_inputs, inputs, dict({pairs}))\n",
            space,
        )
        super().__init__(
            space["form"],
            name=f"{kernel.name}_{self.word}",
            outputs=True,
            materializes=False,
            register=False,
            internal=True,
        )
        self.declared["inputs"] = GradientFormula(self, space["gradient"])
        self.joint_gradients = self._joint_gradients
        self.jvp_formula = space["tangent"]
        self.shape_rule = self._shapes
        self.batching = self._batch_rule

    def __reduce__(self) -> Any:
        return _find_derivative, (self.kernel, self.word)

    @abstractmethod
    def groups(self, params: dict[str, Any]) -> list[Places]:
        """The places, among operands or outputs, of each group behind the kernel's operands."""

    @abstractmethod
    def computed(
        self, program: DerivativeProgram, own: list[Any], more: list[Vectors], params: Any
    ) -> Sequence[Any]:
        """The results for arrays and numbers."""

    @abstractmethod
    def rules(self, own: tuple, more: list[Vectors], c: Vectors, params: Any) -> list[Rule]:
        """The gradients by each group, given cotangents of the results."""

    @abstractmethod
    def tangents(
        self, own: tuple, more: list[Vectors], s: Vectors, changes: list[Vectors], params: Any
    ) -> Iterable[tuple]:
        """The terms of the results' tangents, for tangents of the kernel's operands and others."""

    # -------------------------------------------------------------------------------- the calls

    def _parted(self, inputs: Sequence[Any], params: dict[str, Any]) -> tuple[tuple, list[Vectors]]:
        """The kernel's operands, and those behind them in groups."""
        begin = self.kernel.count
        own, more = tuple(inputs[:begin]), []
        for places in self.groups(params):
            more.append(Vectors(places, tuple(inputs[begin : begin + len(places)])))
            begin += len(places)
        return own, more

    def results_of(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[tuple, tuple]:
        own, _ = self._parted(args, params)
        self.kernel.check_overlaps(own)
        return tuple(self.computed_by(self.kernel.program(own), args, params)), ()

    def computed_by(
        self, program: DerivativeProgram, args: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        """The results by a program."""
        own, more = self._parted(args, params)
        return self.computed(program, plain(own), more, params)

    def _shapes(self, *metas: Any, **params: Any) -> Any:
        own = metas[: self.kernel.count]
        if "wanted" in params:
            return tuple([own[k] for k in params["wanted"]])
        outs = self.kernel.result_metas(*own)
        outs = outs if self.kernel.outputs else (outs,)
        return tuple([m for m in outs if m.dtype.kind in "fc"])

    def _batch_rule(
        self, op: Any, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
    ) -> Any:
        """Everything that is differentiated, or moves, has an axis of examples."""
        count = self.kernel.count
        active = [*params.get("wanted", ()), *[k for d in params["directions"] for k in d]]
        own, mask = self.kernel.batch_operands(operands[:count], active, size)
        if own is None:
            return NotImplemented
        more = [o.repeated(size) for o in operands[count:]]
        try:
            return bind(self.kernel.batched(mask).derivatives[self.word], (*own, *more), params)
        except NumgradKernelError:
            return NotImplemented

    # -------------------------------------------------------------------------- the derivatives

    def gradients(
        self, own: tuple, w: Vectors, directions: Sequence[Vectors], wanted: Places,
        v: Vectors | None = None,
    ) -> tuple:  # fmt: skip
        groups = [w, *directions, *([] if v is None else [v])]
        params = {
            "which": w.places, "wanted": wanted, "changes": v is not None,
            "directions": tuple([d.places for d in directions]),
        }  # fmt: skip
        operands = (*own, *[a for group in groups for a in group.values])
        return bind(self.kernel.derivatives["vjp"], operands, params)

    def derivatives(self, own: tuple, directions: Sequence[Vectors]) -> tuple:
        operands = (*own, *[a for d in directions for a in d.values])
        params = {"directions": tuple([d.places for d in directions])}
        return bind(self.kernel.derivatives["jvp"], operands, params)

    def floating(self, own: Sequence[Any]) -> Places:
        """The places of the kernel's outputs that have derivatives."""
        program = self.kernel.program([described(o) for o in own])
        return tuple([k for k, o in enumerate(program.outputs) if o.dtype.kind in "fc"])

    def _gradient(self, g: Any, inputs: tuple, index: int, params: dict[str, Any]) -> Any:
        return self._joint_gradients(1 << index, g, {"inputs": inputs}, params)[index]

    def _joint_gradients(
        self, mask: int, g: Any, values: dict[str, Any], params: dict[str, Any]
    ) -> list[Any]:
        own, more = self._parted(values["inputs"], params)
        places = params["wanted"] if "wanted" in params else self.floating(own)
        pairs = [(k, u) for k, u in zip(places, g, strict=True) if u is not None]
        if not pairs:
            return [None] * len(values["inputs"])
        c = Vectors(tuple([k for k, _ in pairs]), tuple([u for _, u in pairs]))
        out: list[Any] = []
        rules = self.rules(own, more, c, params)
        for group, rule in zip((own, *[m.values for m in more]), rules, strict=True):
            asked = tuple([k for k in range(len(group)) if mask >> (len(out) + k) & 1])
            out += at(asked, rule(asked) if asked else (), len(group))
        return out

    def _tangent(self, t_inputs: Sequence[Any], inputs: Sequence[Any], params: Any) -> Any:
        own, more = self._parted(inputs, params)
        t_own, changes = self._parted(t_inputs, params)
        s = self.kernel.moving(own, t_own)
        terms = list(self.tangents(own, more, s, changes, params))
        return tuple([sum(one[1:], one[0]) for one in zip(*terms, strict=True)]) or None


class GradientOfKernel(KernelDerivative):
    """The operation ``vjp`` of Note [Operations of a kernel]."""

    word, settings = "vjp", ("which", "wanted", "directions", "changes")

    def groups(self, params: dict[str, Any]) -> list[Places]:
        which = params["which"]
        return [which, *params["directions"], *([which] if params["changes"] else [])]

    @staticmethod
    def _named(more: list[Vectors], params: Any) -> tuple[Vectors, list[Vectors], Vectors | None]:
        """The gradients, directions, and changes of gradients."""
        w, *directions = more
        return w, directions, directions.pop() if params["changes"] else None

    def computed(
        self, program: DerivativeProgram, own: list[Any], more: list[Vectors], params: Any
    ) -> Sequence[Any]:
        w, directions, v = self._named(more, params)
        kernel = self.kernel
        gradients = program.vjp(
            own,
            at(*w, kernel.output_count),
            tuple([program.names[k] for k in params["wanted"]]),
            [at(d.places, plain(d.values), kernel.count) for d in directions],
            None if v is None else at(*v, kernel.output_count),
        )
        return [gradients[k] for k in params["wanted"]]

    def rules(self, own: tuple, more: list[Vectors], c: Vectors, params: Any) -> list[Rule]:
        w, ts, v = self._named(more, params)
        last = ts[-1:] if v is not None else []  # with v behind it
        first = ts[: len(ts) - len(last)]

        def by_outputs(directions: Sequence[Vectors]) -> Rule:
            def rule(asked: Places) -> Sequence[Any]:
                moved, floating = self.derivatives(own, directions), self.floating(own)
                return [moved[floating.index(w.places[k])] for k in asked]

            return rule

        def by_direction(number: int) -> Rule:
            others, places = [*ts[:number], *ts[number + 1 :]], ts[number].places
            is_last = bool(last) and number == len(ts) - 1
            ordered = [*others, c] if is_last or not last else [c, *others]
            changes = None if is_last else v
            return lambda asked: self.gradients(
                own, w, ordered, tuple([places[k] for k in asked]), changes
            )

        return [
            lambda asked: self.gradients(own, w, [*first, c, *last], asked, v),
            by_outputs([*ts, c]),
            *map(by_direction, range(len(ts))),
            *([] if v is None else [by_outputs([*first, c])]),
        ]

    def tangents(
        self, own: tuple, more: list[Vectors], s: Vectors, changes: list[Vectors], params: Any
    ) -> Iterable[tuple]:
        (w, ts, v), (t_w, t_ts, t_v) = self._named(more, params), self._named(changes, params)
        wanted = params["wanted"]
        if not s.is_zero:
            if v is None:
                changed = None if t_w.is_zero else t_w.filled(w)
                yield self.gradients(own, w, [*ts, s], wanted, changed)
            else:
                yield self.gradients(own, w, [*ts[:-1], s, ts[-1]], wanted, v)
        if not t_w.is_zero and (s.is_zero or v is not None):
            yield self.gradients(own, t_w.moving, ts, wanted)
        for k, t in enumerate(t_ts):
            if not t.is_zero:
                is_last = k == len(ts) - 1
                changed = [*ts[:k], t.moving, *ts[k + 1 :]]
                yield self.gradients(own, w, changed, wanted, None if is_last else v)
        if t_v is not None and not t_v.is_zero:
            yield self.gradients(own, t_v.moving, ts[:-1], wanted)


class TangentOfKernel(KernelDerivative):
    """The operation ``jvp`` of Note [Operations of a kernel]."""

    word, settings = "jvp", ("directions",)

    def groups(self, params: dict[str, Any]) -> list[Places]:
        return list(params["directions"])

    def computed(
        self, program: DerivativeProgram, own: list[Any], more: list[Vectors], params: Any
    ) -> Sequence[Any]:
        directions = [at(d.places, plain(d.values), self.kernel.count) for d in more]
        return [m for m in program.jvp(own, *directions) if m is not None]

    def rules(self, own: tuple, more: list[Vectors], c: Vectors, params: Any) -> list[Rule]:
        def by_direction(number: int) -> Rule:
            others, places = [*more[:number], *more[number + 1 :]], more[number].places
            return lambda asked: self.gradients(own, c, others, tuple([places[k] for k in asked]))

        by_own: Rule = lambda asked: self.gradients(own, c, more, asked)  # noqa: E731
        return [by_own, *map(by_direction, range(len(more)))]

    def tangents(
        self, own: tuple, more: list[Vectors], s: Vectors, changes: list[Vectors], params: Any
    ) -> Iterable[tuple]:
        if not s.is_zero:
            yield self.derivatives(own, [*more, s])
        for k, t in enumerate(changes):
            if not t.is_zero:
                yield self.derivatives(own, [*more[:k], t.moving, *more[k + 1 :]])


class SweepOfKernel(Primitive):
    """A sweep of split mode as an operation of graphs: Note [Sweeps in graphs] in the compiler.

    The "forward" one takes the kernel's operands, and gives its results and the state; "backward"
    takes the operands, the results if it reads them, the state, and gradients of results.
    """

    def __init__(self, kernel: Kernel, word: str) -> None:
        self.kernel, self.word = kernel, word
        form = {"forward": _forward_form, "backward": _backward_form}[word]
        super().__init__(
            form, name=f"{kernel.name}_{word}_sweep", outputs=True, register=False, internal=True,
            differentiable=False,
        )  # fmt: skip

    def __reduce__(self) -> Any:
        return _find_sweep, (self.kernel, self.word)

    def results_of(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[tuple, tuple]:
        own = args[: self.kernel.count]
        if self.word == "backward":
            args = [a.item() if a.dtype == object else a for a in args]
            return tuple(self.computed_by(self.kernel.program(own), args, params)), ()
        self.kernel.check_overlaps(args)
        *outputs, forward = self.computed_by(self.kernel.program(own), args, params)
        box = np.empty((), object)
        box[()] = forward
        return (*outputs, box), ()

    def computed_by(
        self, program: DerivativeProgram, args: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        """The results by a program, of which the state is as it is."""
        kernel, count, wanted = self.kernel, self.kernel.count, params["wanted"]
        own = plain(args[:count])
        if self.word == "forward":
            names = tuple([program.names[k] for k in wanted])
            outputs, forward = program.forward_sweep(own, names, asked=params["asked"])
            return [*outputs, forward]
        which = params["which"]
        begin = len(args) - len(which)
        outputs, seeds = args[count : begin - 1], at(which, args[begin:], kernel.output_count)
        gradients = program.backward_sweep(own, outputs or None, args[begin - 1], seeds)
        return [gradients[k] for k in wanted]


def _forward_form(*inputs: Any, wanted: Any, asked: Any) -> Any: ...


def _backward_form(*inputs: Any, which: Any, wanted: Any) -> Any: ...


def derivatives_of(kernel: Kernel) -> dict[str, KernelDerivative]:
    """The derivatives of a kernel: Note [Operations of a kernel]."""
    return {family.word: family(kernel) for family in (GradientOfKernel, TangentOfKernel)}


def _is_zero(t: Any) -> bool:
    """Whether a tangent is known to be zero."""
    array = getattr(t, "_array", t)
    if isinstance(array, np.ndarray):
        return not array.any()
    return t is None or state.ground.is_zero(array)


def described(operand: Any) -> Any:
    """Something with the operand's dtype and shape."""
    return operand if hasattr(operand, "dtype") else np.asarray(operand)


def at(places: Sequence[int], values: Sequence[Any], count: int) -> list[Any]:
    """Values at their places among None."""
    out: list[Any] = [None] * count
    for place, value in zip(places, values, strict=False):
        out[place] = value
    return out


def plain(arrays: Sequence[Any]) -> list[Any]:
    """Contiguous arrays, as others than NumPy's are, and numbers for those without axes."""
    return [
        np.ascontiguousarray(a)
        if a.ndim and isinstance(a, np.ndarray)
        else a
        if a.ndim
        else a.item()
        for a in arrays
    ]


def _find_derivative(kernel: Kernel, word: str) -> KernelDerivative:
    return kernel.derivatives[word]


def _find_sweep(kernel: Kernel, word: str) -> SweepOfKernel:
    return kernel.sweeps[word]
