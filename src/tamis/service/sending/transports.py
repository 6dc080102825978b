"""Transports: where delivery settings say that notifications go.

{"webhook": "https://example.org/hook", "mail": ["a@b.example"], "apprise": "slack://…"}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx

from tamis.delivery import PIPELINE_SETTINGS
from tamis.errors import InvalidDelivery, quoted
from tamis.service.sending.addresses import check_literal, port_problem
from tamis.service.sending.settings import SenderSettings
from tamis.storage.outbox import Target

if TYPE_CHECKING:
    from tamis.service.sending.sender import Transport

__all__ = [
    "TRANSPORTS",
    "TransportKind",
    "check_transports",
    "make_transports",
    "targets_of",
    "webhook_problem",
]

_MOST_ADDRESSES = 20
_LONGEST_URL = 2_000
# What every mail server takes; quoted local parts and such are not worth their traps.
_MAIL = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@"
    r"(?=.{1,253}\Z)([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z0-9-]{2,63}"
)
_HOST = re.compile(r"[a-z0-9._-]+|\[[0-9a-f:.]+\]")
_SCHEMA = re.compile(r"([a-z][a-z0-9]*)://.", re.IGNORECASE)


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
        kind.target(address, settings)
        for transport, kind in TRANSPORTS.items()
        if delivery.get(transport) is not None
        for address in _addresses(transport, delivery[transport])
    ]
    return list(dict.fromkeys(made))


def make_transports(settings: SenderSettings) -> dict[str, Transport]:
    """What sends, by name, as far as the settings allow it; to be called where it will run."""
    made = {name: kind.make(settings) for name, kind in TRANSPORTS.items()}
    return {name: transport for name, transport in made.items() if transport is not None}


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


def _webhook(address: str, settings: SenderSettings) -> Target:
    try:
        url = httpx.URL(address)
    except (httpx.InvalidURL, ValueError) as error:
        raise InvalidDelivery(f"webhook {quoted(address)} is not a URL: {error}") from None
    problem = webhook_problem(url, settings)
    if problem is None and len(address) > _LONGEST_URL:
        problem = f"has {len(address):,} characters, more than {_LONGEST_URL:,}"
    if problem is not None:
        raise InvalidDelivery(f"webhook {quoted(address)} {problem}")
    is_usual = url.port in (None, {"http": 80, "https": 443}[url.scheme])
    destination = f"{url.scheme}://{_host(url)}" + ("" if is_usual else f":{url.port}")
    return Target("webhook", address, destination)


def webhook_problem(url: httpx.URL, settings: SenderSettings) -> str | None:
    """Why nothing may be sent to a URL, as far as the URL itself says it."""
    if url.scheme not in ("http", "https") or not url.host:
        return "must begin with http:// or https:// and name a host"
    if not _HOST.fullmatch(_host(url)):
        return "names a host that no host can have"
    if url.userinfo:
        return "has a user or password in it, which would end up in logs; leave them out"
    return port_problem(url) or check_literal(url.host, settings.webhook)


def _host(url: httpx.URL) -> str:
    """The host as it is sent: in the letters of DNS, in brackets if it is an address of IPv6."""
    host = url.raw_host.decode("ascii")
    return f"[{host}]" if ":" in host else host


def _mail(address: str, settings: SenderSettings) -> Target:
    if not _MAIL.fullmatch(address) or ".." in address or address.startswith("."):
        raise InvalidDelivery(
            f"mail {quoted(address)} is not an address such as name@example.org; names with other "
            "letters are written in their xn-- form"
        )
    return Target("mail", address, "mail")


def _apprise(address: str, settings: SenderSettings) -> Target:
    found = _SCHEMA.match(address)
    allowed = settings.apprise.schemas
    if found is None or found[1].lower() not in allowed:
        given = f"{found[1]}://" if found else quoted(address[:12])
        raise InvalidDelivery(
            f"apprise {given} may not be used here; expected one of "
            + ", ".join(f"{one}://" for one in allowed)
        )
    if not address.isprintable() or len(address) > _LONGEST_URL:
        raise InvalidDelivery(
            f"apprise {found[1]}://… has characters that no URL has, or more than {_LONGEST_URL:,}"
        )
    # The address is a secret as a whole, and nobody reads its destination.
    return Target(
        "apprise", address, f"{found[1].lower()}/{sha256(address.encode()).hexdigest()[:16]}"
    )


# What sends is imported when a sender is made: who only reads settings need not wait for it.


def _make_webhook(settings: SenderSettings) -> Transport:
    from tamis.service.sending.webhook import WebhookTransport

    return WebhookTransport(settings)


def _make_mail(settings: SenderSettings) -> Transport | None:
    from tamis.service.sending.mail import MailTransport

    return None if settings.mail is None else MailTransport(settings.mail)


def _make_chat(settings: SenderSettings) -> Transport:
    from tamis.service.sending.chat import ChatTransport

    return ChatTransport(settings.apprise)


class TransportKind(NamedTuple):
    """A kind of transport: how one of its addresses is read, and what sends there.

    ``target`` raises InvalidDelivery for an address that cannot be; ``make`` gives None where the
    settings have nothing to send with. ``takes_many``: settings may name a list of addresses.
    """

    target: Callable[[str, SenderSettings], Target]
    make: Callable[[SenderSettings], Transport | None]
    takes_many: bool = True


TRANSPORTS = {
    "webhook": TransportKind(_webhook, _make_webhook, takes_many=False),
    "mail": TransportKind(_mail, _make_mail),
    "apprise": TransportKind(_apprise, _make_chat),
}
"""Every transport, by its name in delivery settings."""
