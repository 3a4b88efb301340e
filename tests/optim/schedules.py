"""Schedules as functions of a library and an optimizer, so that two libraries can be compared."""

from typing import Any

import numpy as np

PLATEAU_LOSSES = np.round(np.abs(np.sin(np.arange(200) * 0.7)) + 3 / (1 + np.arange(200)), 3)


class Decay:
    """A callable object with a state, which a schedule saves."""

    def __init__(self, rate):
        self.rate = rate

    def __call__(self, step):
        return self.rate**step


def of(kind: str, **arguments: Any) -> Any:
    return lambda s, opt: getattr(s, kind)(opt, **arguments)


def sequence(milestones, *parts):
    return lambda s, opt: s.SequentialLR(opt, [part(s, opt) for part in parts], milestones)


def chain(*parts):
    return lambda s, opt: s.ChainedScheduler([part(s, opt) for part in parts])


WARM_UP = of("LinearLR", start_factor=0.1, total_iters=10)
SIMPLE = {
    "lambda": of("LambdaLR", lr_lambda=lambda t: 0.97**t),
    "lambdas": of("LambdaLR", lr_lambda=[lambda t: 1 / (1 + t), Decay(0.9)]),
    "multiplicative": of("MultiplicativeLR", lr_lambda=lambda t: 1 - 0.01 * (t % 7)),
    "step": of("StepLR", step_size=7, gamma=0.6),
    "milestones": of("MultiStepLR", milestones=[30, 5, 5, 60], gamma=0.3),
    "constant": of("ConstantLR", factor=0.25, total_iters=9),
    "linear": of("LinearLR", start_factor=0.2, end_factor=0.7, total_iters=12),
    "linear down": of("LinearLR", start_factor=1.0, end_factor=0.0, total_iters=8),
    "exponential": of("ExponentialLR", gamma=0.93),
    "polynomial": of("PolynomialLR", total_iters=40, power=1.7),
    "cosine": of("CosineAnnealingLR", T_max=13, eta_min=0.01),
    "cosine of one step": of("CosineAnnealingLR", T_max=1),
    "restarts": of("CosineAnnealingWarmRestarts", T_0=7, eta_min=0.02),
    "longer restarts": of("CosineAnnealingWarmRestarts", T_0=5, T_mult=2),
}
CYCLES = {
    "cycle": of("CyclicLR", base_lr=0.1, max_lr=[0.5, 1.0], step_size_up=9, step_size_down=4),
    "halved cycle": of(
        "CyclicLR", base_lr=0.1, max_lr=0.4, step_size_up=6, mode="triangular2",
        base_momentum=[0.5, 0.6], max_momentum=0.8,
    ),
    "exponential cycle": of(
        "CyclicLR", base_lr=[0.1, 0.2], max_lr=0.4, step_size_up=6, mode="exp_range", gamma=0.98
    ),
    "own cycle": of(
        "CyclicLR", base_lr=0.1, max_lr=0.4, step_size_up=6, scale_fn=Decay(0.5),
        scale_mode="cycle", cycle_momentum=False,
    ),
    "one cycle": of("OneCycleLR", max_lr=0.9, total_steps=100),
    "one linear cycle": of(
        "OneCycleLR", max_lr=[0.9, 0.3], epochs=10, steps_per_epoch=11, anneal_strategy="linear",
        base_momentum=0.7, max_momentum=[0.9, 0.8], div_factor=10.0, final_div_factor=100.0,
    ),
    "three phases": of("OneCycleLR", max_lr=0.9, total_steps=105, pct_start=0.4, three_phase=True),
}  # fmt: skip
COMPOSITE = {
    "sequence": sequence([10, 40], WARM_UP, SIMPLE["cosine"], SIMPLE["exponential"]),
    "sequence with restarts": sequence([12], SIMPLE["constant"], SIMPLE["longer restarts"]),
    "sequence of functions": sequence([8], SIMPLE["lambda"], SIMPLE["multiplicative"]),
    "sequence that begins later": sequence([0], SIMPLE["step"], SIMPLE["polynomial"]),
    "chain": chain(WARM_UP, SIMPLE["exponential"]),
    "chain of three": chain(SIMPLE["cosine"], SIMPLE["milestones"], SIMPLE["multiplicative"]),
}
SCHEDULES = SIMPLE | CYCLES | COMPOSITE


def optimizer(lib: Any, kind: str = "SGD", lrs: Any = (0.5, 0.2)) -> Any:
    """An optimizer with two groups."""
    groups = [{"params": [lib.ones(2, requires_grad=True)], "lr": lr} for lr in lrs]
    options = {"momentum": 0.5} if kind == "SGD" else {}
    return getattr(lib.optim, kind)(groups, lr=0.1, **options)


def values(opt: Any) -> list[float]:
    """What a schedule writes: learning rates and momenta."""
    found = []
    for group in opt.param_groups:
        found += [float(group["lr"]), float(group.get("momentum", group.get("betas", [0])[0]))]
    return found


def run(opt: Any, scheduler: Any, steps: int) -> np.ndarray:
    """A row of ``values`` before each step."""
    rows = []
    for _ in range(steps):
        rows.append(values(opt))
        opt.step()
        scheduler.step()
    return np.array(rows)
