"""The thread that merges beside a writer: it may not start, or an interrupt come in between."""

from __future__ import annotations

import threading

__all__ = ["has_started", "is_under_way"]


def is_under_way(thread: threading.Thread | None) -> bool:
    """Whether a thread was started, and has not ended.

    >>> is_under_way(None), is_under_way(threading.Thread(target=print))
    (False, False)
    """
    return thread is not None and thread.is_alive()


def has_started(thread: threading.Thread) -> bool:
    """Start a thread if one is to be had: what was changed is there without it."""
    try:
        thread.start()
    except (RuntimeError, MemoryError):
        return False
    return True
