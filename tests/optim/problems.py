"""Optimizers with options, and two problems to run them on in numgrad and in PyTorch.

``python -m tests.optim.problems`` writes ``trajectories.json``: where PyTorch's optimizers are
after ten steps of the quadratic. Tests compare with it where PyTorch is not installed.
"""

import json
from pathlib import Path

import numpy as np

import numgrad as ng
from numgrad.optim.formula_optimizer import FormulaOptimizer

STEPS = 10
FILE = Path(__file__).with_name("trajectories.json")

OPTIONS = {
    "Adadelta": [{}, {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1, "maximize": True}],
    "Adagrad": [
        {},
        {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.2, "eps": 1e-6},
        {"maximize": True},
    ],
    "Adam": [
        {},
        {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.1, "amsgrad": True},
        {"maximize": True, "eps": 1e-3},
        {"weight_decay": 0.1, "decoupled_weight_decay": True},
    ],
    "AdamW": [{}, {"lr": 0.1, "weight_decay": 0.3, "amsgrad": True, "maximize": True}],
    "Adamax": [{}, {"lr": 0.1, "betas": (0.5, 0.7), "weight_decay": 0.1, "maximize": True}],
    "ASGD": [{}, {"lr": 0.05, "t0": 3, "lambd": 0.1, "alpha": 0.5, "weight_decay": 0.1}],
    "NAdam": [
        {},
        {"lr": 0.05, "weight_decay": 0.1, "momentum_decay": 0.1},
        {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True},
    ],
    "RAdam": [
        {"lr": 0.05},
        {"weight_decay": 0.1, "betas": (0.5, 0.6)},
        {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True},
    ],
    "RMSprop": [
        {},
        {"momentum": 0.9, "weight_decay": 0.1},
        {"centered": True, "alpha": 0.5},
        {"centered": True, "momentum": 0.5, "maximize": True},
    ],
    "Rprop": [{}, {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (0.01, 0.2), "maximize": True}],
    "SGD": [
        {"lr": 0.1},
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.2, "weight_decay": 0.1},
        {"lr": 0.1, "momentum": 0.9, "nesterov": True},
        {"lr": 0.01, "momentum": 0.5, "maximize": True},
    ],
}
FORMULA_OPTIMIZERS = [
    name
    for name, value in vars(ng.optim).items()
    if isinstance(value, type) and issubclass(value, FormulaOptimizer) and name != "SparseAdam"
]
"""Those of ``ng.optim``; SparseAdam, which takes row-sparse gradients, has tests of its own."""
CONFIGURATIONS = OPTIONS | {name: [{}] for name in FORMULA_OPTIMIZERS if name not in OPTIONS}
CASES = [(name, options) for name, several in CONFIGURATIONS.items() for options in several]
NOT_IN_PYTORCH: set[str] = set()
"""Optimizers for which ``tests/optim/reference.py`` stands alone."""
PYTORCH_CASES = [case for case in CASES if case[0] not in NOT_IN_PYTORCH]


def case_id(case):
    name, options = case
    return "-".join([name, *options])


def quadratic_start():
    return [np.array([[1.0, -2.0], [0.5, 3.0], [-0.1, 0.0]]), np.array([0.3, -0.7]), np.array(1.5)]


def run_quadratic(tensor, optimizer_class, options, steps=STEPS, dtype=np.float64):
    """Minimise a weighted sum of squares around 1 with coupling; returns parameters, optimizer."""
    params = [tensor(a.astype(dtype)) for a in quadratic_start()]
    optimizer = optimizer_class(params, **options)
    for _ in range(steps):
        optimizer.zero_grad()
        a, b, c = params
        loss = ((a - 1) ** 2 * 3).sum() + ((b * c - 2) ** 2).sum() + c * c + (a.sum() * b).sum()
        loss.backward()
        optimizer.step()
    return params, optimizer


def run_mlp(tensor, optimizer_class, options, steps=STEPS):
    """Fit a network of one hidden layer with tanh to fixed numbers."""
    rng = np.random.default_rng(7)
    shapes = [(4, 3), (4,), (1, 4), (1,)]
    params = [tensor(rng.standard_normal(s) * 0.5) for s in shapes]
    x, y = rng.standard_normal((8, 3)), rng.standard_normal((8, 1))
    x, y = (tensor(a).detach() for a in (x, y))
    optimizer = optimizer_class(params, **options)
    for _ in range(steps):
        optimizer.zero_grad()
        w1, b1, w2, b2 = params
        prediction = (x @ w1.T + b1).tanh() @ w2.T + b2
        ((prediction - y) ** 2).mean().backward()
        optimizer.step()
    return params, optimizer


def arrays(params, optimizer):
    """Parameters, then the state arrays of each by name."""
    out = [np.asarray(p.detach().numpy()) for p in params]
    for param in params:
        state = optimizer.state[param]
        for key in sorted(state):
            value = state[key]
            if value is not None:
                out.append(
                    np.asarray(value.detach().numpy() if hasattr(value, "detach") else value)
                )
    return out


def state_keys(params, optimizer):
    # PyTorch keeps a momentum_buffer of None where there is no momentum
    return [sorted(k for k, v in optimizer.state[p].items() if v is not None) for p in params]


def torch_tensor(torch):
    return lambda a: torch.tensor(a, requires_grad=True)


def write():
    import torch

    torch.set_default_dtype(torch.float64)
    found = {}
    for case in PYTORCH_CASES:
        name, options = case
        run = run_quadratic(torch_tensor(torch), getattr(torch.optim, name), options)
        found[case_id(case)] = [a.tolist() for a in arrays(*run)]
    FILE.write_text(json.dumps(found, indent=0) + "\n")


if __name__ == "__main__":
    write()
