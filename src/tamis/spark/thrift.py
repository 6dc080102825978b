"""Thrift: the compact protocol, in which Parquet writes what it says of itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12
_LONG_LIST = 15


class Value(NamedTuple):
    """A value: its kind, and its bytes."""

    kind: int
    encoded: bytes


def i32(number: int) -> Value:
    """A whole number of 32 bits."""
    return Value(_I32, _varint(number << 1 ^ number >> 31))


def i64(number: int) -> Value:
    """A whole number of 64 bits."""
    return Value(_I64, _varint(number << 1 ^ number >> 63))


def text(letters: str) -> Value:
    """A text."""
    encoded = letters.encode()
    return Value(_BINARY, _varint(len(encoded)) + encoded)


def items(values: Sequence[Value]) -> Value:
    """A list of values of one kind."""
    (kind,) = {one.kind for one in values} or {_STRUCT}
    n = len(values)
    head = bytes([min(n, _LONG_LIST) << 4 | kind]) + (_varint(n) if n >= _LONG_LIST else b"")
    return Value(_LIST, head + b"".join(one.encoded for one in values))


def struct(fields: dict[int, Value]) -> Value:
    """A structure: values by the numbers of their fields, ascending."""
    made, before = bytearray(), 0
    for number, one in fields.items():
        made.append(number - before << 4 | one.kind)
        made += one.encoded
        before = number
    return Value(_STRUCT, bytes(made) + b"\0")


def _varint(number: int) -> bytes:
    made = bytearray()
    while number >= 128:
        made.append(number & 127 | 128)
        number >>= 7
    made.append(number)
    return bytes(made)
