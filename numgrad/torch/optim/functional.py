"""Steps of optimizers as functions of lists: ``torch.optim.sgd.sgd``, ``torch.optim.adam.adam``.

The step is the twin's (Note [Optimizers and their twins] in ``base``), whose state is that of the
lists; what it does not write in place is copied back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad import optim as numgrad_optim
from numgrad.autograd.modes import no_grad
from numgrad.autograd.variable import set_gradient
from numgrad.optim.formula import uniform_state
from numgrad.torch.wrapping import unwrap, wrap

NAMES = (
    "SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop",
    "Rprop",
)  # fmt: skip
_LISTS = {"momentum_buffer": "momentum_buffer_list", "step": "state_steps", "sum": "state_sums"}
"""Lists by the state of numgrad's that they have; others are its plural."""
_ORDERS = {"ASGD": ("ax", "mu", "eta", "step")}
"""Orders of states that are not numgrad's."""
_PAIRS = {"betas": ("beta1", "beta2"), "etas": ("etaminus", "etaplus"),
          "step_sizes": ("step_size_min", "step_size_max")}  # fmt: skip
_KINDS = {"has_sparse_grad", "has_complex", "foreach", "fused", "capturable", "differentiable"}
"""Options that choose between ways of PyTorch's to compute the same."""


def functional(name: str) -> Callable[..., None]:
    """The function of a class of ``NAMES``."""
    cls: Any = getattr(numgrad_optim, name)
    states = {_LISTS.get(s, f"{s}s"): s for s in _ORDERS.get(name) or cls._array_states}

    def step(params: Any, grads: Any, *lists: Any, **options: Any) -> None:
        columns = dict(zip(states, lists, strict=False))
        columns |= {each: options.pop(each) for each in states if each in options}
        for pair, parts in _PAIRS.items():
            if parts[0] in options:
                options[pair] = tuple(options.pop(part) for part in parts)
        options = {k: unwrap(v) for k, v in options.items() if k not in _KINDS and v is not None}
        bases = [unwrap(p) for p in params]
        twin = cls(bases, **options)
        before = [p.grad for p in bases]
        for k, p in enumerate(bases):
            held = {states[each]: unwrap(c[k]) for each, c in columns.items() if k < len(c)}
            held = {state: value for state, value in held.items() if value is not None}
            held |= {s: uniform_state(held[s].item()) for s in twin.formula.uniform if s in held}
            twin.state[p].update(held)
            set_gradient(p, unwrap(grads[k]))
        try:
            twin.step()
        finally:
            for p, gradient in zip(bases, before, strict=True):
                set_gradient(p, gradient)
        with no_grad():
            for each, column in columns.items():
                for k, (p, old) in enumerate(zip(bases, list(column), strict=False)):
                    new: Any = twin.state[p].get(states[each])
                    if old is None and new is not None:
                        column[k] = wrap(new)
                    elif new is not None and unwrap(old) is not new:
                        unwrap(old).copy_(new)

    step.__name__ = step.__qualname__ = name.lower()
    step.__doc__ = f"Step parameters by gradients and lists of states as ``{name}`` does, in place."
    return step
