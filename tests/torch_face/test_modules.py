"""Modules of PyTorch's: settings, profiles, ranks, functions of lists, names that are absent."""

import inspect
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest

import numgrad as ng
import numgrad.torch as torch
from numgrad.distributed.launcher import is_mpi_available
from numgrad.torch.substitution import substituted

PATHS = """
__config__ __future__ amp autograd autograd.anomaly_mode autograd.forward_ad autograd.function
autograd.functional autograd.grad_mode autograd.graph autograd.profiler autograd.variable
backends backends.cudnn backends.mkl backends.mps backends.openmp cpu.amp cuda cuda.amp
distributed distributions distributions.kl distributions.normal fft func linalg mps
multiprocessing nn nn.attention nn.functional nn.init nn.modules nn.modules.batchnorm
nn.modules.container nn.modules.conv nn.modules.loss nn.modules.module nn.modules.utils
nn.parallel nn.parallel.distributed nn.parameter nn.utils nn.utils.clip_grad
nn.utils.parametrizations nn.utils.parametrize nn.utils.prune nn.utils.rnn optim optim.adam
optim.lr_scheduler optim.optimizer optim.sgd optim.swa_utils profiler random serialization
special testing utils utils.checkpoint utils.data utils.data.dataset utils.data.distributed
version xpu
"""
SPACES = """
nn nn.functional nn.init nn.utils nn.utils.rnn nn.parallel optim optim.lr_scheduler linalg fft
special autograd autograd.functional autograd.graph autograd.profiler utils utils.data func
distributions random cuda distributed testing profiler amp backends.cudnn
"""


@pytest.mark.parametrize("path", PATHS.split())
def test_a_path_that_scripts_import(path):
    module = import_module(f"numgrad.torch.{path}")
    place = torch
    for name in path.split("."):
        place = getattr(place, name)
    assert place is module


def test_paths_that_nothing_loaded_before():
    program = "from numgrad.torch.cuda.amp import autocast; import numgrad.torch.cpu.amp"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


@pytest.mark.parametrize("space", ["", *SPACES.split()])
def test_no_name_gives_a_bare_error(space):
    pytest.importorskip("torch")
    theirs = import_module(f"torch.{space}".rstrip("."))
    ours = import_module(f"numgrad.torch.{space}".rstrip("."))
    for name in dir(theirs):
        if name[:2] == "__":
            continue
        try:
            getattr(ours, name)
        except ng.NumgradAttributeError as error:
            assert "out of scope; " in str(error) or "planned" in str(error)  # noqa: PT017


def test_no_attribute_of_a_tensor_gives_a_bare_error():
    theirs = pytest.importorskip("torch").Tensor
    x = torch.ones(2, 2, requires_grad=True)
    for name in dir(theirs):
        try:
            getattr(x, name)
        except (NotImplementedError, ng.NumgradAttributeError, ng.NumgradRuntimeError):
            assert name[:2] != "__"
        except AttributeError:
            assert name[:2] == "__"


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("import numgrad.torch.jit", "torch.compile"),
        ("from numgrad.torch import hub", "not downloaded"),
        ("from numgrad.torch.utils.tensorboard import SummaryWriter", "numgrad.viz"),
        ("from numgrad.torch.nn import DataParallel", "DistributedDataParallel"),
        ("from numgrad.torch.nn.functional import relue", "the nearest is relu"),
        ("from numgrad.torch.cuda import synchronize", "no GPU"),
    ],
)
def test_imports_say_what_there_is_instead(statement, told):
    with pytest.raises(ImportError, match=told) as caught:
        exec(statement)
    assert isinstance(caught.value, ng.NumgradImportError)


def test_an_unchanged_script_is_told_too():
    with substituted(), pytest.raises(ng.NumgradImportError, match=r"torch\.utils.*numgrad\.viz"):
        import_module("torch.utils.tensorboard")


def test_attributes_say_what_there_is_instead():
    for text, told in {
        "torch.jit.script": "torch.compile", "torch.cuda.synchronize": "no GPU",
        "torch.eig": "linalg.eig", "torch.quantize_per_tensor": "float32",
        "torch.nn.init.kaiming_norm_": "nearest is kaiming_normal_",
        "torch.ones(2).coalesce": "strided",
        "torch.optim.lr_scheduler.StepLr": "nearest is StepLR",
        "torch.ones(2).map2_": "planned", "torch.nn.CrossMapLRN2d": "LocalResponse",
    }.items():  # fmt: skip
        with pytest.raises(ng.NumgradAttributeError, match=told):
            eval(text)
    assert not hasattr(torch, "onnx")
    assert getattr(torch.nn, "__wrapped__", None) is None


def test_settings_are_remembered():
    torch.backends.cudnn.benchmark = True
    cudnn = import_module("numgrad.torch.backends.cudnn")
    assert cudnn.benchmark
    assert not cudnn.is_available()
    with cudnn.flags(enabled=False):
        assert not torch.backends.mps.is_available()
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.set_float32_matmul_precision("high")
    assert torch.get_float32_matmul_precision() == "high"
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(False)
    torch.__future__.set_swap_module_params_on_conversion(True)
    assert torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(False)
    torch.set_float32_matmul_precision("highest")
    torch.set_default_device("cpu")
    with pytest.raises(RuntimeError, match="CPU"):
        torch.set_default_device("cuda")
    assert torch.version.cuda is None
    assert torch.version.__version__ == torch.__version__
    assert torch.get_num_threads() >= 1
    torch.set_default_tensor_type(torch.DoubleTensor)
    try:
        assert torch.ones(1).dtype is torch.float64
    finally:
        torch.set_default_tensor_type("torch.FloatTensor")
    assert torch.typename(torch.ones(1)) == "torch.FloatTensor"
    assert f"{torch.tensor(0.5)} {torch.ones(1)}" == "0.5 tensor([1.])"


def test_gradients_are_scaled():
    p = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([p], lr=0.25)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    for factor, scale, value in [(1.0, 8.0, 0.75), (np.inf, 4.0, 0.75), (2.0, 4.0, 0.25)]:
        optimizer.zero_grad()
        scaler.scale((p * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == scale
        assert p.tolist() == [value, value]
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="unscale_"):
        scaler.unscale_(optimizer)
    other = torch.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 4.0
    with pytest.warns(UserWarning, match="no device 'cuda'"):
        assert not torch.cuda.amp.GradScaler().is_enabled()


def test_there_is_no_mixed_precision():
    with torch.autocast("cpu", enabled=False), torch.cuda.amp.autocast(enabled=False):
        assert (torch.ones(2) @ torch.ones(2)).dtype is torch.float32
    with pytest.raises(NotImplementedError, match=r"bfloat16.*enabled=False"):
        torch.autocast("cpu").__enter__()


def test_a_profile_has_names_of_torch(tmp_path):
    profiler = torch.profiler
    plan = profiler.schedule(wait=0, warmup=1, active=2, repeat=1)
    handler = profiler.tensorboard_trace_handler(str(tmp_path), "w")
    activities = [profiler.ProfilerActivity.CPU]
    with profiler.profile(activities=activities, schedule=plan, on_trace_ready=handler) as prof:
        for _ in range(3):
            with profiler.record_function("part"):
                torch.ones(3).exp()
            prof.step()
    rows = {row.key: row for row in prof.key_averages()}
    assert rows["part"].count == rows["exp"].count == 2
    assert rows["part"].cpu_time_total >= rows["exp"].cpu_time_total > 0
    assert "part" in prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10)
    assert [path.name for path in tmp_path.iterdir()] == ["w.3.pt.trace.json"]
    assert torch.autograd.profiler.profile is profiler.profile


def test_assert_close():
    close = torch.testing.assert_close
    x = torch.tensor([1.0, 2.0])
    close(x, x + 1e-6)
    close({"a": [x, 1.0]}, {"a": [x.clone(), 1.0 + 1e-8]})
    close(torch.tensor(np.nan), torch.tensor(np.nan), equal_nan=True)
    for a, b, told in [
        (x, x + 1e-3, "2 of 2 elements differ"), (x, x.double(), "dtype"), (x, x[:1], "shape"),
        ([x, x], [x], "nested"), ({"a": x}, {"b": x}, "nested"), ((x, 1.0), (x, 2.0), r"\[1\]"),
        (torch.tensor(np.nan), torch.tensor(np.nan), "nan"), (True, False, "True is not False"),
    ]:  # fmt: skip
        with pytest.raises(AssertionError, match=told):
            close(a, b)
    for a, b in [(x, [1.0, 2.0]), (x, x.numpy()), ("a", "a")]:
        with pytest.raises(TypeError, match="assert_close"):
            close(a, b)
    close(x, x.double(), check_dtype=False)
    with pytest.raises(ValueError, match="rtol and atol"):
        close(x, x, rtol=0.1)


@pytest.mark.parametrize("name", ["float32", "int64", "bool", "complex64", "uint8"])
def test_make_tensor(name):
    d = getattr(torch, name)
    x = torch.testing.make_tensor((50, 4), dtype=d, device="cpu", noncontiguous=True)
    assert x.dtype is d
    assert (x.shape, x.is_contiguous()) == ((50, 4), False)
    values = x.numpy().real.astype(float)
    low, high = {"bool": (0, 1), "uint8": (0, 9)}.get(name, (-9, 9))
    assert low <= values.min() < values.max() <= high
    assert torch.testing.make_tensor(9, dtype=d, low=1, high=2, exclude_zero=True).all()


def test_functions_of_lists():
    a, b = [torch.tensor([1.0, 4.0]), torch.tensor(9.0)], [torch.tensor(2.0), torch.tensor(3.0)]
    assert [x.tolist() for x in torch._foreach_sqrt(a)] == [[1.0, 2.0], 3.0]
    assert [x.tolist() for x in torch._foreach_add(a, b, alpha=2)] == [[5.0, 8.0], 15.0]
    assert [x.tolist() for x in torch._foreach_mul(a, [2.0, 0.5])] == [[2.0, 8.0], 4.5]
    assert [x.tolist() for x in torch._foreach_addcmul(a, b, b, 0.5)] == [[3.0, 6.0], 13.5]
    assert [x.item() for x in torch._foreach_norm(b)] == [2.0, 3.0]
    assert torch._foreach_maximum_(a, b) is a
    assert [x.tolist() for x in a] == [[2.0, 4.0], 9.0]
    torch._foreach_zero_(a)
    assert a[1].item() == 0.0
    with pytest.raises(RuntimeError, match="needs lists of 2 members"):
        torch._foreach_add(a, b[:1])


def test_steps_as_functions():
    sgd, adam = torch.optim.sgd.sgd, torch.optim.adam.adam
    p, g, buffers = torch.tensor([1.0, 2.0]), torch.tensor([0.5, -1.0]), [None]
    for expected in ([0.95, 2.1], [0.855, 2.29]):  # by hand: b = 0.9 b + g, p = p - 0.1 b
        sgd(
            [p], [g], buffers, weight_decay=0.0, momentum=0.9, lr=0.1, dampening=0.0,
            nesterov=False, maximize=False,
        )  # fmt: skip
        assert np.allclose(p.numpy(), expected)
    assert np.allclose(buffers[0].numpy(), [0.95, -1.9])
    p, m, v, t = torch.tensor([1.0]), torch.zeros(1), torch.zeros(1), torch.tensor(0.0)
    adam(
        [p], [torch.tensor([2.0])], [m], [v], [], [t], foreach=False, amsgrad=False, beta1=0.9,
        beta2=0.99, lr=0.1, weight_decay=0.0, eps=1e-8, maximize=False,
    )  # fmt: skip
    assert np.allclose([p.item(), m.item(), v.item(), t.item()], [0.9, 0.2, 0.04, 1.0])
    assert p.grad is None


OPTIMIZERS = "adadelta adagrad adam adamax adamw asgd nadam radam rmsprop rprop sgd"


@pytest.mark.parametrize("name", OPTIMIZERS.split())
def test_steps_as_functions_of_torch(name):
    pytest.importorskip("torch")
    theirs = getattr(import_module("torch.optim." + name), name)
    ours = getattr(import_module("numgrad.torch.optim." + name), name)
    rng = np.random.default_rng(0)
    start = [rng.standard_normal(shape).astype("f") for shape in ((3, 2), (4,))]
    gradients = [[rng.standard_normal(p.shape).astype("f") for p in start] for _ in range(3)]
    numbers = {
        "lr": 0.1, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "weight_decay": 0.01, "rho": 0.9,
        "momentum": 0.9, "dampening": 0.0, "nesterov": True, "maximize": False, "amsgrad": True,
        "lr_decay": 0.1, "lambd": 1e-4, "t0": 0.0, "alpha": 0.75, "momentum_decay": 4e-3,
        "centered": True, "step_size_min": 1e-6, "step_size_max": 50.0, "etaminus": 0.5,
        "etaplus": 1.2,
    }  # fmt: skip
    names = list(inspect.signature(theirs).parameters)
    options = {key: value for key, value in numbers.items() if key in names}
    scalars = {"state_steps": 0.0, "mus": 1.0, "etas": 0.1, "mu_products": 1.0}
    lists = [n for n in names[2:] if (n[-1] == "s" or n[-4:] == "list") and n not in numbers]
    lists = [n for n in lists if n not in ("eps", "has_sparse_grad")]

    def states(library, n):
        if name == "sgd":
            return [None, None]
        if n in scalars:
            return [library.tensor(scalars[n]) for _ in start]
        return [library.full(p.shape, 0.1 if n == "step_sizes" else 0.0) for p in start]

    results = []
    for library, step in ((import_module("torch"), theirs), (torch, ours)):
        params = [library.from_numpy(p.copy()) for p in start]
        columns = [states(library, n) for n in lists]
        for each in gradients:
            step(params, [library.from_numpy(g.copy()) for g in each], *columns, foreach=False,
                 **options)  # fmt: skip
        results.append([x.numpy() for column in [params, *columns] for x in column])
    for own, other in zip(*results, strict=True):
        assert own.dtype == other.dtype
        np.testing.assert_allclose(own, other, rtol=2e-6, atol=1e-6)


def test_every_listed_name_is_there():
    for module in (torch, torch.nn, torch.optim, torch.autograd, torch.distributions):
        assert all(hasattr(module, name) for name in module.__all__)
    assert torch.conj(torch.tensor(1j)).item() == -1j


def test_datasets():
    data = torch.utils.data
    rows = data.TensorDataset(torch.arange(4))
    assert isinstance(rows, data.Dataset)
    assert (rows + rows)[5][0].item() == 1
    first, second = data.random_split(rows, [0.5, 0.5])
    assert isinstance(first, data.Subset)
    assert sorted(first.indices + second.indices) == [0, 1, 2, 3]


def test_a_mask_has_the_default_dtype():
    mask = torch.nn.Transformer.generate_square_subsequent_mask
    assert mask(2).tolist() == [[0.0, -np.inf], [0.0, 0.0]]
    assert (mask(2).dtype, mask(2, dtype=torch.float64).dtype) == (torch.float32, torch.float64)


def test_a_group_of_one():
    dist = torch.distributed
    with pytest.raises(ValueError, match="'nccl'"):
        dist.init_process_group("nccl")
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29500", rank=0, world_size=1)
    try:
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        model(torch.ones(4, 2)).sum().backward()
        assert model.module.weight.grad.tolist() == [[4.0, 4.0]]
        assert list(model.state_dict()) == ["module.weight", "module.bias"]
        x = torch.ones(2)
        dist.all_reduce(x, op=dist.ReduceOp.SUM)
        parts = [torch.zeros(2)]
        dist.all_gather(parts, x * 3)
        assert parts[0].tolist() == [3.0, 3.0]
        sampler = torch.utils.data.DistributedSampler(range(3), shuffle=False)
        assert list(sampler) == [0, 1, 2]
    finally:
        dist.destroy_process_group()


RANKS = """
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

def work(rank, size):
    dist.init_process_group("gloo", rank=rank, world_size=size)
    model = torch.nn.Linear(1, 1)
    with torch.no_grad():
        model.weight.fill_(float(rank + 1))
    model = DistributedDataParallel(model)
    model(torch.full((1, 1), float(rank + 1))).sum().backward()
    parts = [torch.zeros(1, 1) for _ in range(size)]
    dist.all_gather(parts, model.module.weight.grad)
    if rank == 0:
        print(model.module.weight.item(), [float(p) for p in parts])
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(work, args=(2,), nprocs=2)
"""


@pytest.mark.slow(cases=0)
@pytest.mark.skipif(not is_mpi_available(), reason="needs the extra mpi")
def test_ranks_that_a_script_spawns(tmp_path):
    script = tmp_path / "ranks.py"
    script.write_text(RANKS)
    command = [sys.executable, "-m", "numgrad", "torch", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "1.0 [1.5, 1.5]\n", done.stderr


def test_members_under_conversion_and_norms_of_transposed_convolutions():
    layer = torch.nn.utils.spectral_norm(torch.nn.ConvTranspose2d(3, 4, (5, 6)))
    assert layer.weight_u.shape == (4,)
    plain = torch.nn.Linear(2, 2)
    before, version = plain.weight, plain.weight._version
    plain._apply(lambda t: t.add_(1.0))
    assert (plain.weight is before, plain.weight._version) == (True, version + 1)
    assert plain.double().weight is before
    lazy = torch.nn.LazyBatchNorm1d().double()
    assert lazy(torch.ones(2, 3, dtype=torch.float64)).dtype == torch.float64
    assert lazy.running_mean.dtype == torch.float64


def test_packed_sequences_are_converted_as_their_data():
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(2, 3), torch.ones(1, 3)])
    assert packed.to("cpu") is packed
    double = packed.double()
    assert (double.data.dtype, type(double)) == (torch.float64, type(packed))
    out, _ = torch.nn.GRU(3, 2).double()(double)
    assert out.float().data.dtype == torch.float32
    assert torch.equal(out.batch_sizes, packed.batch_sizes)


def test_modules_are_converted_by_all_that_tensors_take():
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    double = torch.ones(1, dtype=torch.float64)
    for convert in (
        lambda: model.to(torch.float64), lambda: model.to(double), model.double,
        lambda: model.to("cpu", torch.float64, True), lambda: model.to(dtype=torch.float64),
        lambda: model.to(device=torch.device("cpu"), dtype=torch.float64),
    ):  # fmt: skip
        assert model.to(torch.float32).to("cpu").to(memory_format=torch.channels_last) is model
        assert model[1].running_mean.dtype == model[0].weight.dtype == torch.float32
        assert convert() is model
        assert model[1].running_mean.dtype == model[0].weight.dtype == torch.float64
        assert model[1].num_batches_tracked.dtype == torch.int64
    with pytest.raises(TypeError, match="floating point or complex"):
        model.to(torch.int32)
    for wrong in (lambda: model.to("cuda"), model.cuda, model.half):
        with pytest.raises(RuntimeError):
            wrong()
    assert model[0].weight.dtype == torch.float64


def test_functions_along_an_axis_take_operands_without_axes():
    F = torch.nn.functional
    x = torch.tensor([3.0, -4.0])
    assert F.normalize(x, dim=0).tolist() == pytest.approx([0.6, -0.8])
    assert F.normalize(torch.tensor(-2.0), dim=0).tolist() == -1.0
    assert F.cosine_similarity(x, -x, dim=0).item() == pytest.approx(-1.0)
    assert F.cosine_similarity(torch.tensor(2.0), torch.tensor(5), dim=0).item() == 1.0
    assert all(callable(getattr(F, name)) for name in F.__all__)
