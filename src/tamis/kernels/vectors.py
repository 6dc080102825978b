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


def in_all_lanes(builder, kind, number):
    """A vector of some kind with a number in every lane."""
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), number, ir.IntType(32)(0))
    return builder.shuffle_vector(
        one, one, ir.Constant(ir.VectorType(ir.IntType(32), kind.count), [0] * kind.count)
    )
