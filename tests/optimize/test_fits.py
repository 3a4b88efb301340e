"""``ng.least_squares`` and ``ng.curve_fit``: Jacobians, what the data leave open, shapes."""

import importlib.util
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import optimize

import numgrad as ng
from numgrad.errors import NumgradError
from numgrad.optimize.estimates import covariance, standard_errors

X = np.linspace(0, 4, 30)
Y = 2 * np.exp(-0.7 * X) + 0.3 + 0.01 * np.cos(40 * X)


def decay(x, amplitude, rate, offset):
    return amplitude * np.exp(-rate * x) + offset


def residuals(p):
    return decay(X, *p) - Y


# ------------------------------------------------------------------------------- least squares


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "trf"},
        {"method": "dogbox"},
        {"bounds": (0, [5, 5, 0.25])},
        {"loss": "soft_l1", "f_scale": 0.01},
        {"jacobian": "operator"},
    ],
)
def test_the_same_minimum_as_scipy_by_differences(options, jit):
    theirs = {k: v for k, v in options.items() if k != "jacobian"}
    start = np.array([1.0, 1.0, 0.1])
    expected = optimize.least_squares(residuals, start, jac="3-point", xtol=1e-14, **theirs)
    found = ng.least_squares(residuals, start, jit=jit, **options)
    assert found.success
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-5)
    if not options:
        np.testing.assert_allclose(found.jac, expected.jac, rtol=1e-6, atol=1e-8)


def test_nested_unknowns_of_several_dtypes():
    weights = np.array([1 + 1j, 2.0])

    def of(p):
        z = p["z"] * weights
        return {"re": np.real(z) - [1, 2], "im": np.imag(z) - [3, 4], "s": p["s"] - np.float32(2)}

    for jacobian in ("dense", "operator"):
        found = ng.least_squares(of, {"z": np.ones(2, complex), "s": 0.0}, jacobian=jacobian)
        np.testing.assert_allclose(found.x["z"], (np.array([1 + 3j, 2 + 4j])) / weights, rtol=1e-9)
        np.testing.assert_allclose(found.x["s"], 2, rtol=1e-9)


def test_a_product_with_each_side_is_that_of_the_matrix():
    start = np.array([1.0, 1.0, 0.1])
    operator = ng.linear_operator(residuals, start)
    matrix = ng.jacobian(residuals)(start)
    np.testing.assert_allclose(operator @ np.eye(3), matrix, rtol=1e-13)
    np.testing.assert_allclose(operator.T @ np.eye(30), matrix.T, rtol=1e-13)


# -------------------------------------------------------------------------------- uncertainties


def test_standard_errors_of_a_line_and_of_what_the_data_do_not_determine():
    x = np.arange(5.0)
    line = np.stack([np.ones(5), x], axis=1)
    # Textbook: sigma^2 = rss / 3, var(slope) = sigma^2 / sum((x - 2)^2),
    # var(intercept) = sigma^2 * (1 / 5 + 2^2 / sum((x - 2)^2)).
    exact = np.sqrt([0.6, 0.1])
    np.testing.assert_allclose(standard_errors(covariance(line, 1.0)), exact, rtol=1e-14)
    scaled = standard_errors(covariance(line * [1e-9, 1e9], 1.0))
    np.testing.assert_allclose(scaled, exact * [1e9, 1e-9], rtol=1e-14)
    half = standard_errors(covariance(np.stack([np.ones(5), np.zeros(5)], axis=1), 1.0))
    np.testing.assert_allclose(half, [np.sqrt(0.2), np.inf])
    nothing = standard_errors(covariance(np.full((5, 2), np.nan), 1.0))
    assert nothing.tolist() == [np.inf, np.inf]


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("sigma", [None, 0.02, "each", "matrix"])
def test_covariances_are_those_of_scipy(sigma, absolute):
    if sigma == "each":
        sigma = np.linspace(0.01, 0.03, 30)
    elif sigma == "matrix":
        sigma = 1e-4 * (np.eye(30) + 0.5 * np.eye(30, k=1) + 0.5 * np.eye(30, k=-1))
    fit = ng.curve_fit(decay, X, Y, sigma=sigma, absolute_sigma=absolute)
    theirs = np.full(30, sigma) if isinstance(sigma, float) else sigma
    expected, spread = optimize.curve_fit(
        decay, X, Y, fit.parameters, theirs, absolute, jac=ng.curve_jac(decay), xtol=1e-14
    )
    parameters, found = fit
    np.testing.assert_allclose(parameters, expected, rtol=1e-6)
    np.testing.assert_allclose(found, spread, rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(fit.standard_errors, np.sqrt(np.diag(spread)), rtol=1e-5)


def test_the_bands_of_a_line_are_the_textbooks():
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    x = np.arange(12.0)
    y = 1 + 0.5 * x + rng.normal(size=12)
    fit = ng.curve_fit(lambda x, a, b: a + b * x, x, y)
    at = np.array([-1.0, 3.3, 20.0])
    scale = np.sum((y - fit(x)) ** 2) / 10
    lever = 1 / 12 + (at - x.mean()) ** 2 / np.sum((x - x.mean()) ** 2)
    for level, prediction in ((0.95, False), (0.8, True)):
        half = stats.t.ppf((1 + level) / 2, 10) * np.sqrt(scale * (lever + prediction))
        low, high = fit.confidence_band(at, level, prediction=prediction)
        np.testing.assert_allclose((high - low) / 2, half, rtol=1e-9)
        np.testing.assert_allclose((high + low) / 2, fit(at), rtol=1e-12)
    ends = fit.confidence_intervals()
    np.testing.assert_allclose(ends.mean(axis=1), fit.parameters, rtol=1e-12)
    with pytest.raises(ValueError, match="between 0 and 1"):
        fit.confidence_band(level=95)


# ------------------------------------------------------------------------------- how it is called


@dataclass
class Parameters:
    heights: object
    rate: float


def test_parameters_in_containers():
    by_name = ng.curve_fit(decay, X, Y, {"offset": 0.0, "rate": 1.0, "amplitude": 1.0})
    assert by_name.names == ["offset", "rate", "amplitude"]
    plain = ng.curve_fit(decay, list(X), list(Y))
    assert plain.names == ["amplitude", "rate", "offset"]
    for name, value in zip(plain.names, plain.parameters, strict=True):
        np.testing.assert_allclose(by_name.parameters[name], value, rtol=1e-7)

    def whole(x, p):
        return p.heights[0] * np.exp(-p.rate * x) + p.heights[1]

    fit = ng.curve_fit(whole, X, Y, Parameters(np.ones(2), 1.0), jit=True)
    assert fit.names == ["heights[0]", "heights[1]", "rate"]
    np.testing.assert_allclose(fit.parameters.heights, plain.parameters[[0, 2]], rtol=1e-7)
    np.testing.assert_allclose(fit.standard_errors.rate, plain.standard_errors[1], rtol=1e-6)


def test_several_predictors_and_results_of_two_dimensions():
    x = {"u": np.linspace(0, 1, 6)[:, None], "v": np.linspace(1, 2, 5)}
    fit = ng.curve_fit(
        lambda x, a, b: a * x["u"] + b * x["v"] ** 2, x, 2 * x["u"] + 3 * x["v"] ** 2
    )
    np.testing.assert_allclose(fit.parameters, [2, 3], rtol=1e-12)
    assert fit.residuals.shape == (6, 5)


def test_what_is_compiled_is_kept_with_the_model():
    def model(x, a, b):
        return a * x + b

    for scale in (1.0, 2.0):
        fit = ng.curve_fit(model, X, scale * X + 1, jit=True)
        np.testing.assert_allclose(fit.parameters, [scale, 1], rtol=1e-9)
    np.testing.assert_allclose(ng.curve_fit(model, X[:9], X[:9], jit=True).parameters[0], 1)


def test_summaries_for_readers():
    fit = ng.curve_fit(decay, X, Y, fixed={"offset": 0.3}, tie={"rate": "0.35 * amplitude"})
    text = fit.summary()
    assert repr(fit) == text
    facts, table = text.split("\n\n")
    for words in (
        "fit of           decay\n",
        "data             30\n",
        f"{fit.aic:.6g}, {fit.bic:.6g}",
    ):
        assert words in facts
    _, amplitude, rate, offset = map(str.split, table.splitlines())
    error = fit.standard_errors[0]
    assert amplitude[:3] == ["amplitude", f"{fit.parameters[0]:.8g}", f"{error:.3g}"]
    assert amplitude[3] == f"{100 * error / fit.parameters[0]:.3g}"
    assert rate[-4:] == ["=", "0.35", "*", "amplitude"]
    assert offset == ["offset", "0.3", "fixed"]
    html = fit._repr_html_()
    assert html.count("<tr>") == len(facts.splitlines()) - 1 + 4
    assert f"<td>{fit.parameters[1]:.8g}</td>" in html
    text = ng.curve_fit(decay, X, Y).summary(correlations=0.9)
    assert [line[:14] for line in text.split("correlations\n")[1].splitlines()] == [
        "rate, offset  "
    ]


def test_a_plot_or_a_word_on_how_to_get_one(monkeypatch):
    fit = ng.curve_fit(decay, X, Y, sigma=np.full(30, 0.01))
    if importlib.util.find_spec("matplotlib") is not None:
        axes = fit.plot(points=7, level=0.999)
        assert axes.get_xlabel() == "x"
        labels = [text.get_text() for text in axes.get_legend().get_texts()]
        assert "99.9 % confidence" in labels
        assert axes.lines[-1].get_xdata().shape == (7,)
    monkeypatch.setattr("numgrad.optimize.fit_plots.find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match="pip install"):
        fit.plot()


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (
            lambda: ng.curve_fit(lambda x, a: a * x[:, None], X, Y),
            ValueError,
            r"shape \(30, 1\), y has shape \(30,\); take .reshape",
        ),
        (lambda: ng.curve_fit(lambda x, a: a * x[1:], X, Y), ValueError, r"\(29,\).*\(30,\)"),
        (lambda: ng.curve_fit(decay, X, Y, [1.0, 1.0]), ValueError, "amplitude, rate, offset"),
        (lambda: ng.curve_fit(lambda x, *a: a[0] * x, X, Y), ValueError, "give p0"),
        (lambda: ng.curve_fit(decay, X[:2], Y[:2]), ValueError, "2 data do not determine 3"),
        (lambda: ng.curve_fit(decay, X, np.full(30, np.nan)), ValueError, "30 of the 30"),
        (lambda: ng.curve_fit(decay, X, Y, sigma=np.zeros(30)), ValueError, "positive"),
        (lambda: ng.curve_fit(decay, X, Y, sigma=-np.eye(30)), ValueError, "positive definite"),
        (lambda: ng.curve_fit(decay, X, Y * 1j), TypeError, "real numbers"),
        (
            lambda: ng.curve_fit(decay, X, Y, max_nfev=3),
            RuntimeError,
            r"maximum number.*It reached array\(\[",
        ),
        (lambda: ng.least_squares(lambda p: p.detach(), [1.0]), RuntimeError, "not depend"),
        (lambda: ng.least_squares(np.log, [-1.0, 1.0]), ValueError, r"function at \[0\] is nan"),
        (lambda: ng.least_squares(np.sqrt, [0.0, 1.0]), ValueError, "Jacobian at .* is inf"),
        (lambda: ng.least_squares(residuals, [1, 1, 1], method="bfgs"), ValueError, "'dogbox'"),
        (
            lambda: ng.least_squares(residuals, np.ones(3), method="lm", loss="cauchy"),
            ValueError,
            "choose 'trf'",
        ),
        (lambda: ng.least_squares(lambda p: p - 1, [1.0], bounds=(2, 3)), ValueError, "outside"),
    ],
)
def test_what_is_wrong_is_named(call, kind, words):
    with pytest.raises(kind, match=words) as caught:
        call()
    assert isinstance(caught.value, NumgradError)


def test_parameters_with_defaults_are_fitted_as_scipy_fits_them():
    x = np.linspace(0, 4, 30)
    y = 2 * np.exp(-0.7 * x)

    def model(x, a, b=1.0):
        return a * np.exp(-b * x)

    for p0, names in ((None, ["a", "b"]), ([1.0, 2.0], ["a", "b"]), ([1.0], ["a"])):
        found = ng.curve_fit(model, x, y, p0)
        expected, _ = optimize.curve_fit(model, x, y, p0)
        np.testing.assert_allclose(found.parameters, expected, rtol=1e-6)
        assert list(found.names) == names


@pytest.mark.parametrize("place", ["x", "columns", "y", "sigma", "p0"])
def test_masked_data_are_refused(place):
    x = np.linspace(0, 4, 5)
    data = {"x": x, "y": np.exp(-x), "sigma": np.ones(5), "p0": np.ones(2)}
    masked = np.ma.masked_array(data.get(place, x), mask=False)
    data |= {"x": [x, masked]} if place == "columns" else {place: masked}
    with pytest.raises(TypeError, match=r"curve_fit: a masked array .*filled"):
        ng.curve_fit(lambda x, a, b: a * np.exp(-b * x), **data)


def test_as_many_residuals_at_every_point():
    counts = iter([3, 4, 4])
    with pytest.raises(ValueError, match="returned 4 numbers, at the point before 3"):
        ng.least_squares(lambda p: p * np.arange(1.0, next(counts) + 1), [1.0], method="trf")


# ---------------------------------------------------------------------------- sparse Jacobians


def tridiagonal(x):
    """Broyden's system."""
    inner = (3 - 2 * x[1:-1]) * x[1:-1] - x[:-2] - 2 * x[2:] + 1
    first, last = (3 - 2 * x[0]) * x[0] - 2 * x[1] + 1, (3 - 2 * x[-1]) * x[-1] - x[-2] + 1
    return inner, first, last


@pytest.mark.parametrize(
    "options", [{}, {"jit": True}, {"method": "dogbox"}, {"bounds": (-5, 5)}], ids=str
)
def test_a_sparse_jacobian_reaches_what_a_dense_one_does(options):
    found = ng.least_squares(tridiagonal, -np.ones(40), jacobian="sparse", **options)
    assert found.jac.format == "csr"
    assert found.jac.nnz == 118
    np.testing.assert_allclose(found.x, ng.least_squares(tridiagonal, -np.ones(40)).x, atol=1e-9)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: np.ones(2), "does not depend"),
        (lambda x: x if x[0] > 0 else -x, "ng.cond"),
    ],
)
def test_what_has_no_sparse_jacobian_is_named(call, words):
    with pytest.raises(NumgradError, match=words):
        ng.least_squares(call, [1.0, 2.0], jacobian="sparse")
    with pytest.raises(NumgradError, match="the start is complex"):
        ng.least_squares(np.real, [1j], jacobian="sparse")


@pytest.mark.parametrize("jacobian", ["sparse", "operator"])
def test_one_unknown_needs_no_plane_of_steps(jacobian):
    found = ng.least_squares(lambda p: p - 7, [0.0], jacobian=jacobian)
    np.testing.assert_allclose(found.x, [7.0])
