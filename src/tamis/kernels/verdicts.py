"""Verdicts: what a test of a slot says of an event."""

from __future__ import annotations

REJECTED, ACCEPTED, UNDECIDED = 0, 1, 2  # UNDECIDED: only the filter itself can tell
