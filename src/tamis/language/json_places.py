"""Where in a JSON text a part of it stands."""

from __future__ import annotations

import json
import re

from tamis.errors import quoted
from tamis.values import load_json

_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*")\s*(:?)|-?\d[\d.eE+-]*|[][{}]')
_STEP = re.compile(r"\.([a-z_]+)|\[(\d+)\]")
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


def offset_of(text: str, path: str) -> int:
    """The offset of what a path such as ``$.and[1].op`` names in valid JSON text.

    >>> offset_of('{"and": [true, {"op": 5}]}', "$.and[1].op")
    22
    """
    place = _skip_space(text, 0)
    for key, number in _STEP.findall(path.removeprefix("$")):
        inner = _value_of_key(text, place, key) if key else _item(text, place, int(number))
        if inner is None:
            break  # the part is missing: the object that lacks it is the place
        place = inner
    return place


def fault_in(text: str) -> tuple[int, str]:
    """Where and why ``load_json`` refuses what is JSON: a repeated key, a number too large.

    >>> fault_in('{"a": [{"b": 1, "b": 2}]}')
    (16, "the key 'b' is given twice in one object")
    """
    keys: list[set[str]] = []
    for found in _TOKEN.finditer(text):
        token, (string, colon) = found.group(), found.groups()
        if colon:
            key = json.loads(string)
            if key in keys[-1]:
                return found.start(), f"the key {quoted(key)} is given twice in one object"
            keys[-1].add(key)
        elif token in "[{":
            keys.append(set())
        elif token in "]}":
            keys.pop()
        elif string is None:
            try:
                load_json(token)
            except ValueError as error:
                return found.start(), str(error)
    return 0, "a number or a key cannot be read"


def _value_of_key(text: str, place: int, wanted: str) -> int | None:
    """Where the value of a key starts in the object that starts at ``place``."""
    place = _skip_space(text, place + 1)
    while text[place] != "}":
        key, after = _DECODER.raw_decode(text, place)
        value = _skip_space(text, _skip_space(text, after) + 1)  # behind the colon
        if key == wanted:
            return value
        place = _next(text, value)
    return None


def _item(text: str, place: int, wanted: int) -> int | None:
    """Where an item starts in the array that starts at ``place``."""
    place = _skip_space(text, place + 1)
    for _ in range(wanted):
        place = _next(text, place)
    return place


def _next(text: str, value: int) -> int:
    """Where the next member starts, or the end of the whole, behind the value at ``value``."""
    _, after = _DECODER.raw_decode(text, value)
    after = _skip_space(text, after)
    return _skip_space(text, after + 1) if text[after] == "," else after


def _skip_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    assert found is not None
    return found.end()
