"""A signal may say stop whatever the thread that waits is doing."""

from __future__ import annotations

import signal
import threading
import time

from tamis.cli.stop import Stop


def test_a_handler_in_the_waiting_thread_never_waits_for_itself() -> None:
    """Signals come again and again while the main thread goes in and out of waiting."""
    stop = Stop()
    heard = threading.Event()

    def say(signum: int, frame: object) -> None:
        stop.say()

    def bother() -> None:
        while not heard.wait(0.0001):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, say)
    thread = threading.Thread(target=bother)
    thread.start()
    try:
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            stop._is_said = False
            stop.wait(0.0002)
    finally:
        heard.set()
        thread.join()
        signal.signal(signal.SIGUSR1, before)
    stop.say()
    assert stop.wait(0)
