"""numgrad's evals of GradBench have right values and derivatives, and answer its messages."""

import io
import json
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, wishart

import numgrad as ng

TOOL = Path(__file__).parents[2] / "perf/gradbench/tool"
draw = np.random.default_rng(0)


pytestmark = pytest.mark.slow(cases=1)


@pytest.fixture(params=[False, True], ids=["eager", "compiled"])
def tool(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Callable[[str], Any]]:
    """Imports a module of the tool, and forgets it afterwards: others may have such a name."""
    before = set(sys.modules)
    monkeypatch.setattr(ng.config, "jit", request.param)
    monkeypatch.syspath_prepend(str(TOOL))
    yield import_module
    for name in set(sys.modules) - before:
        if str(TOOL) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def output(timed: Any, message: dict[str, Any]) -> Any:
    answer = timed.wrapped(message)
    assert answer["success"]
    assert answer["timings"][0]["name"] == "evaluate"
    return json.loads(json.dumps(answer["output"]))


def difference(f: Callable[[np.ndarray], Any], x: np.ndarray) -> np.ndarray:
    """Central differences of fourth order, a column for each element."""
    h, columns = 1e-3, []
    for k in range(x.size):
        e = h * np.eye(x.size)[k].reshape(x.shape)
        near, far = (np.asarray(f(x + t * e)) - np.asarray(f(x - t * e)) for t in (1, 2))
        columns.append((8 * near - far) / (12 * h))
    return np.stack(columns, axis=-1)


def close(a: Any, b: Any) -> None:
    np.testing.assert_allclose(np.ravel(a), np.ravel(b), rtol=1e-7, atol=1e-8)


def test_squares(tool: Callable[[str], Any]) -> None:
    hello = tool("hello")
    assert (output(hello.square, 3.0), output(hello.double, 3.0)) == (9.0, 6.0)


def test_sum_of_exponentials(tool: Callable[[str], Any]) -> None:
    lse, x = tool("lse"), draw.normal(size=7)
    close(output(lse.primal, {"x": x.tolist()}), logsumexp(x))
    close(output(lse.gradient, {"x": x.tolist()}), difference(logsumexp, x))


def test_least_squares(tool: Callable[[str], Any]) -> None:
    llsq, x, t = tool("llsq"), draw.random(4), np.linspace(-1, 1, 6)
    message = {"x": x.tolist(), "n": 6}

    def misfit(x: np.ndarray) -> Any:
        return np.sum((np.sign(t) - np.vander(t, 4, increasing=True) @ x) ** 2) / 2

    close(output(llsq.primal, message), misfit(x))
    close(output(llsq.gradient, message), difference(misfit, x))


def test_determinant(tool: Callable[[str], Any]) -> None:
    det, a = tool("det"), draw.normal(size=(4, 4))
    message = {"A": a.ravel().tolist(), "ell": 4}
    close(output(det.primal, message), np.linalg.det(a))
    close(output(det.gradient, message), difference(np.linalg.det, a))


def test_runge_kutta(tool: Callable[[str], Any]) -> None:
    """The solution is a polynomial of the time, exact for the first four functions."""
    ode, x = tool("ode"), draw.random(4) + 0.5
    exact = np.cumprod(x) * 2.0 ** np.arange(1, 5) / [1, 2, 6, 24]
    message = {"x": x.tolist(), "s": 3}
    close(output(ode.primal, message), exact)
    close(output(ode.gradient, message), exact[-1] / x)


def test_centroids(tool: Callable[[str], Any]) -> None:
    """Newton's step leads to the means of the points that are near."""
    kmeans, points = tool("kmeans"), draw.random((9, 2))
    message = {"points": points.tolist(), "centroids": points[:3].tolist()}
    squares = cdist(points, points[:3], "sqeuclidean")
    means = [points[squares.argmin(1) == k].mean(0) for k in range(3)]
    close(output(kmeans.cost, message), squares.min(1).sum())
    close(output(kmeans.dir, message), points[:3] - means)


def test_mixture(tool: Callable[[str], Any]) -> None:
    gmm, d, k, n = tool("gmm"), 3, 2, 5
    shapes = {"alpha": (k,), "mu": (k, d), "q": (k, d), "l": (k, d * (d - 1) // 2)}
    given = {name: 0.3 * draw.normal(size=shape) for name, shape in shapes.items()}
    x, gamma, m = draw.normal(size=(n, d)), 0.8, 2
    message = {"x": x.tolist(), "gamma": gamma, "m": m}
    message |= {name: a.tolist() for name, a in given.items()}

    root = np.zeros((k, d, d))
    for j in range(k):
        root[j][np.triu_indices(d, 1)] = given["l"][j]
        root[j] = root[j].T + np.diag(np.exp(given["q"][j]))
    inverse = np.swapaxes(root, 1, 2) @ root
    weights = np.exp(given["alpha"]) / np.sum(np.exp(given["alpha"]))
    terms = [
        np.log(w) + multivariate_normal(mean, np.linalg.inv(s)).logpdf(x)
        for w, mean, s in zip(weights, given["mu"], inverse, strict=True)
    ]
    prior = sum(wishart(d + m + 1, np.eye(d) / gamma**2).logpdf(s) for s in inverse)
    close(output(gmm.objective, message), np.sum(logsumexp(terms, axis=0)) + prior)

    gradient = output(gmm.jacobian, message)
    for name in given:
        expected = difference(
            lambda a, name=name: output(gmm.objective, message | {name: a.tolist()}), given[name]
        )
        close(gradient[name], expected)


def test_network(tool: Callable[[str], Any]) -> None:
    lstm, bits = tool("lstm"), 2
    shapes = {"main_params": (4, 4 * bits), "extra_params": (3, bits), "state": (4, bits)}
    given = {name: draw.normal(size=shape) for name, shape in shapes.items()}
    message: dict[str, Any] = {name: a.tolist() for name, a in given.items()}
    message["sequence"] = draw.integers(0, 2, (4, bits)).tolist()
    expected = [
        difference(lambda a, name=name: output(lstm.objective, message | {name: a.tolist()}), a)
        for name, a in list(given.items())[:2]
    ]
    close(output(lstm.jacobian, message), np.concatenate(expected))


def test_bundle_adjustment(tool: Callable[[str], Any]) -> None:
    """All cameras, points and weights are equal there, so one block says all."""
    ba = tool("ba")
    message = {"n": 2, "m": 3, "p": 4, "cam": draw.random(11).tolist(), "w": 0.7}
    message |= {"x": [1.0, 0.5, 6.0], "feat": [0.2, 0.1]}

    def errors(p: np.ndarray) -> Any:
        changed = {"cam": p[:11].tolist(), "x": p[11:14].tolist(), "w": float(p[14])}
        return output(ba.objective, message | changed)["reproj_error"]["elements"]

    block = difference(errors, np.array([*message["cam"], *message["x"], message["w"]]))
    jacobian = output(ba.jacobian, message)
    close(jacobian["vals"], [*block.ravel(), -2 * 0.7])
    row = [*range(11), *range(22, 25), 31]
    assert jacobian["cols"] == [*row, *row, 34]
    assert jacobian["rows"] == [*range(0, 121, 15), *range(121, 125), 124]


@pytest.mark.parametrize("measured", ["complicated", "simple"])
def test_hand(tool: Callable[[str], Any], measured: str) -> None:
    """A hand of 22 bones."""
    ht, vertices, points = tool("ht"), 5, 3
    model = {
        "parents": [-1, *(0 if b % 4 == 1 else b - 1 for b in range(1, 22))],
        "base_relatives": draw.normal(size=(22, 4, 4)).tolist(),
        "inverse_base_absolutes": draw.normal(size=(22, 4, 4)).tolist(),
        "base_positions": draw.normal(size=(vertices, 4)).tolist(),
        "weights": draw.random((vertices, 22)).tolist(),
        "triangles": draw.integers(0, vertices, (4, 3)).tolist(),
        "is_mirrored": True,
    }
    data = {"model": model, "correspondences": [0, 3, 1]}
    data["points"] = draw.normal(size=(points, 3)).tolist()
    theta, us = draw.normal(size=26), draw.random((points, 2))
    message: dict[str, Any] = {"theta": theta.tolist(), "data": data, "us": us.tolist()}
    if measured == "simple":
        message["us"] = []
    jacobian = np.array(output(ht.jacobian, message))
    by_theta = difference(lambda t: output(ht.objective, message | {"theta": t.tolist()}), theta)
    close(jacobian[:, -26:], by_theta)
    if measured == "complicated":
        by_us = difference(
            lambda s: output(ht.objective, message | {"us": (us + s).tolist()}), np.zeros(2)
        )
        close(jacobian[:, :2], by_us)


@pytest.mark.parametrize("variant", ["rr", "ff", "fr", "rf"])
def test_nested_extremes(
    tool: Callable[[str], Any], variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The charge of the particle that GradBench gives; the saddle is at the origin."""
    monkeypatch.setattr(ng.config, "jit", True)  # thousands of steps
    w = output(getattr(tool("particle"), variant), {"w": 0.0})
    assert abs(w - 0.2071918746486116) < 1e-4
    corners = output(getattr(tool("saddle"), variant), {"start": [1.0, 1.0]})
    np.testing.assert_allclose(corners, 0.0, atol=2e-5)


def test_messages(
    tool: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    messages = [
        {"id": 0, "kind": "start", "eval": "hello"},
        {"id": 1, "kind": "define", "module": "hello"},
        {"id": 2, "kind": "evaluate", "module": "hello", "function": "double", "input": 1.5},
        {"id": 3, "kind": "analysis", "of": 2, "valid": True},
        {"id": 4, "kind": "define", "module": "unknown"},
    ]
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(json.dumps(m) + "\n" for m in messages)))
    monkeypatch.setattr(sys, "argv", ["run.py", "--multithreaded"])
    tool("run").main()
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [a["id"] for a in answers] == [0, 1, 2, 3, 4]
    assert answers[0]["tool"] == "numgrad"
    assert answers[1]["success"]
    assert (answers[2]["output"], len(answers[2]["timings"])) == (3.0, 1)
    assert not answers[4]["success"]
    assert "unknown" in answers[4]["error"]
