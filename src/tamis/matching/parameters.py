"""Parameters: the numbers and names an algorithm is made with, checked in one way for all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tamis.errors import InvalidSchema
from tamis.matching.attributes import Attribute


def check_count(name: str, given: object, least: int = 1, most: int | None = None) -> int:
    """The whole number given for a parameter, from ``least`` to ``most``.

    >>> check_count("n_buckets", 1_000)
    1000
    >>> check_count("n_levels", 2.5, most=20)
    Traceback (most recent call last):
    ...
    tamis.errors.InvalidSchema: n_levels=2.5; expected a whole number from 1 to 20
    """
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        number = int(given)
        if least <= number and (most is None or number <= most):
            return number
    wanted = f", {least} or more" if most is None else f" from {least} to {most:,}"
    raise InvalidSchema(f"{name}={given!r}; expected a whole number{wanted}")


def check_names(name: str, given: object, attributes: Sequence[Attribute]) -> list[int]:
    """The columns of the attributes that a parameter names, each once.

    >>> check_names("indexed", ["y"], [Attribute("x"), Attribute("y")])
    [1]
    """
    known = [one.name for one in attributes]
    chosen = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else []
    numbers = [known.index(one) for one in chosen if one in known]
    if not chosen or len(set(numbers)) < len(chosen):
        raise InvalidSchema(
            f"{name}={given!r}; expected a list of attributes of the matcher, each once"
        )
    return numbers
