"""Networks: digits, names by character, an adversarial pair, a language model, a policy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from start import Train, draw, fill


def digits(torch: Any, batch: int = 64, channels: int = 8) -> Train:
    """Train a convolutional network on scikit-learn's images of digits."""
    from sklearn.datasets import load_digits

    nn = torch.nn
    images, labels = load_digits(return_X_y=True)
    x = torch.tensor(images, dtype=torch.float32).view(-1, 1, 8, 8) / 16
    y = torch.tensor(labels, dtype=torch.long)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(1, channels, 3, padding=1)
            self.conv2 = nn.Conv2d(channels, 2 * channels, 3, padding=1)
            self.fc1 = nn.Linear(2 * channels * 4, 32)
            self.fc2 = nn.Linear(32, 10)

        def forward(self, x: Any) -> Any:
            x = nn.functional.max_pool2d(nn.functional.relu(self.conv1(x)), 2)
            x = nn.functional.max_pool2d(nn.functional.relu(self.conv2(x)), 2)
            x = nn.functional.relu(self.fc1(torch.flatten(x, 1)))
            return nn.functional.log_softmax(self.fc2(x), dim=1)

    model = fill(torch, Net())
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=20, gamma=0.7)

    def train(steps: int) -> list[float]:
        model.train()
        losses = []
        for k in range(steps):
            part = slice(k * batch % 1024, k * batch % 1024 + batch)
            optimizer.zero_grad()
            loss = nn.functional.nll_loss(model(x[part]), y[part])
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        return losses

    return train


LETTERS = "abcdefghijklmnopqrstuvwxyz"
NAMES = {
    0: ["anna", "bella", "clara", "dora", "elena", "gina"],
    1: ["boris", "igor", "oleg", "viktor", "yuri", "lev"],
}


def characters(torch: Any, width: int = 32) -> Train:
    """Classify names by a recurrent network that reads a letter at a time."""
    nn = torch.nn

    class CharRNN(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.i2h = nn.Linear(len(LETTERS), width)
            self.h2h = nn.Linear(width, width)
            self.h2o = nn.Linear(width, 2)
            self.softmax = nn.LogSoftmax(dim=1)

        def forward(self, letter: Any, hidden: Any) -> tuple[Any, Any]:
            hidden = torch.tanh(self.i2h(letter) + self.h2h(hidden))
            return self.softmax(self.h2o(hidden)), hidden

        def init_hidden(self) -> Any:
            return torch.zeros(1, width)

    def line_to_tensor(line: str) -> Any:
        tensor = torch.zeros(len(line), 1, len(LETTERS))
        for k, letter in enumerate(line):
            tensor[k][0][LETTERS.index(letter)] = 1
        return tensor

    examples = [(line_to_tensor(name), torch.tensor([k])) for k in NAMES for name in NAMES[k]]
    model = fill(torch, CharRNN())
    criterion = nn.NLLLoss()

    def train(steps: int) -> list[float]:
        losses = []
        for step in range(steps):
            line, category = examples[5 * step % len(examples)]
            hidden = model.init_hidden()
            model.zero_grad()
            for k in range(line.size(0)):
                output, hidden = model(line[k], hidden)
            loss = criterion(output, category)
            loss.backward()
            for p in model.parameters():
                p.data.add_(p.grad.data, alpha=-0.05)
            losses.append(loss.item())
        return losses

    return train


def adversarial(torch: Any, batch: int = 16, width: int = 8, latent: int = 16) -> Train:
    """Train a generator against a discriminator, both convolutional, on images of 16 by 16."""
    nn = torch.nn

    def weights_init(m: Any) -> None:
        name = m.__class__.__name__
        if name.find("BatchNorm") != -1:
            nn.init.constant_(m.weight.data, 1.0)
            nn.init.constant_(m.bias.data, 0)

    generator = nn.Sequential(
        nn.ConvTranspose2d(latent, 2 * width, 4, 1, 0, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(True),
        nn.ConvTranspose2d(2 * width, width, 4, 2, 1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(True),
        nn.ConvTranspose2d(width, 1, 4, 2, 1, bias=False),
        nn.Tanh(),
    )
    discriminator = nn.Sequential(
        nn.Conv2d(1, width, 4, 2, 1, bias=False),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(width, 2 * width, 4, 2, 1, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(2 * width, 1, 4, 1, 0, bias=False),
        nn.Sigmoid(),
    )
    for k, model in enumerate((generator, discriminator)):
        fill(torch, model, scale=0.1, seed=k)
        model.apply(weights_init)
    grid = torch.linspace(-1, 1, 16)
    centers = draw(torch, batch, 1, 1, scale=0.3, seed=2)
    real = (1 - (grid.view(1, 1, 16) - centers) ** 2 - grid.view(1, 16, 1) ** 2).unsqueeze(1)
    noise = draw(torch, batch, latent, 1, 1, seed=3)
    criterion = nn.BCELoss()
    betas = (0.5, 0.999)
    optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=betas)
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=betas)

    def train(steps: int) -> list[float]:
        losses = []
        for _ in range(steps):
            discriminator.zero_grad()
            label = torch.full((batch,), 1.0, dtype=torch.float)
            error_real = criterion(discriminator(real).view(-1), label)
            error_real.backward()
            fake = generator(noise)
            label.fill_(0.0)
            error_fake = criterion(discriminator(fake.detach()).view(-1), label)
            error_fake.backward()
            optimizer_d.step()
            generator.zero_grad()
            label.fill_(1.0)
            error = criterion(discriminator(fake).view(-1), label)
            error.backward()
            optimizer_g.step()
            losses += [(error_real + error_fake).item(), error.item()]
        return losses

    return train


TEXT = (
    "the tape records what was done and the walk back asks each record what it owes to the one "
    "before so that the last number tells the first how it should have been chosen at the start "
)


def language_model(torch: Any, width: int = 32, length: int = 24, batch: int = 8) -> Train:
    """Train a transformer to continue a text by characters."""
    nn = torch.nn

    class PositionalEncoding(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dropout = nn.Dropout(p=0.0)
            position = torch.arange(length).unsqueeze(1)
            rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
            pe = torch.zeros(length, 1, width)
            pe[:, 0, 0::2] = torch.sin(position * rates)
            pe[:, 0, 1::2] = torch.cos(position * rates)
            self.register_buffer("pe", pe)

        def forward(self, x: Any) -> Any:
            return self.dropout(x + self.pe[: x.size(0)])

    class TransformerModel(nn.Module):
        def __init__(self, tokens: int) -> None:
            super().__init__()
            self.pos_encoder = PositionalEncoding()
            layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0)
            self.transformer_encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.embedding = nn.Embedding(tokens, width)
            self.linear = nn.Linear(width, tokens)

        def forward(self, src: Any, src_mask: Any) -> Any:
            src = self.pos_encoder(self.embedding(src) * math.sqrt(width))
            return self.linear(self.transformer_encoder(src, src_mask))

    vocabulary = sorted(set(TEXT))
    tokens = torch.tensor([vocabulary.index(c) for c in TEXT * 12], dtype=torch.long)
    columns = tokens[: len(tokens) // batch * batch].view(batch, -1).t().contiguous()
    model = fill(torch, TransformerModel(len(vocabulary)), scale=0.1)
    mask = torch.triu(torch.full((length, length), float("-inf")), diagonal=1)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10, gamma=0.95)

    def train(steps: int) -> list[float]:
        model.train()
        losses = []
        for k in range(steps):
            i = k * length % (columns.size(0) - length - 1)
            data, target = columns[i : i + length], columns[i + 1 : i + 1 + length].reshape(-1)
            output = model(data, mask).view(-1, len(vocabulary))
            loss = criterion(output, target)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        return losses

    return train


class CartPole:
    """A pole that stands on a cart, moved left or right by a constant force.

    Equations of motion of Barto, Sutton and Anderson (1983) without friction, steps of 0.02 s.
    """

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def reset(self) -> np.ndarray:
        self.state = self.rng.uniform(-0.05, 0.05, 4)
        return self.state.astype("float32")

    def step(self, action: int) -> tuple[np.ndarray, float, bool]:
        x, v, angle, spin = self.state
        force = 10.0 if action else -10.0
        sin, cos = math.sin(angle), math.cos(angle)
        push = (force + 0.05 * spin**2 * sin) / 1.1
        turn = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        move = push - 0.05 * turn * cos / 1.1
        self.state = np.array([x, v, angle, spin]) + 0.02 * np.array([v, move, spin, turn])
        over = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.2095
        return self.state.astype("float32"), 1.0, bool(over)


def policy_gradient(torch: Any, width: int = 32) -> Train:
    """Train a policy by REINFORCE on episodes of the cart and pole.

    Actions are drawn with NumPy's numbers, so that every library plays the same episodes.
    """
    nn = torch.nn
    Categorical = torch.distributions.Categorical

    class Policy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.affine1 = nn.Linear(4, width)
            self.affine2 = nn.Linear(width, 2)

        def forward(self, x: Any) -> Any:
            x = nn.functional.relu(self.affine1(x))
            return nn.functional.softmax(self.affine2(x), dim=1)

    policy = fill(torch, Policy())
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    eps = np.finfo(np.float32).eps.item()
    env = CartPole(0)
    rng = np.random.default_rng(1)

    def train(steps: int) -> list[float]:
        lengths = []
        for _ in range(steps):
            state, over = env.reset(), False
            log_probs, rewards = [], []
            while not over and len(rewards) < 100:
                m = Categorical(policy(torch.from_numpy(state).float().unsqueeze(0)))
                action = torch.tensor([int(rng.random() < m.probs[0, 1].item())])
                log_probs.append(m.log_prob(action))
                state, reward, over = env.step(action.item())
                rewards.append(reward)
            total, returns = 0.0, []
            for reward in reversed(rewards):
                total = reward + 0.99 * total
                returns.insert(0, total)
            returns = torch.tensor(returns)
            returns = (returns - returns.mean()) / (returns.std() + eps)
            losses = [-p * r for p, r in zip(log_probs, returns, strict=True)]
            optimizer.zero_grad()
            loss = torch.cat(losses).sum()
            loss.backward()
            optimizer.step()
            lengths += [float(len(rewards)), loss.item()]
        return lengths

    return train
