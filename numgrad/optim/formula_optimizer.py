"""Optimizers whose update is a formula: ``numgrad.optim.formula`` says what that is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY
from functools import partial
from operator import is_
from typing import Any

import numpy as np

from numgrad.autograd.versions import Version, mark_all_written, mark_version
from numgrad.core.interpreter import state as thread_state
from numgrad.core.row_gradients import RowSparseArray
from numgrad.errors import NumgradRuntimeError
from numgrad.operations.complex import imag, real
from numgrad.operations.join import stack
from numgrad.optim.formula import Formula, Settings, as_float, uniform_state
from numgrad.optim.optimizer import Optimizer, declared
from numgrad.optim.state_dict import Layout, check_state
from numgrad.optim.stepping import FLOAT64, REAL, Launch, check, prepare, update_of, update_rows
from numgrad.tensors.creation import full_like, zeros_like
from numgrad.tensors.inplace import before_writing
from numgrad.tensors.tensor import Tensor

_DENSE = {Tensor}


class _Owner:
    """Owns the state arrays of an optimizer.

    Note [Version of the states]
    ----------------------------
    A step writes to hundreds of state arrays, which hardly anybody saves for a backward. Counting
    each of these writes costs as much as the update, so the arrays share one version, which is
    counted once. Those that users put there, with a version of their own, are foreign. ``known``
    has the arrays of each group and its foreign Tensors; it is compared with the state at each
    step, since users may replace that.
    """

    __slots__ = ("known", "version")

    def __init__(self) -> None:
        self.version = Version()
        self.known: dict[int, tuple[Sequence[np.ndarray], Sequence[Tensor]]] = {}


PARTS = {
    "beta1": ("betas", 0),
    "beta2": ("betas", 1),
    "etaminus": ("etas", 0),
    "etaplus": ("etas", 1),
    "smallest": ("step_sizes", 0),
    "largest": ("step_sizes", 1),
}
"""Numbers of formulas that are parts of an option; others are options of the same name."""
SWITCHES: dict[str, Callable[[dict[str, Any]], bool]] = {
    "decay": lambda group: bool(group["weight_decay"] != 0),
    "decoupled": lambda group: bool(group["decoupled_weight_decay"]),
    "nesterov": lambda group: bool(group["nesterov"]),
}
"""Switches of formulas, and how the options of a group set them."""
FIRST = "first"
"""The switch of formulas whose first step is another one."""


class FormulaOptimizer(Optimizer):
    """An optimizer that applies ``formula`` to every parameter of a group at once.

    The keywords of the formula say which options it reads: see ``PARTS`` and ``SWITCHES``.
    """

    formula: Formula
    _bringing: tuple[tuple[int, str], ...] = ()
    """Options that bring a state, each with a bit of its own."""
    _states: tuple[tuple[str, ...], ...]
    """The states in use, by the bits of the options that are on."""
    _numbers: tuple[str, ...]
    _parts: tuple[tuple[str, str, int], ...]
    _switches: tuple[tuple[str, Callable[[dict[str, Any]], bool]], ...]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "formula" in cls.__dict__:
            keywords = cls.formula.keywords
            cls._array_states = (*cls.formula.elements, *cls.formula.uniform)
            cls._parts = tuple((n, *PARTS[n]) for n in keywords if n in PARTS)
            cls._switches = tuple((n, SWITCHES[n]) for n in keywords if n in SWITCHES)
            known = (*PARTS, *SWITCHES, FIRST)
            cls._numbers = tuple(n for n in keywords if n not in known)
            cls._take_up_options()

    @classmethod
    def _take_up_options(cls) -> None:
        bringing = [o for o in cls._options.values() if o.brings]
        cls._bringing = tuple((1 << k, o.name) for k, o in enumerate(bringing))
        off = (
            {o.brings for k, o in enumerate(bringing) if not on >> k & 1}
            for on in range(1 << len(bringing))
        )
        cls._states = tuple(tuple(s for s in cls._array_states if s not in o) for o in off)

    def settings(self, group: dict[str, Any]) -> Settings:
        """Numbers, switches and states in use for a group, from its options."""
        numbers = {name: group[name] for name in self._numbers}
        for name, option, part in self._parts:
            numbers[name] = group[option][part]
        switches = tuple([(name, read(group)) for name, read in self._switches])
        return Settings(numbers, switches, self.states_of(group))

    def states_of(self, group: dict[str, Any]) -> tuple[str, ...]:
        """The state arrays in use for a group: those of options that are off are left out."""
        on = 0
        for bit, option in self._bringing:
            if group[option]:
                on |= bit
        return self._states[on]

    def starts(self, group: dict[str, Any]) -> dict[str, float]:
        """Initial values of states that do not start with 0."""
        return {}

    def new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """The state of a parameter before its first step, of which ``starts`` has the numbers."""
        starts, state = self.starts(group), {}
        for name in self.states_of(group):
            value = starts.get(name, 0.0)
            if name in self.formula.uniform:
                state[name] = uniform_state(value)
            elif value:
                both = complex(value, value) if param.dtype.kind == "c" else value
                state[name] = full_like(param, both)
            else:
                state[name] = zeros_like(param)
        return state

    def _layout(self, param: Tensor, group: dict[str, Any]) -> Layout:
        uniform = self.formula.uniform
        return {
            name: ((), FLOAT64) if name in uniform else (param.shape, param.dtype)
            for name in self.states_of(group)
        }

    takes_sparse = False
    """Whether gradients may be row-sparse; the formula is then applied to their rows alone."""

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient.

        Parameters
        ----------
        closure
            Computes the loss, and its gradients by ``backward``, again; called before the update.

        Returns
        -------
        Any
            What ``captures`` returned.

        Raises
        ------
        NumgradRuntimeError
            If a gradient is row-sparse and the optimizer cannot use such gradients.
        """
        loss = self._evaluate(closure)
        launches: list[Launch] = []
        fresh: list[Tensor] = []
        try:
            for group in self.param_groups:
                dense, grads, sparse = self._active(group)
                for param in sparse:
                    launches += self._prepare_rows(group, param, fresh)
                if dense and group.get("differentiable"):
                    launches.append(partial(self._step_recorded, group, dense))
                elif dense:
                    launches += self._prepare(group, dense, grads, fresh)
        except BaseException:
            for param in fresh:
                self.state.pop(param, None)
            raise
        for launch in launches:
            launch()
        return loss

    def _active(self, group: dict[str, Any]) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Parameters with a dense gradient, these gradients, and parameters with a sparse one."""
        params = group["params"]
        grads: list[Any] = [param._grad for param in params]
        if set(map(type, grads)) == _DENSE:
            return params, grads, []
        pairs = [(p, g) for p, g in zip(params, grads, strict=True) if g is not None]
        sparse = [p for p, g in pairs if g.is_sparse]
        if sparse:
            self._check_sparse(group, sparse[0])
        dense = [(p, g) for p, g in pairs if not g.is_sparse]
        return [p for p, _ in dense], [g for _, g in dense], sparse

    def _check_sparse(self, group: dict[str, Any], param: Tensor) -> None:
        """Raise unless a row-sparse gradient of ``param`` can be used."""
        if not self.takes_sparse:
            raise NumgradRuntimeError(
                f"{self._name}.step: the gradient of a parameter of shape {param.shape} is "
                "row-sparse, which this optimizer cannot use; use SparseAdam, SGD or Adagrad, or "
                "an Embedding with sparse=False"
            )
        for option in ("weight_decay", "differentiable"):
            if group.get(option):
                raise NumgradRuntimeError(
                    f"{self._name}.step: the gradient of a parameter of shape {param.shape} is "
                    f"row-sparse, which {option} cannot be combined with; leave it out, or use an "
                    "Embedding with sparse=False"
                )

    def state_of(
        self, param: Tensor, group: dict[str, Any], fresh: list[Tensor] | None = None
    ) -> dict[str, Any]:
        """The state of a parameter; what it lacks is made now, and all new ones noted in ``fresh``.

        Part of it is lacking after an option of the group was switched on, such as ``amsgrad``.
        """
        state = self.state[param]
        missing = [name for name in self.states_of(group) if state.get(name) is None]
        if missing:
            if not state and fresh is not None:
                fresh.append(param)
            new = self.new_state(param, group)
            state.update({name: new[name] for name in missing})
        for name in self.states_of(group):
            if not isinstance(state[name], Tensor):
                where = f"{self._name}.step: a parameter of shape {param.shape}"
                check_state(where, name, state[name], *self._layout(param, group)[name])
        return state

    # ---------------------------------------------------------------------------------- compiled

    def _prepare(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        fresh: list[Tensor],
    ) -> list[Launch]:
        """Launches that step the parameters of a group."""
        settings = self.settings(group)
        if settings.states:
            states = list(map(self.state.__getitem__, params))
            try:
                arrays = [state[name]._array for name in settings.states for state in states]
            except (KeyError, AttributeError):  # not there yet, or no Tensors
                return self._prepare_new(settings, group, params, grads, fresh)
            known = self._owner.known.get(id(group), ((), ()))[0]
            if len(known) == len(arrays) and all(map(is_, known, arrays)):
                return self._prepare_uniform(settings, group, params, grads, arrays)
        return self._prepare_new(settings, group, params, grads, fresh)

    def _prepare_new(
        self,
        settings: Settings,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        fresh: list[Tensor],
    ) -> list[Launch]:
        """As ``_prepare`` for parameters or states that were not there at the last step."""
        launches: list[Launch] = []
        if len(set(params)) < len(params):  # the same memory twice: one after the other
            for param, grad in zip(params, grads, strict=True):
                launches += self._prepare_new(settings, group, [param], [grad], fresh)
            return launches
        if FIRST in self.formula.keywords and settings.states:
            new = [not self.state[param] for param in params]
            if any(new) and not all(new):
                for first in (False, True):
                    chosen = [k for k, is_new in enumerate(new) if is_new == first]
                    launches += self._prepare_new(
                        settings,
                        group,
                        [params[k] for k in chosen],
                        [grads[k] for k in chosen],
                        fresh,
                    )
                return launches
            if new[0]:
                settings = settings._replace(switches=(*settings.switches, (FIRST, True)))
        arrays: list[np.ndarray] = []
        if settings.states:
            states = [self.state_of(param, group, fresh) for param in params]
            arrays = self._own(id(group), [s[name] for name in settings.states for s in states])
        return self._prepare_uniform(settings, group, params, grads, arrays)

    def _prepare_uniform(
        self,
        settings: Settings,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        state_arrays: list[np.ndarray],
    ) -> list[Launch]:
        """Launches for parameters that are all treated alike; ``kept`` are their states' arrays."""
        arrays = [p._array for p in params]
        arrays += [g._array for g in grads]
        arrays += state_arrays
        maximize = bool(group.get("maximize"))
        launches = prepare(self._name, self.formula, settings, maximize, arrays, len(params))
        foreign = self._owner.known[id(group)][1] if state_arrays else None
        launches.append(partial(self._mark, params, foreign))
        if thread_state.mutation is not None:
            states = [self.state[param][name] for name in settings.states for param in params]
            launches.insert(0, partial(before_writing, [*params, *states]))
        return launches

    def _own(self, group: int, tensors: list[Tensor]) -> list[np.ndarray]:
        """The arrays of states, which now share a version: Note [Version of the states]."""
        owner = self._owner
        for tensor in tensors:
            if tensor._memory is None:
                tensor._memory = owner.version
        arrays = [tensor._array for tensor in tensors]
        foreign = [tensor for tensor in tensors if tensor._memory is not owner.version]
        owner.known[group] = arrays, foreign
        return arrays

    def _mark(self, params: list[Tensor], foreign: Sequence[Tensor] | None) -> None:
        """Count the writes of a step; ``foreign`` is None where there are no states."""
        mark_all_written(params)
        if foreign is not None:
            mark_version(self._owner.version)
            mark_all_written(foreign)

    @property
    def _owner(self) -> _Owner:
        owner = self.__dict__.get("_states_owner")
        if owner is None:
            owner = self.__dict__["_states_owner"] = _Owner()
        return owner

    # ------------------------------------------------------------------------------------ rows

    def _prepare_rows(
        self, group: dict[str, Any], param: Tensor, fresh: list[Tensor]
    ) -> list[Launch]:
        """Launches that apply a row-sparse gradient to its rows alone."""
        grad: RowSparseArray = param._grad._array.coalesce()
        settings = self.settings(group)
        numbers, switches, states = settings
        state = self.state_of(param, group, fresh) if states else {}
        tensors = [state[name] for name in states]
        check(
            self._name, self.formula, settings, [param._array, grad, *[t._array for t in tensors]]
        )
        maximize, dtype = bool(group.get("maximize")), REAL[param.dtype]
        launch = partial(
            update_rows,
            update_of(self.formula, states, tuple(numbers), switches, maximize, dtype, shared=True),
            list(map(as_float, numbers.values())),
            param._array,
            grad,
            [state[name]._array for name in states if name in self.formula.elements],
            [state[name]._array for name in states if name in self.formula.uniform],
        )
        written = [param, *tensors]
        return [partial(before_writing, written), launch, partial(mark_all_written, written)]

    # ---------------------------------------------------------------------------------- recorded

    def _step_recorded(self, group: dict[str, Any], params: list[Tensor]) -> None:
        """The formula on Tensors, so that the step itself can be differentiated."""
        settings = self.settings(group)
        with self._updating():
            for param in params:
                self._step_one_recorded(settings, group, param)

    def _step_one_recorded(self, settings: Settings, group: dict[str, Any], param: Tensor) -> None:
        switches = dict(settings.switches)
        if FIRST in self.formula.keywords and settings.states and not self.state[param]:
            switches[FIRST] = True
        state = self.state_of(param, group) if settings.states else {}
        grad = param._grad
        assert grad is not None
        # copies, since what the graph saves of them must outlast the writes below
        old = {name: state[name].clone() for name in settings.states}
        pairs = param.dtype.kind == "c"
        elements = {n: v for n, v in old.items() if n in self.formula.elements}
        values = {"p": param.clone(), "g": -grad if group.get("maximize") else grad}
        values |= elements
        if pairs:
            values = {name: stack([real(v), imag(v)]) for name, v in values.items()}
        unused = (*self.formula.elements, *self.formula.uniform)
        values = {**dict.fromkeys(unused), **old, **values}
        new = self.formula.function(**values, **settings.numbers, **switches)
        if pairs:
            new = {
                name: v[0] + 1j * v[1] if name == "p" or name in elements else v
                for name, v in new.items()
            }
        for name, value in new.items():
            if name in old:
                state[name].copy_(value)
        param.copy_(new["p"])


@declared
class RecordableOptimizer(FormulaOptimizer):
    """Base of those with the options that every formula allows, by keyword only."""

    _: KW_ONLY
    maximize: bool = False
    differentiable: bool = False


@declared
class CapturableOptimizer(RecordableOptimizer):
    """Base of those that take ``capturable`` besides, by keyword only."""

    _: KW_ONLY
    capturable: bool = False
