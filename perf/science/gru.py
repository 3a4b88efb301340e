"""A gated recurrent unit along a sequence: the squared error of what it predicts."""

import numpy

SIZES = {
    "tiny": [2, 2, 3, 3],
    "small": [4, 8, 16, 50],
    "middle": [16, 16, 64, 100],
    "large": [64, 32, 128, 200],
}
ARGNUMS = (0,)


def arguments(batch, features, hidden, steps):
    """Weights of inputs, of the state, biases, weights of the output; sequences and targets."""
    draw = numpy.random.default_rng(0)
    weights = [
        draw.normal(size=(features, 3 * hidden)) / features**0.5,
        draw.normal(size=(hidden, 3 * hidden)) / hidden**0.5,
        numpy.zeros(3 * hidden),
        draw.normal(size=hidden) / hidden**0.5,
    ]
    return weights, draw.normal(size=(steps, batch, features)), draw.normal(size=(steps, batch))


def program(library):
    np = library.np

    def sigmoid(x):
        return 1.0 / (1.0 + np.exp(-x))

    def error(weights, inputs, targets):
        from_input, from_state, bias, out = weights
        hidden = out.shape[0]

        def step(h, x):
            given, held = x @ from_input + bias, h @ from_state
            reset = sigmoid(given[:, :hidden] + held[:, :hidden])
            update = sigmoid(given[:, hidden : 2 * hidden] + held[:, hidden : 2 * hidden])
            new = np.tanh(given[:, 2 * hidden :] + reset * held[:, 2 * hidden :])
            h = update * h + (1.0 - update) * new
            return h, h @ out

        start = np.zeros((inputs.shape[1], hidden))
        return np.mean((library.scan(step, start, inputs)[1] - targets) ** 2)

    return error
