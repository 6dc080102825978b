"""Errors of filters: what cannot be read, and what is too complex."""

from __future__ import annotations

from typing import Any

from tamis.errors.root import TamisError


class FilterError(TamisError, ValueError):
    """A filter that cannot be accepted.

    Raised itself when an expression in Python compares what cannot be compared: an attribute with
    an attribute, a text by its order, anything with None. A filter that is text or JSON raises one
    of its two kinds.

    What to do: compare an attribute with a value; the message names what to use instead. Catch it
    where both kinds are answered alike.
    """


class FilterSyntaxError(FilterError):
    """A filter that cannot be read.

    ``line`` and ``column`` count from 1, ``offset`` from 0; ``excerpt`` is the line with a caret
    under the place. For a filter that is not text (a JSON object) they are ``None`` and ``path``
    says where in the object the trouble is.

    Raised when a filter in one of the spellings is not of the language.

    What to do: look at the caret; docs/filter-language.md has the grammar. `tamis explain FILTER
    --event {}` tries a filter.
    """

    def __init__(
        self,
        problem: str,
        *,
        text: str | None = None,
        offset: int | None = None,
        path: str | None = None,
    ) -> None:
        self.problem = problem
        self.path = path
        self.line: int | None = None
        self.column: int | None = None
        self.offset: int | None = None
        self.excerpt: str | None = None
        super().__init__(self._describe(problem, text, offset))

    def _describe(self, problem: str, text: str | None, offset: int | None) -> str:
        if text is None or offset is None:
            return f"{problem} (at {self.path})" if self.path else problem
        before = text[:offset]
        self.line = before.count("\n") + 1
        self.column = offset - (before.rfind("\n") + 1) + 1
        self.offset = offset
        shown, caret = _excerpt(text, offset, self.column)
        self.excerpt = f"{shown}\n{caret}"
        return f"{problem} (line {self.line}, column {self.column})\n  {shown}\n  {caret}"


def _excerpt(text: str, offset: int, column: int, width: int = 72) -> tuple[str, str]:
    """The line around ``offset``, cut to ``width``, and a caret under the place."""
    start = offset - (column - 1)
    end = text.find("\n", offset)
    line = text[start : end if end >= 0 else len(text)]
    cut = max(0, column - 1 - width // 2)
    shown = line[cut : cut + width]
    visible = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in shown)
    return visible, " " * (column - 1 - cut) + "^"


class FilterTooComplex(FilterError):
    """A filter that passes a limit; ``size`` is what it has, ``cap`` what is allowed.

    Raised when a filter has too many characters, levels, or conjunctions in its normal form. The
    number is computed before anything is expanded, so a small text that would explode costs
    nothing.

    What to do: write `x IN (…)` instead of many ORs, or split the filter into several
    subscriptions. For a key of the service, `tamis keys create --limit conjunctions=N` allows more.
    """

    def __init__(self, what: str, size: int, cap: int, advice: str) -> None:
        self.what, self.size, self.cap, self.advice = what, size, cap, advice
        shown = f"{size:,}" if size < 10**30 else f"about 10^{int(size.bit_length() * 0.30103)}"
        super().__init__(f"the filter has {shown} {what}, more than the {cap:,} allowed; {advice}")

    def __reduce__(self) -> tuple[Any, ...]:
        given = (self.what, self.size, self.cap, self.advice)
        return type(self), given, self.__dict__
