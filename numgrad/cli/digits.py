"""Train networks on scikit-learn's handwritten digits, then save, reload and compare them."""

import argparse
import dataclasses
import importlib
import importlib.util
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import numgrad as ng
from numgrad import nn
from numgrad.data import DataLoader
from numgrad.progress import Progress

HELP = "train networks on scikit-learn's handwritten digits"
ACCURACY_PROMISED = 0.97
HELD_OUT = 360
"""Images kept for the test: a fifth of the 1797."""

BATCH = 64
EPOCHS = 30
RATE = 4e-3


def mlp() -> nn.Module:
    """Two hidden layers of 256 on the 64 pixels."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(64, 256),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(256, 10),
    )


def cnn() -> nn.Module:
    """Two convolutions, each followed by pooling, on the 8 x 8 image."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 2 * 2, 10),
    )


MODELS: dict[str, Callable[[], nn.Module]] = {"mlp": mlp, "cnn": cnn}
"""How each model is made."""


@dataclasses.dataclass(frozen=True)
class Digits:
    """Images of shape (n, 1, 8, 8), float32 between 0 and 1, and their labels."""

    train: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Training:
    """The outcome for one model.

    ``first_seconds`` is the time of two steps before the others, on batches of the two sizes that
    there are, in which kernels are compiled or loaded.
    """

    model: str
    parameters: int
    epochs: int
    losses: list[float]
    train_accuracy: float
    accuracy: float
    first_seconds: float
    seconds: float
    reloaded_is_same: bool

    @property
    def good(self) -> bool:
        """Whether it is as accurate as promised and came back from its file unchanged."""
        return self.accuracy > ACCURACY_PROMISED and self.reloaded_is_same


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``demo digits``."""
    parser.add_argument("--model", choices=MODELS, help="train only this one (default: all)")
    parser.add_argument(
        "--epochs",
        type=_positive,
        default=EPOCHS,
        help=f"rounds through the data (default: {EPOCHS})",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of first values and orders (default: 0)"
    )
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="keep the saved models there")
    parser.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS, help="print the results as JSON"
    )


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Train the models; 1 if one is not as accurate as promised, 2 without scikit-learn."""
    if importlib.util.find_spec("sklearn") is None:
        print(
            "the digits are part of scikit-learn, which is not installed:\n"
            '    python -m pip install "numgrad-jit[digits]"   or   scikit-learn',
            file=sys.stderr,
        )
        return 2
    digits = load()
    names = [arguments.model] if arguments.model else list(MODELS)
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.save or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        trainings = [
            train(name, digits, arguments.epochs, arguments.seed, folder) for name in names
        ]
    if arguments.json:
        print(json.dumps([{**dataclasses.asdict(t), "good": t.good} for t in trainings], indent=2))
    else:
        _print_table(trainings)
        if arguments.save:
            print(f"The models are in {arguments.save}.")
    return 0 if all(training.good for training in trainings) else 1


def load() -> Digits:
    """The images, dealt out at random to training and test, the same whenever it is called."""
    bunch = importlib.import_module("sklearn.datasets").load_digits()
    images = (bunch.images[:, None] / 16).astype(np.float32)
    order = np.random.default_rng(0).permutation(len(images))
    test, train = order[:HELD_OUT], order[HELD_OUT:]
    return Digits((images[train], bunch.target[train]), (images[test], bunch.target[test]))


def train(name: str, digits: Digits, epochs: int, seed: int, folder: Path) -> Training:
    """Train one model, write it to ``folder`` and read it again."""
    make = MODELS[name]
    np.random.seed(seed)  # the first values of parameters are drawn from it
    model = make().to(ng.float32)
    optimizer = ng.optim.Adam(model.parameters(), lr=RATE)
    loader = DataLoader(digits.train, BATCH, shuffle=True, seed=seed)

    def step(images: ng.Tensor, labels: ng.Tensor) -> ng.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    *_, full, rest = loader
    began = time.perf_counter()
    step(*full)
    step(*rest)
    first = time.perf_counter() - began
    losses = []
    began = time.perf_counter()
    with Progress(epochs, f"training {name}") as progress:
        for _ in range(epochs):
            losses.append(float(np.mean([step(*batch).item() for batch in loader])))
            progress.step(f"loss {losses[-1]:.4f}")
    seconds = time.perf_counter() - began
    predicted = predict(model, digits.test[0])

    path = folder / f"{name}.safetensors"
    ng.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    reloaded = make().to(ng.float32)
    reloaded.load_state_dict(ng.load(path)["model"])
    return Training(
        model=name,
        parameters=sum(p.size for p in model.parameters()),
        epochs=epochs,
        losses=losses,
        train_accuracy=accuracy(predict(model, digits.train[0]), digits.train[1]),
        accuracy=accuracy(predicted, digits.test[1]),
        first_seconds=first,
        seconds=seconds,
        reloaded_is_same=bool((predict(reloaded, digits.test[0]) == predicted).all()),
    )


def predict(model: nn.Module, images: np.ndarray) -> np.ndarray:
    """Scores of the ten digits for each image."""
    model.eval()
    with ng.no_grad():
        return model(ng.tensor(images)).numpy()


def accuracy(scores: np.ndarray, labels: np.ndarray) -> float:
    """The fraction of images whose digit has the highest score."""
    return float((scores.argmax(1) == labels).mean())


def _print_table(trainings: list[Training]) -> None:
    print("model  parameters  epochs    loss  training  held out  first steps     time  reloaded")
    print("-----  ----------  ------  ------  --------  --------  -----------  -------  --------")
    for t in trainings:
        same = "the same" if t.reloaded_is_same else "DIFFERS"
        print(
            f"{t.model:5}  {t.parameters:10}  {t.epochs:6}  {t.losses[-1]:6.4f}  "
            f"{t.train_accuracy:8.2%}  {t.accuracy:8.2%}  {t.first_seconds:9.2f} s  "
            f"{t.seconds:5.1f} s  {same}"
        )
    print(
        f"\nAccuracy on {HELD_OUT} images that were held out; above {ACCURACY_PROMISED:.0%} is "
        "promised. The first steps compile\nkernels or load them from the cache. Each model was "
        "saved, loaded and compared score by score."
    )
