"""PyTorch's names over numgrad: a script for PyTorch runs by changing its import.

>>> import numgrad.torch as torch
>>> x = torch.tensor([1.0, 2.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 4.])

Note [Room of the face]
-----------------------
PyTorch's names have three origins here.

**Functions and methods are rows** of tables, ``name(parameters): expression`` of numgrad's Tensors,
with a word on promotion: Note [Rows of names] in ``calls``, which makes functions, methods, forms
in place and with ``out=`` of them, and puts machine code behind what is one operation. Tables:
``table_*`` (the topmost module), ``linalg``, ``fft``, ``special``, ``signal``, ``masked``.
Distributions are rows as well, over families of ``ng.stats``: ``distributions.distribution``.

**Classes are numgrad's**, in one of three ways. ``wrapping.Tensor`` is an object around a Tensor of
numgrad (why: Note [Wrapper, subclass or flag]); ``wrap`` and ``unwrap`` go between the two, through
tuples, lists and dicts; ``same`` gives the wrapper that users have already (Note [Identity]);
``face_function`` makes a function of numgrad's one of the face, ``user_function`` the reverse, for
hooks and closures that numgrad calls. Modules that compute nothing, such as containers, states and
schedules, are executed a second time with these classes: Note [Specialized modules] in
``specialization``. Layers and optimizers call those of numgrad: Notes [Views of layers] in
``nn.layers`` and [Optimizers and their twins] in ``optim.base``.

**By hand** is what follows from no table: ``members`` of Tensors and ``indexing``; ``creation`` and
``random``, whose functions share ``maker``; ``dtypes``, with Note [Promotion by category];
``printing``; ``serialization``; ``compilation``; ``missing``, the names that PyTorch has and the
face lacks; ``substitution``, by which ``import torch`` gives this room.
"""

from importlib import import_module as _import_module

import numgrad as _ng
from numgrad.core.namespaces import namespace as _namespace
from numgrad.torch import calls as _calls, members as _members
from numgrad.torch.dtypes import ALIASES as _ALIASES, DTYPES as _DTYPES
from numgrad.torch.foreach import FUNCTIONS as _FOREACH
from numgrad.torch.memory import STORAGES as _STORAGES
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.paths import module_of as _module_of
from numgrad.torch.settings import install as _install_settings

for _name in (
    "table_elementwise", "table_reductions", "table_shapes", "table_products", "linalg", "signal",
    "table_layers",
):  # fmt: skip
    _import_module(f"numgrad.torch.{_name}")
_members.install()
_calls.publish("", globals(), _calls.ROWS[""])
_calls.publish_operators()
_HOMES = {
    "numgrad.torch.wrapping": "Tensor",
    "numgrad.torch.dtypes": "Size can_cast device dtype finfo get_default_dtype iinfo layout "
    "memory_format promote_types set_default_dtype strided sparse_coo sparse_csr "
    "contiguous_format preserve_format channels_last channels_last_3d",
    "numgrad.torch.creation": "arange as_tensor asarray empty empty_like "
    "empty_permuted empty_strided eye from_dlpack from_numpy frombuffer full full_like linspace "
    "logspace ones ones_like range=range_ scalar_tensor tensor tril_indices triu_indices zeros "
    "zeros_like",
    "numgrad.torch.random": "Generator bernoulli binomial default_generator get_rng_state "
    "initial_seed manual_seed multinomial normal poisson rand rand_like randint randint_like randn "
    "randn_like randperm seed set_rng_state",
    "numgrad.torch.memory": "TypedStorage UntypedStorage",
    "numgrad.torch.printing": "set_printoptions",
    "numgrad.torch.signal": "bartlett_window blackman_window hamming_window hann_window "
    "kaiser_window",
    "numgrad.torch.members": "is_tensor result_type",
    "numgrad.autograd.modes": "enable_grad inference_mode is_grad_enabled "
    "is_inference_mode_enabled no_grad set_grad_enabled",
    "numgrad.config": "get_num_threads set_num_threads",
    "numgrad.torch.settings": "set_default_device set_default_tensor_type typename",
    "numgrad.torch.autograd.anomaly": "set_anomaly_enabled=set_detect_anomaly",
    "math": "e inf nan pi",
}
_namespace(
    globals(),
    _HOMES,
    late={
        "numgrad.torch": "amp autograd compiler distributed distributions fft func "
        "linalg masked multiprocessing nn optim profiler random serialization signal special "
        "testing utils",
        "numgrad.torch.amp": "GradScaler autocast",
        "numgrad.torch.autograd.variable": "is_inference",
        "numgrad.torch.compilation": "compile",
        "numgrad.torch.func": "vmap",
        "numgrad.torch.serialization": "load save",
    },
)
globals().update({**_DTYPES, **_ALIASES, **_STORAGES, **_FOREACH})
globals().update({_d.__name__: _d for _d in _members.TENSOR_CLASSES})
for _name in ("detach", "detach_", "fill_", "resize_as_", "resize_", "zero_"):
    globals()[_name] = vars(_members.Tensor)[_name]
newaxis = None
_module_of("return_types", "Named tuples of results: ``torch.return_types``.", _calls.RETURN_TYPES)
__version__ = f"2.13.0+numgrad{_ng.__version__}"
_names = {*globals()["__all__"], *_calls.FUNCTIONS.keys() & globals(), *_DTYPES, *_ALIASES}
__all__ = sorted(_names)  # pyright: ignore
__getattr__ = _refuse(globals(), globals()["__getattr__"])
_install_settings()
_import_module("numgrad.torch.amp")  # which adds torch.cuda.amp and torch.cpu.amp
