"""Transports: where delivery settings say that notifications go.

{"webhook": "https://example.org/hook", "mail": ["a@b.example"], "apprise": "slack://…"}

Every module of this package is one: its name is that of the module, and its ``TRANSPORT`` says
the rest. A module that is put here is found, and nothing else has to know of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from tamis.delivery import PIPELINE_SETTINGS
from tamis.errors import InvalidDelivery, quoted
from tamis.service.sending.settings import SenderSettings
from tamis.service.sending.transport_kind import Transport, TransportKind
from tamis.storage.outbox import Target

__all__ = [
    "TRANSPORTS",
    "check_transports",
    "fields_of_transports",
    "find_transports",
    "make_transports",
    "targets_of",
]

_MOST_ADDRESSES = 20


def check_transports(
    delivery: Mapping[str, Any], settings: SenderSettings | None = None
) -> list[Target]:
    """Where delivery settings say that notifications go; raises InvalidDelivery.

    To be called when a subscription is saved. Names that are not known are refused too: a slip
    of the pen must not mean that nobody is told.

    >>> check_transports({"webhook": "https://example.org/hook", "schedule": "every hour"})
    [Target(transport='webhook', address='https://example.org/hook',
            destination='https://example.org')]
    >>> check_transports({"webhok": "https://example.org/hook"})
    Traceback (most recent call last):
        ...
    tamis.errors.InvalidDelivery: the delivery setting 'webhok' is not known; did you mean ...
    """
    known = (*TRANSPORTS, *PIPELINE_SETTINGS)
    for name in delivery:
        if name not in known:
            close = get_close_matches(str(name), known, 1)
            hint = f"did you mean {quoted(close[0])}?" if close else f"expected {', '.join(known)}"
            raise InvalidDelivery(f"the delivery setting {quoted(name)} is not known; {hint}")
    return targets_of(delivery, settings or SenderSettings())


def targets_of(delivery: Mapping[str, Any], settings: SenderSettings) -> list[Target]:
    """The same for settings that were saved: what is not a transport does not matter."""
    made = [
        Target(transport, address, kind.destination(address, settings))
        for transport, kind in TRANSPORTS.items()
        if delivery.get(transport) is not None
        for address in _addresses(transport, delivery[transport])
    ]
    return list(dict.fromkeys(made))


def make_transports(settings: SenderSettings) -> dict[str, Transport]:
    """What sends, by name, as far as the settings allow it; to be called where it will run."""
    made = {name: kind.make(settings) for name, kind in TRANSPORTS.items()}
    return {name: transport for name, transport in made.items() if transport is not None}


def fields_of_transports() -> list[dict[str, Any]]:
    """What the page is told of transports: nothing of settings, as it is told to everybody.

    >>> [(one["name"], one["label"]) for one in fields_of_transports()]
    [('webhook', 'Webhook'), ('mail', 'Mail'), ('apprise', 'Chat (Apprise)')]
    """
    return [
        {
            **kind.field._asdict(),
            "name": name,
            "label": kind.field.label or name.replace("_", " ").capitalize(),
            "takes_many": kind.takes_many,
        }
        for name, kind in TRANSPORTS.items()
    ]


def find_transports() -> dict[str, TransportKind]:
    """The transports of all modules in this package, each in its place."""
    names = [one.name for one in iter_modules(__path__)]
    found: dict[str, TransportKind] = {
        name: import_module(f"{__name__}.{name}").TRANSPORT for name in names
    }
    return dict(sorted(found.items(), key=lambda item: (item[1].place, item[0])))


def _addresses(transport: str, given: Any) -> Sequence[str]:
    takes_many = TRANSPORTS[transport].takes_many
    addresses = list(given) if takes_many and isinstance(given, list | tuple) else [given]
    if not all(isinstance(one, str) for one in addresses):
        wanted = "a text or a list of texts" if takes_many else "a text"
        raise InvalidDelivery(f"{transport} {quoted(given)}: expected {wanted}")
    if len(addresses) > _MOST_ADDRESSES:
        raise InvalidDelivery(
            f"{transport} has {len(addresses):,} addresses; at most {_MOST_ADDRESSES} are possible"
        )
    return addresses


TRANSPORTS = find_transports()
"""Every transport, by its name in delivery settings."""
