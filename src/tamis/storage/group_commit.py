"""Group commit: changes that several threads ask for at the same time, in one transaction.

SQLite lets one write at a time, and a commit waits for the disk, which takes longer than the change
itself. So those who come while another commits are gathered: one of them does the work of all, and
all have it when the disk has it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from tamis.storage.direct import Direct, SqliteDirect

__all__ = ["GroupCommit"]

_MOST = 64  # changes in a transaction: who comes first waits for those who come last


class Piece:
    """A change that one thread asks for: what it made, or why it was not made."""

    __slots__ = ("_is_over", "failure", "leads", "made", "work")

    def __init__(self, work: Callable[[Direct], Any]) -> None:
        self.work = work
        self.made: Any = None
        self.failure: BaseException | None = None
        self.leads = False
        self._is_over = threading.Lock()
        self._is_over.acquire()

    def wait(self) -> None:
        """Until it is done, or it is its turn to lead."""
        self._is_over.acquire()

    def wake(self) -> None:
        """Let who waits go on."""
        self._is_over.release()

    def do(self, direct: Direct) -> None:
        """Do it by itself; the caller ends the transaction."""
        self.made, self.failure = self.work(direct), None


Transact = Callable[[Callable[[SqliteDirect], None]], None]
"""Does some work in a transaction and commits it; raises what keeps that from being done."""


class GroupCommit:
    """Does the changes of many threads; each gets its own result or its own error."""

    def __init__(self, transact: Transact) -> None:
        self._transact = transact
        self._lock = threading.Lock()
        self._waiting: deque[Piece] = deque()
        self._has_leader = False

    def change(self, work: Callable[[Direct], Any]) -> Any:
        """What ``work`` returns, once it is committed."""
        piece = Piece(work)
        with self._lock:
            self._waiting.append(piece)
            piece.leads = not self._has_leader
            self._has_leader = True
        if not piece.leads:
            piece.wait()
        if piece.leads:
            self._lead()
        if piece.failure is not None:
            raise piece.failure
        return piece.made

    def _lead(self) -> None:
        """Do what waits, oneself's first, and let one of those who came meanwhile lead next."""
        with self._lock:
            pieces = [self._waiting.popleft() for _ in range(min(_MOST, len(self._waiting)))]
        try:
            self._transact(lambda direct: _do_all(direct, pieces))
        except BaseException as error:
            for piece in pieces:
                piece.failure = error
        with self._lock:
            following = self._waiting[0] if self._waiting else None
            self._has_leader = following is not None
        if following is not None:
            following.leads = True
            following.wake()
        for piece in pieces[1:]:
            piece.wake()


def _do_all(direct: SqliteDirect, pieces: Sequence[Piece]) -> None:
    """Do each so that one that fails leaves nothing behind and does not keep the others."""
    if len(pieces) == 1:
        pieces[0].do(direct)
        return
    for piece in pieces:
        direct.mark()
        try:
            piece.do(direct)
        except Exception as error:
            if not direct.is_open:  # a full disk and the like end the transaction of all
                raise
            piece.failure = error
            direct.back_to_mark()
        direct.drop_mark()
