"""Find a browser for the tests of the page, or install one: `python scripts/browser.py`.

Called by `make browser` and by the tests. Prints the path of a Chromium or Chrome: the one that
TAMIS_BROWSER names, else one on PATH, else Debian's or Ubuntu's package, which is installed where
that needs no questions (apt-get is there, and we are root). Where none can be had it ends with 2.
Standard library only.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PACKAGE = "chromium"
SECONDS = 600


class BrowserError(Exception):
    """There is no browser; the message says what to do."""

    code = 1


class NoBrowserHere(BrowserError):
    """None can be had on this machine without somebody's help."""

    code = 2


def find() -> str | None:
    """The path of a browser that is there and runs."""
    named = os.environ.get("TAMIS_BROWSER")
    if named:
        if not _runs(named):
            raise BrowserError(f"TAMIS_BROWSER={named} is no browser that runs; name another")
        return named
    paths = (shutil.which(name) for name in NAMES)
    return next((path for path in paths if path and _runs(path)), None)


def install() -> str:
    """Install the package, once however many ask at the same time, and return the path."""
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        raise NoBrowserHere(
            "no Chromium or Chrome is on PATH, and only root can install one with apt-get.\n"
            f"Install one (on Debian and Ubuntu: apt-get install {PACKAGE}), or name one: "
            "TAMIS_BROWSER=/path/to/chrome"
        )
    with Path(tempfile.gettempdir(), "tamis-browser.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = find()
        if found is None:
            with suppress(BrowserError):  # the lists that are there may do
                _apt(apt, "update")
            _apt(apt, "install", "--yes", "--no-install-recommends", PACKAGE)
            found = find()
    if found is None:  # Ubuntu's package only asks for a snap
        raise NoBrowserHere(
            f"the package {PACKAGE} of this system brings no browser that runs; install another, "
            "or name one: TAMIS_BROWSER=/path/to/chrome"
        )
    return found


def _apt(apt: str, *arguments: str) -> None:
    command = [apt, "-q", "-o", "DPkg::Lock::Timeout=120", *arguments]
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command, env=quiet, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise BrowserError(f"{' '.join(command)} was not done after {SECONDS} s") from None
    if done.returncode:
        raise BrowserError(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}")


def _runs(path: str) -> bool:
    # Ubuntu's chromium-browser may be a script that only says to install a snap.
    try:
        return subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def main() -> int:
    """Print the path of a browser, or say why there is none."""
    try:
        print(find() or install())
    except BrowserError as error:
        print(f"make browser stopped: {error}", file=sys.stderr)
        return error.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
