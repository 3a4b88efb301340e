"""Estimators of scikit-learn: its checks, its own solutions, its pipelines and searches."""

import pickle
import warnings

import numpy as np
import pytest

import numgrad as ng

pytest.importorskip("sklearn")

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3))
COUNTS = rng.poisson(np.exp(0.5 + X @ [0.4, -0.3, 0.0])).astype(float)
LINE = X @ [1.0, -2.0, 0.5] + 3.0 + 0.1 * rng.normal(size=80)
CLASSES = np.array(["c", "a", "b"])[np.argmax(X + 0.5 * rng.normal(size=(80, 3)), axis=1)]
WEIGHTS = rng.uniform(0.1, 2.0, 80)
FINE = {"tol": 1e-12}


@pytest.mark.slow(cases=0)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["Regressor", "Classifier"])
def test_checks_of_scikit_learn(name):
    from sklearn.utils.estimator_checks import check_estimator

    check_estimator(getattr(ng.ecosystem, name)())


@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.slow(cases=0))])
def test_linear_models_are_those_of_scikit_learn(jit):
    from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

    glm = ng.ecosystem.Regressor(loss="poisson", alpha=0.1, jit=jit, **FINE)
    theirs = PoissonRegressor(alpha=0.1, tol=1e-10).fit(X, COUNTS, WEIGHTS)
    glm.fit(X, COUNTS, WEIGHTS)
    np.testing.assert_allclose(glm.parameters_["coef"], theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(glm.predict(X), theirs.predict(X), rtol=1e-5)
    ridge = ng.ecosystem.Regressor(alpha=0.5, jit=jit, **FINE).fit(X, LINE)
    np.testing.assert_allclose(
        ridge.parameters_["coef"], Ridge(alpha=40.0).fit(X, LINE).coef_, atol=1e-5
    )
    classifier = ng.ecosystem.Classifier(alpha=1 / 80, jit=jit, **FINE).fit(X, CLASSES)
    logistic = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(X, CLASSES)
    assert classifier.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(classifier.predict_proba(X), logistic.predict_proba(X), atol=1e-5)
    two = CLASSES == "a"
    binary = ng.ecosystem.Classifier(alpha=1 / 80, jit=jit, **FINE).fit(X, two)
    logistic.fit(X, two)
    np.testing.assert_allclose(binary.parameters_["coef"], logistic.coef_[0], atol=1e-5)
    np.testing.assert_allclose(binary.predict_proba(X), logistic.predict_proba(X), atol=1e-5)
    np.testing.assert_array_equal(binary.predict(X), logistic.predict(X))


def test_scores_and_coefficients_are_those_of_scikit_learn():
    from sklearn.feature_selection import RFE
    from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor

    for loss, kind in (("poisson", PoissonRegressor), ("gamma", GammaRegressor)):
        theirs = kind(alpha=0.1, tol=1e-10, max_iter=1000).fit(X, COUNTS + 1)
        ours = ng.ecosystem.Regressor(loss=loss, alpha=0.1, **FINE).fit(X, COUNTS + 1)
        assert ours.score(X, COUNTS + 1) == pytest.approx(theirs.score(X, COUNTS + 1), abs=1e-6)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
    for y in (CLASSES, CLASSES == "a"):
        ours = ng.ecosystem.Classifier(alpha=1 / 80, **FINE).fit(X, y)
        theirs = LogisticRegression(C=1.0).fit(X, y)
        assert ours.coef_.shape == theirs.coef_.shape
        assert ours.intercept_.shape == theirs.intercept_.shape
    assert RFE(ng.ecosystem.Regressor(), n_features_to_select=1).fit(X, LINE).support_.sum() == 1


@pytest.mark.parametrize("options", [{"alpha": -1.0}, {"max_iter": -3}, {"tol": -1}])
def test_options_that_are_negative_are_refused(options):
    with pytest.raises(ValueError, match=rf"Regressor: {next(iter(options))} is -"):
        ng.ecosystem.Regressor(loss="poisson", **options).fit(X, COUNTS)


@pytest.mark.filterwarnings("ignore:minimize. the result does not depend")
def test_a_constant_is_a_model():
    fit = ng.ecosystem.Regressor(lambda p, X: p["mean"], {"mean": 0.0}).fit(X, LINE)
    np.testing.assert_allclose(fit.predict(X), np.full(len(X), LINE.mean()), rtol=1e-5)


def saturation(p, X):
    return p["top"] * np.tanh(p["rate"] * X[:, 0])


def absolute(y, prediction):
    return np.sqrt((y - prediction) ** 2 + 1e-8)


def test_models_and_losses_of_ones_own():
    y = 2 * np.tanh(3 * X[:, 0])
    spoilt = y + 50.0 * (np.arange(80) == 3)
    curve = ng.ecosystem.Regressor(saturation, {"top": 1.0, "rate": 1.0}, absolute, **FINE)
    curve.fit(X, spoilt)
    np.testing.assert_allclose([curve.parameters_["top"], curve.parameters_["rate"]], [2, 3], 1e-3)
    assert curve.parameters == {"top": 1.0, "rate": 1.0}  # as given
    penalized = ng.ecosystem.Regressor(
        saturation, {"top": 1.0, "rate": 1.0}, alpha=1e6, penalty=lambda p: (p["top"] - 1.5) ** 2
    )
    assert penalized.fit(X, y).parameters_["top"] == pytest.approx(1.5, abs=1e-4)
    again = pickle.loads(pickle.dumps(curve))
    np.testing.assert_array_equal(again.predict(X), curve.predict(X))


def network(p, X):
    return np.tanh(X @ p["w"] + p["b"]) @ p["v"]


def weights_of_network(n_features, n_outputs):
    draw = np.random.default_rng(1).normal
    return {"w": draw(size=(n_features, 8)), "b": np.zeros(8), "v": draw(size=(8, n_outputs))}


@pytest.mark.filterwarnings("ignore:Classifier. .* ended without success")
def test_in_a_pipeline_and_a_search():
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rings = np.digitize(np.sum(X**2, axis=1), [1.5, 4.0])
    model = ng.ecosystem.Classifier(network, weights_of_network, alpha=1e-3, max_iter=15)
    pipeline = make_pipeline(StandardScaler(), model)
    search = GridSearchCV(pipeline, {"classifier__alpha": [1e-3, 10.0]}, cv=2, n_jobs=1)
    search.fit(X, rings)
    assert search.best_params_ == {"classifier__alpha": 1e-3}
    assert search.score(X, rings) > 0.8
    assert clone(model).get_params() == model.get_params()


def test_what_is_older_is_refused(monkeypatch):
    import sklearn.utils.validation

    monkeypatch.delattr(sklearn.utils.validation, "validate_data")
    with pytest.raises(ng.NumgradRuntimeError, match=r"Regressor: needs scikit-learn 1\.6"):
        ng.ecosystem.Regressor().fit(X, LINE)


def test_errors_and_warnings():
    from sklearn.exceptions import ConvergenceWarning, NotFittedError

    Regressor, Classifier = ng.ecosystem.Regressor, ng.ecosystem.Classifier
    with pytest.raises(
        ng.NumgradValueError, match="no loss 'squares'; give one of 'squared_error'"
    ):
        Regressor(loss="squares").fit(X, LINE)
    with pytest.raises(
        ng.NumgradValueError, match="y has -1, and the loss 'poisson' is for numbers f"
    ):
        Regressor(loss="poisson").fit(X, COUNTS - 1 - COUNTS.min())
    with pytest.raises(ng.NumgradTypeError, match="a model has parameters to start from"):
        Regressor(saturation).fit(X, LINE)
    with pytest.raises(ng.NumgradValueError, match=r"shape \(80, 80\) for 80 samples"):
        Regressor(lambda p, X: X @ p, np.zeros((3, 1))).fit(X, LINE)
    with pytest.raises(ng.NumgradValueError, match="one class, 1"):
        Classifier().fit(X, np.ones(80))
    with pytest.raises(ValueError, match="ample weights"):  # newer versions of scikit-learn's own
        Classifier().fit(X, CLASSES, np.zeros(80))
    with pytest.raises(NotFittedError):
        Regressor().predict(X)
    with pytest.warns(ConvergenceWarning, match="after 1 iterations.*raise max_iter"):
        Regressor(max_iter=1).fit(X, LINE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Regressor().fit(X, LINE)
