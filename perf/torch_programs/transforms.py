"""Transforms of functions: gradients by example, Jacobians and Hessians, ensembles."""

from __future__ import annotations

import copy
from typing import Any

from start import Train, draw, fill


def per_sample_gradients(torch: Any, count: int = 32, features: int = 8) -> Train:
    """Clip the gradient of each example before they are averaged."""
    nn, func = torch.nn, torch.func
    model = fill(torch, nn.Sequential(nn.Linear(features, 16), nn.Tanh(), nn.Linear(16, 4)))
    x = draw(torch, count, features, seed=1)
    y = torch.arange(count) % 4
    params = {name: p.detach().clone() for name, p in model.named_parameters()}

    def loss_of_one(params: Any, x: Any, y: Any) -> Any:
        batch = x.unsqueeze(0)
        scores = func.functional_call(model, params, (batch,))
        return nn.functional.cross_entropy(scores, y.unsqueeze(0))

    gradients = func.vmap(func.grad(loss_of_one), in_dims=(None, 0, 0))

    def train(steps: int) -> list[float]:
        norms = []
        for _ in range(steps):
            each = gradients(params, x, y)
            squares = sum((g**2).flatten(1).sum(1) for g in each.values())
            factor = (1.0 / squares.sqrt()).clamp(max=1.0)
            norms.append(squares.sqrt().mean().item())
            for name, g in each.items():
                params[name] = params[name] - 0.1 * torch.einsum("n,n...->...", factor, g) / count
        return norms

    return train


def jacobians(torch: Any, size: int = 6) -> Train:
    """Jacobians and Hessians of a small layer in several ways, and their products."""
    func = torch.func
    weight = draw(torch, size, size, scale=0.5, seed=1)
    bias = draw(torch, size, seed=2)
    start = draw(torch, size, seed=3)

    def predict(x: Any) -> Any:
        return torch.nn.functional.linear(x, weight, bias).tanh()

    def scalar(x: Any) -> Any:
        return predict(x).pow(2).sum()

    def train(steps: int) -> list[float]:
        values = []
        x = start
        for _ in range(steps):
            forward, reverse = func.jacfwd(predict)(x), func.jacrev(predict)(x)
            values.append((forward - reverse).abs().max().item() < 1e-5)
            curvature = func.hessian(scalar)(x)
            value, pullback = func.vjp(predict, x)
            _, pushed = func.jvp(predict, (x,), (value,))
            (pulled,) = pullback(pushed)
            _, hvp = func.jvp(func.grad(scalar), (x,), (pulled,))
            values += [curvature.diagonal().sum().item(), hvp.norm().item()]
            x = x - 0.1 * func.grad(scalar)(x)
        return values

    return train


def ensemble(torch: Any, members: int = 5, count: int = 32, features: int = 8) -> Train:
    """Train several models of one shape at once."""
    nn, func = torch.nn, torch.func
    models = [
        fill(torch, nn.Sequential(nn.Linear(features, 8), nn.ReLU(), nn.Linear(8, 1)), seed=k)
        for k in range(members)
    ]
    params, buffers = func.stack_module_state(models)
    skeleton = copy.deepcopy(models[0]).to("meta")
    x = draw(torch, count, features, seed=1)
    y = x.sum(1, keepdim=True).sin()

    def loss_of_member(params: Any, buffers: Any) -> Any:
        return nn.functional.mse_loss(func.functional_call(skeleton, (params, buffers), (x,)), y)

    step = func.vmap(func.grad_and_value(loss_of_member))

    def train(steps: int) -> list[float]:
        losses = []
        nonlocal params
        for _ in range(steps):
            gradients, values = step(params, buffers)
            params = {name: (p - 0.1 * gradients[name]).detach() for name, p in params.items()}
            losses += values.tolist()
        return losses

    return train
