"""The root of every error."""

from __future__ import annotations


class TamisError(Exception):
    """The root of every error Tamis raises on purpose.

    Raised only as one of the classes below it.

    What to do: catch it where all of them are answered alike. What is not under it is a fault of
    Tamis or of what it runs on: please report the traceback.
    """
