"""Intervals and regions by profile likelihood, bootstrap, labels and pictures of fits."""

import pickle

import numpy as np
import pytest
from scipy import optimize, stats

import numgrad as ng
from numgrad.errors import NumgradError

X = np.linspace(0, 4, 30)
NOISE = 0.05 * np.cos(40 * X)
Y = 2 * np.exp(-0.7 * X) + 0.3 + NOISE


def decay(x, amplitude, rate, offset):
    return amplitude * np.exp(-rate * x) + offset


def line(x, slope, intercept):
    return slope * x + intercept


def best_cost(held, **options):
    """Half of the least chi-square with parameters of ``decay`` held, by SciPy alone."""
    free = [k for k in range(3) if k not in held]

    def residuals(q):
        p = np.empty(3)
        p[free], p[list(held)] = q, list(held.values())
        return decay(X, *p) - Y

    start = np.array([2.0, 0.7, 0.3])[free]
    tolerances = dict.fromkeys(("xtol", "ftol", "gtol"), 1e-13)
    return optimize.least_squares(residuals, start, **tolerances, **options).cost


# ---------------------------------------------------------------------------------------- profile


@pytest.mark.parametrize("sigma", [None, 0.05])
def test_profiles_of_a_line_are_the_textbooks_intervals(sigma):
    absolute = sigma is not None
    fit = ng.curve_fit(line, X, X + NOISE, sigma=sigma, absolute_sigma=absolute)
    sxx = np.sum((X - X.mean()) ** 2)
    slope, intercept = stats.linregress(X, X + NOISE)[:2]
    s = 0.05 if absolute else np.sqrt(np.sum((line(X, slope, intercept) - X - NOISE) ** 2) / 28)
    for level in (0.5, 0.999):
        half = (stats.norm if absolute else stats.t(28)).ppf((1 + level) / 2) * s / np.sqrt(sxx)
        ends = slope - half, slope + half
        np.testing.assert_allclose(fit.profile("slope", level), ends, rtol=1e-8)
    np.testing.assert_allclose(fit.profile(), fit.confidence_intervals(), rtol=1e-7)


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("options", [{"loss": "soft_l1", "f_scale": 0.02}, {}], ids=str)
def test_ends_of_a_profile_are_where_the_cost_is(options):
    fit = ng.curve_fit(decay, X, Y, **options)
    cost = best_cost({}, **options)
    ends = fit.profile("rate", 0.9)
    assert ends[0] < fit.parameters[1] < ends[1]
    for end in ends:
        growth = best_cost({1: end}, **options) / cost - 1
        assert growth == pytest.approx(stats.t.ppf(0.95, 27) ** 2 / 27, rel=1e-6)


def test_one_parameter_bounds_and_what_data_do_not_limit():
    fit = ng.curve_fit(lambda x, rate: np.exp(-rate * x), X, np.exp(-0.7 * X) + NOISE,
                       bounds={"rate": (0, 0.71)})  # fmt: skip
    low, high = fit.profile("rate")
    assert high == 0.71
    cost = np.sum((np.exp(-low * X) - np.exp(-0.7 * X) - NOISE) ** 2)
    assert cost / fit.rss - 1 == pytest.approx(stats.t.ppf(0.975, 29) ** 2 / 29, rel=1e-6)
    at_bound = ng.curve_fit(decay, X, Y, bounds={"rate": (0, 0.6)})
    low, high = at_bound.profile("rate")
    assert low < high == 0.6
    # A plateau that starts anywhere beyond the data fits as well.
    y = 2 * np.tanh(X + 1) + 6 * NOISE
    flat = ng.curve_fit(lambda x, a, k: a * np.tanh(k * x), X + 1, y, [2.0, 2.0])
    low, high = flat.profile("k")
    assert 0.5 < low < 1
    assert high == np.inf


def test_exact_data_leave_no_interval():
    fit = ng.curve_fit(decay, X, decay(X, 2.0, 0.7, 0.3))
    np.testing.assert_allclose(fit.profile("rate"), [0.7, 0.7], rtol=1e-9)


def test_profiles_of_tied_fits_and_of_residuals():
    fit = ng.curve_fit(decay, X, Y, fixed={"offset": 0.3}, tie={"rate": "0.35 * amplitude"})
    rows = fit.profile()
    assert np.isnan(rows[1:]).all()
    a = rows[0, 1]
    growth = np.sum((decay(X, a, 0.35 * a, 0.3) - Y) ** 2) / fit.rss - 1
    assert growth == pytest.approx(stats.t.ppf(0.975, 29) ** 2 / 29, rel=1e-6)
    start = {"amplitude": 1.0, "rate": 1.0, "offset": 0.0}
    found = ng.least_squares(lambda p: decay(X, **p) - Y, start).estimates
    whole = ng.curve_fit(decay, X, Y)
    np.testing.assert_allclose(found.profile("rate"), whole.profile("rate"), rtol=1e-7)
    assert (found.aic, found.bic) == pytest.approx((whole.aic, whole.bic), rel=1e-12)


def test_a_better_fit_on_the_way_is_said():
    def model(x, a):
        return np.cos(a * x)

    fit = ng.curve_fit(model, X, np.cos(3 * X), [0.2])  # a local minimum
    with pytest.raises(RuntimeError, match=r"profile: with a = .* the fit is better.*start from"):
        fit.profile("a", 0.999999)


def test_contours():
    fit = ng.curve_fit(line, X, X + NOISE)
    border = fit.contour("slope", "intercept", 0.9, points=8)
    assert border.shape == (9, 2)
    assert border[0].tolist() == border[8].tolist()
    offsets = border - fit.parameters  # an ellipse for a line
    heights = np.einsum("ij,jk,ik->i", offsets, np.linalg.inv(fit.covariance), offsets)
    np.testing.assert_allclose(heights, 2 * stats.f.ppf(0.9, 2, 28), rtol=1e-7)
    fit = ng.curve_fit(decay, X, Y)
    cost = best_cost({})
    for amplitude, rate in fit.contour("amplitude", "rate", points=3)[:3]:
        growth = best_cost({0: amplitude, 1: rate}) / cost - 1
        assert growth == pytest.approx(2 * stats.f.ppf(0.95, 2, 27) / 27, rel=1e-6)


# -------------------------------------------------------------------------------------- bootstrap


@pytest.mark.slow(cases=3)
@pytest.mark.parametrize(
    ("kind", "sigma"),
    [
        ("residual", "matrix"), ("case", "each"), ("case", "matrix"), ("residual", None),
        ("residual", "each"), ("parametric", None), ("parametric", "each"),
        ("parametric", "matrix"), ("case", None),
    ],
)  # fmt: skip
def test_samples_spread_as_the_estimate_does(kind, sigma):
    each = np.linspace(0.03, 0.07, 30)
    weights = {"each": each, "matrix": np.diag(each**2) + 1e-4}.get(sigma)
    noise = np.random.default_rng(3).normal(size=30) * each
    fit = ng.curve_fit(line, X, X + noise, sigma=weights)
    if kind == "case" and sigma == "matrix":
        with pytest.raises(ValueError, match="data are correlated"):
            fit.bootstrap(10, kind)
        return
    drawn = fit.bootstrap(100, kind, seed=0)
    assert drawn.samples.shape == (100, 2)
    assert drawn.failures == 0
    expected = fit.standard_errors
    if kind == "case":  # errors may differ from one to another (White's sandwich)
        w = 1 / each if sigma else np.ones(30)
        columns = np.stack([X, np.ones(30)], axis=1) * w[:, None]
        inverse = np.linalg.inv(columns.T @ columns)
        meat = columns.T @ np.diag((fit.residuals * w) ** 2) @ columns
        expected = np.sqrt(np.diag(inverse @ meat @ inverse))
    np.testing.assert_allclose(drawn.standard_errors, expected, rtol=0.2)
    np.testing.assert_allclose(drawn.samples.mean(axis=0), fit.parameters, atol=0.02)
    again = fit.bootstrap(5, kind, seed=0)
    assert np.array_equal(drawn.samples[:5], again.samples)
    ends = drawn.confidence_intervals(0.8)
    inside = (ends[:, 0] < drawn.samples) & (drawn.samples < ends[:, 1])
    np.testing.assert_allclose(inside.mean(axis=0), 0.8, atol=0.02)


def test_samples_are_fits_of_data_drawn_anew():
    fit = ng.curve_fit(decay, X, Y, fixed={"offset": 0.3}, jit=True)
    places = np.random.default_rng(7).integers(0, 30, 30)
    expected, _ = optimize.curve_fit(
        lambda x, a, b: decay(x, a, b, 0.3), X[places], Y[places], [2.0, 0.7]
    )
    first = fit.bootstrap(2, "case", seed=7).samples[0]
    np.testing.assert_allclose(first, [*expected, 0.3], rtol=1e-6)
    # Modified residuals: r / sqrt(1 - h), centred, put back on the curve.
    jac = ng.curve_jac(lambda x, a, b: decay(x, a, b, 0.3))(X, *fit.parameters[:2])
    hat = np.diag(jac @ np.linalg.pinv(jac))
    modified = (Y - fit(X)) / np.sqrt(1 - hat)
    drawn = fit(X) + (modified - modified.mean())[places]
    expected, _ = optimize.curve_fit(lambda x, a, b: decay(x, a, b, 0.3), X, drawn, [2.0, 0.7])
    first = fit.bootstrap(2, seed=7).samples[0]
    np.testing.assert_allclose(first, [*expected, 0.3], rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda fit: fit.profile("q"), "'q' is not among the free parameters, which are"),
        (lambda fit: fit.profile("slope", 95), "between 0 and 1"),
        (lambda fit: fit.contour("slope", "slope"), "takes two parameters"),
        (lambda fit: fit.contour("slope", "intercept", 0.0), "between 0 and 1"),
        (lambda fit: fit.contour("slope", "intercept", points=2), "2 points are no border"),
        (lambda fit: fit.bootstrap(10, "cases"), "there is no kind 'cases'"),
        (lambda fit: fit.bootstrap(1), "integer of at least 2"),
        (lambda fit: fit.bootstrap(2).confidence_intervals(1.0), "between 0 and 1"),
    ],
)
def test_what_is_wrong_is_named(call, words):
    fit = ng.curve_fit(line, X, X + NOISE)
    with pytest.raises(NumgradError, match=words):
        call(fit)


# ------------------------------------------------------------------------ labels, pictures, pickles


def test_fits_are_pickled():
    fit = ng.curve_fit(decay, X, Y, tie={"rate": "0.35 * amplitude"})
    again = pickle.loads(pickle.dumps(fit))
    assert repr(again) == repr(fit)
    assert again.profile("offset") == pytest.approx(fit.profile("offset"), rel=1e-9)
    start = {"amplitude": 1.0, "rate": 1.0, "offset": 0.3}
    found = ng.least_squares(lambda p: decay(X, **p) - Y, start, fixed=["offset"])
    again = pickle.loads(pickle.dumps(found))
    assert again.x == found.x
    assert again.estimates.bic == found.estimates.bic
    with pytest.raises(RuntimeError, match="were pickled have no function"):
        again.estimates.profile("rate")


def test_data_of_other_labels_are_refused():
    """They would be matched by place."""
    pandas = pytest.importorskip("pandas")
    x, y = pandas.Series(X), pandas.Series(Y)
    shuffled = y.sample(frac=1, random_state=0)
    for options in (
        {"x": x, "y": shuffled}, {"x": X, "y": y, "sigma": shuffled},
        {"x": {"t": x}, "y": shuffled}, {"x": x.to_frame(), "y": shuffled},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"curve_fit: \w+ and \w+ have different labels"):
            ng.curve_fit(lambda x, a: a, **options)
    fit = ng.curve_fit(decay, x.sample(frac=1, random_state=0), shuffled)
    np.testing.assert_allclose(fit.parameters, ng.curve_fit(decay, X, Y).parameters, rtol=1e-6)
    xarray = pytest.importorskip("xarray")
    with pytest.raises(ValueError, match="x and y have different labels"):
        ng.curve_fit(decay, xarray.DataArray(X, dims="t"), xarray.DataArray(Y, dims="u"))


def test_a_fit_keeps_data_of_its_own():
    x, y, sigma = X.copy(), Y.copy(), np.full(30, 0.1)
    fit = ng.curve_fit(decay, x, y, sigma=sigma)
    before = fit.profile("rate")
    for array in (x, y, sigma):
        array[:] = 0.0  # a buffer that is used again
    np.testing.assert_allclose(fit.profile("rate"), before, rtol=1e-12)
    np.testing.assert_array_equal(fit.y, Y)


def test_a_report_says_what_is_at_its_bound():
    fit = ng.curve_fit(decay, X, Y, bounds={"offset": (0, 0.2)}, fixed={"rate": 0.7})
    notes = dict(zip(fit.names, (row[-1] for row in list(fit.rows())[1:]), strict=True))
    assert notes == {"amplitude": "", "rate": "fixed", "offset": "at its bound: see profile"}
    with pytest.raises(ValueError, match=r"profile: rate is fixed; take a free parameter, of amp"):
        fit.profile("rate")
    tied = ng.curve_fit(decay, X, Y, tie={"offset": "amplitude / 6"})
    with pytest.raises(ValueError, match=r"offset is tied, = amplitude / 6; take"):
        tied.profile("offset")
    assert [end.shape for end in fit.confidence_band([])] == [(0,), (0,)]
    with pytest.raises(TypeError, match="'levels': contour is of one level, plot_contour of sev"):
        fit.contour("amplitude", "offset", levels=[0.5])


def test_labels_of_pandas_come_out():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": X, "y": Y}, index=pandas.Index(np.arange(30) + 5, name="day"))
    frame.loc[7, "y"] = np.nan
    fit = ng.curve_fit(lambda d, amplitude, rate, offset: decay(d["x"], amplitude, rate, offset),
                       frame[["x"]], frame["y"], nan_policy="omit")  # fmt: skip
    plain = ng.curve_fit(decay, np.delete(X, 2), np.delete(Y, 2))
    names = ["amplitude", "rate", "offset"]
    for found, expected in (
        (fit.parameters, plain.parameters),
        (fit.standard_errors, plain.standard_errors),
        (fit.residuals, plain.residuals),
        (fit(frame.iloc[:3]), plain(X[:3])),
    ):
        assert isinstance(found, pandas.Series)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
    assert fit.parameters.index.tolist() == fit.covariance.columns.tolist() == names
    assert fit.residuals.index.equals(frame.index.drop(7))
    band, (low, high) = fit.confidence_band(), plain.confidence_band()
    assert band.index.equals(frame.index.drop(7))
    np.testing.assert_allclose(band, np.stack([low, high], axis=1), rtol=1e-5)
    np.testing.assert_allclose(fit.profile(), plain.profile(), rtol=1e-5)
    assert fit.correlations().loc["rate", "offset"] == pytest.approx(plain.correlations()[1, 2])
    assert fit.confidence_intervals().loc["rate", "low"] < fit.parameters["rate"]
    assert fit.bootstrap(3, seed=0).samples.columns.tolist() == names
    by_start = ng.curve_fit(decay, X, Y, pandas.Series({"amplitude": 1.0, "rate": 1.0}))
    assert by_start.parameters.index.tolist() == names
    assert isinstance(plain(frame["x"]), pandas.Series)


def test_labels_of_xarray_come_out():
    xarray = pytest.importorskip("xarray")
    x = xarray.DataArray(X, dims="t", coords={"t": X}, name="x")
    y = xarray.DataArray(Y, dims="t", coords={"t": X}, name="y")
    plain = ng.curve_fit(line, X[1:], Y[1:])
    fit = ng.curve_fit(line, x, y.where(x > 0), nan_policy="omit")
    assert type(fit.parameters) is np.ndarray
    assert fit.residuals.dims == ("t",)
    np.testing.assert_allclose(fit.residuals.sel(t=X[3]), plain.residuals[2], rtol=1e-9)
    assert fit(x).identical(xarray.DataArray(plain(X), dims="t", coords={"t": X}))
    band = fit.confidence_band(x)
    np.testing.assert_allclose(band["high"].sel(t=X[5]), plain.confidence_band(X)[1][5], rtol=1e-9)


@pytest.mark.slow(cases=0)
def test_pictures():
    pytest.importorskip("matplotlib")
    fit = ng.curve_fit(decay, X, Y, sigma=np.diag(np.full(30, 0.05**2)), absolute_sigma=True)
    axes = fit.plot_residuals()
    np.testing.assert_allclose(axes.lines[-1].get_ydata(), -fit.residuals / 0.05, rtol=1e-9)
    assert axes.get_xlabel() == "x"
    axes = fit.plot_contour("rate", "offset", levels=[0.999], points=4)
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["99.9 % confidence", "estimate"]
    assert axes.lines[0].get_xdata().shape == (5,)
    two = ng.curve_fit(lambda x, a: a * x[0], np.stack([X, X]), X)
    assert two.plot_residuals().get_xlabel() == "fit"
    with pytest.raises(ValueError, match="over one vector"):
        two.plot()


def test_figures_of_a_robust_fit_are_of_its_cost():
    fit = ng.curve_fit(decay, X, Y, loss="soft_l1", f_scale=0.02)
    rss = 2 * best_cost({}, loss="soft_l1", f_scale=0.02)
    assert fit.reduced_chi_square == pytest.approx(rss / 27, rel=1e-9)
    assert fit.variance == pytest.approx(fit.residual_standard_error**2, rel=1e-12)
    assert fit.aic == pytest.approx(30 * np.log(rss / 30) + 6, rel=1e-9)
    assert fit.bic == pytest.approx(30 * np.log(rss / 30) + 3 * np.log(30), rel=1e-9)
    (low, high), (inner_low, inner_high) = fit.band(X[:1], 0.5, True), fit.band(X[:1], 0.5)
    half, inner = (high - low) / 2, (inner_high - inner_low) / 2
    spread = stats.t.ppf(0.75, 27) ** 2 * rss / 27
    np.testing.assert_allclose(half**2 - inner**2, spread, rtol=1e-9)


def test_bootstrap_where_data_do_not_determine():
    with pytest.raises(ng.NumgradValueError, match="leave no residuals"):
        ng.curve_fit(line, X[:2], Y[:2]).bootstrap(5)
    known = ng.curve_fit(line, [0.0, 1.0], [1.0, 2.0], sigma=0.1, absolute_sigma=True)
    errors = known.bootstrap(200, "parametric", seed=0).standard_errors
    np.testing.assert_allclose(errors, known.standard_errors, rtol=0.15)
    x = np.repeat([0.0, 1.0], 3)  # one sample of 32 has one place alone
    fit = ng.curve_fit(line, x, x + 0.1 * np.cos(9 * np.arange(6)))
    drawn = fit.bootstrap(60, "case", seed=0)
    generator = np.random.default_rng(0)
    alone = sum(np.ptp(x[generator.integers(0, 6, 6)]) == 0 for _ in range(60))
    assert drawn.failures == alone > 0


def test_data_without_a_standard_deviation_are_left_out():
    sigma = np.linspace(0.1, 0.3, 30)
    keep = np.arange(30) != 4
    expected = ng.curve_fit(line, X[keep], Y[keep], sigma=sigma[keep]).parameters
    sigma[4] = np.nan
    fit = ng.curve_fit(line, X, Y, sigma=sigma, nan_policy="omit")
    np.testing.assert_array_equal(fit.parameters, expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "foo"}, "no loss 'foo'; choose one of 'linear'"),
        ({"loss": "huber", "f_scale": -1}, "f_scale is .* positive"),
        ({"loss": "huber", "f_scale": 0}, "f_scale is .* positive"),
        ({"f_scale": "a"}, "f_scale is .* positive"),
        ({"sigma": np.eye(30) + np.eye(30, k=1) / 4}, "not symmetric"),
    ],
)
def test_options_that_mean_nothing(options, message):
    with pytest.raises(ng.NumgradValueError, match=message):
        ng.curve_fit(line, X, Y, **options)


def test_a_level_is_a_number():
    with pytest.raises(ng.NumgradValueError, match="level of confidence"):
        ng.curve_fit(line, X, Y).profile("slope", "slope")
