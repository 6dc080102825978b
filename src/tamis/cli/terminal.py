"""The terminal: what goes to stderr, and which exit code a failure has."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from tamis.errors import MissingExtra, TamisError

if TYPE_CHECKING:
    from types import FrameType

    from rich.console import Console

BAD_INPUT = 2
INTERRUPTED = 130  # 128 + SIGINT
BROKEN_PIPE = 141  # 128 + SIGPIPE: what a reader such as `head` makes of any Unix tool

# click's own class for what a command line got wrong; typer names only classes under it.
_BAD_OPTION: type[Exception] = typer.BadParameter.__mro__[2]
# The compiler, whose callbacks drop interrupts, and imports, which leave files open.
_AT_WORK = ("llvmlite.", "numba.core.codegen", "numba.core.caching", "importlib._bootstrap")


class BadInput(TamisError):
    """An option or a file that the command cannot use."""


def run_app(app: typer.Typer) -> int:
    """Run a command line to its exit code; what no command answers for is answered here."""
    try:
        code = app(prog_name="tamis", standalone_mode=False)
        _flush_stdout()
        return code if isinstance(code, int) else 0
    except _BAD_OPTION as error:
        if type(error).__name__ != "NoArgsIsHelpError":  # the help is the answer
            print_error(_message_of_bad_option(error))
        return BAD_INPUT
    except (BrokenPipeError, SystemExit):  # rich and typer exit so where the reader has left
        _forget_stdout()
        return BROKEN_PIPE
    except OSError as error:
        _forget_stdout()
        print_error(_message_of_os_error(error))
        return BAD_INPUT


def _message_of_bad_option(error: Any) -> str:
    command = error.ctx.command_path if getattr(error, "ctx", None) else "tamis"
    return f"{error.format_message()} (see {command} --help)"


def _message_of_os_error(error: OSError) -> str:
    said = error.strerror or str(error)
    return f"{error.filename}: {said}" if error.filename else said


@contextmanager
def exit_codes() -> Iterator[None]:
    """Turn failures into a message on stderr and an exit code; no traceback."""
    try:
        with _interrupts_at_safe_moments():
            yield
        _flush_stdout()
    except BrokenPipeError:
        _forget_stdout()
        raise typer.Exit(BROKEN_PIPE) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except TamisError as error:
        print_error(message_of(error))
        raise typer.Exit(BAD_INPUT) from None
    except OSError as error:
        _forget_stdout()
        print_error(_message_of_os_error(error))
        raise typer.Exit(BAD_INPUT) from None


@contextmanager
def _interrupts_at_safe_moments() -> Iterator[None]:
    """Let an interrupt wait while LLVM or an import is at work.

    One that falls into a callback from LLVM cannot be raised there: Python drops it and goes on as
    if nobody had asked to stop, or the compiler fails or crashes, as its work was left half done.
    """
    pending: threading.Timer | None = None

    def interrupt(signum: int, frame: FrameType | None) -> None:
        nonlocal pending
        if not _is_at_work(frame):
            raise KeyboardInterrupt
        if pending is None or not pending.is_alive():
            main = threading.main_thread().ident
            pending = threading.Timer(0.05, signal.pthread_kill, (main, signum))
            pending.daemon = True
            pending.start()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        if pending is not None:
            pending.cancel()
        signal.signal(signal.SIGINT, before)


def _is_at_work(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(_AT_WORK):
            return True
        frame = frame.f_back
    return False


def require_extra(extra: str, *modules: str) -> None:
    """Raise MissingExtra unless the modules of an extra are installed."""
    absent = [name for name in modules if importlib.util.find_spec(name) is None]
    if absent:
        raise MissingExtra(
            f"{absent[0]} is not installed. Install it: pip install 'tamis[{extra}]'"
        )


def message_of(error: BaseException) -> str:
    """The message of an error with the notes on it and on what caused it."""
    notes = [
        note for one in (error, error.__cause__) for note in getattr(one, "__notes__", ())
    ]  # fmt: skip
    return "\n".join([str(error), *(f"  ({note})" for note in notes)])


def print_error(message: str, word: str = "error", console: Console | None = None) -> None:
    """One red ``error:`` on stderr; lines are not wrapped, so that a caret stays in its place."""
    from rich.text import Text

    said = Text.assemble(
        (f"{word}:", "bold red"), " ", "\n".join(map(visible, message.split("\n")))
    )
    (console or stderr_console()).print(said, soft_wrap=True, highlight=False)


def visible(text: str) -> str:
    """A line in which what would steer a terminal, escape sequences above all, is spelt out."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


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


def require_stdout() -> None:
    """Raise BadInput if stdout is closed, which makes it None."""
    if sys.stdout is None:
        raise BadInput("stdout is closed; leave it open, or send it to /dev/null")


def _flush_stdout() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _forget_stdout() -> None:
    """Leave nothing in stdout that cannot be written: Python would complain of it at exit."""
    try:
        _flush_stdout()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
