"""Optimizers whose update is a formula: ``numgrad.optim.formula`` says what that is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from operator import is_
from typing import Any

from numgrad.autograd.node import mark_all_written, mark_version
from numgrad.autograd.variable import Version
from numgrad.errors import NumgradRuntimeError
from numgrad.op.row_sparse import RowSparseArray
from numgrad.ops.complex import imag, real
from numgrad.ops.join import stack
from numgrad.optim.formula import Formula, Settings, as_float
from numgrad.optim.launch import REAL, Launch, check, prepare, update_of
from numgrad.optim.optimizer import Optimizer
from numgrad.optim.rows import update_rows
from numgrad.tensor import Tensor


class _Owner:
    """Owns the state arrays of an optimizer.

    Note [Version of the states]
    ----------------------------
    A step writes to hundreds of state arrays, which hardly anybody saves for a backward. Counting
    each of these writes costs as much as the update, so the arrays share one version, which is
    counted once. Those that users put there, with a version of their own, are ``foreign``. What is
    known is compared with the state at each step, since users may replace it.
    """

    __slots__ = ("known", "version")

    def __init__(self) -> None:
        self.version = Version()
        self.known: dict[int, tuple[Sequence[Tensor], Sequence[Tensor]]] = {}


class FormulaOptimizer(Optimizer):
    """An optimizer that applies ``formula`` to every parameter of a group at once."""

    formula: Formula

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "formula" in cls.__dict__:
            cls._uniform_states = cls.formula.uniform

    def settings(self, group: dict[str, Any]) -> Settings:
        """Numbers, switches and states in use for a group, from its options."""
        raise NotImplementedError

    def new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """The state of a parameter before its first step."""
        raise NotImplementedError

    takes_sparse = False
    """Whether gradients may be row-sparse; the formula is then applied to their rows alone."""
    first_step_differs = False
    """Whether the formula has a switch ``first`` for parameters without a state."""

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient.

        Parameters
        ----------
        closure
            Computes the loss, and its gradients by ``backward``, again; called before the update.

        Returns
        -------
        Any
            What ``closure`` returned.

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
                dense, sparse = self._active(group)
                for param in sparse:
                    launches += self._prepare_rows(group, param, fresh)
                if dense and group.get("differentiable"):
                    launches.append(partial(self._step_recorded, group, dense))
                elif dense:
                    launches += self._prepare(group, dense, fresh)
        except BaseException:
            for param in fresh:
                self.state.pop(param, None)
            raise
        for launch in launches:
            launch()
        return loss

    def _active(self, group: dict[str, Any]) -> tuple[list[Tensor], list[Tensor]]:
        """Parameters that have a gradient: dense, row-sparse."""
        params = group["params"]
        grads = [param._grad for param in params]
        kinds = set(map(type, grads))
        if kinds == {Tensor}:
            return params, []
        dense, sparse = [], []
        for param, grad in zip(params, grads, strict=True):
            if grad is not None:
                (sparse if grad.is_sparse else dense).append(param)
        if sparse:
            self._check_sparse(group, sparse[0])
        return dense, sparse

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
        """The state of a parameter, made now if this is its first step, and noted in ``fresh``."""
        state = self.state[param]
        if not state:
            state.update(self.new_state(param, group))
            if fresh is not None:
                fresh.append(param)
        return state

    # ---------------------------------------------------------------------------------- compiled

    def _prepare(
        self, group: dict[str, Any], params: list[Tensor], fresh: list[Tensor]
    ) -> list[Launch]:
        """Launches that step the parameters of a group."""
        if len(set(params)) < len(params):  # the same memory twice: one after the other
            alone = [self._prepare_distinct(group, [param], fresh) for param in params]
            return list(chain.from_iterable(alone))
        return self._prepare_distinct(group, params, fresh)

    def _prepare_distinct(
        self, group: dict[str, Any], params: list[Tensor], fresh: list[Tensor]
    ) -> list[Launch]:
        settings = self.settings(group)
        if not settings.states:
            return self._prepare_uniform(settings, group, params, [])
        states = list(map(self.state.__getitem__, params))
        if all(states):
            return self._prepare_uniform(settings, group, params, states)
        launches: list[Launch] = []
        if self.first_step_differs:
            known = [param for param, state in zip(params, states, strict=True) if state]
            if known:
                launches += self._prepare_uniform(
                    settings, group, known, list(filter(None, states))
                )
            params = [param for param, state in zip(params, states, strict=True) if not state]
            settings = settings._replace(switches=(*settings.switches, ("first", True)))
        states = [self.state_of(param, group, fresh) for param in params]
        return launches + self._prepare_uniform(settings, group, params, states)

    def _prepare_uniform(
        self,
        settings: Settings,
        group: dict[str, Any],
        params: list[Tensor],
        states: list[dict[str, Any]],
    ) -> list[Launch]:
        """Launches for parameters that are all treated alike."""
        kept = [state[name] for name in settings.states for state in states]
        arrays = [p._array for p in params]
        arrays += [p._grad._array for p in params]  # type: ignore[union-attr]
        arrays += [t._array for t in kept]
        maximize = bool(group.get("maximize"))
        launches = prepare(self._name, self.formula, settings, maximize, arrays, len(params))
        launches.append(partial(self._mark, id(group), params, kept))
        return launches

    def _mark(self, group: int, params: list[Tensor], kept: list[Tensor]) -> None:
        """Count the writes of a step."""
        mark_all_written(params)
        self._mark_states(group, kept)

    def _mark_states(self, group: int, kept: list[Tensor]) -> None:
        """Count a write to state arrays: Note [Version of the states]."""
        owner = self._owner
        known, foreign = owner.known.get(group, ((), ()))
        if len(known) != len(kept) or not all(map(is_, known, kept)):
            for tensor in kept:
                if tensor._memory is None:
                    tensor._memory = owner.version
            foreign = [tensor for tensor in kept if tensor._memory is not owner.version]
            owner.known[group] = kept, foreign
        mark_version(owner.version)
        if foreign:
            mark_all_written(foreign)

    @property
    def _owner(self) -> _Owner:
        found = self.__dict__.get("_states_owner")
        if found is None:
            found = self.__dict__["_states_owner"] = _Owner()
        return found

    # ------------------------------------------------------------------------------------ rows

    def _prepare_rows(
        self, group: dict[str, Any], param: Tensor, fresh: list[Tensor]
    ) -> list[Launch]:
        """Launches that apply a row-sparse gradient to its rows alone."""
        grad: RowSparseArray = param._grad._array.coalesce()
        settings = self.settings(group)
        numbers, switches, states = settings
        state = self.state_of(param, group, fresh) if states else {}
        kept = [state[name] for name in states]
        check(self._name, self.formula, settings, [param._array, grad, *[t._array for t in kept]])
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
        return [launch, partial(mark_all_written, [param, *kept])]

    # ---------------------------------------------------------------------------------- recorded

    def _step_recorded(self, group: dict[str, Any], params: list[Tensor]) -> None:
        """The formula on Tensors, so that the step itself can be differentiated."""
        settings = self.settings(group)
        with self._updating():
            for param in params:
                self._step_one_recorded(settings, group, param)

    def _step_one_recorded(self, settings: Settings, group: dict[str, Any], param: Tensor) -> None:
        first = bool(self.first_step_differs and settings.states and not self.state[param])
        switches = {**dict(settings.switches), **({"first": True} if first else {})}
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
