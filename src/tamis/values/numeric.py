"""Numbers: int64 and float64, compared exactly."""

from __future__ import annotations

import math
import re

from tamis.errors import InvalidValue, quoted

Number = int | float

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1

# The number grammar of JSON. Leading zeros do not spell a number, so "007" stays text.
_NUMERIC = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
_LONGEST = 64


def numeric_text(text: str) -> Number | None:
    """The number a text spells in JSON's grammar, or None.

    >>> numeric_text("2016"), numeric_text("-1.5e3"), numeric_text("007"), numeric_text("BMW")
    (2016, -1500.0, None, None)

    An integer outside int64 and a number beyond float64 do not count as numeric: they could
    not be compared exactly.
    """
    if len(text) > _LONGEST:
        return None
    found = _NUMERIC.fullmatch(text)
    if found is None:
        return None
    if found.group(1) or found.group(2):
        decimal = float(text)
        return None if math.isinf(decimal) else decimal
    number = int(text)
    return number if INT64_MIN <= number <= INT64_MAX else None


def check_integer(number: int) -> int:
    """The number itself, or an InvalidValue if int64 cannot hold it."""
    if INT64_MIN <= number <= INT64_MAX:
        return number
    raise InvalidValue(
        f"{quoted(number)} is outside int64 (-2^63 to 2^63-1); give it as a float or as text"
    )
