"""Methods of objects that cannot keep what was compiled for them."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any
from weakref import ReferenceType, ref


class WeakMethod:
    """A method of an object that it does not keep alive."""

    def __init__(self, function: Callable[..., Any], instance: Any) -> None:
        self.__func__ = function
        self.__name__, self.__qualname__ = function.__name__, function.__qualname__
        self.__module__, self.__doc__ = function.__module__, function.__doc__
        self.instance: ReferenceType[Any] = ref(instance)

    @property
    def __self__(self) -> Any:
        return self.instance()

    @property
    def method(self) -> MethodType:
        """The method, which keeps it alive."""
        return MethodType(self.__func__, self.__self__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the method."""
        return self.method(*args, **kwargs)


METHODS = (MethodType, WeakMethod)
"""What has ``__func__`` and ``__self__``."""
