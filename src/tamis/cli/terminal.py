"""The terminal: what goes to stderr, and which exit code a failure has."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from tamis.errors import TamisError

if TYPE_CHECKING:
    from rich.console import Console

BAD_INPUT = 2
INTERRUPTED = 130  # 128 + SIGINT
BROKEN_PIPE = 141  # 128 + SIGPIPE: what a reader such as `head` makes of any Unix tool


class BadInput(TamisError):
    """An option or a file that the command cannot use."""


@contextmanager
def exit_codes() -> Iterator[None]:
    """Turn failures into a message on stderr and an exit code; no traceback."""
    try:
        with _lost_interrupts_repeated():
            yield
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_stdout()
        raise typer.Exit(BROKEN_PIPE) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except TamisError as error:
        print_error(message_of(error))
        raise typer.Exit(BAD_INPUT) from None
    except OSError as error:
        print_error(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        raise typer.Exit(BAD_INPUT) from None


@contextmanager
def _lost_interrupts_repeated() -> Iterator[None]:
    """Send an interrupt again that Python had to drop.

    One that falls into a callback from C (the compiler has some, and its calls are long) cannot
    be raised there: Python reports it as unraisable and goes on as if nobody had asked to stop,
    or the compiler fails for want of what the callback was to do.
    """
    before = sys.unraisablehook
    was_lost = False

    def notice(lost: sys.UnraisableHookArgs) -> None:
        if lost.exc_type is not KeyboardInterrupt:
            before(lost)
            return
        nonlocal was_lost
        was_lost = True
        # Not from here, where it would be lost as well; to the main thread, which may be reading.
        main = threading.main_thread().ident
        assert main is not None
        again = threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGINT))
        again.daemon = True
        again.start()

    sys.unraisablehook = notice
    try:
        yield
    except Exception:
        if was_lost:
            raise KeyboardInterrupt from None
        raise
    finally:
        sys.unraisablehook = before


def message_of(error: BaseException) -> str:
    """The message of an error with the notes on it and on what caused it."""
    notes = [
        note for one in (error, error.__cause__) for note in getattr(one, "__notes__", ())
    ]  # fmt: skip
    return "\n".join([str(error), *(f"  ({note})" for note in notes)])


def print_error(message: str, word: str = "error", console: Console | None = None) -> None:
    """One red ``error:`` on stderr; lines are not wrapped, so that a caret stays in its place."""
    from rich.text import Text

    said = Text.assemble((f"{word}:", "bold red"), " ", message)
    (console or stderr_console()).print(said, soft_wrap=True, highlight=False)


def announce_first_use() -> None:
    """Say why the first run takes longer, if it is the first and somebody looks."""
    from tamis.kernels.compiled import is_first_use

    console = stderr_console()
    if console.is_terminal and is_first_use():
        console.print("[dim]first use: compiling, which takes about half a minute[/dim]")


def stderr_console() -> Console:
    """A console on stderr."""
    from rich.console import Console

    return Console(stderr=True)


def _forget_stdout() -> None:
    # Python flushes stdout once more at exit and would complain about the closed pipe.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
