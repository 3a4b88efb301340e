"""L-BFGS: quasi-Newton steps from a limited history, with or without a line search."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, NoReturn

import numpy as np

from numgrad.codegen import threads
from numgrad.codegen.cpython.addresses import copied_addresses
from numgrad.core.options import option
from numgrad.errors import (
    NumgradAssertionError,
    NumgradRuntimeError,
    NumgradTypeError,
    NumgradValueError,
)
from numgrad.kernels import quasi_newton
from numgrad.kernels.products.dense import dot_kernel
from numgrad.nn.module.state_dict import array_of
from numgrad.optim.formula import as_float
from numgrad.optim.optimizer import Optimizer, declared
from numgrad.optimize.unknowns import Packing
from numgrad.tensors.tensor import Tensor

ARMIJO = 1e-4
"""Part of the decrease that the slope promises which a step must bring."""


CURVATURE = 0.9
"""Part of the slope that may be left."""


class Trial(NamedTuple):
    """A point on the line: the factor of the direction, the loss there, its slope and gradient."""

    t: float
    loss: float
    slope: float
    gradient: np.ndarray


def strong_wolfe(
    evaluate: Callable[[float], Trial],
    origin: Trial,
    t: float,
    longest: float,
    tolerance_change: float,
    max_iterations: int,
) -> tuple[Trial, int]:
    """Find a step that decreases the loss enough and flattens its slope enough.

    First the step grows until it is good or an interval is known to hold a good one, then the
    interval shrinks (J. Nocedal, S. Wright, "Numerical Optimization", 2006, algorithms 3.5 and 3.6;
    new points as in M. Schmidt's minFunc).

    Parameters
    ----------
    evaluate
        Loss, slope and gradient at a factor of the direction.
    origin
        Those at 0; the slope is negative.
    t
        First factor.
    longest
        Largest absolute element of the direction.
    tolerance_change
        Least size of a change of a parameter.
    max_iterations
        Evaluations after the first.

    Returns
    -------
    Trial, int
        The point found, or the best one if none is good, and the number of evaluations.
    """
    trial, previous, count = evaluate(t), origin, 0

    def too_high(trial: Trial) -> bool:
        return trial.loss > origin.loss + ARMIJO * trial.t * origin.slope

    def flat(trial: Trial) -> bool:
        return abs(trial.slope) <= -CURVATURE * origin.slope

    while count < max_iterations:
        if too_high(trial) or (count > 1 and trial.loss >= previous.loss):
            break
        if flat(trial):
            return trial, count + 1
        if trial.slope >= 0:
            break
        t = trial.t
        low, high = t + 0.01 * (t - previous.t), t * 10
        previous, trial = trial, evaluate(_interpolate(previous, trial, low, high))
        count += 1
    else:
        previous = origin
    ends = [previous, trial]

    best = _lower(ends)
    close = False
    while count < max_iterations:
        left, right = min(end.t for end in ends), max(end.t for end in ends)
        width = right - left
        if width * longest < tolerance_change:
            break
        t = _interpolate(ends[0], ends[1], left, right)
        # near an end the second time in a row, or at it: a tenth of the interval away from it
        margin = 0.1 * width
        near = min(right - t, t - left) < margin
        if near and (close or t >= right or t <= left):
            t = right - margin if abs(t - right) < abs(t - left) else left + margin
            close = False
        else:
            close = near
        trial = evaluate(t)
        count += 1
        if too_high(trial) or trial.loss >= ends[best].loss:
            ends[1 - best] = trial
            best = _lower(ends)
            continue
        done = flat(trial)
        if not done and trial.slope * (ends[1 - best].t - ends[best].t) >= 0:
            ends[1 - best] = ends[best]
        ends[best] = trial
        if done:
            break
    return ends[best], count + 1


def _lower(ends: list[Trial]) -> int:
    """The end of an interval that has the lower loss."""
    return 0 if ends[0].loss <= ends[1].loss else 1


def _interpolate(a: Trial, b: Trial, low: float, high: float) -> float:
    """Where the cubic through two points with their slopes is least, between bounds.

    Their middle, if the cubic has no minimum. Numbers too large or equal points give NaN or an
    infinity, which the bounds take care of.
    """
    if a.t > b.t:
        a, b = b, a
    with np.errstate(all="ignore"):
        width = np.float64(b.t - a.t)
        middle = np.float64(a.slope) + b.slope - 3 * (np.float64(b.loss) - a.loss) / width
        square = middle * middle - np.float64(a.slope) * b.slope
        if not square >= 0:
            return (low + high) / 2
        root = np.sqrt(square)
        t = b.t - width * ((b.slope + root - middle) / (b.slope - a.slope + 2 * root))
    return float(min(max(t, low), high))


LEAST_CURVATURE = 1e-10
"""A pair whose step and change of gradient have a smaller product is not remembered."""


@declared
class LBFGS(Optimizer):
    r"""Limited-memory BFGS: steps along :math:`-H g`, with :math:`H` from the latest steps.

    Unlike other optimizers it computes the loss several times a step, up to ``max_iter`` iterations
    of

    .. math:: p \leftarrow p - t H g

    where :math:`H` approximates the inverse Hessian. All parameters together are one vector;
    complex ones count as pairs of real numbers, row-sparse gradients are made dense.

    Raises
    ------
    NumgradValueError
        If an option is outside its range, ``lr`` a Tensor of more than one element, or
        ``line_search_fn`` unknown, or there is more than one group.
    NumgradTypeError
        By ``step``, without a closure.
    NumgradRuntimeError
        By ``step``, if ``line_search_fn`` was set to something unknown.

    References
    ----------
    D. C. Liu, J. Nocedal, "On the limited memory BFGS method for large scale optimization", 1989.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([-1.5, 2.0], requires_grad=True)
    >>> optimizer = ng.optim.LBFGS([x], max_iter=100, line_search_fn="strong_wolfe")
    >>> def loss():  # Rosenbrock's function
    ...     optimizer.zero_grad()
    ...     value = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    ...     value.backward()
    ...     return value
    >>> first = optimizer.step(loss)
    >>> ng.round(x.detach(), 4)
    tensor([1., 1.])
    """

    params: Any = option(doc="Tensors or pairs ``(name, Tensor)``; there can be only one group.")
    lr: float | Tensor = option(
        default=1,
        at_least=0,
        doc="Step :math:`t`, or the first one tried by the line search; a number or a Tensor of "
        "one element. The very first is divided by the sum of absolute values of the gradient, if "
        "that is above 1.",
    )
    max_iter: int = option(default=20, at_least=0, doc="Iterations a step.")
    max_eval: int | None = option(
        default=None,
        at_least=0,
        doc="Evaluations of the loss a step after which no iteration begins; "
        "``max_iter * 5 // 4`` if None.",
    )
    tolerance_grad: float = option(
        default=1e-7, at_least=0, doc="Stop if no element of the gradient is larger."
    )
    tolerance_change: float = option(
        default=1e-9, at_least=0, doc="Stop if no parameter, or the loss, changes by more."
    )
    history_size: int = option(
        default=100,
        at_least=0,
        doc="Pairs of a step and a change of the gradient that are remembered.",
    )
    line_search_fn: str | None = option(
        default=None, one_of=("strong_wolfe",), doc='None for fixed steps, or ``"strong_wolfe"``.'
    )

    def _check_options(self, options: dict[str, Any]) -> None:
        super()._check_options(options)
        if options["max_eval"] is None:
            options["max_eval"] = options["max_iter"] * 5 // 4

    def _set_up(self, options: dict[str, Any]) -> None:
        super()._set_up(options)
        if len(self.param_groups) != 1:
            self._refuse_groups(NumgradValueError)

    def _refuse_groups(self, error: type[Exception]) -> NoReturn:
        raise error(
            f"{self._name}: got {len(self.param_groups)} parameter groups; all parameters are one "
            "vector here, so give one group"
        )

    _needs_closure = True
    _array_states = ("d", "old_dirs", "old_stps", "prev_flat_grad")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Minimise the loss for up to ``max_iter`` iterations.

        Parameters
        ----------
        closure
            Clears the gradients, computes the loss, calls its ``backward`` and returns it. If it
            raises, parameters and state are put back to what they were.

        Returns
        -------
        Any
            What the first call of ``captures`` returned.
        """
        if len(self.param_groups) != 1:
            self._refuse_groups(NumgradAssertionError)
        if closure is None:
            raise NumgradTypeError(
                f"{self._name}.step: needs a closure that computes the loss and its gradients, "
                "since it does so several times; call step(closure)"
            )
        group = self.param_groups[0]
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise NumgradRuntimeError(
                f"{self._name}.step: line_search_fn is {group['line_search_fn']!r}; it must be "
                "None or 'strong_wolfe'"
            )
        first = group["params"][0]
        run = _Run(group, self.state.get(first, {}), partial(self._evaluate, closure))
        try:
            loss, state = run.minimise()
        except BaseException:
            run.restore()
            raise
        self.state[first].update(state)
        return loss


class _Run:
    """One step: the memory of pairs, and where the parameters are."""

    def __init__(
        self, group: dict[str, Any], state: dict[str, Any], closure: Callable[[], Any]
    ) -> None:
        self.group, self.closure = group, closure
        params = group["params"]
        _check(params)
        self.dtype = np.result_type(*[np.finfo(param.dtype).dtype for param in params])
        self.packing = Packing(params, self.dtype)
        self.size = self.packing.size
        self.begin = self.packing.values()
        self.moved = False
        vector = self._vector
        self.iterations, self.evaluations = state.get("n_iter", 0), state.get("func_evals", 0)
        self.known = "d" in state
        self.direction = vector(state.get("d"))
        self.t = float(state.get("t", 0.0))
        self.changes = [vector(y) for y in state.get("old_dirs") or ()]
        self.steps = [vector(s) for s in state.get("old_stps") or ()]
        self.inverses = [float(r) for r in state.get("ro") or ()]
        self.scale = float(state.get("H_diag", 1.0))
        if not len(self.steps) == len(self.changes) == len(self.inverses):
            raise NumgradRuntimeError(
                f"LBFGS.step: the state has {len(self.steps)} steps, {len(self.changes)} changes "
                f"of the gradient and {len(self.inverses)} products of these; there is one of each "
                "a pair"
            )
        self.shares = state.get("al")
        self.gradient_before = vector(state.get("prev_flat_grad"))
        self.loss_before = state.get("prev_loss")

    def _vector(self, saved: Any) -> np.ndarray:
        """An array of the state in the dtype of the vector of parameters."""
        array = np.zeros(self.size) if saved is None else array_of(saved)
        if array.shape != (self.size,):
            raise NumgradRuntimeError(
                f"LBFGS.step: the state has vectors of shape {array.shape} for {self.size} "
                "numbers in all parameters; was the state of others loaded?"
            )
        return np.require(array, self.dtype, ("C", "A", "W"))

    def state(self) -> dict[str, Any]:
        """State that the next step needs."""
        counts = {"func_evals": self.evaluations, "n_iter": self.iterations}
        if not self.known:
            return counts
        state = {
            **counts,
            "d": Tensor(self.direction),
            "t": self.t,
            "old_dirs": [Tensor(y) for y in self.changes],
            "old_stps": [Tensor(s) for s in self.steps],
            "ro": self.inverses,
            "H_diag": self.scale,
            "prev_flat_grad": Tensor(self.gradient_before),
            "prev_loss": self.loss_before,
        }
        if self.shares is not None:  # with a place for each pair, as PyTorch writes to it
            free = self.group["history_size"] - len(self.shares)
            state["al"] = [*self.shares, *[None] * free]
        return state

    def restore(self) -> None:
        """Put the parameters back to where they were before the step."""
        if self.moved:
            self.packing.store(self.packing.unpack(self.begin))

    # ------------------------------------------------------------------------------- iterations

    def minimise(self) -> tuple[Any, dict[str, Any]]:
        """Iterate; the result of the first evaluation, and the new state."""
        group = self.group
        max_iter, max_eval = group["max_iter"], group["max_eval"]
        tolerance_grad, tolerance_change = group["tolerance_grad"], group["tolerance_change"]
        lr = as_float(group["lr"])
        result, loss, gradient = self.evaluate()
        evaluations = 1
        self.evaluations += 1
        if _largest(gradient) <= tolerance_grad:
            return result, self.state()
        origin = self.begin
        for iteration in range(1, max_iter + 1):
            self.iterations += 1
            slope = self.new_direction(gradient)
            self.gradient_before, self.loss_before, self.known = gradient, loss, True
            self.t = lr
            if self.iterations == 1:
                self.t /= max(1.0, float(np.sum(np.abs(gradient), dtype=np.float64)))
            if slope > -tolerance_change:
                break
            if group["line_search_fn"]:
                trial, count = strong_wolfe(
                    partial(self.trial, origin),
                    Trial(0.0, loss, slope, gradient),
                    self.t,
                    _largest(self.direction),
                    tolerance_change,
                    max_eval - evaluations,
                )
                self.t, loss, _, gradient = trial
                origin = self.move(origin, self.t)
            else:
                origin = self.move(origin, self.t)
                count = int(iteration < max_iter)  # after the last one nothing looks at the loss
                if count:
                    _, loss, gradient = self.evaluate()
            evaluations += count
            self.evaluations += count
            if (
                evaluations >= max_eval
                or _largest(gradient) <= tolerance_grad
                or _largest(self.direction) * abs(self.t) <= tolerance_change
                or abs(loss - self.loss_before) < tolerance_change
            ):
                break
        return result, self.state()

    def evaluate(self) -> tuple[Any, float, np.ndarray]:
        """Call the closure; its result as a number, and the gradient."""
        result = self.closure()
        loss = result.detach() if isinstance(result, Tensor) else result
        return result, float(loss), self.packing.pack(map(_gradient, self.packing.tensors))

    def move(self, origin: np.ndarray, t: float) -> np.ndarray:
        """Set the parameters to a point on the line, and return it."""
        point = self.direction * self.dtype.type(t)
        point += origin
        self.moved = True
        self.packing.store(self.packing.unpack(point))
        return point

    def trial(self, origin: np.ndarray, t: float) -> Trial:
        """Loss, slope and gradient at a point on the line."""
        self.move(origin, t)
        _, loss, gradient = self.evaluate()
        slope = np.empty(1, self.dtype)
        dot_kernel(self.dtype)(gradient, self.direction, slope)
        return Trial(t, loss, float(slope[0]), gradient)

    # ------------------------------------------------------------------------------- directions

    def new_direction(self, gradient: np.ndarray) -> float:
        """Take up the latest pair and set the direction; returns the slope along it."""
        if self.iterations == 1:
            self.changes, self.steps, self.inverses, self.scale = [], [], [], 1.0
        else:
            self.remember(gradient)
        count, dtype = len(self.steps), self.dtype
        # the addresses do not keep what lies there: ``found`` does
        layout = copied_addresses([*self.steps, *self.changes], count, 2, -1, dtype)
        direction, shares = np.empty_like(gradient), np.empty(count)
        run = self.chosen(quasi_newton.direction_kernel)
        slope = run(
            layout.pointers, np.array(self.inverses), self.scale, gradient, direction, shares
        )
        self.direction = direction
        if self.iterations > 1:
            self.shares = shares.tolist()
        return slope

    def remember(self, gradient: np.ndarray) -> None:
        """Put the latest step and change of the gradient into the history."""
        step, change = np.empty_like(gradient), np.empty_like(gradient)
        products = np.empty(2)
        self.chosen(quasi_newton.pair_kernel)(
            gradient, self.gradient_before, self.direction, self.t, step, change, products
        )
        product, square = products.tolist()
        if not product > LEAST_CURVATURE:  # nor if it is NaN
            return
        self.changes.append(change)
        self.steps.append(step)
        self.inverses.append(1.0 / product)
        for history in (self.changes, self.steps, self.inverses):
            del history[: max(0, len(history) - self.group["history_size"])]
        self.scale = product / square

    def chosen(self, kernel: Callable[..., Callable[..., Any]]) -> Callable[..., Any]:
        """The variant of a kernel for the number of parameters."""
        dtype = self.dtype
        return threads.choose(
            partial(kernel, dtype),
            partial(kernel, dtype, True),
            self.size * quasi_newton.PASS_NS,
            partial(kernel, dtype, False, True),
        )


def _check(params: list[Tensor]) -> None:
    """Raise unless parameters can be put into a vector and changed."""
    for param in params:
        where = f"LBFGS.step: a parameter of shape {param.shape}"
        if param.dtype.kind not in "fc":
            raise NumgradTypeError(
                f"{where} has dtype {param.dtype}; use float32, float64, complex64 or complex128"
            )
        if not param._array.flags.writeable:
            raise NumgradRuntimeError(
                f"{where} lies in memory that must not be written; optimize a copy"
            )


def _gradient(param: Tensor) -> np.ndarray | None:
    """The gradient of a parameter, all rows of a row-sparse one."""
    grad: Any = param._grad
    if grad is None:
        return None
    if grad.shape != param.shape:
        raise NumgradRuntimeError(
            f"LBFGS.step: a parameter of shape {param.shape} has a gradient of shape {grad.shape}; "
            "was its data replaced? clear the gradient with zero_grad()"
        )
    return grad._array.dense() if grad.is_sparse else grad._array


def _largest(vector: np.ndarray) -> float:
    """Largest absolute value, 0 of none."""
    return float(max(vector.max(initial=0), -vector.min(initial=0)))
