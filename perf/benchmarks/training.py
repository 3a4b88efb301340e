"""Steps of optimizers and of training."""

import sys
from pathlib import Path

import numgrad as ng

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import training


class Optimizers:
    """A step of every optimizer over four weights and their biases."""

    params = (
        "Adadelta",
        "Adafactor",
        "Adagrad",
        "Adam",
        "Adamax",
        "ASGD",
        "NAdam",
        "RAdam",
        "RMSprop",
        "Rprop",
        "SGD",
    )
    param_names = ("optimizer",)

    def setup(self, name):
        made = training.optimizer(ng, name, "4 x (256x256 + 256)", "float64", {})
        self.step = made.names["step"]
        self.step()

    def time_step(self, name):
        self.step()


class Networks:
    """A step of training, an epoch of the CNN."""

    def setup(self):
        large = training.mlp(ng, [64, 256, 256, 10], 128, "float32", "cross_entropy")
        small = training.mlp(ng, [10, 32, 1], 16, "float64", "mse_loss")
        self.large, self.small = large.names["train"], small.names["train"]
        self.cnn = training.cnn(ng, 256, 64).names["train"]
        for train in (self.large, self.small, self.cnn):
            train()

    def time_mlp_of_three_layers(self):
        self.large()

    def time_mlp_of_two_layers(self):
        self.small()

    def time_cnn(self):
        self.cnn()
