"""Fetch the jars for Kafka with Maven: `python scripts/kafka_jars.py`, called by `make kafka`.

Spark's connector and a broker for the tests, from the poms in scripts/kafka, into the virtual
environment. Where Maven takes them from is left to its own configuration. Arguments are passed to
Maven, as in `make kafka ARGS=-Dconnector.version=4.3.0`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path

from tamis.spark.kafka import jar_folder

POMS = Path(__file__).resolve().parent / "kafka"
SECONDS = 600


class JarError(Exception):
    """The jars cannot be had; the message says what to do."""


def fetch(name: str, arguments: list[str]) -> bool:
    """Fetch the jars of one pom; False if they are there already."""
    pom, folder = POMS / f"{name}.xml", jar_folder(name)
    key = sha256(b"\0".join([pom.read_bytes(), *(a.encode() for a in arguments)])).hexdigest()
    mark = folder / "complete"
    if mark.is_file() and mark.read_text() == key:
        return False
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Filled aside and moved: another process may look at the folder meanwhile.
    with tempfile.TemporaryDirectory(dir=folder.parent) as aside:
        made = Path(aside, name)
        _copy(pom, made, arguments)
        (made / "complete").write_text(key)
        if folder.exists():
            folder.rename(Path(aside, "old"))
        made.rename(folder)
    return True


def _copy(pom: Path, folder: Path, arguments: list[str]) -> None:
    """Let Maven copy the jars of a pom, with all they depend on, into a folder."""
    mvn = shutil.which("mvn")
    if mvn is None:
        raise JarError(
            "the jars for Kafka come from Maven Central, and there is no 'mvn' on PATH to fetch "
            "them.\nInstall Maven (on Debian and Ubuntu: apt-get install maven)."
        )
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
    command = [mvn, "-B", "-q", "-f", str(pom), *goal, f"-DoutputDirectory={folder}", *arguments]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise JarError(f"Maven was not done after {SECONDS} s: {' '.join(command)}") from None
    if done.returncode:
        raise JarError(
            f"Maven cannot resolve {pom.name}:\n{_complaint(done.stdout)}\n"
            "It needs Maven Central or a mirror of it (~/.m2/settings.xml names one); a version "
            "that is not there can be changed in scripts/kafka."
        )


def _complaint(output: str) -> str:
    """What Maven complains about, without the advice that follows."""
    # Not at the start of a line: even without colours, Maven resets them first.
    found = re.search(r"\[ERROR\] (\S.*)", output)
    return found[1] if found else output[-2000:]


def main() -> int:
    """Fetch the connector and the broker."""
    started = time.monotonic()
    try:
        for name in ("connector", "broker"):
            is_new = fetch(name, sys.argv[1:])
            jars = sorted(jar_folder(name).glob("*.jar"))
            size = sum(jar.stat().st_size for jar in jars) / 1e6
            state = "fetched" if is_new else "there"
            print(f"Kafka {name}: {len(jars)} jars, {size:.0f} MB, {state} ({jar_folder(name)})")
    except JarError as error:
        print(f"make kafka stopped: {error}", file=sys.stderr)
        return 1
    print(f"Done in {time.monotonic() - started:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
