"""lmfit's examples as problems for ``ng.curve_fit``, and what lmfit makes of them.

``python -m tests.optimize.lmfit_examples`` writes ``lmfit.json`` anew where lmfit is installed.
Data are formulas, noise included, so that every machine has the same.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

STORED = Path(__file__).with_name("lmfit.json")


def noise(count: int) -> np.ndarray:
    """Numbers between -1 and 1 without a pattern."""
    return np.sin(1.7 * np.arange(count) ** 2 + 0.3 * np.arange(count))


@dataclass
class Example:
    """A fit: ``options`` are those of ``ng.curve_fit``, ``intervals`` are profiled."""

    model: Any
    x: np.ndarray
    y: np.ndarray
    p0: dict[str, float]
    options: dict[str, Any] = field(default_factory=dict)
    intervals: tuple[str, ...] = ()


def peak_on_line(x, height, center, width, slope, intercept):
    """A Gaussian on a line."""
    return height * np.exp(-((x - center) ** 2) / (2 * width**2)) + slope * x + intercept


def decay(x, amplitude, rate, offset, background):
    """An exponential on a constant and a line."""
    return amplitude * np.exp(-rate * x) + offset + background * x


def two_peaks(x, h1, c1, w1, h2, c2, w2):
    """Two Gaussians."""
    return h1 * np.exp(-(((x - c1) / w1) ** 2)) + h2 * np.exp(-(((x - c2) / w2) ** 2))


def damped_sine(x, amp, decay, omega, shift):
    """A sine that dies out."""
    return amp * np.sin(shift + x * omega) * np.exp(-x * x * decay)


def two_decays(x, a1, t1, a2, t2):
    """Two exponentials."""
    return a1 * np.exp(-x / t1) + a2 * np.exp(-x / t2)


LINE = np.linspace(0, 10, 101)
DECAY = np.linspace(0, 4, 40)
SINE = np.linspace(0, 15, 301)
DECAYS = np.linspace(0.3, 10, 100)

EXAMPLES = {
    "gaussian and line": Example(
        peak_on_line, LINE, peak_on_line(LINE, 5, 6.2, 0.7, 0.3, 1) + 0.3 * noise(101),
        {"height": 4.0, "center": 6.0, "width": 1.0, "slope": 0.0, "intercept": 0.5},
        intervals=("width", "slope"),
    ),
    "fixed and tied": Example(
        decay, DECAY, decay(DECAY, 3, 1.2, 0.6, 0.1) + 0.05 * noise(40),
        {"amplitude": 2.0, "rate": 1.0},
        {"fixed": {"background": 0.1}, "tie": {"offset": "0.2 * amplitude"}},
        intervals=("rate",),
    ),
    "two gaussians, one width": Example(
        two_peaks, LINE, two_peaks(LINE, 3, 3.5, 0.9, 1.5, 5.4, 0.9) + 0.1 * noise(101),
        {"h1": 2.0, "c1": 3.0, "w1": 1.0, "c2": 6.0},
        {"tie": {"w2": "w1", "h2": "h1 / 2"}},
        intervals=("w1",),
    ),
    "bounded damped sine": Example(
        damped_sine, SINE, damped_sine(SINE, 5, 0.025, 2, 0.1) + 0.4 * noise(301),
        {"amp": 10.0, "decay": 0.1, "omega": 3.0, "shift": 0.0},
        {"bounds": {"amp": (0, None), "shift": (-np.pi / 2, np.pi / 2)}, "sigma": 0.3},
        intervals=("shift",),
    ),
    "an inequality by an expression": Example(
        two_peaks, LINE, two_peaks(LINE, 3, 3.5, 0.9, 2, 5.4, 0.7) + 0.1 * noise(101),
        {"h1": 2.0, "c1": 3.0, "w1": 1.0, "h2": 2.0, "w2": 1.0, "gap": 1.0},
        {"tie": {"c2": "c1 + gap"}, "bounds": {"gap": (0.1, 5)}},
    ),
    "two decays": Example(
        two_decays, DECAYS, two_decays(DECAYS, -5, 2, 5, 10) + 0.05 * noise(100),
        {"a1": -4.0, "t1": 2.5, "a2": 4.0, "t2": 9.0},
        intervals=("a1", "t1", "a2", "t2"),
    ),
}  # fmt: skip


def by_lmfit(example: Example) -> dict[str, Any]:
    """Numbers of lmfit for an example."""
    import lmfit

    parameters = lmfit.Parameters()
    fixed, ties = example.options.get("fixed", {}), example.options.get("tie", {})
    bounds = example.options.get("bounds", {})
    for name, value in example.p0.items():
        low, high = bounds.get(name, (None, None))
        parameters.add(name, value, min=-np.inf if low is None else low, max=high or np.inf)
    for name, value in fixed.items():
        parameters.add(name, value, vary=False)
    for name, expression in ties.items():
        parameters.add(name, expr=expression)
    taken = example.model.__code__.co_varnames[1 : example.model.__code__.co_argcount]

    def residual(p):
        values = {name: p[name].value for name in taken}
        return (example.model(example.x, **values) - example.y) / example.options.get("sigma", 1.0)

    minimizer = lmfit.Minimizer(residual, parameters)
    result = minimizer.leastsq(ftol=1e-14, xtol=1e-14, gtol=0.0, epsfcn=1e-14)
    numbers: dict[str, Any] = {
        "values": {name: p.value for name, p in result.params.items()},
        "errors": {name: p.stderr for name, p in result.params.items()},
        "correlations": {
            f"{name}, {other}": value
            for name, p in result.params.items()
            for other, value in (p.correl or {}).items()
            if name < other
        },
        "chi-square": result.chisqr, "reduced": result.redchi,
        "AIC": result.aic, "BIC": result.bic, "free": result.nvarys,
    }  # fmt: skip
    if example.intervals:
        found = lmfit.conf_interval(minimizer, result, p_names=example.intervals, sigmas=[1, 2])
        numbers["intervals"] = {name: [value for _, value in rows] for name, rows in found.items()}
    return numbers


if __name__ == "__main__":
    import lmfit

    stored = {"lmfit": lmfit.__version__} | {k: by_lmfit(e) for k, e in EXAMPLES.items()}
    STORED.write_text(json.dumps(stored, indent=1) + "\n")
