"""Settings files: TOML, read, checked and explained in one way for every program.

Lengths of time are texts with a unit, in every file: ``"500 ms"``, ``"2 s"``, ``"7 d"``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError

from tamis.errors import InvalidSettings

__all__ = ["LongSpan", "Section", "Span", "Whole", "read_settings_file", "read_toml"]

_SPAN = re.compile(r"(0|[1-9]\d{0,8}) ?(ms|s|min|h|d)", re.ASCII)
# What settings, also those of Spark and Kafka, are called that hold a secret.
_SECRET = re.compile(r"(?i)password|passphrase|secret|credential|access[._-]?key|token\b|jaas")
_LONGEST = timedelta(days=36_500)  # no clock, and not Spark's, goes further than it can be added to
_MILLISECONDS = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def _span(raw: Any) -> Any:
    """Read ``500 ms``, ``2 s``, ``15 min``, ``1 h`` or ``7 d``."""
    if isinstance(raw, timedelta):
        return raw
    found = _SPAN.fullmatch(raw) if isinstance(raw, str) else None
    if found is None:
        raise ValueError("expected a length of time such as '500 ms', '2 s', '15 min' or '1 h'")
    span = timedelta(milliseconds=int(found[1]) * _MILLISECONDS[found[2]])
    if span > _LONGEST:
        raise ValueError(f"expected a length of time of {_LONGEST.days} d at most")
    return span


def _long_span(raw: Any) -> Any:
    span = _span(raw)
    if span <= timedelta(0):
        raise ValueError("expected a length of time that is not zero")
    return span


def _spelt(span: timedelta) -> str:
    milliseconds = span // timedelta(milliseconds=1)
    unit = next(unit for unit in reversed(_MILLISECONDS) if milliseconds % _MILLISECONDS[unit] == 0)
    return f"{milliseconds // _MILLISECONDS[unit]} {unit}"


# How pydantic names plain kinds of values, and that a value is not of them.
_SIMPLE = ("str", "int", "float", "bool")
_SIMPLE_EXPECTED = ("string_type", "int_type", "float_type", "bool_type")

_AS_TEXT = PlainSerializer(_spelt, when_used="json")
Span = Annotated[timedelta, BeforeValidator(_span), _AS_TEXT]
LongSpan = Annotated[timedelta, BeforeValidator(_long_span), _AS_TEXT]
"""A length of time that is not zero."""
Whole = Annotated[int, Field(strict=True)]
"""A whole number; neither true nor a text is one."""


class Section(BaseModel):
    """Settings that stand together; what is not named is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


S = TypeVar("S", bound=Section)


def read_toml(path: Path) -> dict[str, Any]:
    """What a TOML file holds, also one that begins with a byte order mark as Windows writes it."""
    return tomllib.loads(path.read_text(encoding="utf-8-sig"))


def read_settings_file(path: Path, kind: type[S], changes: Sequence[str] = ()) -> S:
    """Read a file of settings; ``changes`` are ``key=value`` with dotted keys and win over it."""
    try:
        held = read_toml(path)
    except OSError as error:
        raise InvalidSettings(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidSettings(f"{path} is not TOML: {error}") from None
    for change in changes:
        _change(held, change)
    try:
        return kind.model_validate(held)
    except ValidationError as error:
        # A value that may be of several kinds has a mistake for each of them.
        told = dict.fromkeys(f"  {_told(one, kind)}" for one in error.errors())
        raise InvalidSettings(f"{path} cannot be used:\n" + "\n".join(told)) from None


def _change(held: dict[str, Any], change: str) -> None:
    key, sign, text = change.partition("=")
    if not sign or not key:
        raise InvalidSettings(f"--set {change!r}: expected key=value, as in matching.mode=sharded")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text  # a bare word is a text
    *sections, name = key.strip().split(".") if not key.startswith("spark.") else ["spark", key]
    for section in sections:
        held = held.setdefault(section, {})
        if not isinstance(held, dict):
            raise InvalidSettings(f"--set {change!r}: {section!r} is not a section")
    held[name] = value


def _told(error: Any, kind: type[Section]) -> str:
    """One mistake in words: where, what was given, what was expected."""
    place = ".".join(str(part) for part in error["loc"]) or "the file"
    if error["type"] == "extra_forbidden":
        close = get_close_matches(str(error["loc"][-1]), _names_beside(error["loc"], kind), 1)
        return f"{place}: there is no such setting" + (
            f"; did you mean {close[0]!r}?" if close else ""
        )
    if error["type"] == "missing":
        return f"{place}: is missing"
    unquoted = _unquoted(error, kind)
    if unquoted is not None:
        return unquoted
    said = str(error["msg"]).removeprefix("Value error, ")
    given = error["input"]
    shown = f" ({given!r} was given)" if _may_be_shown(place, given) else ""
    return f"{place}: {said[0].lower()}{said[1:]}{shown}"


def _unquoted(error: Any, kind: type[Section]) -> str | None:
    """What to say of ``spark.master = …`` where names are free: to TOML these are sections."""
    place, given = list(error["loc"]), error["input"]
    if place and place[-1] in _SIMPLE:  # the kind that was tried, where a value may be of several
        del place[-1]
    is_wrong = isinstance(given, dict) and given and error["type"] in _SIMPLE_EXPECTED
    if not is_wrong or _names_beside(place, kind):
        return None
    section = ".".join(str(part) for part in place[:-1])
    name = str(place[-1])
    while isinstance(given, dict) and given:
        inner = next(iter(given))
        name, given = f"{name}.{inner}", given[inner]
    return f'{section}: without quotes a dot begins a section; put the name in quotes: "{name}" = …'


def _may_be_shown(place: str, given: Any) -> bool:
    """Whether it is short, and no secret: addresses may have a password in them."""
    if isinstance(given, list | tuple):
        return all(_may_be_shown(place, one) for one in given)
    is_secret = _SECRET.search(place) or (isinstance(given, str) and "://" in given)
    return not is_secret and not isinstance(given, dict)


def _names_beside(place: Sequence[Any], kind: type[Section]) -> list[str]:
    """The settings of the section a mistake is in."""
    model: Any = kind
    for part in place[:-1]:
        field = model.model_fields.get(part)
        model = None if field is None else _section_of(field.annotation)
        if model is None:
            return []
    return [field.alias or name for name, field in model.model_fields.items()]


def _section_of(annotation: Any) -> type[Section] | None:
    """The section that a setting is, perhaps one that may be left out."""
    kinds = getattr(annotation, "__args__", (annotation,))
    return next((k for k in kinds if isinstance(k, type) and issubclass(k, Section)), None)
