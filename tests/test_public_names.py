"""What is public: the names of ``numgrad`` and of its public modules, and nothing else."""

import base64
import copy
import importlib
import inspect
import pickle
import subprocess
import sys
import zlib
from types import ModuleType

import numpy as np
import pytest

import numgrad as ng
from numgrad.core.op import OPS, Op
from numgrad.nn.activation_formulas import elu
from numgrad.operations import lazy_operations

NAMES = """
GradcheckError NumgradAssertionError NumgradAttributeError NumgradError NumgradImportError
NumgradIndexError
NumgradKeyError NumgradLinAlgError NumgradNotImplementedError NumgradOverflowError
NumgradRuntimeError NumgradTraceError
NumgradTypeError NumgradValueError RowSparseTensor Tensor abs absolute acos acosh add all allclose
amax amin angle any append apply_along_axis apply_over_axes arange arccos arccosh arcsin arcsinh
arctan arctan2 arctanh argmax argmin argpartition argsort argwhere around array_api array_split
as_strided asarray asin asinh associative_scan astype atan atan2 atanh atleast_1d
atleast_2d atleast_3d
autograd average benchmark bincount bitwise_and bitwise_count bitwise_invert bitwise_left_shift
bitwise_not bitwise_or bitwise_right_shift bitwise_xor block broadcast_arrays broadcast_to c_ cat
cbrt ceil checkpoint checkpoint_sequential choose clamp clip column_stack complex128 complex64
compress concat concatenate cond config conj conjugate constraint convolve copy copysign corrcoef
correlate cos cosh count_nonzero cov cross cummax cummin cumprod cumsum cumulative_prod
cumulative_sum cumulative_trapezoid curve_fit curve_jac custom_jvp custom_vjp data deg2rad degrees
delete diag diag_embed diagflat diagonal diagonal_scatter diff digamma digitize distributed divide
divmod dot dsplit dstack e
ecosystem ediff1d einsum elementwise empty empty_like enable_grad equal erf erfc
erfinv errors exp exp2 expand expand_dims expit expm1 export extract eye fabs fft fill fix
flatnonzero flatten flip fliplr flipud float32 float64 float_power floor floor_divide fmax fmin fmod
fori_loop
frexp from_numpy full full_like func gamma gammaln gcd geomspace get_num_threads grad gradient
greater greater_equal heaviside hessian histogram histogram2d histogram_bin_edges histogramdd
hsplit hstack hvp hypot i0 imag implicit index_add index_copy index_fill index_put inf
inference_mode inner insert int16 int32 int64 int8 integrate
interp interpolate intersect1d invert io is_grad_enabled
is_inference_mode_enabled isclose isfinite isin isinf isnan isneginf isposinf ix_ jacfwd jacobian
jacrev jit jit_stats jvp kernel kron lcm ldexp least_squares left_shift less less_equal lexsort
lgamma like linalg linear_operator linear_recurrence linearize linspace load load_native log log10
log1p log2 log_sigmoid log_softmax logaddexp logaddexp2 logcumsumexp logical_and logical_not
logical_or logical_xor logit
logspace logsumexp map masked_fill masked_scatter matmul matrix_norm matrix_transpose matvec max
maximum mean median meshgrid min minimize minimum mod modf moveaxis multiply nan nan_to_num
nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod
nanquantile nanstd nansum nanvar ndimage negative newaxis nextafter nn no_grad nonzero norm
not_equal objective odeint ones ones_like ops optim outer pad parallel partition percentile permute
permute_dims pi piecewise poly polyadd polyder polydiv polyfit polygamma polyint polymul polysub
polyval positive power primitive prod profiler psi ptp put quad quantile r_ rad2deg radians random
ravel real real_if_close reciprocal relu remainder renorm repeat reshape resize
right_shift rint roll
rollaxis root roots rot90 round save scan scatter scatter_add scatter_reduce searchsorted select
select_scatter set_checkpoint_early_stop set_grad_enabled set_num_threads setdiff1d setxor1d
sigmoid sign signal signbit simpson sin sinc sinh slice_scatter sliding_window_view softmax
softplus solve_ivp sort sort_complex spacing sparse spatial
special split sqrt square squeeze stack stats
std stop_gradient subtract sum swapaxes switch take take_along_axis tan tanh tensor tensordot
testing tile topk trace transpose trapezoid tree tril trim_zeros triu true_divide trunc uint16
uint32 uint64 uint8 unbind unfold union1d unique unique_all unique_consecutive
unique_counts unique_inverse
unique_values unsqueeze unstack unwrap value_and_grad vander var vdot vecdot vecmat vector_norm vhp
viz vjp vmap vsplit vstack where while_loop zeros zeros_like zeta
"""
"""All names of ``numgrad``: whoever adds or removes one says so here."""

MODULES = """
array_api array_api.fft array_api.linalg autograd autograd.forward_ad autograd.function
autograd.functional autograd.graph benchmark config data distributed distributed.checkpoint
ecosystem errors fft func implicit integrate interpolate io linalg ndimage nn nn.functional nn.init
nn.parallel nn.utils optim optim.lr_scheduler optim.swa_utils parallel profiler random signal sparse
spatial spatial.distance special stats testing tree viz
"""


def run(program):
    """What a program prints in a process of its own."""
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


NAMED_IN_CODE = r"""
import pathlib, re, numgrad.tensors
from numgrad.core.op import OPS
sources = [p.read_text(encoding="utf-8") for p in pathlib.Path(numgrad.__path__[0]).rglob("*.py")]
names = {name for source in sources for name in re.findall(r'\bOPS\["(\w+)"\]', source)}
assert len(names) > 50
print(*sorted(names - set(OPS)))
"""


THREADS = """
import sys, threading, numgrad as ng
sys.setswitchinterval(1e-6)
uses = [
    lambda: ng.grad(ng.sin)(0.5), lambda: ng.exp(0.5), lambda: ng.linalg.norm([1.0]),
    lambda: ng.nn.Linear(1, 1), lambda: ng.special.gammaln(3.0),
    lambda: ng.vmap(ng.tanh)(ng.ones(2)),
    lambda: ng.optim.SGD([ng.ones(1, requires_grad=True)], lr=1.0), lambda: ng.sort([1.0]),
]
start, done = threading.Barrier(len(uses)), []
def run(use):
    start.wait()
    use()
    done.append(use)
threads = [threading.Thread(target=run, args=(use,)) for use in uses]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(done) - len(uses))
"""


def test_threads_load_names_at_the_same_time():
    assert run(THREADS) == "0"


def test_operations_that_code_names_are_declared_with_the_first_tensor():
    assert run(NAMED_IN_CODE) == ""


def test_names_of_the_package():
    assert ng.__all__ == NAMES.split()
    assert [name for name in dir(ng) if name[0] != "_"] == NAMES.split()
    modules = {name for name in ng.__all__ if isinstance(getattr(ng, name), ModuleType)}
    assert modules == {name for name in MODULES.split() if "." not in name}
    assert {"__doc__", "__version__"} <= set(dir(ng))


@pytest.mark.parametrize("name", ["", *MODULES.split()])
def test_all_is_what_shows_and_what_a_star_imports(name):
    module = importlib.import_module(f"numgrad.{name}".rstrip("."))
    public = {found for found in dir(module) if found[0] != "_"}
    assert public == set(module.__all__)
    assert len(public) == len(module.__all__)
    space = {}
    exec(f"from {module.__name__} import *", space)
    assert set(space) - {"__builtins__"} == public
    for found in public:
        value = getattr(module, found)
        home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
        if isinstance(value, type) and issubclass(value, np.generic):
            continue  # a dtype
        if name:  # dtypes and constants are NumPy's, settings are plain values
            assert (home or "numgrad").startswith(("numgrad", "builtins")), found


def test_operations_of_the_package_are_those_of_mathematics():
    shown = {name: value for name, value in vars(ng).items() if isinstance(value, Op)}
    for name, op in shown.items():
        assert not op.internal, name
        assert op.function.__module__.startswith("numgrad.operations."), name
        assert OPS[op.name] is op
    layers = {op.name for op in OPS.values() if op.__module__.startswith("numgrad.nn.")}
    assert "convolution" in layers
    assert not layers & set(dir(ng.Tensor))


def test_an_unknown_name_is_an_attribute_error_that_leads_on():
    with pytest.raises(ng.NumgradAttributeError, match=r"'conv2d'.*ng\.nn\.functional"):
        _ = ng.conv2d  # pyright: ignore
    assert not hasattr(ng, "tensors_")


def test_what_is_not_used_is_not_loaded():
    parts = ("nn", "optim", "compiler", "data", "diagrams", "io", "testing", "viz", "cli")
    program = (
        "import sys, numgrad as ng; x = ng.tensor([1.0], requires_grad=True);"
        "(x * x.relu()).sum().backward(); dir(ng);"
        "print({m.split('.')[1] for m in sys.modules if m.startswith('numgrad.')});"
        "ng.jit(lambda x: x * 2)([1.0]); print(set(sys.modules))"
    )
    before, after = map(eval, run(program).splitlines())
    assert not set(parts) & before
    rooms = ("codegen.adjoint", "inspect.report", "compiler.loops", "kernels.fourier")
    assert not [m for m in after if any(room in m for room in rooms)]


def test_namespaces_do_not_load_scipy():
    program = (
        "import sys, numgrad as ng; ng.nn.Linear, ng.optim.Adam, ng.special.jv, ng.linalg.solve;"
        "ng.data.DataLoader, ng.fft.fft, ng.signal.hilbert, ng.stats.norm, ng.io.save, ng.parallel;"
        "ng.interpolate.CubicSpline([0.0, 1.0, 2.0], [1.0, 2.0, 4.0])(0.5);"
        "print({'scipy', 'numba', 'difflib'} & set(sys.modules) or 'none')"
    )
    assert run(program) == "none"


OLD_PICKLE = r"""
c-oazUyB??5Z~Rq-
J8p<Q3(FyKoMUyD2oXZd{84sIB>(F7kuy`3_UYFTTNzqCOzG!Cy2i6xdR10q@pH%4j=pweg{E6fWG;r)iXPLCkBnP%+g
(5UGw|Zud2S>z5mm&*F5;FcKOnXWEK}j&a}v7Rf<?vgu^fwcO=~-ywLe*&6`{Du9Mm-
k<lp~(dRV9z#5^n(o3pw9G1dx7%L42dH(F`EH4t5$yqM*s5uLc<Wg1EobWd;9}$cq48q8zsXv9u*3{nHn5Ni&jbH#fIJ
&8{6s7|KK@IyGm(eFuEx{5Vbf33USB0sVr9S5Hs?Z)lXk_G6mUxoSuxoiT3!6OTE@Ohmh!esId+{{}>SF6Xhm9xUo=#e
qdo=H@=te)HuNcd8-
uJ&#f){a^*psr!;UIm3>UDd*gZ(#Yu~@wSCqK>Kyk{w@Zv?F<zg;KZuFsMuoGqHgu`o(RnIzo*pvy8x_hE52Qi79o058
Bx9uK^{MZ=p{w$XdNCOTa8#}1y3;9{F>UOm;V@F3KM4ojb_ij!wMVZusU`kHX8beKwEond9>eVi1|o;SD%`&U|_#_tLn
!=f<xmE;j>!E^tOd6SVAGra!4Ngj42r#LZA`%(>aDKx<ae6p*84Moo9<3(@f#Bmpp#UZ%;cvLobFR{X5<kKUokeevJBa
=tPxC~PqsB;wrul`H@oQKzN-
^j|VcUZcK|LA$`c4S%6;oHCd@x%HT_#K11$XRih)8X|WANc1XjzpSryU`jiH88`DbY+FDXzk^`+RD9qByWE7Pn}`4Ewt
4Z(W*tXr*xU|)S=o%j+@>aT?7MsqU(U7v??duxpny7+0;p7D!5UrW;e(T<Ndki4`0lCxSxo;l+9S;-
K3ofVIpI0SvCY(a%G$1n1@!7i%(UqK4S!UF;Tt@ni1z)t;W5SXM%`<7C1~@#S$$X4n1>j#Bp3?nT%~aQpOuhiE3v>;48
~2f3&-?t-SD)W=MuhQ#j83?S{dqvH9H;uEAUIA$%<1@0{R1zu)ltZ4KYm@Sui=3;2HFgo{pT_7@ayHPH
"""
"""A model and its optimizer, which were pickled, compressed and written with 85 letters."""


def test_pickles_of_former_versions_load():
    # whoever moves a name that they need leaves one where it was
    data = zlib.decompress(base64.b85decode("".join(OLD_PICKLE.split())))
    model, optimizer = pickle.loads(data)
    assert model(ng.tensor([[3.0]])).item() == 3 / np.sqrt(1 + 1e-5)
    model(ng.tensor([[3.0]])).sum().backward()
    optimizer.step()
    assert model[0].bias.item() == -0.5 / np.sqrt(1 + 1e-5)
    assert type(model) is ng.nn.Sequential
    assert type(optimizer) is ng.optim.SGD


def test_pickles_name_public_classes_where_they_are_public():
    model = ng.nn.Sequential(ng.nn.Linear(1, 1), ng.nn.LSTM(1, 1), ng.nn.MSELoss())
    adam = ng.optim.Adam(model.parameters())
    state = model, adam, ng.optim.lr_scheduler.StepLR(adam, 1), ng.data.TensorDataset(ng.ones(2))
    data = pickle.dumps(state)
    for value in (*state, *model):
        module = type(value).__module__
        assert module.encode() not in data, module
        assert f"class {type(value).__name__}" in inspect.getsource(type(value))
    again = pickle.loads(data)
    assert [type(value) for value in again] == [type(value) for value in state]
    assert again[1].param_groups[0]["params"][0] is again[0][0].weight
    assert type(copy.deepcopy(model)[1]) is ng.nn.LSTM


def test_names_of_operations_are_those_that_modules_declare():
    by_module = {
        name: home for home, names in lazy_operations._USUAL.items() for name in names.split()
    }
    by_module |= {
        name: home.partition("operations.")[2] for name, home in lazy_operations.LATE.items()
    }
    home = {name: OPS[op.name].function.__module__ for op in OPS.values() for name in op.names}
    assert {n: f"numgrad.operations.{m}" for n, m in by_module.items()} == {
        n: home[n] for n in by_module
    }
    rest = {
        n
        for n, m in home.items()
        if m.removeprefix("numgrad.operations.") in lazy_operations._USUAL
    }
    internal = {name for op in OPS.values() if op.internal for name in op.names}
    assert rest - internal <= by_module.keys()


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize(
    "first", ["linalg", "special", "autograd", "nn.functional", "tree", "core.op"]
)
def test_parts_are_imported_by_themselves(first):
    program = (
        f"import numgrad.{first}, numpy as np, numgrad.autograd as autograd, numgrad as ng\n"
        "from numgrad.linalg import solve\n"
        "x = solve(np.eye(2), ng.ones(2, requires_grad=True))\n"
        "(slope,) = autograd.grad(np.sum(np.exp(x)), [x]); print(slope[0].item())"
    )
    assert abs(float(run(program)) - np.e) < 1e-14


START = "import pickle, sys, threading; import numpy as np; import numgrad as ng\n"


@pytest.mark.slow(cases=3)
@pytest.mark.parametrize(
    "program",
    [
        "import scipy.special as s; assert ng.exp(ng.asarray(s.log_expit(ng.zeros(1))))[0] == 0.5\n"
        "print(s.ndtr(np.unwrap(ng.zeros(1, requires_grad=True))).sum().item())",
        "f = ng.jit(lambda x: ng.nn.functional.softsign(x)); print(f(np.ones(1))[0])",
        "import numgrad.nn.functional as F; print(F.softsign(ng.ones(1))[0].item())",
        "from numgrad import nn, ops; print(ops['softsign'](ng.ones(1))[0].item())",
        "with ng.inference_mode(): layer = ng.nn.Linear(1, 1, bias=False)\n"
        "print(0.5 if not ng.nn.Linear(1, 1).weight.is_inference() else 0)",
        f"print(pickle.loads({pickle.dumps(elu)!r})(ng.tensor([0.5]), 1.0).item())",
        "seen = []\n"
        "def use(): seen.append(ng.nn.functional.softsign(np.exp(ng.zeros(1))).item())\n"
        "threads = [threading.Thread(target=use) for _ in range(4)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "print(0.5 if seen == [0.5] * 4 else seen)",
        "@ng.elementwise()\ndef twice(x): return x + x\nprint(twice(ng.tensor(0.25)).item())",
        "try:\n  @ng.elementwise()\n  def mish(x): return x\n"
        "except ng.NumgradRuntimeError: print(0.5)",
    ],
)
def test_first_use_in_any_order(program):
    assert float(run(START + program)) == 0.5
