"""JSON text, read without letting anything pass that Python would quietly change."""

from __future__ import annotations

import json
import math
from typing import Any

from tamis.errors import TamisError, quoted


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


def read_json(
    text: str | bytes, what: str, error: type[TamisError], *, is_lenient: bool = False
) -> Any:
    """The same; an error of ours says what is wrong with it.

    Unless it is lenient, nothing is read that only Python takes for JSON: ``NaN``, ``Infinity``,
    UTF-16.

    >>> from tamis.errors import InvalidEvent
    >>> read_json('{"price": NaN}', "the event", InvalidEvent)
    Traceback (most recent call last):
        ...
    tamis.errors.InvalidEvent: the event is not JSON: NaN is not JSON
    """
    try:
        if is_lenient:
            return load_json(text)
        decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        return json.loads(
            decoded, object_pairs_hook=_unique_keys, parse_float=_finite, parse_constant=_refuse
        )
    except UnicodeDecodeError as problem:
        raise error(f"{what} is not UTF-8: {problem}") from None
    except RecursionError:
        raise error(f"{what}'s JSON is nested too deep") from None
    except ValueError as problem:
        raise error(f"{what} is not JSON: {problem}") from None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


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
