# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Train a model
#
# First one step of training in slow motion: where the gradient goes, what the optimizer changes.
# Then the same in a loop, on handwritten digits. Names and meanings are those of PyTorch's
# `torch.nn` and `torch.optim`.

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import numgrad as ng
from numgrad import nn

ng.random.manual_seed(0)  # the first values of parameters are random

# %% [markdown]
# ## A module
#
# A module is a function with parameters. What is assigned to it as an attribute, a module or a
# parameter, becomes part of it.


# %%
class ToyModel(nn.Module):
    """Two layers with a nonlinearity in between."""

    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


model = ToyModel()
print(model)
for name, parameter in model.named_parameters():
    print(f"{name:12} {parameter.shape}")

# %% [markdown]
# The optimizer gets the parameters: the same Tensors, not copies. So what it changes is the model.

# %%
optimizer = ng.optim.SGD(model.parameters(), lr=0.1)
print(optimizer.param_groups[0]["params"][0] is model.net1.weight)

# %% [markdown]
# ## One step
#
# `zero_grad` forgets the gradients of the step before; there are none yet. The forward pass
# computes the loss and records how.

# %%
inputs, targets = ng.tensor(np.random.randn(20, 10)), ng.tensor(np.random.randn(20, 5))

optimizer.zero_grad()
print("gradient before:", model.net1.weight.grad)

outputs = model(inputs)
loss = nn.functional.mse_loss(outputs, targets)
print("loss:", loss.item())

# %% [markdown]
# This is the record. Gradients flow against the arrows, from the loss (green) up to the parameters
# (light blue), each of which has an `AccumulateGrad` that adds what arrives to its `.grad`.

# %%
ng.viz.make_dot(loss, params=dict(model.named_parameters()))

# %% [markdown]
# With `show_attrs` and `show_saved` the picture also has what each node keeps for its backward.

# %%
ng.viz.make_dot(loss, dict(model.named_parameters()), show_attrs=True, show_saved=True)

# %% [markdown]
# The backward pass goes through it. A hook on the accumulator of each parameter tells when its
# gradient arrives: those of the last layer come first.

# %%
handles = [
    parameter.register_post_accumulate_grad_hook(
        lambda p, name=name: print(f"{name:12} gradient of norm {np.linalg.norm(p.grad):.4f}")
    )
    for name, parameter in model.named_parameters()
]
loss.backward()
for handle in handles:
    handle.remove()

# %% [markdown]
# The model is as it was: `backward` changes gradients only. `step` changes the parameters, here by
# minus the learning rate times the gradient.

# %%
before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
optimizer.step()
for name, parameter in model.named_parameters():
    assert np.allclose(parameter.detach(), before[name] - 0.1 * parameter.grad)

print("loss before:", loss.item())
print("loss after: ", nn.functional.mse_loss(model(inputs), targets).item())

# %% [markdown]
# ## Handwritten digits
#
# 1797 images of 8 x 8 pixels. A fifth is held out to see how well the model does on images it was
# not trained on. `DataLoader` deals the others out in random order, another one each time.

# %%
digits = load_digits()
images = (digits.images[:, None] / 16).astype(np.float32)
train, test = ng.data.random_split((images, digits.target), [0.8, 0.2])
loader = ng.data.DataLoader(train, batch_size=64, shuffle=True, seed=0)
held_out, labels = next(iter(ng.data.DataLoader(test, batch_size=len(test))))

fig, axes = plt.subplots(1, 8, figsize=(8, 1.3))
for ax, image, label in zip(axes, held_out.numpy(), labels.tolist(), strict=False):
    ax.imshow(image[0], cmap="gray_r")
    ax.set_title(label)
    ax.axis("off")

# %% [markdown]
# The step from above in a loop, for any model.


# %%
def accuracy(model):
    """The fraction of held-out images whose digit has the highest score."""
    model.eval()
    with ng.no_grad():
        found = model(held_out).numpy().argmax(axis=1)
    return (found == labels.numpy()).mean()


def train_model(model, epochs):
    """Train a model, return its losses step by step and its accuracy after each epoch."""
    optimizer = ng.optim.Adam(model.parameters(), lr=2e-3)
    losses, accuracies = [], []
    for _ in range(epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        accuracies.append(accuracy(model))
    return losses, accuracies


models = {
    "MLP": nn.Sequential(
        nn.Flatten(),
        nn.Linear(64, 128),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(128, 10),
    ),
    "CNN": nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 2 * 2, 10),
    ),
}
curves = {name: train_model(model.to(ng.float32), epochs=8) for name, model in models.items()}

# %% tags=["gallery"]
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
for name, (losses, accuracies) in curves.items():
    left.semilogy(losses, label=name, linewidth=0.8)
    right.plot(range(1, len(accuracies) + 1), accuracies, "o-", markersize=3, label=name)
left.set(xlabel="step", ylabel="loss")
right.set(xlabel="epoch", ylabel="accuracy, held out")
left.legend()
for name, (_, accuracies) in curves.items():
    print(f"{name}: {accuracies[-1]:.1%}")

# %% [markdown]
# ## Save and load
#
# `ng.save` writes the state of model (and optimizer, if training is to go on) to one file of the
# safetensors format; nothing in it is executed when it is loaded.

# %%
path = Path(tempfile.mkdtemp()) / "mlp.safetensors"
ng.save(models["MLP"].state_dict(), path)

reloaded = nn.Sequential(
    nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 10)
).to(ng.float32)
print(reloaded.load_state_dict(ng.load(path)))
assert accuracy(reloaded) == accuracy(models["MLP"])

# %% [markdown]
# The images that the better model gets wrong are hard ones:

# %%
best = models["CNN"].eval()
with ng.no_grad():
    found = best(held_out).numpy().argmax(axis=1)
wrong = np.flatnonzero(found != labels.numpy())[:8]
fig, axes = plt.subplots(1, max(len(wrong), 1), figsize=(8, 1.6), squeeze=False)
for ax, k in zip(axes[0], wrong, strict=False):
    ax.imshow(held_out.numpy()[k, 0], cmap="gray_r")
    ax.set_title(f"{labels.tolist()[k]} as {found[k]}")
for ax in axes[0]:
    ax.axis("off")
