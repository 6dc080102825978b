"""Attributes: the columns of a matcher, their domains, and texts as numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tamis.errors import InvalidSchema, InvalidValue
from tamis.kernels.cells import Domains
from tamis.values import check_value

MAX_ATTRIBUTES = 65_535
_N_BITS = 32
UNKNOWN_TEXT = -1.0  # the code of a text that no subscription names


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column: its name, and the domain that cells and buckets divide.

    Values outside the domain are allowed; they only share the outermost cell. A text
    attribute (``is_text``) holds the codes of ``TextCodes``, which lie in [0, 1).

    >>> Attribute("price", 0, 10_000)
    Attribute(name='price', low=0, high=10000, is_text=False)
    """

    name: str
    low: float = 0.0
    high: float = 1.0
    is_text: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidSchema(f"the attribute {self.name!r}; expected a text as its name")
        try:
            check_value(self.name)
        except InvalidValue as error:
            raise InvalidSchema(f"the name of an attribute: {error}") from None
        low, high = _as_float(self.low), _as_float(self.high)
        if not (math.isfinite(low) and math.isfinite(high - low) and low < high):
            raise InvalidSchema(
                f"the domain of {self.name!r} goes from {self.low!r} to {self.high!r}; expected "
                "two finite numbers, the lower first, that differ as float64"
            )
        if self.is_text and (self.low, self.high) != (0.0, 1.0):
            raise InvalidSchema(f"{self.name!r} is a text attribute: its domain cannot be chosen")


def _as_float(value: object) -> float:
    """A number as float64; NaN for anything else, infinity for what is beyond."""
    if not isinstance(value, int | float | np.integer | np.floating):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def check_attributes(given: Sequence[Attribute | str]) -> tuple[Attribute, ...]:
    """The attributes, a name alone standing for the domain [0, 1]; no name may come twice."""
    if isinstance(given, str):
        raise InvalidSchema(f"the text {given!r} as attributes; expected a list of them")
    attributes = tuple(one if isinstance(one, Attribute) else Attribute(one) for one in given)
    names = [one.name for one in attributes]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidSchema(f"the attribute {twice!r} is given twice; expected each once")
    if not 1 <= len(names) <= MAX_ATTRIBUTES:
        raise InvalidSchema(f"{len(names)} attributes; expected 1 to {MAX_ATTRIBUTES:,}")
    return attributes


def domains_of(attributes: Sequence[Attribute]) -> Domains:
    """The domains as arrays."""
    low = np.array([one.low for one in attributes], np.float64)
    high = np.array([one.high for one in attributes], np.float64)
    return Domains(low, high - low)


class TextCodes:
    """A number in [0, 1) for every text that a subscription names.

    The n-th text gets n with its bits reversed, behind the point: 0, 1/2, 1/4, 3/4, ...
    So cells of equal width hold about equally many texts, however many there are.

    >>> codes = TextCodes()
    >>> [codes.add(text) for text in ("FORD", "OPEL", "SEAT", "FORD")]
    [0.0, 0.5, 0.25, 0.0]
    >>> codes.code_of("LADA"), codes.text_of(0.5), codes.nth(2)
    (-1.0, 'OPEL', 'SEAT')
    """

    def __init__(self) -> None:
        self._codes: dict[str, float] = {}
        self._texts: dict[float, str] = {}

    def __len__(self) -> int:
        return len(self._codes)

    def add(self, text: str) -> float:
        """The code of a text, a new one if need be."""
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = _spread(len(self._codes))
            self._texts[code] = text
        return code

    def code_of(self, text: str) -> float:
        """The code of a text, or UNKNOWN_TEXT."""
        return self._codes.get(text, UNKNOWN_TEXT)

    def text_of(self, code: float) -> str:
        """The text of a code."""
        return self._texts[code]

    def nth(self, number: int) -> str:
        """The text that came after so many others."""
        return self._texts[_spread(number)]


def _spread(number: int) -> float:
    """A number with its bits reversed, behind the point."""
    return int(f"{number:0{_N_BITS}b}"[::-1], 2) / 2.0**_N_BITS
