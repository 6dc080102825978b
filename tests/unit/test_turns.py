"""Turns: how long something rests after it took long, once and again."""

from __future__ import annotations

import pytest

from tamis.service.turns import Turn


class Work:
    """Something that takes as long as it is told."""

    def __init__(self, every_s: float = 0.0) -> None:
        self.now, self.takes_s, self.done = 1_000.0, 0.0, 0
        self._turn = Turn(every_s, lambda: self.now)

    def after(self, seconds: float, takes_s: float) -> int:
        """How often it was done, once there was a turn after so many seconds."""
        self.now += seconds
        self.takes_s = takes_s
        self._turn.take(self._do)
        return self.done

    def _do(self) -> None:
        self.now += self.takes_s
        self.done += 1


def test_one_bad_moment_is_no_reason_to_rest() -> None:
    work = Work()
    assert work.after(0, takes_s=5.0) == 1
    assert work.after(2, takes_s=0.01) == 2
    assert work.after(2, takes_s=5.0) == 3
    assert work.after(2, takes_s=0.01) == 4


def test_what_takes_long_again_rests_a_hundred_times_as_long() -> None:
    work = Work()
    work.after(0, takes_s=1.0)
    work.after(2, takes_s=0.5)
    assert work.after(49, takes_s=0.5) == 2
    assert work.after(2, takes_s=60.0) == 3
    assert work.after(51, takes_s=60.0) == 4
    assert work.after(299, takes_s=0.0) == 4
    assert work.after(2, takes_s=0.0) == 5


def test_it_is_never_too_soon_and_what_failed_is_tried_again() -> None:
    work = Work(every_s=60.0)
    assert work.after(0, takes_s=0.0) == 1
    assert work.after(59, takes_s=0.0) == 1

    def fail() -> None:
        raise OSError("away")

    work.now += 2
    with pytest.raises(OSError, match="away"):
        work._turn.take(fail)
    assert work.after(0, takes_s=0.0) == 2
