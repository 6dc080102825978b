"""From the tokens of a filter to sqlglot's syntax tree, with the place of every part."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token

from tamis.errors import FilterSyntaxError, quoted
from tamis.language.sql_tokens import DIALECT
from tamis.language.tree import MAX_DEPTH


def parse_condition(text: str, tokens: list[Token]) -> exp.Expression:
    """The syntax tree of a condition, or a FilterSyntaxError that shows where it ends to be one."""
    parser = _Parser(dialect=DIALECT)
    try:
        trees = parser.parse_into(exp.Condition, tokens, text)
    except ParseError as error:
        _explain(text, error, parser.failed_at or tokens[-1])
    if len(trees) != 1 or not isinstance(trees[0], exp.Expression):
        _fail(text, "expected a condition, for example price < 3300", 0)
    return trees[0]


def _explain(text: str, error: ParseError, token: Token) -> NoReturn:
    shown = text[token.start : token.end + 1]
    said = str(error.errors[0].get("description") or "") if error.errors else ""
    if said.startswith("Required keyword"):
        _fail(text, f"something is missing after {quoted(shown)}", token.start)
    if said.startswith("Expecting"):
        _fail(text, f"expected {quoted(said.removeprefix('Expecting ').strip('.'))}", token.end + 1)
    _fail(
        text, f"unexpected {quoted(shown)}; expected a condition such as price < 3300", token.start
    )


def _fail(text: str, problem: str, offset: int) -> NoReturn:
    raise FilterSyntaxError(problem, text=text, offset=offset)


class _Parser(Postgres.Parser):  # type: ignore[misc, valid-type]  # assigned, not defined, there
    """sqlglot's parser, which here also keeps where literals and parentheses begin."""

    failed_at: Token | None = None

    def _parse_primary(self) -> Any:
        token = self._curr
        return _placed(super()._parse_primary(), token)

    def _parse_atom(self) -> Any:
        token = self._curr
        return _placed(super()._parse_atom(), token)

    def _warn_unsupported(self) -> None:
        """Say nothing on the log: what is unsupported is refused, with its place."""

    def raise_error(self, message: str, token: Any = None) -> None:
        """Note the token, then raise as sqlglot does."""
        self.failed_at = token or self._curr or self._prev or None
        super().raise_error(message, self.failed_at or Token.string(""))


def _placed(node: Any, token: Any) -> Any:
    if node is not None and token:
        node.meta.setdefault("start", token.start)
    return node


class _RoomFor:
    """Raises Python's recursion limit while deeply nested filters are parsed.

    sqlglot takes about 32 frames a level; without this, how deep a filter may nest would
    depend on how deep its caller happens to be.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_inside = 0
        self._usual = 0

    @contextmanager
    def __call__(self, nesting: int) -> Iterator[None]:
        if nesting <= 5:
            yield
            return
        with self._lock:
            if self._n_inside == 0:
                self._usual = sys.getrecursionlimit()
                sys.setrecursionlimit(self._usual + 40 * 2 * (MAX_DEPTH + 3))
            self._n_inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._n_inside -= 1
                if self._n_inside == 0:
                    sys.setrecursionlimit(self._usual)


room_for = _RoomFor()
