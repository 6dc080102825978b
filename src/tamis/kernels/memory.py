"""Memory: prefetching, arrays by address or on a cache line, loads and stores in order."""

from __future__ import annotations

import ctypes

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tamis.kernels.compiled import IS_COMPILED


@intrinsic
def _prefetch(typingctx, array, index):
    def codegen(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        byte_pointer, i32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte_pointer, i32, i32, i32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        line = builder.bitcast(builder.gep(data, [args[1]]), byte_pointer)
        builder.call(function, [line, i32(0), i32(2), i32(1)])  # read, keep, data cache
        return context.get_dummy_value()

    return types.void(array, types.uint64), codegen


@intrinsic
def _prefetch_at(typingctx, pointer, index):
    def codegen(context, builder, signature, args):
        byte_pointer, i32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte_pointer, i32, i32, i32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        line = builder.bitcast(builder.gep(args[0], [args[1]]), byte_pointer)
        builder.call(function, [line, i32(0), i32(2), i32(1)])  # read, second level, data
        return context.get_dummy_value()

    return types.void(pointer, types.uint64), codegen


def _prefetch_nothing(pointer, index):
    """Without the compiler there is nothing to ask for."""


# Ask for the cache line of array[index] (1-d, C order; index: u8, unchecked); never faults.
prefetch = _prefetch if IS_COMPILED else _prefetch_nothing
# Ask for the cache line of pointer[index] (u8, unchecked) in the second-level cache; never faults.
# More of these can be under way at once than loads, or prefetches to the first level.
prefetch_at = _prefetch_at if IS_COMPILED else _prefetch_nothing


def _pointer_to(kind):
    if not IS_COMPILED:
        as_c = ctypes.POINTER(np.ctypeslib.as_ctypes_type(np.dtype(str(kind))))
        return lambda address: ctypes.cast(int(address), as_c)

    @intrinsic
    def pointer(typingctx, address):
        def codegen(context, builder, signature, args):
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return types.CPointer(kind)(types.int64), codegen

    return pointer


f8_at, i8_at, u8_at = (
    _pointer_to(types.float64),
    _pointer_to(types.int64),
    _pointer_to(types.uint64),
)
u2_at, f4_at = _pointer_to(types.uint16), _pointer_to(types.float32)
i4_at, u4_at, u1_at = _pointer_to(types.int32), _pointer_to(types.uint32), _pointer_to(types.uint8)


@intrinsic
def _load_acquire(typingctx, pointer, index):
    def codegen(context, builder, signature, args):
        return builder.load_atomic(builder.gep(args[0], [args[1]]), "acquire", 4)

    return types.int32(pointer, types.int64), codegen


@intrinsic
def _store_release(typingctx, pointer, index, number):
    def codegen(context, builder, signature, args):
        builder.store_atomic(args[2], builder.gep(args[0], [args[1]]), "release", 4)
        return context.get_dummy_value()

    return types.void(pointer, types.int64, types.int32), codegen


def _load(pointer, index):
    return pointer[index]


def _store(pointer, index, number):
    pointer[index] = number


# Of pointers to i4: whoever loads what was stored so also sees all that was stored before it.
load_acquire = _load_acquire if IS_COMPILED else _load
store_release = _store_release if IS_COMPILED else _store


def aligned_zeros(shape, dtype):
    """Zeros that start on a cache line: a line of bits must not straddle two."""
    n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(n_bytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + n_bytes].view(dtype).reshape(shape)
