"""Estimators of scikit-learn of one's own model and loss, fitted by ``ng.minimize``."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from numgrad.core.op import OPS
from numgrad.core.tree import leaves, map_leaves
from numgrad.ecosystem.vectors import imported
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError, warn
from numgrad.optimize.minimize import minimize
from numgrad.tensors.tensor import Tensor

try:  # the classes can be looked at without scikit-learn, and say when called that they need it
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
except ModuleNotFoundError:
    BaseEstimator: Any = type("BaseEstimator", (), {})
    ClassifierMixin: Any = type("ClassifierMixin", (), {})
    RegressorMixin: Any = type("RegressorMixin", (), {})


def squared_error(y: Any, p: Any) -> Any:
    """``(p - y)**2 / 2``."""
    return 0.5 * (p - y) ** 2


def huber(y: Any, p: Any) -> Any:
    """Huber's loss: squares of residuals up to 1.35, beyond linear."""
    size = np.abs(p - y)
    return np.where(size < 1.35, 0.5 * size**2, 1.35 * (size - 0.675))


def poisson(y: Any, p: Any) -> Any:
    """Half the deviance of counts with mean ``exp(p)``, up to a constant."""
    return np.exp(p) - y * p


def gamma(y: Any, p: Any) -> Any:
    """Half the deviance of a gamma distribution with mean ``exp(p)``, up to a constant."""
    return p + y * np.exp(-p)


def log_loss(y: Any, p: Any) -> Any:
    """Negative log likelihood of classes; ``y`` has a column each, of two classes the second's."""
    if y.ndim == 1:
        return np.logaddexp(0.0, p) - y * p
    return OPS["logsumexp"](p, axis=1) - np.sum(y * p, axis=1)


LOSSES: dict[str, tuple[Callable[..., Any], Callable[..., Any] | None, float, int]] = {
    "squared_error": (squared_error, None, -np.inf, 0),
    "huber": (huber, None, -np.inf, 0),
    "poisson": (poisson, np.exp, 0.0, 1),
    "gamma": (gamma, np.exp, np.nextafter(0.0, 1.0), 2),
}
"""Names of losses -> the loss, the mean of a prediction, the smallest ``y``, the power of the mean
that is the variance."""


def linear(parameters: Any, X: Any) -> Any:
    """``X @ coef + intercept``."""
    return X @ parameters["coef"] + parameters["intercept"]


@lru_cache(64)
def _total(model: Any, loss: Any, penalty: Any) -> Callable[..., Any]:
    """The function to minimize, the same one of the same functions: so it is compiled once."""

    def total(parameters: Any, X: Any, y: Any, weights: Any, alpha: Any) -> Any:
        losses = loss(y, model(parameters, X))
        if np.shape(losses) != (X.shape[0],):
            raise NumgradValueError(
                f"the loss has shape {np.shape(losses)} for {X.shape[0]} samples; it returns one "
                "number for each. Perhaps the model returns a column: take [:, 0] of it"
            )
        return np.sum(weights * losses) + alpha * penalty(parameters)

    return total


def _half_squares(parameters: Any) -> Any:
    return sum(0.5 * np.sum(np.square(leaf)) for leaf in leaves(parameters))


def _half_squares_of_coef(parameters: Any) -> Any:
    return 0.5 * np.sum(np.square(parameters["coef"]))


class _Estimator(BaseEstimator):
    """What regressors and classifiers share: parameters found by ``ng.minimize``."""

    def __init__(
        self,
        model: Callable[..., Any] | None = None,
        parameters: Any = None,
        loss: Any = None,
        *,
        alpha: float = 0.0,
        penalty: Callable[..., Any] | None = None,
        method: str = "L-BFGS-B",
        max_iter: int = 1000,
        tol: float | None = None,
        jit: bool = False,
    ) -> None:
        self.model, self.parameters, self.loss = model, parameters, loss
        self.alpha, self.penalty = alpha, penalty
        self.method, self.max_iter, self.tol, self.jit = method, max_iter, tol, jit

    def _validation(self) -> Any:
        name = type(self).__name__
        module = imported(name, "scikit-learn", "sklearn.utils.validation")
        if not hasattr(module, "validate_data"):
            raise NumgradRuntimeError(
                f"{name}: needs scikit-learn 1.6 or later; python -m pip install --upgrade "
                "scikit-learn"
            )
        return module

    def _checked(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> tuple[Any, Any, Any]:
        name, validation = type(self).__name__, self._validation()
        X, y = validation.validate_data(self, X, y, dtype=np.float64, **checks)
        weights = validation._check_sample_weight(sample_weight, X, dtype=np.float64)
        if not np.sum(weights) > 0:
            raise NumgradValueError(f"{name}: the sample weights sum to {np.sum(weights)}")
        return X, y, weights / np.sum(weights)

    def _minimize(
        self, X: Any, y: Any, weights: Any, loss: Callable[..., Any], outputs: int
    ) -> None:
        name, features = type(self).__name__, X.shape[1]
        for option, least in (("alpha", 0), ("max_iter", 1), ("tol", 0)):
            value = getattr(self, option)
            if value is not None and not value >= least:
                raise NumgradValueError(f"{name}: {option} is {value!r}; it is {least} or more")
        if self.model is None:
            shape = (features,) if outputs == 1 else (features, outputs)
            start = {"coef": np.zeros(shape), "intercept": np.zeros(shape[1:])}
            model, penalty = linear, self.penalty or _half_squares_of_coef
        else:
            start = self.parameters
            if callable(start):
                start = start(features, outputs)
            if start is None:
                raise NumgradTypeError(
                    f"{name}: a model has parameters to start from; give a nesting of arrays, or a "
                    "function (n_features, n_outputs) that makes one"
                )
            start = map_leaves(_copied, start)
            model, penalty = self.model, self.penalty or _half_squares
        result = minimize(
            _total(model, loss, penalty),
            start,
            (X, y, weights, float(self.alpha)),
            self.method,
            tol=self.tol,
            options={"maxiter": self.max_iter},
            jit=self.jit,
        )
        if not result.success:
            exceptions = imported(name, "scikit-learn", "sklearn.exceptions")
            warn(
                f"{name}: {self.method} ended without success after {result.get('nit')} iterations "
                f"({result.message}); raise max_iter, or scale the features as with "
                "sklearn.preprocessing.StandardScaler",
                exceptions.ConvergenceWarning,
            )
        self.parameters_, self.loss_, self.n_iter_ = result.x, float(result.fun), result.get("nit")
        if self.model is None:
            coef, intercept = result.x["coef"].T, result.x["intercept"]
            rows = isinstance(self, ClassifierMixin)  # one for each class, or for two of them
            self.coef_ = np.atleast_2d(coef) if rows else coef
            self.intercept_ = np.atleast_1d(intercept) if rows else intercept

    def _predicted(self, X: Any) -> np.ndarray:
        validation = self._validation()
        validation.check_is_fitted(self, "parameters_")
        X = validation.validate_data(self, X, reset=False, dtype=np.float64)
        result = (self.model or linear)(self.parameters_, X)
        array = result.detach().numpy() if isinstance(result, Tensor) else np.asarray(result)
        return array if array.ndim else np.full(len(X), array)  # a constant


def _copied(leaf: Any) -> Any:
    return leaf.detach().clone() if isinstance(leaf, Tensor) else np.array(leaf)


COMMON = """model
        ``model(parameters, X)`` predicts, for features of shape (samples, features); written with
        NumPy. None is linear: ``X @ parameters["coef"] + parameters["intercept"]``.
    parameters
        The start of a model: a nesting of arrays, or a function ``(n_features, n_outputs)`` that
        makes one; {outputs}. Of ``ng.nn`` modules see ``ng.nn.functional_call``.
    loss
        {loss}
    alpha
        How much of the penalty is added to the mean loss.
    penalty
        A function of the parameters. By default half the sum of their squares; for a linear model
        of those of ``coef``.
    method, tol, jit
        As for ``ng.minimize``.
    max_iter
        Iterations at most; a ``ConvergenceWarning`` says that they were not enough."""
NOTES = """``fit`` sets ``parameters_``, nested as the start, ``loss_``, the mean loss with the
    penalty, and ``n_iter_``; of a linear model ``coef_`` and ``intercept_``; as everywhere in
    scikit-learn also ``n_features_in_`` and ``feature_names_in_``."""


class Regressor(RegressorMixin, _Estimator):
    """A regressor of scikit-learn with any differentiable model and loss.

    ``fit(X, y, sample_weight=None)`` minimizes the mean loss plus a penalty with exact gradients;
    ``predict(X)`` and ``score(X, y)`` are as everywhere in scikit-learn, so it works in pipelines,
    searches and cross validation: the score is ``R**2``, of the losses ``"poisson"`` and
    ``"gamma"`` the share of the deviance that is explained, as of ``PoissonRegressor``.

    Parameters
    ----------
    {common}

    Raises
    ------
    NumgradRuntimeError
        By ``fit``, if scikit-learn is not installed.
    NumgradTypeError
        By ``fit``, if a model has no parameters to start from.
    NumgradValueError
        By ``fit``, if there is no such loss, it has no value for a ``y``, ``alpha`` or another
        option is negative, or shapes do not fit.

    Notes
    -----
    {notes}

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> X = np.linspace(-1, 1, 50)[:, None]
    >>> counts = np.round(np.exp(1.0 + 0.5 * X[:, 0]))
    >>> glm = ng.ecosystem.Regressor(loss="poisson", alpha=1e-3)  # doctest: +SKIP
    >>> glm.fit(X, counts).parameters_["coef"].round(1)  # doctest: +SKIP
    array([0.5])
    >>> def saturation(p, X):
    ...     return p["top"] * np.tanh(p["rate"] * X[:, 0])
    >>> curve = ng.ecosystem.Regressor(saturation, {"top": 1.0, "rate": 1.0})  # doctest: +SKIP
    >>> y = 2 * np.tanh(3 * X[:, 0])
    >>> curve.fit(X, y).score(X, y) > 0.999  # doctest: +SKIP
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Regressor:
        """Find the parameters of the smallest mean loss."""
        loss, _, smallest, _ = self._loss()
        X, y, weights = self._checked(X, y, sample_weight, y_numeric=True)
        y = np.asarray(y, np.float64)
        if y.min() < smallest:
            raise NumgradValueError(
                f"Regressor: y has {y.min():g}, and the loss {self.loss!r} is for numbers "
                + ("above 0" if smallest else "from 0 on")
            )
        self._minimize(X, y, weights, loss, 1)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict the mean of ``y``: of the losses ``"poisson"`` and ``"gamma"`` by ``exp``."""
        mean = self._loss()[1]
        predicted = self._predicted(X)
        return predicted if mean is None else mean(predicted)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """``R**2``, or of losses that are deviances the share of it that is explained."""
        power = self._loss()[3]
        if not power:
            return super().score(X, y, sample_weight)
        metrics = imported("Regressor", "scikit-learn", "sklearn.metrics")
        predicted = self.predict(X)
        return metrics.d2_tweedie_score(y, predicted, sample_weight=sample_weight, power=power)

    def _loss(self) -> tuple[Callable[..., Any], Callable[..., Any] | None, float, int]:
        loss = "squared_error" if self.loss is None else self.loss
        if callable(loss):
            return loss, None, -np.inf, 0
        if loss not in LOSSES:
            raise NumgradValueError(
                f"Regressor: there is no loss {loss!r}; give one of "
                f"{', '.join(map(repr, LOSSES))}, or a function (y, prediction) that returns a "
                "number for each sample"
            )
        return LOSSES[loss]


class Classifier(ClassifierMixin, _Estimator):
    """A classifier of scikit-learn with any differentiable model and loss.

    ``fit(X, y, sample_weight=None)`` minimizes the mean loss plus a penalty with exact gradients;
    ``decision_function`` is what the model predicts: logits of shape (samples,) of the second of
    two classes, else of shape (samples, classes). ``predict_proba`` is their softmax.

    Parameters
    ----------
    {common}

    Raises
    ------
    NumgradRuntimeError
        By ``fit``, if scikit-learn is not installed.
    NumgradTypeError
        By ``fit``, if a model has no parameters to start from.
    NumgradValueError
        By ``fit``, if there is one class, an option is negative, or shapes do not fit.

    Notes
    -----
    {notes}

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> inside = np.where(np.sum(X**2, axis=1) < 1.4, "in", "out")
    >>> def circle(p, X):
    ...     return p["scale"] * (np.sum(X**2, axis=1) - p["radius"])
    >>> model = ng.ecosystem.Classifier(
    ...     circle, {"scale": 1.0, "radius": 1.0}, alpha=1e-4
    ... )  # doctest: +SKIP
    >>> model.fit(X, inside).score(X, inside) > 0.95  # doctest: +SKIP
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Classifier:
        """Find the parameters of the smallest mean loss."""
        multiclass = imported("Classifier", "scikit-learn", "sklearn.utils.multiclass")
        X, y, weights = self._checked(X, y, sample_weight)
        multiclass.check_classification_targets(y)
        self.classes_, places = np.unique(y, return_inverse=True)
        count = len(self.classes_)
        if count < 2:
            raise NumgradValueError(
                f"Classifier: y has one class, {self.classes_[0]}; it needs samples of at least "
                "two classes"
            )
        encoded = places.astype(np.float64) if count == 2 else np.eye(count)[places]
        loss = log_loss if self.loss is None else self.loss
        self._minimize(X, encoded, weights, loss, 1 if count == 2 else count)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """What the model predicts: logits."""
        logits = self._predicted(X)
        expected = (len(logits),) if len(self.classes_) == 2 else (len(logits), len(self.classes_))
        if logits.shape != expected:
            raise NumgradValueError(
                f"Classifier: the model returned shape {logits.shape} for {len(self.classes_)} "
                f"classes; it returns {expected}"
            )
        return logits

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of classes, of shape (samples, classes)."""
        logits = self.decision_function(X)
        if logits.ndim == 1:
            logits = np.stack([np.zeros_like(logits), logits], axis=1)
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable classes."""
        logits = self.decision_function(X)
        return self.classes_[
            (logits > 0).astype(int) if logits.ndim == 1 else np.argmax(logits, axis=1)
        ]


for _kind, _loss in (
    (
        Regressor,
        '``"squared_error"`` (the default), ``"huber"``, ``"poisson"``, ``"gamma"`` (whose '
        "predictions are\n        logarithms of means), or a function ``(y, prediction)`` that "
        "returns a number for each sample.",
    ),
    (
        Classifier,
        "A function ``(y, logits)`` that returns a number for each sample, where ``y`` is 1.0 for "
        "the\n        second of two classes, else has a column of zeros and ones for each. By "
        "default the\n        negative log likelihood.",
    ),
):
    _outputs = "of a regressor there is one output" if _kind is Regressor else "one for two classes"
    _common = COMMON.replace("{loss}", _loss).replace("{outputs}", _outputs)
    _text = (_kind.__doc__ or "").replace("{common}", _common)
    _kind.__doc__ = _text.replace("{notes}", NOTES)
