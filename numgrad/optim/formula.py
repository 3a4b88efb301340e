"""Optimizers whose update is one formula, and the three ways of reading it.

Note [One formula]
------------------
An update is a function of the parameter ``p``, its gradient ``g``, state arrays and numbers, to a
dictionary of new values; arrays come positionally, numbers and switches by keyword. It is read on
symbols, which gives the kernel that steps all tensors of a group at once
(``kernels.multi_tensor``), on Tensors for ``differentiable=True``, and on ndarrays in tests.
Switches are plain Python bools: a formula may branch on them, and each combination in use becomes
a kernel. A state array that is not used in a combination is None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from operator import is_
from typing import Any, NamedTuple

import numpy as np

from numgrad.autograd.node import mark_all_written, mark_version
from numgrad.autograd.variable import Version
from numgrad.errors import NumgradRuntimeError, NumgradTypeError
from numgrad.kernels import threads
from numgrad.kernels.multi_tensor import UpdateKernel, collect, update_kernel
from numgrad.op.row_sparse import RowSparseArray
from numgrad.ops.complex import imag, real
from numgrad.ops.join import stack
from numgrad.optim.optimizer import Optimizer
from numgrad.optim.rows import update_rows
from numgrad.tensor import Tensor


class Formula:
    """An update formula; see Note [One formula].

    Parameters
    ----------
    function
        ``function(p, g, <state arrays>, *, <numbers and switches>) -> dict`` of new values.
    uniform
        The state arrays that hold one number for the whole tensor, such as ``step``.
    """

    def __init__(self, function: Callable[..., dict[str, Any]], uniform: Sequence[str]) -> None:
        code = function.__code__
        self.function = function
        self.name = function.__name__
        states = code.co_varnames[2 : code.co_argcount]
        self.uniform = tuple(uniform)
        self.elements = tuple(name for name in states if name not in uniform)
        self.__doc__ = function.__doc__

    def __call__(self, *arrays: Any, **numbers: Any) -> dict[str, Any]:
        return self.function(*arrays, **numbers)

    def __repr__(self) -> str:
        return f"<update formula {self.name}>"


def formula(*uniform: str) -> Callable[[Callable[..., dict[str, Any]]], Formula]:
    """Make a function an update formula; ``uniform`` names its states of one number."""
    return partial(Formula, uniform=uniform)


class Settings(NamedTuple):
    """What a group asks of the formula."""

    numbers: dict[str, Any]
    """By name, Python numbers or Tensors of one element; they change without a new kernel."""
    switches: tuple[tuple[str, bool], ...]
    states: tuple[str, ...]
    """The state arrays in use."""


@cache
def _update(
    formula: Formula,
    states: tuple[str, ...],
    numbers: tuple[str, ...],
    switches: tuple[tuple[str, bool], ...],
    maximize: bool,
    dtype: np.dtype,
    shared: bool = False,
) -> UpdateKernel:
    def read(p: Any, g: Any, **values: Any) -> dict[str, Any]:
        return formula.function(p, -g if maximize else g, **values)

    read.__name__ = formula.name
    unused = {name: None for name in (*formula.elements, *formula.uniform) if name not in states}
    return update_kernel(
        read,
        ("p", "g", *[name for name in states if name in formula.elements]),
        [name for name in states if name in formula.uniform],
        numbers,
        {**dict(switches), **unused},
        dtype,
        shared,
    )


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
        work = [(group, *self._active(group)) for group in self.param_groups]
        for group, dense, sparse in work:
            for param in sparse:
                self._step_rows(group, param)
            if not dense:
                continue
            if group.get("differentiable"):
                with self._updating():
                    self._step_recorded(group, dense)
            else:
                self._step_compiled(group, dense)
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

    def state_of(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """The state of a parameter, made now if this is its first step."""
        state = self.state[param]
        if not state:
            state.update(self.new_state(param, group))
        return state

    # ---------------------------------------------------------------------------------- compiled

    def _step_compiled(self, group: dict[str, Any], params: list[Tensor]) -> None:
        settings = self.settings(group)
        if len(set(params)) < len(params):  # the same memory twice: one after the other
            for param in params:
                self._step_fresh_and_known(settings, group, [param])
        else:
            self._step_fresh_and_known(settings, group, params)

    def _step_fresh_and_known(
        self, settings: Settings, group: dict[str, Any], params: list[Tensor]
    ) -> None:
        if not settings.states:
            self._launch(settings, group, params, [])
            return
        states = list(map(self.state.__getitem__, params))
        if all(states):
            self._launch(settings, group, params, states)
            return
        if self.first_step_differs:
            known = [param for param, state in zip(params, states, strict=True) if state]
            if known:
                self._launch(settings, group, known, list(filter(None, states)))
            params = [param for param, state in zip(params, states, strict=True) if not state]
            settings = settings._replace(switches=(*settings.switches, ("first", True)))
        states = [self.state_of(param, group) for param in params]
        self._launch(settings, group, params, states)

    def _launch(
        self,
        settings: Settings,
        group: dict[str, Any],
        params: list[Tensor],
        states: list[dict[str, Any]],
    ) -> None:
        kept = [state[name] for name in settings.states for state in states]
        arrays = [p._array for p in params]
        arrays += [p._grad._array for p in params]  # type: ignore[union-attr]
        arrays += [t._array for t in kept]
        fixed = _apply(self.formula, settings, bool(group.get("maximize")), arrays, len(params))
        if fixed is not None:
            self._launch_piecewise(settings, group, params, arrays)
        mark_all_written(params)
        self._mark_states(id(group), kept)

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

    def _launch_piecewise(
        self,
        settings: Settings,
        group: dict[str, Any],
        params: list[Tensor],
        arrays: list[np.ndarray],
    ) -> None:
        """As ``_launch`` where parameters differ in dtype or arrays are not contiguous."""
        count = len(params)
        columns = [arrays[k * count : (k + 1) * count] for k in range(len(arrays) // count)]
        elements = 2 + sum(name in self.formula.elements for name in settings.states)
        pieces: dict[np.dtype, list[int]] = {}
        for t, param in enumerate(params):
            self._check(settings, [column[t] for column in columns], elements)
            pieces.setdefault(param.dtype, []).append(t)
        maximize = bool(group.get("maximize"))
        for dtype, members in pieces.items():
            chosen, copies = [], []
            for k, column in enumerate(columns):
                for t in members:
                    array = column[t]
                    plain = np.require(array, dtype if k < elements else np.float64, ("C", "A"))
                    if plain.dtype is not dtype:
                        plain = plain.view(dtype if k < elements else np.float64)
                    chosen.append(plain)
                    if plain is not array and k != 1:
                        copies.append((array, plain))
            _apply(self.formula, settings, maximize, chosen, len(members))
            for array, plain in copies:
                if not np.shares_memory(array, plain):
                    array[...] = plain

    def _check(self, settings: Settings, arrays: list[Any], elements: int) -> None:
        """Raise unless the formula can be applied to the arrays of a tensor."""
        names = ("parameter", "gradient", *settings.states)
        shape, dtype = arrays[0].shape, arrays[0].dtype
        if dtype.kind not in "fc" or dtype.itemsize // (1 + (dtype.kind == "c")) not in (4, 8):
            raise NumgradTypeError(
                f"{self._name}.step: a parameter has dtype {dtype}; parameters must be float32, "
                "float64, complex64 or complex128"
            )
        for k, (name, array) in enumerate(zip(names, arrays, strict=True)):
            wanted = (shape, dtype) if k < elements else ((), np.dtype(np.float64))
            if k < elements and (array.shape, array.dtype) != wanted:
                raise NumgradRuntimeError(
                    f"{self._name}.step: {name} has shape {array.shape} and dtype {array.dtype} "
                    f"where shape {wanted[0]} and dtype {wanted[1]} belong; was the parameter "
                    "replaced, or the state of another one loaded?"
                )
            if k != 1 and not array.flags.writeable:
                raise NumgradRuntimeError(
                    f"{self._name}.step: {name} of shape {array.shape} lies in memory that must "
                    "not be written; optimize a copy"
                )

    # ------------------------------------------------------------------------------------ rows

    def _step_rows(self, group: dict[str, Any], param: Tensor) -> None:
        """Apply a row-sparse gradient to its rows alone."""
        grad: RowSparseArray = param._grad._array.coalesce()  # type: ignore[union-attr]
        settings = self.settings(group)
        state = self.state_of(param, group) if settings.states else {}
        kept = [state[name] for name in settings.states]
        self._check(
            settings,
            [param._array, grad, *[t._array for t in kept]],
            2 + sum(name in self.formula.elements for name in settings.states),
        )
        numbers, switches, states = settings
        maximize, dtype = bool(group.get("maximize")), _REAL[param.dtype]
        update_rows(
            _update(self.formula, states, tuple(numbers), switches, maximize, dtype, shared=True),
            list(map(as_float, numbers.values())),
            param._array,
            grad,
            [state[name]._array for name in states if name in self.formula.elements],
            [state[name]._array for name in states if name in self.formula.uniform],
        )
        mark_all_written([param, *kept])

    # ---------------------------------------------------------------------------------- recorded

    def _step_recorded(self, group: dict[str, Any], params: list[Tensor]) -> None:
        """The formula on Tensors, so that the step itself can be differentiated."""
        settings = self.settings(group)
        for param in params:
            first = self.first_step_differs and not self.state[param]
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


def _apply(
    formula: Formula, settings: Settings, maximize: bool, arrays: list[np.ndarray], count: int
) -> int | None:
    """Run the kernel; the position of an array that it cannot take, if there is one."""
    numbers, switches, states = settings
    dtype = arrays[0].dtype
    element = _REAL.get(dtype)
    if element is None:
        return 0
    roles = len(arrays) // count
    pointers, starts = np.empty((roles, count), np.int64), np.empty(count + 1, np.int64)
    elements = 2 + sum([name in formula.elements for name in states])
    total = collect(arrays, elements, 1, dtype, pointers, starts)
    if total < 0:
        return -1 - total
    kernel = _update(formula, states, tuple(numbers), switches, maximize, element)
    run = threads.choose(
        kernel.entry,
        partial(kernel.entry, True),
        total * kernel.cost_ns,
        partial(kernel.entry, False, True),
    )
    run(pointers, starts, *[v if type(v) is float else as_float(v) for v in numbers.values()])
    return None


def as_float(value: Any) -> float:
    """A hyper-parameter, which may be a Tensor of one element, as a number."""
    return float(value.item() if isinstance(value, Tensor) else value)


_REAL = {
    np.dtype(of): np.dtype(element)
    for of, element in (
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.complex64, np.float32),
        (np.complex128, np.float64),
    )
}


def zero() -> Tensor:
    """A count of steps at its start: a float64 of no dimensions."""
    return Tensor(np.zeros(()))
