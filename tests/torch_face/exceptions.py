"""Files of PyTorch's public tests that are run, and tests that are left out, each with a reason."""

FILES = [
    "test_autograd.py",
    "optim/test_optim.py",
    "optim/test_lrscheduler.py",
    "optim/test_swa_utils.py",
    "test_optim.py",
    "nn/test_init.py",
    "nn/test_module_hooks.py",
    "nn/test_packed_sequence.py",
    "nn/test_parametrization.py",
    "nn/test_pruning.py",
    "nn/test_load_state_dict.py",
    "nn/test_lazy_modules.py",
    "nn/test_dropout.py",
    "nn/test_embedding.py",
    "nn/test_pooling.py",
    "nn/test_convolution.py",
    "nn/test_multihead_attention.py",
    "autograd/test_functional.py",
    "autograd/test_complex.py",
    "test_nn.py",
    "test_torch.py",
    "functorch/test_eager_transforms.py",
    "distributions/test_distributions.py",
    "distributions/test_constraints.py",
    "distributions/test_transforms.py",
]

INTERNALS = {
    "how PyTorch is built": r"torch\._C\b|torch\.ops\.|torch\.library|Library\(",
    "PyTorch's compilers": r"torch\._dynamo|_inductor|make_fx|torch\.jit|torch\.fx|FakeTensor",
    "other devices": (
        r"\bcuda\b|onlyCUDA|TEST_CUDA|MULTIGPU"
        r"|pin_memory|\bmps\b|\bxla\b|['\"]meta['\"]"
    ),
    "dispatch modes": r"DispatchMode|FunctionMode|__torch_dispatch__|LoggingTensor|TwoTensor",
    "other layouts": (
        r"sparse_cs|sparse_coo|to_sparse"
        r"|layout=|_indices\(\)|_values\(\)|nested_tensor"
    ),
    "other dtypes": r"quantize|qint|mkldnn|xnnpack|bfloat16|float16|\.half\(\)|torch\.half",
    "a program that imports PyTorch": r"subprocess|check_call|script\s*=",
    "PyTorch's profiler": r"kineto|prof\b.*\bprofile|emit_nvtx|record_function|key_averages",
    "extensions in C++": r"scoped_load_inline|cpp_extension",
    "named tensors": r"named_tensor|[( ]names=\(|refine_names|rename\(",
}
"""What a test is about -> the pattern of its text; such tests are not run."""

EXCEPTIONS: dict[str, str] = {}
"""Names of tests, as regular expressions -> the reason for which they may fail."""
