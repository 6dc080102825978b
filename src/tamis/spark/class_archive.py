"""The class archive: what Java has read of Spark's classes, kept for its next start.

More than half of what a start of Spark costs is to read and check thousands of classes. Java can
write them down when it ends and map them when it starts (class data sharing). The archive is made
by the first Spark that ends in peace, in the folder of caches, and used by all that come later on
the same Java with the same Spark. docs/decisions/0016-class-archive.md has the figures.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

__all__ = ["archive_options"]

# Java says on its output which classes it leaves out; errors it still says.
_QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")
_BASE = Path("lib", "server", "classes.jsa")  # of Java's own classes; ours is written on top
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def archive_options(home: Path, jars: Path, folder: Path) -> list[str]:
    """The options with which a Java uses the archive, or with which it makes one at its end.

    None where there can be none: the Java has no archive of its own classes, or the folder cannot
    be written to. An archive is written aside, and gets its name at the next start, if it is whole:
    Spark may be killed while it writes, and two may write at once.
    """
    if not (home / _BASE).is_file():
        return []
    archive = folder / f"spark-{_key(home, jars)}.jsa"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not archive.exists():
            _take_whole(archive)
        if archive.exists():
            for part in _parts(archive):  # what others wrote at the same time
                part.unlink(missing_ok=True)
            return [f"-XX:SharedArchiveFile={archive}", *_QUIET]
    except OSError:
        return []
    if not os.access(folder, os.W_OK):
        return []
    aside = folder / f"{archive.stem}.{_boot()}.{os.getpid()}.part"
    return [f"-XX:ArchiveClassesAtExit={aside}", *_QUIET]


def _key(home: Path, jars: Path) -> str:
    """What an archive is valid for; Java itself looks at each file once more."""
    told = [str(home.resolve()), str((home / _BASE).stat().st_mtime_ns)]
    told += [str(jars), str(jars.stat().st_mtime_ns)]
    return sha256("\n".join(told).encode()).hexdigest()[:12]


def _take_whole(archive: Path) -> None:
    """Give an archive that was written its name.

    One from before the machine was started may lack what had not reached the disk.
    """
    for part in _parts(archive):
        if not part.name.startswith(f"{archive.stem}.{_boot()}."):
            part.unlink(missing_ok=True)
        elif _is_whole(part):
            with part.open("rb") as file:
                os.fsync(file.fileno())
            part.replace(archive)
            return


def _parts(archive: Path) -> list[Path]:
    return list(archive.parent.glob(f"{archive.stem}.*.part"))


def _is_whole(part: Path) -> bool:
    """Whether Java has written the head of an archive, which it writes last."""
    with part.open("rb") as file:
        return any(file.read(8))


def _boot() -> str:
    """What is different each time the machine is started, where that is known."""
    try:
        return _BOOT.read_text()[:8]
    except OSError:
        return "boot"
