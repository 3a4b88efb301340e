"""Whether operations are recorded: per thread, as context managers and decorators."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NoReturn

from numgrad.core.interpreter import Changing, ChangingAtOnce, state
from numgrad.errors import NumgradRuntimeError, warn


def is_grad_enabled() -> bool:
    """Whether operations called in this thread are recorded.

    Examples
    --------
    >>> import numgrad as ng
    >>> with ng.no_grad():
    ...     ng.is_grad_enabled()
    False
    """
    return state.grad_enabled


def is_inference_mode_enabled() -> bool:
    """Whether this thread is inside ``inference_mode``.

    Examples
    --------
    >>> import numgrad as ng
    >>> with ng.inference_mode():
    ...     ng.is_inference_mode_enabled()
    True
    """
    return state.inference


class _GradMode(Changing):
    """A grad mode for a block, a function, or the running time of a generator."""

    enabled: bool

    def _changes(self) -> dict[str, Any]:
        return {"grad_enabled": self.enabled, "constant": not self.enabled}

    def _fresh(self) -> _GradMode:
        return type(self)()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isclass(function):
            warn(
                f"{type(self).__name__}: decorating the class {function.__name__} covers only its "
                "construction; decorate its methods",
                FutureWarning,
            )
        if inspect.isgeneratorfunction(function):
            return self._generator(function)

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self._fresh():
                return function(*args, **kwargs)

        return wrapped

    def _generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            resume: Callable[[], Any] = functools.partial(next, generator)
            try:
                while True:
                    try:
                        with self._fresh():
                            value = resume()
                    except StopIteration as stop:
                        return stop.value
                    try:
                        sent = yield value
                    except GeneratorExit:
                        raise
                    except BaseException as error:
                        resume = functools.partial(generator.throw, error)
                    else:
                        resume = functools.partial(generator.send, sent)
            finally:
                with self._fresh():
                    generator.close()

        return wrapped


class no_grad(_GradMode):
    """Operations inside are not recorded; a context manager and a decorator.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([1.0], requires_grad=True)
    >>> with ng.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    enabled = False

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        self = super().__new__(cls)
        if function is not None:  # @no_grad without parentheses
            _GradMode.__init__(self)
            return self(function)
        return self

    def __init__(self) -> None:
        super().__init__()


class enable_grad(no_grad):
    """Operations inside are recorded, also within ``no_grad``.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([1.0], requires_grad=True)
    >>> with ng.no_grad(), ng.enable_grad():
    ...     (x * 2).requires_grad
    True
    """

    enabled = True


class inference_mode(_GradMode):
    """Operations inside are not recorded, and their results never can be.

    Faster to reason about than ``no_grad``: a result made inside has no history and counts no
    versions. Outside it can be read; saving it for a backward, writing to it or asking for its
    gradient is an error. A view of a normal tensor stays a normal tensor.

    Parameters
    ----------
    mode
        Whether inference mode is on inside; ``inference_mode(False)`` turns it off within another.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([1.0], requires_grad=True)
    >>> with ng.inference_mode():
    ...     y = x * 2
    >>> y.is_inference()
    True
    """

    def __new__(cls, mode: bool | Callable[..., Any] = True) -> Any:
        self = super().__new__(cls)
        if callable(mode):  # @inference_mode without parentheses
            self.__init__()
            return self(mode)
        return self

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.mode = bool(mode)

    def _changes(self) -> dict[str, Any]:
        return {"inference": self.mode, "grad_enabled": not self.mode, "constant": self.mode}

    def _fresh(self) -> _GradMode:
        return type(self)(self.mode)


class set_grad_enabled(ChangingAtOnce, _GradMode):
    """Set recording at once; as a context manager or decorator, for the block or function only.

    Examples
    --------
    >>> import numgrad as ng
    >>> with ng.set_grad_enabled(False):
    ...     ng.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.enabled = bool(mode)
        self._change()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        outer = self._undone()
        if outer is not None:
            state.set(**outer)  # as a decorator it acts inside the function only
        return super().__call__(function)

    def _fresh(self) -> _GradMode:
        mode = _GradMode()
        mode.enabled = self.enabled
        return mode


def Variable(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise: a Tensor is its own variable.

    Raises
    ------
    NumgradRuntimeError
        Always.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.autograd.Variable(1.0)
    Traceback (most recent call last):
    ...
    numgrad.errors.NumgradRuntimeError: Variable: Tensors have been variables since 2018; ...
    """
    raise NumgradRuntimeError(
        "Variable: Tensors have been variables since 2018; use ng.tensor(..., requires_grad=True), "
        "and ng.inference_mode() for what volatile=True did"
    )
