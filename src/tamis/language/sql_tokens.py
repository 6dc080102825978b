"""The tokens of the SQL spelling, checked before sqlglot makes a tree of them.

sqlglot reads many dialects and forgives much: ``==``, ``!x``, ``{# … #}``, a comma before
``)``. Here only the tokens of the filter language pass, so that what sqlglot would read in its
own way is an error instead, at its exact place.
"""

from __future__ import annotations

import re
from typing import ClassVar, NoReturn

from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from tamis.errors import FilterSyntaxError, FilterTooComplex, quoted
from tamis.language.tree import MAX_DEPTH

DIALECT = Postgres()

_COMPARISONS = frozenset({"=", "!=", "<>", "<", "<=", ">", ">="})
_PUNCTUATION = _COMPARISONS | {"(", ")", ",", ".", "-", "+"}
# Words that are a name only in double quotes: those of the language, those that begin what it has
# not, and those that SQL itself gives a value.
RESERVED = frozenset(
    [
        "AND", "BETWEEN", "ESCAPE", "FALSE", "IN", "IS", "LIKE", "NOT", "NULL", "OR", "TRUE",
        "CASE", "WHEN", "THEN", "ELSE", "END", "SELECT",
        "CURRENT_CATALOG", "CURRENT_DATE", "CURRENT_ROLE", "CURRENT_SCHEMA", "CURRENT_TIME",
        "CURRENT_TIMESTAMP", "CURRENT_USER", "LOCALTIME", "LOCALTIMESTAMP", "SESSION_USER",
    ]
)  # fmt: skip
_INFIX = _COMPARISONS | {"AND", "OR"}
_BEFORE_OPERAND = _INFIX | {"(", ",", "NOT", ""}
_BEFORE_CLOSING = _BEFORE_OPERAND - {"(", ""}  # infinity() is closed at once
_LITERALS = (TokenType.STRING, TokenType.NUMBER, TokenType.IDENTIFIER)
_OPERANDS = frozenset({"NOT", "NULL", "TRUE", "FALSE"})
_AFTER_NOT = frozenset({"BETWEEN", "IN", "LIKE"})
_NOT_OURS = frozenset({"ISNULL", "NOTNULL"})
_PARSED_BY_TEXT = frozenset(Postgres.Parser.NO_PAREN_FUNCTION_PARSERS)
_AFTER_KEYWORD = (TokenType.L_PAREN, TokenType.STRING, TokenType.WITH, TokenType.VAR)
_COMMENT = re.compile(r"--[^\n]*|/\*(?!\+).*?\*/", re.DOTALL)
_OPENING = re.compile(r"""['"]|--|/\*|\$(?:[^\W\d]\w*)?\$""")
_CLOSING = {"--": "\n", "/*": "*/"}
# A predicate stands in parentheses at most three deep: x IN (point(-(1), 2)).
_INSIDE_PREDICATE = 3


class _Tokenizer(Postgres.Tokenizer):
    """sqlglot's tokenizer, which would take all that follows SHOW or LOCK for one token."""

    COMMANDS: ClassVar[set[TokenType]] = set()


def tokenise(text: str) -> tuple[list[Token], int]:
    """The tokens of a filter, all of them ours, and how deep its parentheses and NOTs nest."""
    try:
        tokens: list[Token] = _Tokenizer(dialect=DIALECT).tokenize(text)
    except TokenError:
        offset = _unclosed(text)
        _fail(text, f"this {quoted(text[offset : offset + 1])} is never closed", offset)
    if not tokens:
        _fail(text, "the filter is empty; write TRUE to accept every event", 0)
    _check_gaps(text, tokens)
    before_that = before = ""
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        raw = text[token.start : token.end + 1]
        if _is_name(token, raw, before, following):
            token.token_type = TokenType.IDENTIFIER
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


def _is_name(token: Token, raw: str, before: str, following: Token | None) -> bool:
    """Whether a word that sqlglot would take for one of its own stands here as a name."""
    is_plain = token.token_type is TokenType.VAR and raw.upper() not in _PARSED_BY_TEXT
    if is_plain or token.token_type in _LITERALS or not raw.isidentifier():
        return False
    if raw.upper() in RESERVED or (before not in _BEFORE_OPERAND and before != "."):
        return False
    # A function, or TIMESTAMP '…', TIMESTAMP WITH TIME ZONE '…'.
    return following is None or following.token_type not in _AFTER_KEYWORD


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
    is_denied = before == "NOT" and word in _AFTER_NOT
    if before in _BEFORE_OPERAND and word in RESERVED - _OPERANDS and not is_denied:
        _fail(
            text,
            f"{quoted(raw)} is reserved; as the name of an attribute it stands in double quotes",
            token.start,
        )
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
    """Where the quote, dollar quote or comment starts that has no end."""
    position = 0
    while position < len(text):
        found = _OPENING.search(text, position)
        if found is None:
            break
        closing = _CLOSING.get(found.group(), found.group())
        end = text.find(closing, found.end())
        # A doubled quote stands for itself, inside.
        while closing in "'\"" and end >= 0 and text.startswith(closing * 2, end):
            end = text.find(closing, end + 2)
        if end < 0 and closing != "\n":
            return found.start()
        position = len(text) if end < 0 else end + len(closing)
    return 0


def _fail(text: str, problem: str, offset: int) -> NoReturn:
    raise FilterSyntaxError(problem, text=text, offset=offset)
