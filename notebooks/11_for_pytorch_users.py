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
# # For PyTorch users
#
# Autograd, modules and optimizers have PyTorch's names and rules: a training script mostly stays
# as it is. What it does with tensors by hand is NumPy's, and some of it means something else.

# %%
import tempfile
from pathlib import Path

import numpy as np

import numgrad as ng
from numgrad import nn
from numgrad.cli import main

# %% [markdown]
# ## A script as it is
#
# `numgrad.torch` has PyTorch's names, dtypes, promotion and result types over numgrad's tape, kernels
# and optimizers: change the import (`import numgrad.torch as torch`), or change nothing and run
# `python -m numgrad torch script.py ARGS`, whose `import torch` and all submodules are numgrad's.

# %%
SCRIPT = """
import sys

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.linspace(-3, 3, 256).unsqueeze(1)
data = DataLoader(TensorDataset(x, torch.sin(x)), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = optim.Adam(model.parameters(), lr=0.01)
scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=20, gamma=0.5)
for epoch in range(int(sys.argv[1])):
    for batch, target in data:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(batch), target)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    scheduler.step()
with torch.no_grad():
    print(f"loss {nn.functional.mse_loss(model(x), torch.sin(x)).item():.3f}")
"""
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "script.py"
    path.write_text(SCRIPT)
    status = main(["torch", str(path), "40"])
assert status == 0

# %% [markdown]
# CPU time of its training loop, one thread, of stored runs in turns with PyTorch 2.13, and of
# programs of PyTorch's tutorials written anew (`python perf/torch_programs`), whose losses agree:
#
# | program | numgrad | PyTorch |
# |---|---|---|
# | the script above, an epoch | 0.95 ms | 3.95 ms |
# | cubic polynomial by hand, 1,000 numbers, a step | 0.02 ms | 0.06 ms |
# | the same by autograd, written in place under `no_grad` | 0.04 ms | 0.14 ms |
# | the same, its own module and SGD, a step | 0.05 ms | 0.22 ms |
# | classifier on batches, 8 features, a step | 1.79 ms | 4.88 ms |
# | digits, convolutions of 8 channels, a step | 1.06 ms | 1.93 ms |
# | DCGAN, 16 pictures of 16 x 16, a step | 4.21 ms | 7.39 ms |
# | RNN by characters, a step | 0.49 ms | 0.60 ms |
#
# Slower than PyTorch: gradients of each example by `vmap` (1.8 times), ensembles by `vmap` (1.3), policies that make
# a distribution a step (1.1), LSTMs (1.1), small joins, indices by Tensors,
# largest numbers with their places and losses as single operations (`python perf/torch_operations.py`,
# `perf/torch_layers.py`). What differs from PyTorch:
#
# | PyTorch | `numgrad.torch` |
# |---|---|
# | random numbers of a seed | others of the same distributions |
# | `sign` and `sgn` of NaN: 0; `addcmul(value=.5)` of integers cuts to 0 | NaN; an error |
# | `cuda`, `mps`, `half`, `bfloat16`, sparse and quantized tensors, `torch.jit`, `torch.fx`, `torch.hub` | an error that names the way, also of `import`; `torch.cuda.is_available()` is False |
# | `torch.autocast`, `torch.amp.GradScaler` | `autocast` with `enabled=False`, else an error; `GradScaler` scales losses and leaves out steps of infinite gradients |
# | `torch.backends`, `set_float32_matmul_precision`, `use_deterministic_algorithms` | can be set and are remembered; results are float32 throughout and have the same bits for any number of threads |
# | `torch.distributed` with `gloo` or `mpi`, `DistributedDataParallel`, `mp.spawn`, `torchrun` | MPI (`mpi4py`); in place of `torchrun`: `python -m numgrad launch -n 2 -m numgrad torch script.py` |
# | `torch.profiler` | `numgrad.profiler` with PyTorch's names; the table has its columns, rows are named as numgrad's operations and kernels |
# | `optim.adam.adam(...)` and others, `torch._foreach_add` | the same numbers; no faster than the classes |
# | messages of errors, names of nodes (`SquareBackward` of `x**2`) | numgrad's; classes of errors are PyTorch's |
# | workers of a `DataLoader`: processes | threads; batches come in the same order |
# | `register_backward_hook` (deprecated) | acts as `register_full_backward_hook` |
# | `torch.save`, `torch.load` | PyTorch's files, in both directions; whole modules only by `weights_only=False` |
# | `share_memory_()` | for processes made by `fork` |
# | parameters that a conversion swaps or overwrites (`torch.__future__`) | stay the objects that they are |

# %% [markdown]
# ## What a script has to change for numgrad's own names
#
# With `ng` in place of `torch` code has NumPy's rules, labels, compiled functions and everything else here.
#
# The first nine lines of the table run without an error and **mean something else**, as in
# NumPy. (`nn.functional` keeps `dim`.)
#
# | PyTorch | here |
# |---|---|
# | `x.max(1)`, `x.min(1)`: values and indices | values; `x.argmax(1)` |
# | `x.sort()`, `x.cummax(0)`: values and indices | values; `x.argsort()`, `x.cummax(0, return_indices=True)` |
# | `x.median()`: the lower of two; `x.nonzero()`: rows | the mean of two; a tuple, `ng.argwhere(x)` for rows |
# | `x.var()`, `x.std()`: divided by `n - 1` | by `n`; `ddof=1` for PyTorch's |
# | `x.transpose(1, 2)`: swaps two axes | orders them all; `x.swapaxes(1, 2)` |
# | `x.norm(1)` of a matrix: of all elements | NumPy's matrix norm; `ng.vector_norm(x, ord=1)` |
# | `x.repeat(2, 1)`, `torch.split(x, size)`, `torch.equal` | `ng.tile(x, (2, 1))`, `ng.split(x, parts)`, `np.array_equal` |
# | `torch.meshgrid(a, b)` | `indexing="ij"` for PyTorch's |
# | `torch.tensor(1.0)`, `nn.Linear`: float32 | float64; `dtype="float32"` |
# | `dim=`, `keepdim=`, `dims=` | `axis=`, `keepdims=` |
# | `x.size()`, `x.size(0)`, `x.numel()`, `x.dim()` | `x.shape`, `x.shape[0]`, `x.size`, `x.ndim` |
# | `view`, `flatten(x, 1)`, `t()`, `cat`, `chunk`, `contiguous()` | `reshape`, `nn.Flatten()(x)`, `T`, `concat`, `split`, nothing |
# | `x.gather(1, i)`, `index_select`, `mm`, `bmm` | `take_along_axis`, `take`, `@` |
# | `x.float()`, `x.to(dtype)`, `torch.long` | `x.astype("float32")`, `"int64"` |
# | `x.to(device)`, `x.cpu()`, `x.device` | nothing: there is one device |
# | `torch.zeros(2, 3)` | `ng.zeros((2, 3))` |
# | `torch.manual_seed`, `randn`, `rand`, `randint`, `randperm` | `ng.random.manual_seed`; `normal`, `random`, `integers`, `permutation` of `ng.random.default_rng(0)` |
# | `torch.get_rng_state`, `set_rng_state` | `ng.random.get_state`, `set_state` |
# | `torch.utils.data`, `torch.save`, `torch.load` | `numgrad.data`, `ng.save`, `ng.load` |
# | `float(x)` of an `x` that requires grad: warns | raises; `x.item()` |
# | `torch.multinomial(p, n)` | `ng.random.default_rng(0).choice(len(p), n, replace=False, p=p)` |

# %%
x = ng.tensor([[1.0, 2.0, 4.0], [3.0, 5.0, 0.0]])
assert x.max(1).tolist() == [4.0, 5.0]
assert np.isclose(x.var(ddof=1), np.var(x.numpy(), ddof=1))
assert x.swapaxes(0, 1).shape == (3, 2)
assert ng.vector_norm(x, ord=1) == 15.0
assert ng.tile(x, (2, 1)).shape == (4, 3)
assert sorted(ng.random.default_rng(0).choice(3, 3, replace=False, p=[0.2, 0.3, 0.5])) == [0, 1, 2]
assert nn.Transformer(8, nhead=2)(ng.ones((5, 1, 8)), ng.ones((4, 1, 8))).shape == (4, 1, 8)

# %% [markdown]
# ## Autograd
#
# The semantics are PyTorch's: gradients accumulate, a graph is freed by its first backward unless
# `retain_graph=True`, a root of several elements needs a gradient to start from. What PyTorch's
# notes on autograd mechanics describe is here under the same names; `02_autograd_mechanics.py`
# shows each mechanism at work.
#
# | to | use |
# |---|---|
# | record nothing | `ng.no_grad`, `ng.enable_grad`, `ng.set_grad_enabled`, `ng.inference_mode`: blocks, decorators |
# | see or change gradients on the way | `t.register_hook`, `t.retain_grad`, `t.register_post_accumulate_grad_hook`, hooks of `t.grad_fn`, `ng.autograd.graph.register_multi_grad_hook` |
# | write forward and backward yourself | `ng.autograd.Function` |
# | decide what is kept for the backward | `ng.autograd.graph.saved_tensors_hooks`, `ng.checkpoint` (recompute instead) |
# | find the line behind a NaN | `ng.autograd.detect_anomaly` |
# | derivatives in one direction | `ng.autograd.forward_ad` |
# | Jacobians, Hessians, their products | `ng.autograd.functional`, batched with `vectorize=True` |
#
# In-place operations (`t[0] = v`, `t += v`, `t.exp_()`, `t.copy_(v)`) work through views of any
# kind, and gradients follow. A backward that finds a saved value overwritten raises; so does
# writing to a leaf that requires grad, unless under `no_grad`.

# %%
x = ng.tensor([1.0, 2.0, 3.0], requires_grad=True)
table = ng.zeros((2, 3))
table[0] = x * x  # the table joins the graph
table.T[1] *= 10.0  # so do its views
table.sum().backward()
assert x.grad.tolist() == [2.0, 40.0, 6.0]


# %%
class Exp(ng.autograd.Function):
    """The exponential function, whose gradient needs its result only."""

    @staticmethod
    def forward(ctx, x):
        y = np.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


t = ng.tensor(1.0, requires_grad=True)
assert ng.testing.gradgradcheck(Exp.apply, t)

with ng.autograd.forward_ad.dual_level():
    dual = ng.autograd.forward_ad.make_dual(t, ng.tensor(1.0))
    tangent = ng.autograd.forward_ad.unpack_dual(np.sin(dual)).tangent
assert np.isclose(tangent.item(), np.cos(1.0))

# %% [markdown]
# ## Modules and optimizers
#
# `numgrad.nn`, `numgrad.optim` and `numgrad.data`: the modules, losses, `init`,
# `clip_grad_norm_`, optimizers, schedules, datasets and loaders of a training script stay as they
# are. Parameters are float64 unless `dtype=` says otherwise.


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


ng.random.manual_seed(0)
model = ToyModel()
rng = ng.random.default_rng(0)
x, target = rng.normal(size=(20, 10)), rng.normal(size=(20, 5))
optimizer = ng.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
losses = []
for _ in range(50):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), target)
    loss.backward()  # adds to the .grad of each parameter
    optimizer.step()  # one kernel changes them all
    losses.append(loss.item())
assert losses[-1] < 0.7 * losses[0]

# %% tags=["gallery"]
picture = ng.viz.make_dot(loss, params=dict(model.named_parameters()))
assert "LinearBackward" in picture.source  # DOT text; picture.render("toy") writes an SVG
picture

# %% [markdown]
# - **Optimizers**: Adadelta, Adafactor, Adagrad, Adam, AdamW, Adamax, ASGD, LBFGS, Muon, NAdam,
#   RAdam, RMSprop, Rprop, SGD, SparseAdam, with groups, hooks, `state_dict`, `maximize`,
#   `differentiable`; `ng.optim.lr_scheduler`, `ng.optim.swa_utils`. A step is one formula
#   compiled into one kernel over all tensors of a group, float32, float64 or complex, and gives
#   the same bits for any number of threads.
# - **Layers**: linear, convolution, pooling, normalization, embedding (also with row-sparse
#   gradients), recurrent, attention, transformers, dropout, activations, losses, containers;
#   `nn.functional`, `nn.init`, `nn.utils`; `nn.functional_call` for `ng.grad` over a module's
#   parameters.
# - **Data**: `ng.data.DataLoader` cuts arrays or datasets into batches, shuffled from a seed.
# - **Files**: `ng.save` and `ng.load` keep nested values with arrays in one safetensors file; `ng.load` reads the
#   `state_dict`s that `torch.save` wrote, too, and `ng.save(state, path, format="torch")` writes such files.
#   Nothing in a file is ever executed; it is written whole or not at all. Safetensors files that
#   others wrote are read as dictionaries of Tensors. To go on bitwise with dropout and shuffled
#   batches, save `ng.random.get_state()` as well, and give it to `ng.random.set_state`.
# - **SciPy's minimizers** over Tensors: `ng.optim.minimize`.
#
# `load_state_dict` of modules, optimizers and schedules takes PyTorch's own states, and ndarrays.

# %%
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.safetensors"
    ng.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    saved = ng.load(path)
twin = ToyModel()
twin.load_state_dict(saved["model"])
assert np.array_equal(twin(x).detach(), model(x).detach())

fit = ng.optim.minimize(
    model.parameters(), lambda: nn.functional.mse_loss(model(x), target), method="L-BFGS-B"
)
assert fit.fun < losses[-1]

# %% [markdown]
# ## Compiled steps
#
# `ng.jit` stands where `torch.compile` does: forward, backward and optimizer in one function. It
# updates parameters in place and reads them from outside; see `05_jit.py`.


# %%
adam = ng.optim.Adam(twin.parameters(), lr=0.01)


@ng.jit
def step(x, target):
    """One step of Adam on the mean squared error."""
    adam.zero_grad()
    loss = nn.functional.mse_loss(twin(x), target)
    loss.backward()
    adam.step()
    return loss.detach()


compiled = [step(x, target).item() for _ in range(50)]
print(f"loss {compiled[0]:.3f} -> {compiled[-1]:.3f}")
assert compiled[-1] < compiled[0]

# %% [markdown]
# `03_train_a_model.py` goes through training step by step, on images of handwritten digits.
