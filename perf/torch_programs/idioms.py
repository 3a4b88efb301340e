"""Idioms of training scripts, each a function of the library that returns values to compare."""

from __future__ import annotations

import copy
import io
from collections import OrderedDict
from importlib import import_module
from typing import Any

from start import draw, fill


def _network(torch: Any, features: int = 4, width: int = 8, classes: int = 3) -> Any:
    nn = torch.nn
    layers = nn.Linear(features, width), nn.Tanh(), nn.Linear(width, classes)
    return fill(torch, nn.Sequential(*layers), scale=0.5)


def _batch(torch: Any, count: int = 12, features: int = 4, classes: int = 3) -> tuple[Any, Any]:
    return draw(torch, count, features, seed=1), torch.arange(count) % classes


def gradient_clipping(torch: Any) -> Any:
    """Bound the norm of all gradients, then each value."""
    model, (x, y) = _network(torch), _batch(torch)
    (10 * torch.nn.functional.cross_entropy(model(x), y)).backward()
    total = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    torch.nn.utils.clip_grad_value_(model.parameters(), clip_value=0.2)
    return [total.item()] + [p.grad for p in model.parameters()]


def gradient_accumulation(torch: Any) -> Any:
    """Step once for several small batches."""
    model, (x, y) = _network(torch), _batch(torch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.zero_grad(set_to_none=True)
    for part, labels in zip(x.split(4), y.chunk(3), strict=True):
        (torch.nn.functional.cross_entropy(model(part), labels) / 3).backward()
    optimizer.step()
    return list(model.parameters())


def checkpoint_files(torch: Any) -> Any:
    """Save and load model, optimizer and epoch, and go on."""
    model, (x, y) = _network(torch), _batch(torch)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

    def step(model: Any, optimizer: Any) -> Any:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    step(model, optimizer)
    file = io.BytesIO()
    state = {"epoch": 3, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, file)
    file.seek(0)
    saved = torch.load(file, map_location="cpu", weights_only=True)
    twin = _network(torch)
    twin.load_state_dict(saved["model"])
    other = torch.optim.Adam(twin.parameters(), lr=0.5)
    other.load_state_dict(saved["optimizer"])
    return [saved["epoch"], step(twin, other), step(twin, other)]


def freezing(torch: Any) -> Any:
    """Train the last layer alone."""
    model, (x, y) = _network(torch), _batch(torch)
    for param in model.parameters():
        param.requires_grad = False
    model[2] = fill(torch, torch.nn.Linear(8, 3), seed=5)
    trained = filter(lambda p: p.requires_grad, model.parameters())
    optimizer = torch.optim.SGD(trained, lr=0.1, momentum=0.9)
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    return [p.grad is None for p in model.parameters()] + list(model.parameters())


def parameter_groups(torch: Any) -> Any:
    """Decay matrices but not biases, with learning rates of their own."""
    model, (x, y) = _network(torch), _batch(torch)
    decay = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": rest, "lr": 0.01}]
    optimizer = torch.optim.AdamW(groups, lr=0.1, weight_decay=0.0)
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    for group in optimizer.param_groups:
        group["lr"] *= 0.5
    optimizer.step()
    return list(model.parameters())


def tensor_hooks(torch: Any) -> Any:
    """See, scale and keep gradients on their way."""
    x = draw(torch, 5).requires_grad_()
    seen = []
    y = x * 3
    y.retain_grad()
    handle = x.register_hook(lambda g: g * 2)
    y.register_hook(lambda g: seen.append(g.clone()))
    (y**2).sum().backward()
    handle.remove()
    return [*seen, x.grad, y.grad]


def module_hooks(torch: Any) -> Any:
    """Collect the activations of layers, and gradients of their outputs."""
    model, (x, y) = _network(torch), _batch(torch)
    features: dict[str, Any] = {}
    gradients: list[Any] = []

    def keep(name: str) -> Any:
        def hook(module: Any, inputs: Any, output: Any) -> None:
            features[name] = output.detach()

        return hook

    handles = [m.register_forward_hook(keep(n)) for n, m in model.named_modules() if n]
    handles.append(model[1].register_full_backward_hook(lambda m, i, o: gradients.append(o[0])))
    torch.nn.functional.cross_entropy(model(x), y).backward()
    for handle in handles:
        handle.remove()
    return [sorted(features), *features.values(), *gradients]


def state_dicts(torch: Any) -> Any:
    """Load a part of a state, and rename keys."""
    model, other = _network(torch), fill(torch, _network(torch), seed=7)
    state = OrderedDict(("module." + k, v) for k, v in other.state_dict().items())
    state = {k[len("module.") :]: v for k, v in state.items() if "bias" not in k}
    missing, unexpected = model.load_state_dict(state, strict=False)
    return [list(missing), list(unexpected), *model.state_dict().values()]


def data_loader(torch: Any) -> Any:
    """Batches of a dataset in order and shuffled."""
    x, y = _batch(torch)
    dataset = torch.utils.data.TensorDataset(x, y)
    loader = torch.utils.data.DataLoader(dataset, batch_size=5, drop_last=False)
    sums = [(len(b), b.sum().item(), label.dtype == torch.int64) for b, label in loader]
    generator = torch.Generator().manual_seed(1)
    shuffled = torch.utils.data.DataLoader(dataset, batch_size=5, shuffle=True, generator=generator)
    labels = torch.cat([label for _, label in shuffled])
    return [sums, len(loader), sorted(labels.tolist())]


def early_stopping(torch: Any) -> Any:
    """Stop when validation has not improved, with the best weights."""
    model, (x, y) = _network(torch), _batch(torch, 24)
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0, momentum=0.95)
    best, best_state, patience = float("inf"), None, 0
    for _ in range(40):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x[:16]), y[:16]).backward()
        optimizer.step()
        with torch.no_grad():
            value = torch.nn.functional.cross_entropy(model(x[16:]), y[16:]).item()
        if value < best - 1e-3:
            best, best_state, patience = value, copy.deepcopy(model.state_dict()), 0
        else:
            patience += 1
        if patience == 4:
            break
    model.load_state_dict(best_state)
    return [patience, best, torch.nn.functional.cross_entropy(model(x[16:]), y[16:])]


def devices(torch: Any) -> Any:
    """Choose a device where there is one, move model and batch there."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = _network(torch).to(device)
    x, y = (t.to(device, non_blocking=True) for t in _batch(torch))
    mask = torch.ones(len(x), device=device, dtype=torch.bool)
    loss = torch.nn.functional.cross_entropy(model(x[mask]), y[mask])
    return [str(next(model.parameters()).device), x.is_cuda, loss.cpu().item()]


def evaluation(torch: Any) -> Any:
    """Evaluate without gradients: accuracy, top-k, a matrix of confusion."""
    model, (x, y) = _network(torch), _batch(torch)
    model.eval()
    with torch.no_grad():
        scores = model(x)
        values, predicted = torch.max(scores, 1)
        top = scores.topk(2, dim=1).indices
        hits = top.eq(y.view(-1, 1).expand_as(top)).any(dim=1).float().mean()
        confusion = torch.zeros(3, 3, dtype=torch.long)
        for t, p in zip(y.view(-1), predicted.view(-1), strict=True):
            confusion[t.long(), p.long()] += 1
    return [values, predicted, hits.item(), confusion, scores.requires_grad]


def detaching(torch: Any) -> Any:
    """Truncate backpropagation through time by detaching the state."""
    cell = fill(torch, torch.nn.LSTM(3, 4), scale=0.5)
    sequence = draw(torch, 6, 2, 3, seed=2)
    hidden = None
    losses = []
    for part in sequence.split(3):
        if hidden is not None:
            hidden = tuple(h.detach() for h in hidden)
        output, hidden = cell(part, hidden)
        loss = output.pow(2).mean()
        loss.backward()
        losses.append(loss.item())
    return losses + [p.grad for p in cell.parameters()]


def weight_initialization(torch: Any) -> Any:
    """Initialize layers by their class with ``apply``."""
    nn = torch.nn

    def initialize(m: Any) -> None:
        if isinstance(m, nn.Linear):
            nn.init.orthogonal_(m.weight)
            if m.bias is not None:
                nn.init.constant_(m.bias, 0.25)
        elif isinstance(m, nn.Conv2d):
            nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 8))
    model.apply(initialize)
    weight = model[3].weight
    product = weight.detach() @ weight.detach().T
    gain = nn.init.calculate_gain("leaky_relu", 0.2)
    return [product, model[3].bias, gain, isinstance(weight, nn.Parameter)]


def containers(torch: Any) -> Any:
    """Modules in lists and dictionaries, with parameters in a dictionary."""
    nn = torch.nn

    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
            self.heads = nn.ModuleDict({"a": nn.Linear(4, 2), "b": nn.Linear(4, 3)})
            self.scales = nn.ParameterDict({"a": nn.Parameter(torch.ones(2))})
            self.extra = nn.ParameterList([nn.Parameter(torch.zeros(4))])
            self.body = nn.Sequential(OrderedDict([("act", nn.ReLU()), ("id", nn.Identity())]))

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = self.body(layer(x)) + self.extra[0]
            return self.heads["a"](x) * self.scales["a"], self.heads["b"](x)

    model = fill(torch, Branches(), scale=0.5)
    a, b = model(draw(torch, 3, 4, seed=3))
    (a.sum() + b.sum()).backward()
    names = [name for name, _ in model.named_parameters()]
    return [names, a, b, model.scales["a"].grad, len(list(model.children()))]


def own_dataset(torch: Any) -> Any:
    """A dataset of one's own with a function that pads its items to batches."""

    class Sequences(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 7

        def __getitem__(self, index: int) -> Any:
            return torch.arange(index + 1).float(), {"label": index % 2}

    def collate(items: Any) -> Any:
        sequences = [s for s, _ in items]
        padded = torch.nn.utils.rnn.pad_sequence(sequences, batch_first=True, padding_value=-1.0)
        return padded, torch.tensor([len(s) for s in sequences]), [d["label"] for _, d in items]

    loader = torch.utils.data.DataLoader(Sequences(), batch_size=3, collate_fn=collate)
    plain = torch.utils.data.DataLoader(range(5), batch_size=2)
    return [[list(batch) for batch in loader], list(plain)]


def learning_rates(torch: Any) -> Any:
    """Warm up, anneal, and lower the rate at plateaus."""
    model = _network(torch)
    schedulers = torch.optim.lr_scheduler
    rates = []
    for make in (
        lambda o: schedulers.LambdaLR(o, lambda k: min(1.0, (k + 1) / 5)),
        lambda o: schedulers.CosineAnnealingLR(o, T_max=8),
        lambda o: schedulers.OneCycleLR(o, max_lr=0.2, total_steps=12),
        lambda o: schedulers.SequentialLR(
            o,
            [schedulers.LinearLR(o, 0.1, total_iters=3), schedulers.ExponentialLR(o, 0.9)],
            milestones=[3],
        ),
    ):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        schedule = make(optimizer)
        for _ in range(10):
            optimizer.step()
            schedule.step()
            rates.append(schedule.get_last_lr()[0])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    plateau = schedulers.ReduceLROnPlateau(optimizer, "min", patience=1)
    for loss in (1.0, 0.9, 0.95, 0.95, 0.95):
        plateau.step(loss)
    return [*rates, optimizer.param_groups[0]["lr"]]


def moving_average(torch: Any) -> Any:
    """A copy of the model that follows by exponential averages."""
    model, (x, y) = _network(torch), _batch(torch)
    average = copy.deepcopy(model)
    for p in average.parameters():
        p.requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(4):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
                slow.mul_(0.9).add_(fast, alpha=0.1)
    swa = torch.optim.swa_utils.AveragedModel(model)
    swa.update_parameters(model)
    return list(average.parameters()) + list(swa.module.parameters())


def functional_calls(torch: Any) -> Any:
    """Call a module with other parameters, and differentiate by them."""
    model, (x, y) = _network(torch), _batch(torch)
    params = {k: v.detach() * 0.5 for k, v in model.named_parameters()}

    def loss(params: Any) -> Any:
        return torch.nn.functional.cross_entropy(torch.func.functional_call(model, params, x), y)

    return [loss(params), *torch.func.grad(loss)(params).values()]


def batched_functions(torch: Any) -> Any:
    """Map a function of vectors over axes of matrices."""
    a, b = draw(torch, 3, 4), draw(torch, 4, 3, seed=1)
    dots = torch.vmap(torch.dot, in_dims=(0, 1))(a, b)
    outer = torch.vmap(lambda u: u.unsqueeze(1) * u, out_dims=2)(a)
    return [dots, outer.shape, outer]


def recomputation(torch: Any) -> Any:
    """Save memory by recomputing a part of the forward."""
    model, (x, y) = _network(torch), _batch(torch)
    hidden = torch.utils.checkpoint.checkpoint(model[:2], x, use_reentrant=False)
    torch.nn.functional.cross_entropy(model[2](hidden), y).backward()
    return [p.grad for p in model.parameters()]


def packed_sequences(torch: Any) -> Any:
    """A GRU over sequences of several lengths."""
    utils = torch.nn.utils.rnn
    gru = fill(torch, torch.nn.GRU(3, 4, batch_first=True, bidirectional=True), scale=0.5)
    packed = utils.pack_padded_sequence(
        draw(torch, 3, 5, 3), torch.tensor([5, 2, 4]), batch_first=True, enforce_sorted=False
    )
    output, hidden = gru(packed)
    padded, lengths = utils.pad_packed_sequence(output, batch_first=True)
    return [padded, lengths, hidden]


def attention(torch: Any) -> Any:
    """Multi-head attention with masks."""
    layer = fill(torch, torch.nn.MultiheadAttention(8, 2, batch_first=True), scale=0.4)
    x = draw(torch, 2, 5, 8)
    mask = torch.triu(torch.ones(5, 5, dtype=torch.bool), diagonal=1)
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    output, weights = layer(x, x, x, attn_mask=mask, key_padding_mask=padding)
    return [output, weights]


def masking(torch: Any) -> Any:
    """Losses of sequences without their padding."""
    scores = draw(torch, 2, 4, 5).requires_grad_()
    targets = torch.tensor([[1, 2, 0, 0], [3, 4, 1, 0]])
    mask = targets != 0
    flat = torch.nn.functional.cross_entropy(
        scores.view(-1, 5), targets.view(-1), ignore_index=0, reduction="none"
    ).view_as(targets)
    loss = (flat * mask).sum() / mask.sum()
    loss.backward()
    logp = scores.detach().log_softmax(-1).gather(2, targets.unsqueeze(-1)).squeeze(-1)
    return [loss, scores.grad, logp.masked_fill(~mask, 0.0), scores[mask].shape]


def gradient_penalty(torch: Any) -> Any:
    """A loss of the norm of a gradient by inputs."""
    model, (x, _) = _network(torch), _batch(torch)
    x.requires_grad_(True)
    scores = model(x)
    (g,) = torch.autograd.grad(
        scores, x, grad_outputs=torch.ones_like(scores), create_graph=True, retain_graph=True
    )
    penalty = ((g.view(g.size(0), -1).norm(2, dim=1) - 1) ** 2).mean()
    penalty.backward()
    return [penalty.item()] + [p.grad for p in model.parameters() if p.grad is not None]


def second_derivatives(torch: Any) -> Any:
    """Products with Hessians and their diagonal by double backward."""
    x = draw(torch, 4).requires_grad_()
    (g,) = torch.autograd.grad((x**3).prod() + x.sin().sum(), x, create_graph=True)
    (product,) = torch.autograd.grad(g @ torch.ones(4), x, retain_graph=True)
    rows = [torch.autograd.grad(g[i], x, retain_graph=True)[0][i] for i in range(4)]
    full = torch.autograd.functional.hessian(lambda x: (x**3).prod() + x.sin().sum(), x.detach())
    return [product, torch.stack(rows), full]


def closures(torch: Any) -> Any:
    """L-BFGS with a closure."""
    x = draw(torch, 5).requires_grad_()
    optimizer = torch.optim.LBFGS([x], lr=1.0, max_iter=20, line_search_fn="strong_wolfe")

    def closure() -> Any:
        optimizer.zero_grad()
        loss = ((x - 1) ** 2).sum() + ((x[1:] - x[:-1] ** 2) ** 2).sum()
        loss.backward()
        return loss

    first = optimizer.step(closure)
    return [first.item(), closure().item() < 1e-3]


def buffers(torch: Any) -> Any:
    """Running statistics in buffers, in training and evaluation."""
    nn = torch.nn
    model = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(0.5))
    x = draw(torch, 10, 4)
    model[0](x * 3 + 1)
    model.eval()
    names = [name for name, _ in model.named_buffers()]
    return [names, model(x), model[0].running_var, model[0].num_batches_tracked]


def weight_tying(torch: Any) -> Any:
    """An embedding that is the output layer too."""
    nn = torch.nn

    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.Embedding(6, 4)
            self.decoder = nn.Linear(4, 6, bias=False)
            self.decoder.weight = self.encoder.weight

        def forward(self, tokens: Any) -> Any:
            return self.decoder(self.encoder(tokens))

    model = fill(torch, Tied())
    model(torch.tensor([1, 2, 5])).logsumexp(-1).sum().backward()
    return [len(list(model.parameters())), sorted(model.state_dict()), model.encoder.weight.grad]


def residual_blocks(torch: Any) -> Any:
    """A convolutional block with batch normalization and a shortcut."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(2, 4, 3, padding=1, bias=False)
            self.bn = nn.BatchNorm2d(4)
            self.shortcut = nn.Conv2d(2, 4, kernel_size=1)

        def forward(self, x: Any) -> Any:
            return nn.functional.relu(self.bn(self.conv(x)) + self.shortcut(x))

    model = fill(torch, Block())
    y = nn.functional.adaptive_avg_pool2d(model(draw(torch, 3, 2, 6, 6)), (1, 1)).flatten(1)
    y.pow(2).sum().backward()
    return [y, *(p.grad for p in model.parameters())]


def anomaly_detection(torch: Any) -> Any:
    """Find the operation behind a NaN."""
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    try:
        with torch.autograd.detect_anomaly(check_nan=True):
            (torch.sqrt(x) * 0).sum().backward()
    except RuntimeError as error:
        return ["nan" in str(error).lower()]
    return [False]


def printing(torch: Any) -> Any:
    """Text of modules and counts of parameters."""
    model = _network(torch)
    total = sum(p.numel() for p in model.parameters() if p.requires_grad)
    return [repr(model), total, [tuple(p.shape) for p in model.parameters()]]


def seeds(torch: Any) -> Any:
    """The same numbers after the same seed."""
    torch.manual_seed(3)
    first = torch.randn(4), torch.rand(2), torch.randperm(5), torch.randint(0, 9, (3,))
    state = torch.get_rng_state()
    then = torch.nn.functional.dropout(torch.ones(50), 0.5)
    torch.set_rng_state(state)
    again = torch.nn.functional.dropout(torch.ones(50), 0.5)
    torch.manual_seed(3)
    second = torch.randn(4), torch.rand(2), torch.randperm(5), torch.randint(0, 9, (3,))
    return [
        all(torch.equal(a, b) for a, b in zip(first, second, strict=True)),
        torch.equal(then, again),
    ]


def double_precision(torch: Any) -> Any:
    """Numbers in double precision by choice."""
    model, (x, y) = _network(torch).double(), _batch(torch)
    loss = torch.nn.functional.cross_entropy(model(x.double()), y)
    loss.backward()
    kinds = {str(p.grad.dtype) for p in model.parameters()} | {str(x.to(torch.float64).dtype)}
    return [sorted(kinds), loss.item(), (x.float().sum(1) + y).dtype == torch.float32]


def pruning(torch: Any) -> Any:
    """Remove small weights, and make that permanent."""
    layer = fill(torch, torch.nn.Linear(6, 4))
    prune = import_module(f"{torch.__name__}.nn.utils.prune")  # which PyTorch loads when asked
    prune.l1_unstructured(layer, name="weight", amount=0.5)
    names = sorted(name for name, _ in layer.named_parameters())
    zeros = int((layer(torch.eye(6)) == 0).sum())
    prune.remove(layer, "weight")
    return [names, zeros, layer.weight, sorted(layer.state_dict())]


def parametrizations(torch: Any) -> Any:
    """Weights that stay symmetric, and normalized weights."""
    nn = torch.nn
    parametrize = nn.utils.parametrize

    class Symmetric(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.triu() + x.triu(1).transpose(-1, -2)

    layer = fill(torch, nn.Linear(3, 3))
    parametrize.register_parametrization(layer, "weight", Symmetric())
    normed = nn.utils.parametrizations.weight_norm(fill(torch, nn.Linear(3, 2)), name="weight")
    x = draw(torch, 2, 3)
    (layer(x).sum() + normed(x).pow(2).sum()).backward()
    return [layer.weight, *(p.grad for p in normed.parameters()), sorted(normed.state_dict())]
