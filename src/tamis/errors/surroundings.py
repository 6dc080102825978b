"""Errors of what Tamis runs on: algorithms, files, Spark, databases, packages."""

from __future__ import annotations

from tamis.errors.root import TamisError


class NotSupported(TamisError, ValueError):
    """What an algorithm declares it cannot do.

    Raised for an algorithm that is not there, and by those of the papers, each of which says in
    `capabilities` what it can do. The Index never raises it.

    What to do: choose another algorithm (docs/algorithms.md has the table), or the Index.
    """


class SnapshotError(TamisError):
    """Index files that cannot be written or opened.

    Raised when an index or an event store is saved where something is already, opened where there
    is none, damaged, or of the format of another version of Tamis; and when the disk fails.

    What to do: give a new path to save to. What is damaged or of another format is saved anew from
    its subscriptions or events; docs/operations.md says how a pipeline does that.
    """


class UnfinishedChange(TamisError):
    """An index of which a change was broken off halfway.

    Raised by changes, when the index is saved and when it is asked for a subscription or for the
    deliveries, after an interrupt (Ctrl-C) or a lack of memory ended a change in the middle.
    Matching goes on, and sees nothing of that change, or all of it where only its end was missing;
    `len`, `in` and `stats` may see parts.

    What to do: make the index anew from its subscriptions, or open it from its files.
    """


class PipelineError(TamisError):
    """A pipeline on Spark that cannot start or go on.

    Raised when a folder that its settings name is missing, its state belongs to another pipeline,
    or one of its queries stopped.

    What to do: mend what is named and start it again: it goes on from its checkpoint. `tamis doctor
    --pipeline FILE` looks at the file without starting it.
    """


class StorageError(TamisError):
    """A database that cannot be used, or does not hold what it should.

    Raised for an address that names no database Tamis knows, a folder that is not there, and tables
    that a newer version of Tamis has changed.

    What to do: mend the address (`sqlite:///path`, `postgresql://user@host/name`), or use the newer
    version. `tamis doctor --database URL` looks at it.
    """


class StorageUnavailable(StorageError):
    """A database that cannot be used now, and perhaps later.

    Raised when a database does not answer, a disk is full, or a service still loads its
    subscriptions. Senders try again by themselves; a pipeline stops, and goes on where it was when
    it is started again, which `tamis serve` does.

    What to do: try again; over HTTP `Retry-After` says when. If it stays, `tamis doctor --database
    URL` and the log of the database say more.
    """


class MissingExtra(TamisError, ImportError):
    """An optional part of Tamis that is not installed.

    Raised where a part of Tamis is used whose packages are not installed, and where there is no
    Java, or no connector for Kafka.

    What to do: do what the message says. `tamis doctor` tells it of all extras at once.
    """
