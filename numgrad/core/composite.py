"""Operations that are written with others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.core.arguments import UnknownParameter, translated
from numgrad.core.call import Call
from numgrad.core.interpreter import interpreter, raw
from numgrad.core.op import Op


class Composite(Op):
    """An operation written with others: its gradient, tracing and forward mode are theirs."""

    def compute(self, args: tuple, params: dict[str, Any]) -> Any:
        return self.expanded(args, params)

    def expanded(self, args: tuple, params: dict[str, Any]) -> Any:
        """The result by the operations it is written with, in whatever interpreter called."""
        try:
            return self.function(*args, **params)
        except TypeError as error:
            try:
                self.__signature__.bind(*args, **params)
            except TypeError as mismatch:
                ours = {theirs: name for name, theirs in self.spellings.items()}
                renamed = translated(self, params)
                if renamed.keys() != params.keys():
                    return self.expanded(args, renamed)
                renamed = {ours.get(name, name): value for name, value in params.items()}
                if renamed.keys() != params.keys() and len(renamed) == len(params):
                    return self.expanded(args, renamed)
                raise UnknownParameter(self, f"{self.name}: {mismatch}") from error
            raise

    def run(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Call]:
        with interpreter(raw):
            out = self.function(*args, **params)
        return out, Call(self, (), params)
