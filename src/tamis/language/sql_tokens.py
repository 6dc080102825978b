"""The tokens of the SQL spelling, checked before sqlglot makes a tree of them.

sqlglot reads many dialects and forgives much: ``==``, ``!x``, ``{# … #}``, a comma before
``)``. Here only the tokens of the filter language pass, so that what sqlglot would read in its
own way is an error instead, at its exact place.
"""

from __future__ import annotations

import re
from typing import NoReturn

from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from tamis.errors import FilterSyntaxError, FilterTooComplex, quoted
from tamis.language.tree import MAX_DEPTH

DIALECT = Postgres()

_COMPARISONS = frozenset({"=", "!=", "<>", "<", "<=", ">", ">="})
_PUNCTUATION = _COMPARISONS | {"(", ")", ",", ".", "-", "+"}
# Words that are a name only in double quotes; sqlglot would take some for one.
RESERVED = frozenset(
    [
        "AND",
        "BETWEEN",
        "ESCAPE",
        "FALSE",
        "IN",
        "IS",
        "LIKE",
        "NOT",
        "NULL",
        "OR",
        "TRUE",
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
        "END",
        "SELECT",
    ]
)
_INFIX = _COMPARISONS | {"AND", "OR"}
_BEFORE_OPERAND = _INFIX | {"(", ",", "NOT", ""}
_BEFORE_CLOSING = _BEFORE_OPERAND - {"(", ""}  # infinity() is closed at once
_LITERALS = (TokenType.STRING, TokenType.NUMBER, TokenType.IDENTIFIER)
_NOT_OURS = frozenset({"ISNULL", "NOTNULL"})
_COMMENT = re.compile(r"--[^\n]*|/\*(?!\+).*?\*/", re.DOTALL)
# A predicate stands in parentheses at most three deep: x IN (point(-(1), 2)).
_INSIDE_PREDICATE = 3


def tokenise(text: str) -> tuple[list[Token], int]:
    """The tokens of a filter, all of them ours, and how deep its parentheses and NOTs nest."""
    try:
        tokens = DIALECT.tokenize(text)
    except TokenError:
        offset = _unclosed(text)
        _fail(text, f"this {quoted(text[offset : offset + 1])} is never closed", offset)
    if not tokens:
        _fail(text, "the filter is empty; write TRUE to accept every event", 0)
    _check_gaps(text, tokens)
    before_that = before = ""
    for token in tokens:
        raw = text[token.start : token.end + 1]
        word = "x" if token.token_type in _LITERALS else raw.upper()
        _check_token(text, token, raw, before, word)
        if (before == "+" and not _is_signed(token, word)) or (
            word == "NULL" and before == "NOT" and before_that != "IS"
        ):
            _fail(text, f"unexpected {quoted(raw)} after {quoted(before)}", token.start)
        before_that, before = before, word
    if before in _BEFORE_OPERAND:
        _fail(text, f"something is missing after {quoted(raw)}", tokens[-1].start)
    return tokens, _check_nesting(tokens)


def _is_signed(token: Token, word: str) -> bool:
    """Whether a ``+`` may stand before this; sqlglot drops one before anything."""
    return token.token_type is TokenType.NUMBER or word in ("+", "-", "INFINITY")


def _check_token(text: str, token: Token, raw: str, before: str, word: str) -> None:
    if token.token_type is TokenType.SEMICOLON:
        _fail(text, "unexpected ';'; a filter is one condition", token.start)
    if token.token_type in _LITERALS:
        return
    known = raw in _PUNCTUATION or raw[0] == "_" or raw[0].isalpha() or raw[0].isdigit()
    if not known or word in _NOT_OURS or (word == "UNKNOWN" and before in ("IS", "NOT")):
        _fail(text, f"{quoted(raw)} is not part of the filter language", token.start)
    if before in _BEFORE_OPERAND and word in _INFIX:
        _fail(text, f"something is missing before {quoted(raw)}", token.start)
    if (word == "," and before in _BEFORE_OPERAND) or (word == ")" and before in _BEFORE_CLOSING):
        _fail(text, f"something is missing before {quoted(raw)}", token.start)


def _check_gaps(text: str, tokens: list[Token]) -> None:
    """Between tokens stand white space and comments; sqlglot also skips template comments."""
    end = 0
    for start, following in [(t.start, t.end + 1) for t in tokens] + [(len(text), len(text))]:
        left = _COMMENT.sub("", text[end:start]).split()
        if left:
            offset = text.find(left[0], end)
            _fail(text, f"{quoted(left[0])} is not part of the filter language", offset)
        end = following


def _check_nesting(tokens: list[Token]) -> int:
    depth = deepest = run = longest = 0
    for token in tokens:
        kind = token.token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        run = run + 1 if kind in (TokenType.NOT, TokenType.DASH, TokenType.PLUS) else 0
        deepest, longest = max(deepest, depth), max(longest, run)
    for size, cap in ((deepest, MAX_DEPTH + _INSIDE_PREDICATE), (longest, MAX_DEPTH)):
        if size > cap:
            raise FilterTooComplex("levels of nesting", size, MAX_DEPTH, "flatten or split it")
    return deepest + longest


def _unclosed(text: str) -> int:
    """Where the quote or comment starts that has no end; 0 if none is found."""
    position = 0
    while position < len(text):
        start = position
        if text[position] in "'\"":
            end = text.find(text[position], position + 1)
        elif text.startswith("--", position):
            end = text.find("\n", position)
            end = len(text) if end < 0 else end
        elif text.startswith("/*", position):
            end = text.find("*/", position + 2)
        else:
            end = position
        if end < 0:
            return start
        position = end + 1
    return 0


def _fail(text: str, problem: str, offset: int) -> NoReturn:
    raise FilterSyntaxError(problem, text=text, offset=offset)
