"""Fits of a cubic polynomial to the sine, from tensors by hand to modules with control flow."""

from __future__ import annotations

import math
from typing import Any

from start import Train, draw


def _samples(torch: Any, count: int) -> tuple[Any, Any]:
    x = torch.linspace(-math.pi, math.pi, count)
    return x, torch.sin(x)


def by_hand(torch: Any, count: int = 1000) -> Train:
    """Fit with gradients written down by hand."""
    x, y = _samples(torch, count)
    weights = draw(torch, 4, scale=0.3)

    def train(steps: int) -> list[float]:
        losses = []
        a, b, c, d = weights
        for _ in range(steps):
            predicted = a + b * x + c * x**2 + d * x**3
            losses.append((predicted - y).pow(2).sum().item())
            error = 2.0 * (predicted - y)
            a -= 1e-6 * error.sum()
            b -= 1e-6 * (error * x).sum()
            c -= 1e-6 * (error * x**2).sum()
            d -= 1e-6 * (error * x**3).sum()
        return losses

    return train


def by_autograd(torch: Any, count: int = 1000) -> Train:
    """Fit with four scalar leaves and ``backward``."""
    x, y = _samples(torch, count)
    a, b, c, d = (w.clone().requires_grad_(True) for w in draw(torch, 4, scale=0.3))

    def train(steps: int) -> list[float]:
        losses = []
        for _ in range(steps):
            predicted = a + b * x + c * x**2 + d * x**3
            loss = (predicted - y).pow(2).sum()
            losses.append(loss.item())
            loss.backward()
            with torch.no_grad():
                for weight in (a, b, c, d):
                    weight -= 1e-6 * weight.grad
                    weight.grad = None
        return losses

    return train


def by_function(torch: Any, count: int = 1000) -> Train:
    """Fit ``a + b T3(c + d x)``, where the Chebyshev polynomial has a backward of its own."""

    class Chebyshev3(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return 4 * x**3 - 3 * x

        @staticmethod
        def backward(ctx: Any, grad_output: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad_output * (12 * x**2 - 3)

    x, y = _samples(torch, count)
    a, b, c, d = (torch.full((), value, requires_grad=True) for value in (0.0, -1.0, 0.0, 0.3))

    def train(steps: int) -> list[float]:
        losses = []
        for _ in range(steps):
            predicted = a + b * Chebyshev3.apply(c + d * x)
            loss = (predicted - y).pow(2).sum()
            losses.append(loss.item())
            loss.backward()
            with torch.no_grad():
                for weight in (a, b, c, d):
                    weight -= 5e-6 * weight.grad
                    weight.grad = None
        return losses

    return train


def _linear(torch: Any, count: int) -> tuple[Any, ...]:
    x, y = _samples(torch, count)
    powers = x.unsqueeze(-1).pow(torch.tensor([1, 2, 3]))
    model = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0, 1))
    with torch.no_grad():
        model[0].weight.copy_(draw(torch, 1, 3, scale=0.3))
        model[0].bias.zero_()
    return powers, y, model, torch.nn.MSELoss(reduction="sum")


def by_module(torch: Any, count: int = 1000) -> Train:
    """Fit with a linear layer, its parameters changed by hand."""
    powers, y, model, loss_fn = _linear(torch, count)

    def train(steps: int) -> list[float]:
        losses = []
        for _ in range(steps):
            loss = loss_fn(model(powers), y)
            losses.append(loss.item())
            model.zero_grad()
            loss.backward()
            with torch.no_grad():
                for param in model.parameters():
                    param -= 1e-6 * param.grad
        return losses

    return train


def by_optimizer(torch: Any, count: int = 1000) -> Train:
    """Fit with a linear layer and RMSprop."""
    powers, y, model, loss_fn = _linear(torch, count)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)

    def train(steps: int) -> list[float]:
        losses = []
        for _ in range(steps):
            loss = loss_fn(model(powers), y)
            losses.append(loss.item())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return losses

    return train


def by_own_module(torch: Any, count: int = 1000) -> Train:
    """Fit with a module of four scalar parameters and SGD."""

    class Cubic(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, value in zip("abcd", draw(torch, 4, scale=0.3), strict=True):
                setattr(self, name, torch.nn.Parameter(value.clone()))

        def forward(self, x: Any) -> Any:
            return self.a + self.b * x + self.c * x**2 + self.d * x**3

    x, y = _samples(torch, count)
    model = Cubic()
    criterion = torch.nn.MSELoss(reduction="sum")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)

    def train(steps: int) -> list[float]:
        losses = []
        for _ in range(steps):
            loss = criterion(model(x), y)
            losses.append(loss.item())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return losses

    return train


def by_control_flow(torch: Any, count: int = 1000) -> Train:
    """Fit with a module that uses one weight for a varying number of higher powers."""

    class Dynamic(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, value in zip("abcde", draw(torch, 5, scale=0.01), strict=True):
                setattr(self, name, torch.nn.Parameter(value.clone()))
            self.calls = 0

        def forward(self, x: Any) -> Any:
            self.calls += 1
            y = self.a + self.b * x + self.c * x**2 + self.d * x**3
            for power in range(4, 4 + self.calls % 3):
                y = y + self.e * x**power
            return y

    x, y = _samples(torch, count)
    model = Dynamic()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-8, momentum=0.9)

    def train(steps: int) -> list[float]:
        losses = []
        for _ in range(steps):
            loss = torch.nn.functional.mse_loss(model(x), y, reduction="sum")
            losses.append(loss.item())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return losses

    return train
