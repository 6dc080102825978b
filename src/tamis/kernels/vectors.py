"""Vectors: what kernels that use vector instructions by name have in common."""

from __future__ import annotations

from llvmlite import binding, ir
from numba.core import cgutils

from tamis.kernels.compiled import IS_COMPILED, config


def has_instructions(*names: str) -> bool:
    """Whether kernels are compiled for a processor with some features, as LLVM names them."""
    is_of_host = config.CPU_NAME is None and config.CPU_FEATURES is None
    is_wanted = IS_COMPILED and is_of_host and bool(config.ENABLE_AVX)
    features = binding.get_host_cpu_features() if is_wanted else {}
    return is_wanted and all(bool(features.get(name, False)) for name in names)


def declare(builder, name, result, arguments):
    """An intrinsic function of LLVM."""
    kind = ir.FunctionType(result, arguments)
    return cgutils.get_or_insert_function(builder.module, kind, name)
