"""Optimizers whose update is a formula: ``numgrad.optim.formula`` says what that is.

What may fail in a step of many tensors is done before anything is written.

Note [Rows as tensors]
----------------------
The kernel of an update steps tensors that lie anywhere in memory. A row of a parameter with the
same row of each state array is such a tensor, so one launch steps all rows of a gradient in place,
by the formula that steps whole tensors. Uniform values (a count of steps) are the parameter's, so
a variant of the kernel reads and writes them once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY
from functools import cache, partial
from typing import Any

import numpy as np

from numgrad.autograd.variable import TENSORS
from numgrad.autograd.versions import Version, mark_all_written, mark_version
from numgrad.codegen import threads
from numgrad.codegen.cpython.addresses import Addresses, addresses, copied_addresses
from numgrad.core.interpreter import state as thread_state
from numgrad.core.row_gradients import RowSparseArray
from numgrad.errors import NumgradRuntimeError, NumgradTypeError
from numgrad.kernels.multi_tensor import UpdateKernel, update_kernel
from numgrad.operations.arithmetic import imag, real
from numgrad.operations.join import stack
from numgrad.optim.formula import Formula, Settings, as_float, uniform_state
from numgrad.optim.group_arrays import known_arrays
from numgrad.optim.optimizer import Optimizer, declared
from numgrad.optim.state_dict import Layout, check_state
from numgrad.tensors.creation import full_like
from numgrad.tensors.inplace import before_writing
from numgrad.tensors.tensor import Tensor

Launch = Callable[[], None]
"""Rest of a step, in which nothing can fail any more."""


FLOAT64 = np.dtype(np.float64)


REAL = {
    np.dtype(of): np.dtype(element)
    for of, element in (
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.complex64, np.float32),
        (np.complex128, np.float64),
    )
}
"""Dtypes of the elements that kernels see, by a parameter's: complex numbers are pairs."""


@cache
def update_of(
    formula: Formula,
    states: tuple[str, ...],
    numbers: tuple[str, ...],
    switches: tuple[tuple[str, bool], ...],
    maximize: bool,
    dtype: np.dtype,
    shared: bool = False,
) -> UpdateKernel:
    """The kernel of a formula for the states in use; ``dtype`` is one of real elements."""

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


def prepare(
    optimizer: str,
    formula: Formula,
    settings: Settings,
    maximize: bool,
    arrays: list[np.ndarray],
    count: int,
) -> list[Launch]:
    """Launches that apply a formula to ``count`` tensors.

    Parameters
    ----------
    optimizer
        Its name, for errors.
    arrays
        The parameters, then their gradients, then each state array of all tensors.

    Raises
    ------
    NumgradTypeError, NumgradRuntimeError
        If a parameter has a dtype that is not optimized, or an array is not what belongs there.
    """
    dtype = arrays[0].dtype
    if dtype in REAL:
        elements = elements_of(formula, settings)
        layout = addresses(arrays, count, elements, 1, dtype)
        if layout is None:
            arrays = in_order_of_memory(arrays, count)
            layout = addresses(arrays, count, elements, 1, dtype)
        if layout is not None:
            return [_launch(formula, settings, maximize, dtype, layout)]
    return _prepare_pieces(optimizer, formula, settings, maximize, arrays, count)


def in_order_of_memory(arrays: list[np.ndarray], count: int) -> list[np.ndarray]:
    """Arrays with the axes of each tensor as its parameter lies in memory: formulas ask no order.

    So parameters that are transposed, as their gradients and states are then, need no copies.
    """
    seen = list(arrays)
    for t, param in enumerate(arrays[:count]):
        if not param.flags.c_contiguous:
            order = np.argsort([-n for n in param.strides], kind="stable")
            for k in range(t, len(arrays), count):
                if arrays[k].shape == param.shape:
                    seen[k] = arrays[k].transpose(order)
    return seen


def _launch(
    formula: Formula, settings: Settings, maximize: bool, dtype: np.dtype, layout: Addresses
) -> Launch:
    """One launch for arrays of one dtype."""
    numbers, switches, states = settings
    kernel = update_of(formula, states, tuple(numbers), switches, maximize, REAL[dtype])
    run = threads.choose(
        kernel.entry,
        partial(kernel.entry, True),
        kernel.work_ns(layout.total),
        partial(kernel.entry, False, True),
    )
    values = [v if type(v) is float else as_float(v) for v in numbers.values()]

    def launch() -> None:
        run(layout.pointers, layout.starts, *values)
        if layout.copies:
            layout.write_back()

    return launch


def _prepare_pieces(
    optimizer: str,
    formula: Formula,
    settings: Settings,
    maximize: bool,
    arrays: list[np.ndarray],
    count: int,
) -> list[Launch]:
    """A launch for each dtype, on copies of arrays that the kernel cannot take."""
    columns = [arrays[k * count : (k + 1) * count] for k in range(len(arrays) // count)]
    pieces: dict[np.dtype, list[int]] = {}
    for t, param in enumerate(columns[0]):
        check(optimizer, formula, settings, [column[t] for column in columns])
        pieces.setdefault(param.dtype, []).append(t)
    elements = elements_of(formula, settings)
    launches: list[Launch] = []
    for dtype, members in pieces.items():
        members_arrays = [column[t] for column in columns for t in members]
        layout = copied_addresses(members_arrays, len(members), elements, 1, dtype)
        launches.append(_launch(formula, settings, maximize, dtype, layout))
    return launches


def elements_of(formula: Formula, settings: Settings) -> int:
    """How many arrays of a tensor have one value an element; the first of all."""
    return 2 + sum([name in formula.elements for name in settings.states])


def check(optimizer: str, formula: Formula, settings: Settings, arrays: list[Any]) -> None:
    """Raise unless the formula can be applied to the arrays of a tensor."""
    names = ("parameter", "gradient", *settings.states)
    shape, dtype = arrays[0].shape, arrays[0].dtype
    if dtype not in REAL:
        raise NumgradTypeError(
            f"{optimizer}.step: a parameter has dtype {dtype}; parameters must be float32, "
            "float64, complex64 or complex128"
        )
    elements = elements_of(formula, settings)
    for k, (name, array) in enumerate(zip(names, arrays, strict=True)):
        expected = (shape, dtype) if k < elements else ((), FLOAT64)
        fits = array.dtype == expected[1] and (k >= elements or array.shape == shape)
        if not fits or (k >= elements and array.size != 1):
            raise NumgradRuntimeError(
                f"{optimizer}.step: {name} has shape {array.shape} and dtype {array.dtype} "
                f"where shape {expected[0]} and dtype {expected[1]} belong; was the parameter "
                "replaced, or the state of another one loaded?"
            )
        if k != 1 and not array.flags.writeable:
            raise NumgradRuntimeError(
                f"{optimizer}.step: {name} of shape {array.shape} lies in memory that must "
                "not be written; optimize a copy"
            )


def update_rows(
    kernel: UpdateKernel,
    numbers: list[float],
    param: np.ndarray,
    grad: RowSparseArray,
    elements: list[np.ndarray],
    uniforms: list[np.ndarray],
) -> None:
    """Apply a formula to the rows of ``grad``: Note [Rows as tensors].

    Parameters
    ----------
    kernel, numbers
        The formula, compiled for shared uniform values, and its numbers.
    param, elements
        Parameter and states of its shape, all of the dtype of the gradient.
    grad
        Coalesced.
    uniforms
        States of one number.
    """
    values = grad.values
    rows = grad.indices if len(values) else np.zeros(1, np.int64)  # one without elements
    reals = values.size * (2 if values.dtype.kind == "c" else 1)
    arrays = (param, *elements)
    plain = [np.require(a, None, ("C", "A")) for a in arrays]
    each = np.arange(rows.size + 1)
    pointers = np.empty((2 + len(elements) + len(uniforms), rows.size), np.int64)
    columns = [(plain[0], rows), (values, each[:-1]), *[(a, rows) for a in plain[1:]]]
    for k, (array, which) in enumerate(columns):
        np.add(_address(array), which * array.strides[0], out=pointers[k])
    for k, array in enumerate(uniforms):
        pointers[len(columns) + k] = _address(array)
    run = threads.choose(
        kernel.entry,
        partial(kernel.entry, True),
        kernel.work_ns(reals),
        partial(kernel.entry, False, True),
    )
    run(pointers, each * (reals // rows.size), *numbers)
    for array, copy in zip(arrays, plain, strict=True):
        if copy is not array:
            array[rows] = copy[rows]


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


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
        self.known: dict[int, tuple[list[np.ndarray], list[Tensor]]] = {}


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
            else:
                both = complex(value, value) if param.dtype.kind == "c" else value
                # whose layout NumPy takes over
                known = type(param) in TENSORS and type(param._array) is np.ndarray
                state[name] = (
                    Tensor(np.full_like(param._array, both)) if known else full_like(param, both)
                )
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
                launches += self._prepare(group, fresh)
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

    def _prepare(self, group: dict[str, Any], fresh: list[Tensor]) -> list[Launch]:
        """Launches that step the parameters of a group."""
        known = self._owner.known.get(id(group))
        if known is not None and not group.get("differentiable"):
            settings, params = self.settings(group), group["params"]
            arrays = known_arrays(params, self.state, settings.states, known[0])
            if arrays is not None:
                if len(arrays) != len(params) * (2 + len(settings.states)):
                    params = [param for param in params if param._grad is not None]
                return self._prepare_uniform(settings, group, params, arrays)
        launches: list[Launch] = []
        dense, grads, sparse = self._active(group)
        for param in sparse:
            launches += self._prepare_rows(group, param, fresh)
        if dense and group.get("differentiable"):
            launches.append(partial(self._step_recorded, group, dense))
        elif dense:
            launches += self._prepare_new(self.settings(group), group, dense, grads, fresh)
        return launches

    def _prepare_new(
        self,
        settings: Settings,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        fresh: list[Tensor],
    ) -> list[Launch]:
        """Prepare a step with parameters or states that were not there at the last one."""
        launches: list[Launch] = []
        if len(set(params)) < len(params):  # the same memory twice: one after the other
            for param, grad in zip(params, grads, strict=True):
                launches += self._prepare_new(settings, group, [param], [grad], fresh)
            return launches
        if FIRST in self.formula.keywords and settings.states:
            new = [not self.state[param] for param in params]
            if any(new) and not all(new):
                for first in (False, True):
                    indices = [k for k, is_new in enumerate(new) if is_new == first]
                    launches += self._prepare_new(
                        settings,
                        group,
                        [params[k] for k in indices],
                        [grads[k] for k in indices],
                        fresh,
                    )
                return launches
            if new[0]:
                settings = settings._replace(switches=(*settings.switches, (FIRST, True)))
        arrays = [p._array for p in params] + [g._array for g in grads]
        if settings.states:
            states = [self.state_of(param, group, fresh) for param in params]
            arrays += self._own(id(group), [s[name] for name in settings.states for s in states])
        return self._prepare_uniform(settings, group, params, arrays)

    def _prepare_uniform(
        self,
        settings: Settings,
        group: dict[str, Any],
        params: list[Tensor],
        arrays: list[np.ndarray],
    ) -> list[Launch]:
        """Launches for parameters that are all treated alike, with the arrays of ``prepare``."""
        maximize = bool(group.get("maximize"))
        launches = prepare(self._name, self.formula, settings, maximize, arrays, len(params))
        foreign = self._owner.known[id(group)][1] if settings.states else None
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
