"""JSON text, read without letting anything pass that Python would quietly change."""

from __future__ import annotations

import json
import math
from typing import Any

from tamis.errors import quoted


def load_json(text: str | bytes) -> Any:
    """What JSON text stands for; a ValueError for a repeated key or a number beyond float64.

    >>> load_json('{"price": 3200}')
    {'price': 3200}
    >>> load_json('{"price": 1, "price": 2}')
    Traceback (most recent call last):
        ...
    ValueError: the key 'price' is given twice in one object
    """
    return json.loads(text, object_pairs_hook=_unique_keys, parse_float=_finite)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {quoted(twice)} is given twice in one object")
    return made


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f'{digits[:30]} is beyond float64; infinity is {{"$number": "Infinity"}}')
    return number
