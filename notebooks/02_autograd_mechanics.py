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
# # Autograd mechanics
#
# What a Tensor remembers, how a backward walks through that, and how to look at it, change it and
# switch it off. The mechanisms and names are PyTorch's; arrays, functions and dtypes are NumPy's.

# %%
import tempfile
import threading
import warnings
from pathlib import Path

import numpy as np

import numgrad as ng

graph = ng.autograd.graph

# %% [markdown]
# ## The graph
#
# Each recorded operation makes a *node*, the `grad_fn` of its result. `next_functions` says where a
# node sends the gradients of its operands: to the nodes that made them, or to a leaf's
# `AccumulateGrad`. Constants get None.


# %%
def tree(node, depth=0):
    """Print the graph behind a node."""
    if node is None:
        return
    leaf = getattr(node, "variable", None)
    shape = node._input_metadata[0].shape
    print("    " * depth + node.name(), shape, "" if leaf is None else "<- a leaf")
    for child, _ in node.next_functions:
        tree(child, depth + 1)


w = ng.tensor([0.5, -1.0, 2.0], requires_grad=True)
b = ng.tensor(0.1, requires_grad=True)
x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
loss = np.mean(np.tanh(x @ w + b) ** 2)
tree(loss.grad_fn)

# %% [markdown]
# As a picture, with what each node has saved for its backward:

# %% tags=["gallery"]
ng.viz.make_dot(loss, params={"w": w, "b": b}, show_saved=True)

# %% [markdown]
# A backward takes the node with the highest sequence number among those that are ready, so every
# node runs once, after all its consumers. The graph is made anew by each run of your code: loops
# and branches of Python need nothing special.

# %%
loss.backward()
w.grad, b.grad

# %% [markdown]
# ### Saved values
#
# A node keeps what its gradient formula names, and nothing else: `tanh` its result, `sin` its
# operand, a sum nothing. A backward frees that unless you say `retain_graph=True`.

# %%
t = ng.tensor([0.3, 0.6], requires_grad=True)
print("tanh saved", np.tanh(t).grad_fn._saved_result)
print("sin saved its operand:", np.sin(t).grad_fn._saved_self is t)

y = (t * t).sum()
y.backward()
try:
    y.backward()
except RuntimeError as error:
    print(error)

# %% [markdown]
# ## Leaves and grad modes
#
# Tensors of yours are leaves; gradients accumulate in the `.grad` of those that require grad. A
# part of a computation in which nothing requires grad is not recorded: a frozen base costs no
# memory, only the head on top of it has a graph.

# %%
base, head = ng.ones((3, 3)) * 0.1, ng.ones(3, requires_grad=True)
features = np.tanh(ng.tensor(x) @ base)
out = (features @ head).sum()
print(features.grad_fn, out.requires_grad)
tree(out.grad_fn)

# %% [markdown]
# `no_grad` records nothing in a block or function, `enable_grad` switches recording on again
# within, and `inference_mode` also promises that the results will never be recorded. The modes
# belong to the thread.

# %%
with ng.no_grad():
    print("no_grad:", (head * 2).requires_grad)
    with ng.enable_grad():
        print("enable_grad:", (head * 2).requires_grad)


@ng.inference_mode()
def predict(x):
    return np.tanh(x @ base) @ head


prediction = predict(ng.tensor(x))
try:
    head.sum() * prediction
except RuntimeError as error:
    print(error)

# %% [markdown]
# ## In-place operations and views
#
# A tensor, its views and its detached copies share memory and a version number that counts writes.
# Writing through a view rewrites the history of its *root*, and so of all other views.

# %%
a = ng.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
z = a * 1.0
left, right = z[:2], z[2:]
left *= 10.0
right[0] = left[1] * 3.0
print(z, z._version, left._base is z)
z.sum().backward()
a.grad

# %%
tree(z.grad_fn)

# %% [markdown]
# What a node saved must be as it was when its backward runs; the version tells. Leaves that require
# grad cannot be written to while operations are recorded: update them under `no_grad`.

# %%
u = ng.tensor([0.5, 1.0], requires_grad=True)
v = u * 1.0
s = np.sin(v).sum()
v += 1.0
try:
    s.backward()
except RuntimeError as error:
    print(error)
try:
    u += 1.0
except RuntimeError as error:
    print(error)

# %% [markdown]
# ## Hooks
#
# A function hung on a tensor sees its gradient, and may replace it; on a node it sees all gradients
# that go in or come out; a post-accumulate hook sees a leaf whose `.grad` is complete. A handle
# takes the hook away.

# %%
p = ng.tensor(2.0, requires_grad=True)
q = p * 3.0
r = q * q
q.retain_grad()
handles = [
    q.register_hook(lambda g: print("gradient of q:", g.item())),
    q.grad_fn.register_hook(lambda gi, go: print("node of q:", go[0].item(), "->", gi[0].item())),
    p.register_hook(lambda g: g.clip(-10.0, 10.0)),
    p.register_post_accumulate_grad_hook(lambda leaf: print("accumulated:", leaf.grad.item())),
]
r.backward()
for handle in handles:
    handle.remove()
q.grad

# %% [markdown]
# ## Where saved tensors live
#
# Hooks for saved tensors decide what a node keeps. Here everything goes to disk; the file is
# removed with the object that stands for it.


# %%
class OnDisk:
    """An array in a file."""

    folder = Path(tempfile.mkdtemp())
    count = 0

    def __init__(self, tensor):
        OnDisk.count += 1
        self.path = OnDisk.folder / f"{OnDisk.count}.npy"
        np.save(self.path, tensor.numpy())

    def load(self):
        return ng.tensor(np.load(self.path))

    def __del__(self):
        self.path.unlink()


m = ng.tensor(np.linspace(0.0, 1.0, 1000), requires_grad=True)
with graph.saved_tensors_hooks(OnDisk, OnDisk.load):
    n = np.exp(np.sin(m)).sum()
print(len(list(OnDisk.folder.iterdir())), "files")
n.backward()
print(len(list(OnDisk.folder.iterdir())), "files after backward")
assert np.allclose(m.grad.numpy(), np.cos(m.detach().numpy()) * np.exp(np.sin(m.detach().numpy())))

# %% [markdown]
# The hooks belong to the thread that enters the context. Work that other threads record has to
# enter it there.

# %%
packed = []


def work(x):
    with graph.saved_tensors_hooks(lambda t: packed.append(t.shape) or t, lambda t: t):
        np.sin(x * x).sum().backward()


threads = [threading.Thread(target=work, args=(ng.ones(k, requires_grad=True),)) for k in (2, 3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
sorted(packed)

# %% [markdown]
# `checkpoint` keeps nothing at all of a function: its backward runs the function again.

# %%
calls = []


def block(x):
    calls.append(len(calls))
    return np.tanh(np.exp(x) * 0.1)


c = ng.tensor([0.1, 0.2], requires_grad=True)
d = ng.checkpoint(block, c).sum()
d.backward()
print("ran", len(calls), "times;", c.grad)

# %% [markdown]
# ## A function with a backward of your own


# %%
class Cube(ng.autograd.Function):
    """The third power, with its gradient written by hand."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g


e = ng.tensor(2.0, requires_grad=True)
f = Cube.apply(e)
(first,) = ng.autograd.grad(f, e, create_graph=True)
(second,) = ng.autograd.grad(first, e)
print(f, first.item(), second.item())

# %% [markdown]
# ## Complex numbers
#
# The gradient of a real loss with respect to a complex tensor is `dL/dx + i dL/dy`: the direction
# of steepest ascent in the plane, so `z - step * z.grad` descends.

# %%
zeta = ng.tensor(1.0 + 2.0j, requires_grad=True)
np.abs(zeta).backward()
print(zeta.grad)
zeta.grad = None
(zeta * zeta).real.backward()
zeta.grad

# %% [markdown]
# ## Where there is no derivative
#
# If a function has no derivative at a point, a subgradient of least norm is used if there is one
# (zero for `abs` at 0, halves where two values tie for the maximum), else what continuity gives,
# which may be infinite.

# %%
for function, point in ((np.abs, 0.0), (np.sqrt, 0.0), (lambda k: np.maximum(k, 1.0), 1.0)):
    k = ng.tensor(point, requires_grad=True)
    function(k).backward()
    print(k.grad.item())

# %% [markdown]
# ## Forward mode
#
# Dual numbers carry a derivative along with the value: one pass gives the directional derivative of
# all outputs. Combined with a backward it gives the product of a Hessian and a vector.

# %%
fad = ng.autograd.forward_ad
point, direction = ng.tensor([1.0, 2.0], requires_grad=True), ng.tensor([1.0, 0.0])
with fad.dual_level():
    dual = fad.make_dual(point, direction)
    value = (dual**3).sum()
    print("derivative along the direction:", fad.unpack_dual(value).tangent)
    (gradient,) = ng.autograd.grad(value, point)
    print("Hessian times direction:", fad.unpack_dual(gradient).tangent)

# %% [markdown]
# `ng.autograd.functional` has Jacobians, Hessians and their products with vectors ready made; with
# `vectorize=True` one batched backward computes all rows.

# %%
functional = ng.autograd.functional
functional.jacobian(lambda x: np.sin(x) * x.sum(), ng.tensor([0.1, 0.2]), vectorize=True)

# %% [markdown]
# ## Finding the line
#
# In anomaly mode every node remembers the line that recorded it, and a backward stops at the first
# NaN.

# %%
with warnings.catch_warnings(record=True) as caught, ng.autograd.detect_anomaly():
    warnings.simplefilter("always")
    g = ng.tensor([0.0, 1.0], requires_grad=True)
    h = (np.sqrt(g) * 0.0).sum()
    try:
        h.backward()
    except RuntimeError as error:
        print(error)
print(str(caught[-1].message).splitlines()[-2:])

# %% [markdown]
# ## Threads
#
# Several threads may run backwards at the same time, on graphs of their own or into the same
# leaves: no gradient is lost.

# %%
shared = ng.ones(3, requires_grad=True)
threads = [
    threading.Thread(target=lambda: [(shared * 2.0).sum().backward() for _ in range(25)])
    for _ in range(4)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
shared.grad
