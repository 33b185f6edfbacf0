"""What a processor can do and numba does not offer: words at any address, copies, and the crc32c instruction.

Addresses stand in for arrays where something is called for every feature of every record: numba counts references
to arrays, and these counts take three quarters of the time then. Nothing is checked here: whoever has an address
keeps inside the array that it came from, and keeps that array.
"""

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic

HAS_CRC32C = "+sse4.2" in get_host_cpu_features()
"""Whether `crc32c_of_word` can be called on this machine; what numba keeps compiled, it keeps by processor."""


@intrinsic
def address_of(_context: Any, array: Any) -> Any:
    """Where the first item of an array stands."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.ptrtoint(data, context.get_value_type(types.intp))

    return types.intp(array), emit


def _load(num_bits: int, result: Any) -> Any:
    def declare(_context: Any, _address: Any) -> Any:
        def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            place = builder.inttoptr(arguments[0], ir.IntType(num_bits).as_pointer())
            return builder.load(place, align=1)

        return result(types.intp), emit

    return intrinsic(declare)


def _store(num_bits: int, value: Any) -> Any:
    def declare(_context: Any, _address: Any, _value: Any) -> Any:
        def emit(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            place = builder.inttoptr(arguments[0], ir.IntType(num_bits).as_pointer())
            builder.store(arguments[1], place, align=1)
            return context.get_dummy_value()

        return types.void(types.intp, value), emit

    return intrinsic(declare)


load_8 = _load(8, types.uint8)
load_32 = _load(32, types.uint32)
load_64 = _load(64, types.uint64)
store_8 = _store(8, types.uint8)
store_32 = _store(32, types.uint32)
store_64 = _store(64, types.uint64)


@intrinsic
def copy_bytes(_context: Any, _to: Any, _source: Any, _num_bytes: Any) -> Any:
    """Copy bytes from one address to another."""

    def emit(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        to, source = (builder.inttoptr(address, ir.IntType(8).as_pointer()) for address in arguments[:2])
        cgutils.raw_memcpy(builder, to, source, arguments[2], 1)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp), emit


@intrinsic
def crc32c_of_word(_context: Any, _state: Any, _word: Any) -> Any:
    """The state of a crc32c after eight more bytes."""

    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        instruction = builder.module.declare_intrinsic(
            "llvm.x86.sse42.crc32.64.64", (), ir.FunctionType(word, [word, word])
        )
        return builder.call(instruction, arguments)

    return types.uint64(types.uint64, types.uint64), emit
