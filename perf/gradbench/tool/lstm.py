"""A network of diagonal LSTM layers that predicts the next character of a text."""

import numpy as np
from timing import timed

import numgrad as ng


def read(message):
    main = np.array(message["main_params"])
    layers, bits = len(main) // 2, main.shape[1] // 4
    state = np.array(message["state"]).reshape(layers, 2, bits)
    return (
        (main.reshape(layers, 2, 4, bits), np.array(message["extra_params"])),
        state,
        np.array(message["sequence"]),
    )


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def cell(weight, bias, hidden, memory, x):
    forget = sigmoid(x * weight[0] + bias[0])
    ingate = sigmoid(hidden * weight[1] + bias[1])
    outgate = sigmoid(x * weight[2] + bias[2])
    change = np.tanh(hidden * weight[3] + bias[3])
    memory = memory * forget + ingate * change
    return outgate * np.tanh(memory), memory


def loss(parameters, state, sequence):
    layers, (scale_in, scale_out, shift) = parameters

    def predict(state, characters):
        x, following = characters
        x = x * scale_in
        states = []
        for (weight, bias), (hidden, memory) in zip(layers, state, strict=True):
            x, memory = cell(weight, bias, hidden, memory, x)
            states.append(np.stack([x, memory]))
        y = x * scale_out + shift
        return np.stack(states), np.sum(following * (y - np.log(np.sum(np.exp(y)) + 2)))

    _, terms = ng.scan(predict, state, (sequence[:-1], sequence[1:]))
    return -np.mean(terms) / shift.size


value = ng.jit(loss)
slopes = ng.jit(ng.grad(loss))


@timed(read, float)
def objective(message):
    return value(*message)


@timed(read, lambda slopes: np.concatenate([s.ravel() for s in slopes]).tolist())
def jacobian(message):
    return slopes(*message)
