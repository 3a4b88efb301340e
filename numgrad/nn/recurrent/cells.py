"""Recurrent cells: one step in time."""

from __future__ import annotations

import math
from typing import Any

from numgrad.autograd.variable import Tensor
from numgrad.errors import NumgradValueError
from numgrad.nn import init
from numgrad.nn.linear import linear
from numgrad.nn.module.module import Module
from numgrad.nn.module.options import checked
from numgrad.nn.module.parameter import empty_parameter
from numgrad.nn.recurrent.module import check_nonlinearity, starting_state
from numgrad.nn.recurrent.operation import gru_sequence, lstm_sequence, rnn_sequence
from numgrad.tensors.creation import asarray


class _Cell(Module):
    """What the cells have in common."""

    gates: int

    @checked
    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, device: Any, dtype: Any
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        width = self.gates * hidden_size
        self.weight_ih = empty_parameter((width, input_size), dtype, device)
        self.weight_hh = empty_parameter((width, hidden_size), dtype, device)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(
                name, empty_parameter((width,), dtype, device) if bias else None
            )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values of the parameters."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _prepared(self, input: Any, *states: Any) -> tuple[Any, ...]:
        """Gates from the input, (1, batch, width), and states of a batch; None is zeros."""
        name = type(self).__name__
        input = asarray(input)
        if input.ndim not in (1, 2) or input.shape[-1] != self.input_size:
            raise NumgradValueError(
                f"{name}: an input of shape {input.shape}; expected (batch, {self.input_size}) or "
                f"({self.input_size},)"
            )
        expected = (*input.shape[:-1], self.hidden_size)
        found = [starting_state(name, s, expected, self.weight_hh.dtype) for s in states]
        if input.ndim == 1:
            input, found = input[None], [s[None] for s in found]
        return linear(input, self.weight_ih, self.bias_ih)[None], *found

    @staticmethod
    def _as_given(input: Any, state: Tensor) -> Tensor:
        """A state without the axis of the batch if the input has none."""
        return state[0] if asarray(input).ndim == 1 else state

    def extra_repr(self) -> str:
        """The arguments of the constructor."""
        text = f"{self.input_size}, {self.hidden_size}"
        return text if self.bias else f"{text}, bias=False"


class RNNCell(_Cell):
    """``h' = tanh(x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh)``.

    Parameters
    ----------
    input_size, hidden_size
        Lengths of the last axes of ``x`` and ``h``.
    bias
        Whether there are ``bias_ih`` and ``bias_hh``.
    nonlinearity
        ``"tanh"`` or ``"relu"``.
    device
        None or ``"cpu"``.
    dtype
        Of the parameters, by default float64.

    Raises
    ------
    NumgradValueError
        For another nonlinearity, or if ``hidden_size`` is not positive.

    Examples
    --------
    >>> import numgrad as ng
    >>> cell = ng.nn.RNNCell(3, 2)
    >>> cell
    RNNCell(3, 2)
    >>> cell(ng.ones((5, 3)), ng.zeros((5, 2))).shape
    (5, 2)
    """

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        check_nonlinearity("RNNCell", nonlinearity)
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Tensor:
        """Return the next state, from zeros if there is no state."""
        a, h = self._prepared(input, hx)
        states = rnn_sequence(a, h, self.weight_hh, self.bias_hh, nonlinearity=self.nonlinearity)
        return self._as_given(input, states[0])

    def extra_repr(self) -> str:
        """The arguments of the constructor."""
        text = super().extra_repr()
        return text if self.nonlinearity == "tanh" else f"{text}, nonlinearity={self.nonlinearity}"


class GRUCell(_Cell):
    """Gated recurrent unit.

    With three gates each in ``a = x @ weight_ih.T + bias_ih`` and ``b = h @ weight_hh.T +
    bias_hh``: ``r = sigmoid(a0 + b0)``, ``z = sigmoid(a1 + b1)``, ``n = tanh(a2 + r * b2)``,
    ``h' = (1 - z) * n + z * h``. Parameters are those of ``RNNCell``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.GRUCell(3, 2)(ng.ones((5, 3))).shape
    (5, 2)
    """

    gates = 3

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Tensor:
        """Return the next state, from zeros if there is no state."""
        a, h = self._prepared(input, hx)
        states = gru_sequence(a, h, self.weight_hh, self.bias_hh)
        return self._as_given(input, states[0])


class LSTMCell(_Cell):
    """Long short-term memory.

    With four gates ``i, f, g, o`` in ``x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh``:
    ``c' = sigmoid(f) * c + sigmoid(i) * tanh(g)`` and ``h' = sigmoid(o) * tanh(c')``. Parameters
    are those of ``RNNCell``.

    Examples
    --------
    >>> import numgrad as ng
    >>> h, c = ng.nn.LSTMCell(3, 2)(ng.ones((5, 3)))
    >>> h.shape, c.shape
    ((5, 2), (5, 2))
    """

    gates = 4

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> tuple[Tensor, Tensor]:
        """Return the next state and cell state; ``hx`` is a pair of those before, or zeros."""
        a, h, c = self._prepared(input, *((None, None) if hx is None else hx))
        states, last = lstm_sequence(a, h, self.weight_hh, self.bias_hh, c)
        return self._as_given(input, states[0]), self._as_given(input, last)
