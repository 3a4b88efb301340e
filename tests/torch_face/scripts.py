"""Scripts as users of PyTorch write them: functions of ``torch``, whose numbers are compared.

Initial parameters and data are drawn by NumPy, so that they do not depend on the library.
"""

import copy
import io
import math
import pickle
from collections import OrderedDict
from importlib import import_module

import numpy as np

RNG = np.random.default_rng


def _set(torch, module, seed=0, scale=0.4):
    rng = RNG(seed)
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.from_numpy(rng.normal(0.0, scale, tuple(p.shape)).astype("float32")))
    return module


def _normal(torch, *shape, seed=0):
    return torch.from_numpy(RNG(seed).standard_normal(shape).astype("float32"))


def gan(torch):
    """A GAN on numbers: two optimizers, detached fakes, labels smoothed."""
    nn = torch.nn
    G = _set(torch, nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1)), 1)
    D = _set(torch, nn.Sequential(nn.Linear(1, 16), nn.LeakyReLU(0.2, inplace=True),
                                  nn.Dropout(0.0), nn.Linear(16, 1), nn.Sigmoid()), 2)  # fmt: skip
    og = torch.optim.Adam(G.parameters(), lr=1e-2, betas=(0.5, 0.999))
    od = torch.optim.RMSprop(D.parameters(), lr=1e-2)
    loss, log = nn.BCELoss(), []
    for k in range(8):
        real, z = _normal(torch, 12, 1, seed=k) * 1.25 + 4, _normal(torch, 12, 2, seed=100 + k)
        D.zero_grad(set_to_none=True)
        fake = G(z)
        ld = loss(D(real), torch.full((12, 1), 0.9)) + loss(D(fake.detach()), torch.zeros(12, 1))
        ld.backward()
        od.step()
        for p in D.parameters():
            p.requires_grad_(False)
        og.zero_grad()
        lg = loss(D(fake), torch.ones_like(real))
        lg.backward()
        og.step()
        for p in D.parameters():
            p.requires_grad = True
        log += [ld.item(), lg.item(), fake.mean().item(), fake.std().item()]
    return log, [p.grad is None for p in G.parameters()]


def vae(torch):
    """A VAE whose noise is given; KL by hand and by distributions; schedule by steps."""
    nn, F, D = torch.nn, torch.nn.functional, torch.distributions

    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Sequential(OrderedDict([("fc", nn.Linear(6, 8)), ("act", nn.SiLU())]))
            self.heads = nn.ModuleDict({"mu": nn.Linear(8, 2), "logvar": nn.Linear(8, 2)})
            self.decoder = nn.Sequential(nn.Linear(2, 8), nn.GELU(), nn.Linear(8, 6))

        def forward(self, x, eps):
            h = self.encoder(x)
            mu, logvar = self.heads["mu"](h), self.heads["logvar"](h).clamp(-5, 5)
            z = mu + eps * (0.5 * logvar).exp()
            return self.decoder(z), mu, logvar

    model = _set(torch, VAE())
    x = (_normal(torch, 32, 6) > 0).float()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=1e-2, total_steps=10)
    log = []
    for k in range(10):
        opt.zero_grad()
        logits, mu, logvar = model(x, _normal(torch, 32, 2, seed=k))
        bce = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(-1).mean()
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1).mean()
        other = D.kl_divergence(
            D.Independent(D.Normal(mu, (0.5 * logvar).exp()), 1),
            D.Independent(D.Normal(torch.zeros(2), torch.ones(2)), 1),
        ).mean()
        (bce + 0.5 * kld + 0.5 * other).backward()
        torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)
        opt.step()
        sched.step()
        log += [bce.item(), kld.item(), other.item(), sched.get_last_lr()[0],
                opt.param_groups[0]["betas"][0]]  # fmt: skip
    return log, [tuple(v.shape) for v in model.state_dict().values()], repr(model)


def packed_rnn(torch):
    """Sequences of several lengths: packed LSTM and GRU, embedding with padding, CTC of them."""
    nn, rnn = torch.nn, torch.nn.utils.rnn
    rng = RNG(3)
    seqs = [torch.tensor(rng.integers(1, 9, n)) for n in (5, 2, 4, 3)]
    lengths = torch.tensor([len(s) for s in seqs])
    padded = rnn.pad_sequence(seqs, batch_first=True, padding_value=0)

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(9, 6, padding_idx=0)
            self.lstm = nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True)
            self.gru = nn.GRU(10, 4, batch_first=True)
            self.out = nn.Linear(4, 9)

        def forward(self, x, n):
            packed = rnn.pack_padded_sequence(
                self.embed(x), n, batch_first=True, enforce_sorted=False
            )
            y, (h, c) = self.lstm(packed)
            y, hn = self.gru(y)
            y, sizes = rnn.pad_packed_sequence(y, batch_first=True, total_length=6)
            return self.out(y), h, c, hn, sizes, packed

    model = _set(torch, Tagger())
    opt = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9, nesterov=True)
    log = []
    for _ in range(4):
        logits, h, c, hn, sizes, packed = model(padded, lengths)
        opt.zero_grad()
        mask = torch.arange(6)[None, :] < sizes[:, None]
        target = torch.nn.functional.pad(padded, (0, 1), value=0)
        loss = nn.functional.cross_entropy(logits[mask], target[mask], label_smoothing=0.1)
        ctc = nn.functional.ctc_loss(
            logits.log_softmax(-1).transpose(0, 1), padded[:, :2], torch.full((4,), 6),
            torch.full((4,), 2), zero_infinity=True,
        )  # fmt: skip
        (loss + 0.1 * ctc + h.pow(2).mean() + c.abs().mean() + hn.sum() * 0.01).backward()
        total = nn.utils.clip_grad_norm_(model.parameters(), 1.0, norm_type=2)
        opt.step()
        log += [loss.item(), ctc.item(), float(total)]
    return (log, sizes, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices,
            model.embed.weight.grad)  # fmt: skip


def transformer(torch):
    """A causal language model with a padding mask, tied weights, warm-up by LambdaLR, top-k."""
    nn, F = torch.nn, torch.nn.functional

    class LM(nn.Module):
        def __init__(self, vocabulary=11, width=8):
            super().__init__()
            self.embed = nn.Embedding(vocabulary, width)
            position = torch.arange(0, 16).unsqueeze(1)
            div = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
            pe = torch.zeros(16, width)
            pe[:, 0::2], pe[:, 1::2] = torch.sin(position * div), torch.cos(position * div)
            self.register_buffer("pe", pe.unsqueeze(0), persistent=False)
            layer = nn.TransformerEncoderLayer(width, 2, 16, dropout=0.0, batch_first=True,
                                               norm_first=True, activation="gelu")  # fmt: skip
            self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(width),
                                                 enable_nested_tensor=False)  # fmt: skip
            self.head = nn.Linear(width, vocabulary, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, x):
            n = x.size(1)
            mask = nn.Transformer.generate_square_subsequent_mask(n)
            h = self.embed(x) * math.sqrt(self.embed.embedding_dim) + self.pe[:, :n]
            h = self.encoder(h, mask=mask, src_key_padding_mask=torch.zeros(x.shape).masked_fill(
                x == 0, float("-inf")), is_causal=True)  # fmt: skip
            return self.head(h)

    model = _set(torch, LM(), scale=0.3)
    x = torch.tensor(RNG(5).integers(1, 11, (4, 9)))
    x[0, 7:], x[2, 5:] = 0, 0
    opt = torch.optim.Adam(model.parameters(), lr=1.0)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: 0.02 * min((s + 1) / 4, 1.0))
    log = []
    for _ in range(5):
        logits = model(x[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, 11), x[:, 1:].reshape(-1), ignore_index=0)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        log += [loss.item(), sched.get_last_lr()[0]]
    model.eval()
    with torch.inference_mode():
        scores = model(x[1:2])[:, -1] / 0.7
        values, indices = scores.topk(3)
        scores[scores < values[:, [-1]]] = -float("inf")
        probs = F.softmax(scores, dim=-1)
    return log, probs, indices, sum(p.numel() for p in model.parameters()), len(model.state_dict())


def loaders(torch):
    """Datasets, samplers, workers, a collate function; an epoch's order by a generator."""
    data = torch.utils.data

    class Words(data.Dataset):
        def __init__(self, n):
            self.items = [(list(range(k % 4 + 1)), k % 3) for k in range(n)]

        def __len__(self):
            return len(self.items)

        def __getitem__(self, k):
            words, label = self.items[k]
            return {"words": torch.tensor(words), "label": label, "name": f"n{k}"}

    class Stream(data.IterableDataset):
        def __iter__(self):
            info = data.get_worker_info()
            return iter(np.arange(5.0) if info is None else np.arange(info.id, 5.0, 2))

    def collate(batch):
        words = torch.nn.utils.rnn.pad_sequence([b["words"] for b in batch], batch_first=True,
                                                padding_value=-1)  # fmt: skip
        return words, torch.as_tensor([b["label"] for b in batch]), [b["name"] for b in batch]

    dataset = Words(11)
    out = []
    loader = data.DataLoader(dataset, batch_size=4, collate_fn=collate, num_workers=2)
    out += [batch for batch in loader]
    train, rest = data.random_split(dataset, [0.7, 0.3], generator=torch.Generator().manual_seed(0))
    out += [len(train), len(rest), sorted(train.indices + rest.indices)]
    tensors = data.TensorDataset(torch.arange(6.0).reshape(6, 1), torch.arange(6))
    out += list(data.DataLoader(tensors, batch_size=4, drop_last=True))
    sampler = data.WeightedRandomSampler([0.0, 1.0, 0.0], 4)
    out += [list(sampler), len(loader), next(iter(data.DataLoader(Stream(), batch_size=5)))]
    joined = data.ConcatDataset([tensors, data.Subset(tensors, [1, 3])])
    out += [len(joined), joined[7], data.default_collate([{"a": 1, "b": (2.0, "x")}] * 2)]
    order = data.BatchSampler(data.SequentialSampler(range(5)), 2, drop_last=False)
    out += [list(order), list(data.DataLoader(range(5), batch_sampler=order))]
    shuffled = list(data.DataLoader(range(7), shuffle=True, generator=torch.Generator()))
    return out, sorted(int(b) for b in shuffled), (tensors + tensors)[6]


def resume(torch):
    """Checkpoint in the middle, go on from it in new objects, end where the first one does."""
    nn, sched = torch.nn, torch.optim.lr_scheduler
    x, y = _normal(torch, 20, 3), _normal(torch, 20, 1, seed=1)

    def parts():
        model = _set(torch, nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.ReLU(),
                                          nn.Linear(5, 1)))  # fmt: skip
        groups = [{"params": model[0].parameters(), "lr": 0.02}, {"params": model[3].parameters()},
                  {"params": model[1].parameters(), "weight_decay": 0.0}]  # fmt: skip
        opt = torch.optim.NAdam(groups, lr=0.01, weight_decay=0.1)
        chain = sched.SequentialLR(
            opt, [sched.LinearLR(opt, 0.1, total_iters=3), sched.CosineAnnealingLR(opt, T_max=7)],
            milestones=[3],
        )  # fmt: skip
        return model, opt, chain, sched.ReduceLROnPlateau(opt, factor=0.5, patience=1)

    def train(model, opt, chain, plateau, steps):
        log = []
        for _ in range(steps):
            opt.zero_grad()
            loss = nn.functional.smooth_l1_loss(model(x), y, beta=0.5)
            loss.backward()
            opt.step()
            chain.step()
            plateau.step(1.0)
            log += [loss.item(), *(g["lr"] for g in opt.param_groups)]
        return log

    first = parts()
    log = train(*first, 4)
    file = io.BytesIO()
    torch.save({"model": first[0].state_dict(), "opt": first[1].state_dict(),
                "sched": [s.state_dict() for s in first[2:]], "epoch": 4}, file)  # fmt: skip
    file.seek(0)
    state = torch.load(file, weights_only=False)
    second = parts()
    result = second[0].load_state_dict(state["model"])
    second[1].load_state_dict(state["opt"])
    for s, values in zip(second[2:], state["sched"], strict=True):
        s.load_state_dict(values)
    a, b = train(*first, 4), train(*second, 4)
    assert a == b
    return (
        log,
        b,
        state["epoch"],
        str(result),
        second[0][1].running_var,
        sorted(state["opt"]["state"][0]),
    )


def own_optimizer(torch):
    """An optimizer of a user's, whose state of Tensors and numbers goes on in another."""

    class Signs(torch.optim.Optimizer):
        def __init__(self, params, lr=0.01):
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self):
            for group in self.param_groups:
                for p in group["params"]:
                    state = self.state[p]
                    if not state:
                        state |= {"mean": torch.zeros_like(p), "t": torch.tensor(0.0), "step": 0}
                    state["step"] += 1
                    state["t"] += 1
                    state["mean"].mul_(0.9).add_(p.grad, alpha=0.1)
                    rate = group["lr"] * float(state["t"]) / state["step"] ** 2
                    p.sub_(state["mean"].sign(), alpha=rate)

    model, log = _set(torch, torch.nn.Linear(3, 2)), []
    opt = Signs(model.parameters())
    for k in range(6):
        if k == 3:
            saved = opt.state_dict()
            opt = Signs(model.parameters())
            opt.load_state_dict(saved)
        opt.zero_grad()
        model(_normal(torch, 5, 3, seed=k)).square().mean().backward()
        opt.step()
        log.append(model.weight.detach().clone())
    return log, [dict(sorted(state.items())) for state in opt.state_dict()["state"].values()]


def own_function(torch):
    """A custom Function with a double backward, hooks, accumulation of gradients, anomaly mode."""

    class Softclip(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, limit):
            y = limit * torch.tanh(x / limit)
            ctx.save_for_backward(y)
            ctx.limit = limit
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * (1 - (y / ctx.limit) ** 2), None

    class Swap(torch.autograd.Function):
        @staticmethod
        def forward(a, b):
            return b.clone(), a.clone()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx, ga, gb):
            return gb, ga

    x = torch.tensor([0.3, -1.2, 2.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v: Softclip.apply(v, 2.0), (x,))
    log = []
    handle = x.register_hook(lambda g: log.append(g.sum().item()) or g * 2)
    y = Softclip.apply(x, 1.5)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    g.pow(2).sum().backward()
    handle.remove()
    a, b = torch.ones(2, requires_grad=True), torch.zeros(2, requires_grad=True)
    p, _q = Swap.apply(a, b)
    p.sum().backward()
    model = _set(torch, torch.nn.Linear(2, 1))
    seen = []
    model.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    model.register_forward_hook(lambda m, args, out: seen.append(out.detach().clone()))
    model.register_full_backward_hook(lambda m, gi, go: seen.append(go[0].clone()))
    opt = torch.optim.Adagrad(model.parameters(), lr=0.1)
    data = _normal(torch, 12, 2)
    for k, part in enumerate(data.chunk(4)):
        (model(part).square().mean() / 2).backward()
        if (k + 1) % 2 == 0:
            opt.step()
            opt.zero_grad()
    with torch.autograd.detect_anomaly(check_nan=False):
        z = torch.tensor(0.0, requires_grad=True)
        torch.sqrt(z * 1.0).backward()
    return g, x.grad, log, a.grad is None, b.grad, seen, model.weight, z.grad, y.grad_fn.name()[:8]


def normalized_weights(torch):
    """Weight norm, spectral norm, pruning, orthogonal parametrization, averaged models."""
    nn, P = torch.nn, torch.nn.utils.parametrizations
    prune = import_module(f"{torch.__name__}.nn.utils.prune")
    layer = _set(torch, nn.Linear(4, 3))
    P.weight_norm(layer, dim=0)
    deep = nn.Sequential(layer, nn.ELU(), _set(torch, nn.Linear(3, 3), 1), nn.Hardtanh(-2, 2))
    sym = _set(torch, nn.Linear(3, 3, bias=False), 2)

    class Symmetric(nn.Module):
        def forward(self, w):
            return w.triu() + w.triu(1).mT

        def right_inverse(self, w):
            return w.triu()

    nn.utils.parametrize.register_parametrization(sym, "weight", Symmetric())
    model = nn.Sequential(deep, sym)
    average = torch.optim.swa_utils.AveragedModel(model)
    ema = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
    )
    opt = torch.optim.Adamax(model.parameters(), lr=0.05)
    x, log = _normal(torch, 10, 4), []
    for _ in range(5):
        opt.zero_grad()
        loss = nn.functional.huber_loss(model(x), x[:, :3].roll(1, 1), delta=0.7)
        loss.backward()
        opt.step()
        average.update_parameters(model)
        ema.update_parameters(model)
        log.append(loss.item())
    prune.l1_unstructured(deep[2], "weight", amount=0.3)
    log.append(model(x).sum().item())
    names = sorted(model.state_dict())
    prune.remove(deep[2], "weight")
    averages = average(x), ema(x)
    nn.utils.parametrize.remove_parametrizations(sym, "weight")
    vector = nn.utils.parameters_to_vector(model.parameters())
    near = [P.orthogonal(_set(torch, nn.Linear(*sizes))).weight for sizes in ((3, 5), (4, 4))]
    return log, names, vector, averages, sym.weight, deep[2].weight == 0, near


def with_numpy(torch):
    """Expressions that mix tensors, arrays, numbers; memory in common; indexing and writes."""
    a = np.linspace(0.0, 1.0, 6).reshape(2, 3)
    t = torch.from_numpy(a)
    t.mul_(2)
    x = torch.tensor([[1, 2, 3], [4, 5, 6]])
    w = torch.ones(3, requires_grad=True)
    y = (x * w + t).to(torch.float32)
    y[:, 1] = y[:, 0].clone() ** 2
    y[y > 20] = 20.0
    y[torch.tensor([0]), [2]] += 1
    picked = torch.where(y > 3, y, y.new_zeros(()))
    picked.sum().backward()
    b = np.asarray(y.detach()) + torch.arange(3).numpy()
    out = [a, t, y, w.grad, b, np.float64(2.0) * t, t * np.float32(0.5), x / 2, x // 2, x % 2,
           x.float().mean(0), x.max(1), x.argmin(), t.std(), x.cumsum(1), -x.T, x @ x.T,
           torch.stack([t, t]).permute(2, 0, 1).contiguous().view(-1)[:5],
           torch.cat([x, x.flip(0)], dim=1)[:, ::2], x.unique(return_counts=True),
           torch.einsum("ij,kj->ik", t, t), t.sort(descending=True), x.float().norm(dim=1),
           torch.bincount(x.flatten()), torch.quantile(t, torch.tensor([0.25, 0.5]).double()),
           x.view(-1).unfold(0, 2, 2), torch.nan_to_num(torch.tensor([np.nan, np.inf])),
           torch.scatter(torch.zeros(2, 7), 1, x, 1.0), x.gather(1, torch.tensor([[2], [0]])),
           torch.tril(torch.ones(3, 3)).bool(), torch.meshgrid(t[0], t[1], indexing="ij"),
           bool((x == 3).any()), float(t[0, 1]), len(x), x.tolist(), str(x), repr(y.detach()),
           f"{t[0, 0]:.2f}", [v.item() for v in x[0]],
           torch.linalg.lstsq(t.T, t.T[:, :1]).solution,
           torch.tensor([3, 1, 2]).argsort(), x.repeat_interleave(2, dim=0).shape,
           x.dtype, y.dtype, (x + 1.5).dtype, (x > 2).sum(), x.numpy().dtype.name]  # fmt: skip
    return out


def copies(torch):
    """Deep copies, pickles, state in and out, modules changed in place, functional_call, vmap."""
    nn, func = torch.nn, torch.func
    models = [_set(torch, nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), k)
              for k in range(3)]  # fmt: skip
    x, target = _normal(torch, 7, 3), torch.tensor([0, 1, 1, 0, 1, 0, 0])
    params, buffers = func.stack_module_state(models)
    base = copy.deepcopy(models[0])

    def loss(p, b, v, t):
        logits = func.functional_call(base, (p, b), (v,))
        return nn.functional.cross_entropy(logits, t), logits

    (grads, logits) = func.vmap(func.grad(loss, has_aux=True), in_dims=(0, 0, None, None))(
        params, buffers, x, target
    )
    for k, model in enumerate(models):
        model.zero_grad()
        nn.functional.cross_entropy(model(x), target).backward()
        torch.testing.assert_close(grads["0.weight"][k], model[0].weight.grad, rtol=1e-4, atol=1e-6)
    twin = copy.deepcopy(models[1])
    assert twin[0].weight is not models[1][0].weight
    again = pickle.loads(pickle.dumps(models[1].state_dict()))
    twin.load_state_dict(OrderedDict((k, v * 0.5) for k, v in again.items()))
    for name, p in twin.named_parameters():
        if name.endswith("bias"):
            p.requires_grad_(False)
            nn.init.constant_(p, 0.25)
    twin.apply(lambda m: nn.init.eye_(m.weight) if isinstance(m, nn.Linear) else None)
    jac = func.vmap(func.jacrev(lambda v: twin(v)))(x)
    hess = func.hessian(lambda v: twin(v).square().sum())(x[0])
    value, tangent = func.jvp(lambda v: twin(v).sum(), (x,), (torch.ones_like(x),))
    twin[1] = nn.ReLU()
    twin.add_module("last", nn.Softmax(dim=-1))
    missing = twin.load_state_dict({"0.weight": torch.zeros(4, 3)}, strict=False)
    return (logits, jac, hess, value, tangent, missing.missing_keys, missing.unexpected_keys,
            twin(x), [n for n, _ in twin.named_modules()], [p.requires_grad for p in
            twin.parameters()], twin.double()(x.double()).dtype)  # fmt: skip


def fits(torch):
    """L-BFGS with a closure and line search; a curve's parameters with errors by the Hessian."""
    t = torch.linspace(0, 4, 40, dtype=torch.float64)
    data = 2.5 * torch.exp(-1.3 * t) + 0.5 + 0.01 * torch.sin(17 * t)
    p = torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64, requires_grad=True)
    opt = torch.optim.LBFGS([p], lr=1, max_iter=50, history_size=5, line_search_fn="strong_wolfe",
                            tolerance_grad=1e-10, tolerance_change=1e-14)  # fmt: skip

    def residual(q):
        return q[0] * torch.exp(-q[1] * t) + q[2] - data

    calls = []

    def closure():
        opt.zero_grad()
        loss = residual(p).square().sum()
        loss.backward()
        calls.append(loss.item())
        return loss

    first = opt.step(closure)
    H = torch.autograd.functional.hessian(lambda q: residual(q).square().sum() / 2, p.detach())
    J = torch.autograd.functional.jacobian(residual, p.detach())
    error = torch.linalg.inv(H).diagonal().sqrt()
    step = torch.linalg.solve(J.T @ J, J.T @ residual(p.detach()))
    rosen = torch.tensor([-1.2, 1.0], requires_grad=True, dtype=torch.float64)
    plain = torch.optim.LBFGS([rosen], lr=0.1, max_iter=5)

    def banana():
        plain.zero_grad()
        value = (1 - rosen[0]) ** 2 + 100 * (rosen[1] - rosen[0] ** 2) ** 2
        value.backward()
        return value

    for _ in range(10):
        plain.step(banana)
    return first.item(), calls[-1], p, error, step.abs().max() < 1e-4, rosen


def elbo(torch):
    """Variational inference with given noise, mixtures, transforms, a policy gradient."""
    D = torch.distributions
    data = _normal(torch, 30, seed=4) * 0.7 + 1.5
    loc, log_scale = (torch.zeros(1, requires_grad=True) for _ in range(2))
    opt = torch.optim.Adam([loc, log_scale], lr=0.05, amsgrad=True)
    log = []
    for k in range(15):
        q = D.Normal(loc, log_scale.exp())
        z = loc + log_scale.exp() * _normal(torch, 16, seed=k)
        prior = D.StudentT(4.0, 0.0, 2.0)
        logp = D.Normal(z.unsqueeze(-1), 0.7).log_prob(data).sum(-1) + prior.log_prob(z)
        loss = -(logp - q.log_prob(z)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        log.append(loss.item())
    logits = torch.tensor([0.2, -0.4, 0.1], requires_grad=True)
    policy = D.Categorical(logits=logits)
    action = torch.tensor([0, 2, 2, 1])
    (-(policy.log_prob(action) * torch.tensor([1.0, -1.0, 0.5, 2.0])).mean()
     - 0.01 * policy.entropy()).backward()  # fmt: skip
    mixture = D.MixtureSameFamily(policy, D.Normal(torch.arange(3.0), torch.ones(3)))
    skew = D.TransformedDistribution(
        D.Normal(0.0, 1.0), [D.transforms.AffineTransform(1.0, 2.0), D.transforms.ExpTransform()]
    )
    L = torch.tensor([[1.0, 0.0], [0.5, 0.8]], requires_grad=True)
    mvn = D.MultivariateNormal(torch.zeros(2), scale_tril=L)
    mvn.log_prob(torch.tensor([0.3, -0.2])).backward()
    sample = D.Beta(torch.tensor([2.0]), torch.tensor([3.0])).rsample((5,))
    return (log, loc, log_scale, logits.grad, mixture.log_prob(torch.tensor([0.5, 2.0])),
            skew.log_prob(torch.tensor([1.0, 3.0])), L.grad, mvn.entropy(), tuple(sample.shape),
            D.kl_divergence(D.Gamma(2.0, 1.0), D.Gamma(3.0, 2.0)), D.Bernoulli(0.3).variance,
            policy.probs, mixture.mean, str(D.Normal(0.0, 1.0)))  # fmt: skip


SCRIPTS = [gan, vae, packed_rnn, transformer, loaders, resume, own_optimizer, own_function,
           normalized_weights, with_numpy, copies, fits, elbo]  # fmt: skip
