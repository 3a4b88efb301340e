"""Autograd by itself, optimization of a classifier, functions of one's own, Hogwild."""

from __future__ import annotations

from typing import Any

import numpy as np
from start import Train, draw, fill


def autograd(torch: Any, count: int = 10) -> Train:
    """Record, differentiate, accumulate and detach on a vector."""
    a = draw(torch, count, seed=1).requires_grad_(True)
    b = draw(torch, count, seed=2).requires_grad_(True)

    def train(steps: int) -> list[float]:
        values = []
        for _ in range(steps):
            q = 3 * a**3 - b**2
            q.backward(gradient=torch.ones_like(q))
            values.append((a.grad.sum() + b.grad.sum()).item())
            (second,) = torch.autograd.grad((a.sin() * b.detach()).sum(), a)
            values.append(second.norm().item())
            a.grad = b.grad = None
        return values

    return train


class _Points:
    """Points of three overlapping clouds, one cloud a class."""

    def __init__(self, torch: Any, count: int, features: int) -> None:
        rng = np.random.default_rng(3)
        labels = rng.integers(3, size=count)
        centers = rng.standard_normal((3, features))
        points = centers[labels] + 0.7 * rng.standard_normal((count, features))
        self.x = torch.from_numpy(points.astype("float32"))
        self.y = torch.from_numpy(labels)

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self.x[index], self.y[index]


def optimization(torch: Any, count: int = 256, features: int = 8, width: int = 16) -> Train:
    """Train a classifier on batches of a DataLoader and test it without gradients."""
    nn = torch.nn
    data = torch.utils.data
    points = _Points(torch, count, features)
    loader = data.DataLoader(data.TensorDataset(points.x, points.y), batch_size=64)
    model = nn.Sequential(
        nn.Linear(features, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
        nn.Linear(width, 3),
    )  # fmt: skip
    fill(torch, model)
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def train(steps: int) -> list[float]:
        losses = []
        for _ in range(steps):
            model.train()
            for x, y in loader:
                loss = loss_fn(model(x), y)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            losses.append(loss.item())
            model.eval()
            correct = 0.0
            with torch.no_grad():
                for x, y in loader:
                    correct += (model(x).argmax(1) == y).type(torch.float).sum().item()
            losses.append(correct / len(points))
        return losses

    return train


def custom_function(torch: Any, count: int = 64, features: int = 10) -> Train:
    """Train through a linear map and a clamped exponential with backwards of their own."""

    class LinearFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any, bias: Any = None) -> Any:
            ctx.save_for_backward(x, weight, bias)
            y = x.mm(weight.t())
            return y if bias is None else y + bias.unsqueeze(0).expand_as(y)

        @staticmethod
        def backward(ctx: Any, grad_output: Any) -> Any:
            x, weight, bias = ctx.saved_tensors
            grad_x = grad_weight = grad_bias = None
            if ctx.needs_input_grad[0]:
                grad_x = grad_output.mm(weight)
            if ctx.needs_input_grad[1]:
                grad_weight = grad_output.t().mm(x)
            if bias is not None and ctx.needs_input_grad[2]:
                grad_bias = grad_output.sum(0)
            return grad_x, grad_weight, grad_bias

    class ClampedExp(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, limit: float) -> Any:
            y = x.exp().clamp(max=limit)
            ctx.save_for_backward(y)
            ctx.limit = limit
            return y

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, grad_output: Any) -> Any:
            (y,) = ctx.saved_tensors
            return grad_output * y * (y < ctx.limit), None

    x = draw(torch, count, features, seed=4)
    target = draw(torch, count, 3, seed=5).abs()
    weight = draw(torch, 3, features, scale=0.1, seed=6).requires_grad_()
    bias = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.Adam([weight, bias], lr=0.01)

    def train(steps: int) -> list[float]:
        losses = []
        for _ in range(steps):
            y = ClampedExp.apply(LinearFunction.apply(x, weight, bias), 5.0)
            loss = ((y - target) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    return train


def _worker(torch: Any, model: Any, x: Any, y: Any, epochs: int) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(epochs):
        for k in range(0, len(x), 64):
            optimizer.zero_grad()
            loss = torch.nn.functional.nll_loss(model(x[k : k + 64]), y[k : k + 64])
            loss.backward()
            optimizer.step()


def hogwild(torch: Any, count: int = 256, features: int = 8, processes: int = 1) -> Train:
    """Train one model in memory that processes share, without locks: ten epochs a step.

    What a library loads when it is first used is loaded before there are processes.
    """
    nn = torch.nn
    points = _Points(torch, count, features)
    model = nn.Sequential(nn.Linear(features, 16), nn.Tanh(), nn.Linear(16, 3), nn.LogSoftmax(1))
    fill(torch, model)
    _worker(torch, model, points.x, points.y, 1)
    model.share_memory()
    mp = torch.multiprocessing.get_context("fork")

    def train(steps: int) -> list[float]:
        workers = []
        for rank in range(processes):
            part = slice(rank, None, processes)
            given = (torch, model, points.x[part], points.y[part], 10 * steps)
            workers.append(mp.Process(target=_worker, args=given))
            workers[-1].start()
        for worker in workers:
            worker.join()
            assert worker.exitcode == 0, worker.exitcode
        with torch.no_grad():
            return [nn.functional.nll_loss(model(points.x), points.y).item()]

    return train
