"""Relocatable objects of modules, for this machine or another one.

Note [Exported objects]
-----------------------
Code that leaves the process is position independent, and defines all that it calls but functions
of the C library and its mathematics. Modules are optimised as those of the process are, one by one,
then linked into one module of LLVM, in which all but the exported functions are internal. Code for
another CPU is written for it from its text on: widths of vectors, error-free products without FMA,
tiles of products of matrices.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import ExitStack
from functools import cache
from typing import Any

from llvmlite import binding

from numgrad.codegen import linker
from numgrad.codegen.compile import Kernel
from numgrad.codegen.locks import deferred
from numgrad.codegen.native import machine
from numgrad.codegen.native.block_pool import exported_pool
from numgrad.codegen.native.kernel import NativeCode
from numgrad.codegen.native.machine import Target
from numgrad.codegen.native.workspace import WITH_WORKSPACE
from numgrad.errors import NumgradNotImplementedError, NumgradValueError

_V2 = "+cx16,+popcnt,+sahf,+sse3,+sse4.1,+sse4.2,+ssse3"
_V3 = f"{_V2},+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave"
_V4 = f"{_V3},+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512vl"
_CPUS = {
    "x86-64-v2": ("x86_64", "x86-64-v2", _V2),
    "x86-64-v3": ("x86_64", "x86-64-v3", _V3),
    "x86-64-v4": ("x86_64", "x86-64-v4", _V4),
    "neoverse-n1": ("aarch64-unknown-linux-gnu", "neoverse-n1", ""),
    "apple-m1": ("arm64-apple-macosx11.0.0", "apple-m1", ""),
}
"""By the name of a CPU: architecture or system, LLVM's name of it, features."""
CPUS = ("native", "generic", *_CPUS)

_WORDS = "malloc calloc realloc free madvise memcpy memmove memset memcmp bzero __chkstk _fltused"
_ROUNDINGS = "ceil fabs floor fma fmax fmin fmod nearbyint rint round roundeven sqrt trunc"
_LIBC = frozenset([*_WORDS.split(" "), "clock_gettime"])
_PTHREAD = frozenset(["pthread_create", "pthread_join"])
_LIBM = frozenset([name + end for name in _ROUNDINGS.split(" ") for end in ("", "f")])
_OF_C = """
abort abs acos acosh aligned_alloc asctime asin asinh atan atan2 atanh atexit atof atoi atol atoll
bsearch cbrt clearerr clock close copysign cos cosh ctime difftime div erf erfc exit exp exp2 expm1
fclose fdim feof ferror fflush fgetc fgetpos fgets fopen fprintf fputc fputs fread freopen frexp
fscanf fseek fsetpos ftell fwrite getc getchar getenv gets gmtime hypot ilogb isalnum isalpha
isblank iscntrl isdigit isgraph islower isprint ispunct isspace isupper isxdigit labs ldexp ldiv
lgamma llabs lldiv llrint llround localtime log log10 log1p log2 logb longjmp lrint lround main
memchr mktime mmap modf mprotect munmap nan nextafter nexttoward open perror pow printf putc putchar
puts qsort raise rand read remainder remove remquo rename rewind scalbln scalbn scanf setbuf setjmp
setlocale setvbuf signal sin sinh snprintf sprintf srand sscanf strcat strchr strcmp strcoll strcpy
strcspn strdup strerror strftime strlen strncat strncmp strncpy strpbrk strrchr strspn strstr strtod
strtof strtok strtol strtold strtoll strtoul strtoull strxfrm system tan tanh tgamma time tmpfile
tmpnam tolower toupper ungetc va_arg vfprintf vprintf vsnprintf vsprintf write
"""
NAMES_OF_C = frozenset(_OF_C.split()) | _LIBC | _LIBM | _PTHREAD
"""Functions of C's library, of C99 for the most part, which nothing exported may be called as."""
_SERIAL = """
define i64 @numgrad_thread_limit() #0 {
  ret i64 1
}

define i32 @numgrad_parallel_for(ptr %function, ptr %context, i64 %tasks) #0 {
start:
  br label %check
check:
  %task = phi i64 [ 0, %start ], [ %next, %run ]
  %more = icmp slt i64 %task, %tasks
  br i1 %more, label %run, label %done
run:
  call void %function(i64 %task, ptr %context)
  %next = add i64 %task, 1
  br label %check
done:
  ret i32 0
}
"""
"""A pool of one thread."""


def target_of(cpu: str) -> Target:
    """What LLVM calls a CPU and its system."""
    own = binding.get_process_triple()
    if cpu == "native":
        return machine.target()
    if cpu == "generic":
        return Target(own, "generic" if machine.is_arm() else "x86-64", "")
    if cpu not in _CPUS:
        raise NumgradValueError(f"export: cpu is one of {', '.join(CPUS)}, got {cpu!r}")
    triple, name, features = _CPUS[cpu]
    if "-" not in triple:  # the system is this one
        triple = "-".join([triple, *own.split("-")[1:]])
    return Target(triple, name, features)


def external_modules(externals: Collection[str], workspace: bool = False) -> list[str]:
    """The texts of kernels that others call, with those that they call, for the target."""
    texts: dict[str, str] = {}
    left = list(externals)
    while left:
        external = left.pop()
        if external in texts:
            continue
        if external.startswith("scipy."):
            raise NumgradNotImplementedError(
                f"export: {external.replace(':', '.')} of SciPy cannot leave this process"
            )
        source = linker.native_source(external)
        kernel = Kernel(source.name, source.source, source.signature, False, True, {})
        name = linker.external_symbol(external) + WITH_WORKSPACE * workspace
        text = NativeCode(kernel).translated(workspace)
        texts[external] = re.sub(r"@numba_entry\b", f"@{name}", text)
        left += source.externals
    return list(texts.values())


@cache
def _initialize() -> None:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()


def _target_machine(target: Target) -> Any:
    _initialize()
    return binding.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=2, reloc="pic", codemodel="default"
    )


@deferred()
def relocatable(texts: Collection[str], exported: Collection[str], target: Target) -> bytes:
    """The object of modules: Note [Exported objects].

    Raises
    ------
    NumgradNotImplementedError
        If it needs a function that neither it nor the C library has.
    """
    return _emitted(texts, exported, target, lambda m, module: m.emit_object(module))


@deferred()
def assembly(texts: Collection[str], exported: Collection[str], target: Target) -> str:
    """The same as text."""
    return _emitted(texts, exported, target, lambda m, module: m.emit_assembly(module))


def _emitted(texts: Collection[str], exported: Collection[str], target: Target, emit: Any) -> Any:
    compiler = _target_machine(target)
    head = f'target datalayout = "{compiler.target_data}"\ntarget triple = "{target.triple}"\n'
    with machine.targeting(target), ExitStack() as owned:
        own = owned.enter_context
        context = own(binding.create_context())
        options = own(binding.create_pipeline_tuning_options(speed_level=1))
        options.loop_vectorization = options.slp_vectorization = False
        builder = own(binding.create_pass_builder(compiler, options))
        whole = own(binding.parse_assembly(head, context))
        for text in (*texts, _SERIAL, exported_pool(machine.is_linux())):
            module = binding.parse_assembly(head + machine.prepared(text), context)
            module.verify()
            for item in module.functions:
                if item.name in ("body", "packed"):
                    item.linkage = "internal"
            machine.optimise(module, builder)
            whole.link_in(module)
        for item in [*whole.functions, *whole.global_variables]:
            if item.is_declaration:
                continue
            if item.name not in exported:
                item.linkage = "internal"
            elif "windows" in target.triple and not target.triple.endswith("-elf"):
                item.storage_class = "dllexport"
        passes = own(binding.create_new_module_pass_manager())
        passes.add_global_dead_code_eliminate_pass()
        passes.run(whole, builder)
        return emit(compiler, whole)


def foreign(names: Collection[str]) -> list[str]:
    """Symbols among those of an object that are not of the C library or its mathematics."""
    return sorted(set(names) - _LIBC - _LIBM - _PTHREAD)


def libraries(names: Collection[str]) -> list[str]:
    """The libraries of GNU systems that have these symbols."""
    listed = (("libm.so.6", _LIBM), ("libpthread.so.0", _PTHREAD), ("libc.so.6", _LIBC))
    return [library for library, symbols in listed if symbols & set(names)]
