"""Operations that are written with others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.core.call import Call
from numgrad.core.interpreter import interpreter, raw
from numgrad.core.op import Op


class Composite(Op):
    """An operation written with others: its gradient, tracing and forward mode are theirs."""

    def compute(self, args: tuple, params: dict[str, Any]) -> Any:
        return self.function(*args, **params)

    def run(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Call]:
        with interpreter(raw):
            out = self.function(*args, **params)
        return out, Call(self, (), params)
