"""Numbers: what NumPy makes of what a user hands over, refused where it would not be exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.errors import TamisError

EXACT = 2**53  # integers up to here are exact as float64


def as_numbers(given: npt.ArrayLike, error: type[TamisError]) -> npt.NDArray[Any]:
    """The array of what is given; ``error`` if it holds an integer that float64 does not.

    Integers among floats count too: NumPy has rounded them already, as it does in a list.

    >>> as_numbers([2**53 + 1, 0.5], ValueError)
    Traceback (most recent call last):
    ...
    ValueError: integers beyond 2^53 are not exact as float64
    """
    try:
        array = np.asarray(given)
    except (TypeError, ValueError, OverflowError) as reason:
        raise error(f"not an array of numbers: {reason}") from None
    kind = array.dtype.kind
    if kind in "iu":
        is_exact = not array.size or bool(array.max() <= EXACT and array.min() >= -EXACT)
    elif kind == "O" or (kind == "f" and array is not given and _is_large(array)):
        is_exact = all(map(_is_exact, np.asarray(given, object).flat))
    else:
        is_exact = True
    if not is_exact:
        raise error("integers beyond 2^53 are not exact as float64")
    return array


def _is_large(array: npt.NDArray[Any]) -> bool:
    return bool((np.abs(array.astype(np.float64)) >= EXACT).any())


def _is_exact(value: object) -> bool:
    return not isinstance(value, int | np.integer) or abs(int(value)) <= EXACT
