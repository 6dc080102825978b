"""Which network addresses webhooks may reach: public ones, and those the settings allow."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

import httpx

from tamis.service.sending.settings import WebhookSettings

__all__ = ["address_problem", "check_literal", "is_allowed_host", "name_problem", "port_problem"]

_WEB_PORTS = (80, 443)
_LOWEST_OTHER_PORT = 1024
_LONGEST_NAME, _LONGEST_LABEL = 253, 63  # of DNS
_HOST = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")
# Addresses of IPv6 that stand for one of IPv4, behind which anything may be; and some that
# Python does not call private.
_DISGUISED = tuple(
    IPv6Network(text)
    for text in (
        "::/96",  # IPv4-compatible, with the unspecified and the loopback address
        "::ffff:0:0/96",  # IPv4-mapped
        "::ffff:0:0:0/96",  # IPv4-translated
        "64:ff9b::/96",  # NAT64
        "64:ff9b:1::/48",
        "2002::/16",  # 6to4
        "2001::/32",  # Teredo
        "fec0::/10",  # site-local
        "100::/64",  # discarded
    )
)


def address_problem(
    host: str, address: IPv4Address | IPv6Address, settings: WebhookSettings
) -> str | None:
    """Why webhooks may not reach an address of a host; None if they may.

    >>> address_problem("a.example", ip_address("169.254.169.254"), WebhookSettings())
    '169.254.169.254 is not a public address'
    >>> address_problem("a.example", ip_address("93.184.215.14"), WebhookSettings())
    """
    if is_allowed_host(host, settings):
        return None
    plain = IPv6Address(int(address)) if isinstance(address, IPv6Address) else address
    if any(plain in network for network in settings.allow_networks):
        return None
    is_public = plain.is_global and not plain.is_multicast and not plain.is_reserved
    if isinstance(plain, IPv6Address):
        is_public = is_public and not any(plain in network for network in _DISGUISED)
    return None if is_public else f"{address} is not a public address"


def is_allowed_host(host: str, settings: WebhookSettings) -> bool:
    """Whether the settings allow a host whatever its address is.

    >>> settings = WebhookSettings(allow_hosts=("hooks.internal", ".corp.example"))
    >>> [is_allowed_host(host, settings) for host in ("hooks.internal", "a.corp.example", "b")]
    [True, True, False]
    """
    name = host.lower().rstrip(".")
    return any(
        name == allowed.lower() or (allowed.startswith(".") and name.endswith(allowed.lower()))
        for allowed in settings.allow_hosts
    )


def check_literal(host: str, settings: WebhookSettings) -> str | None:
    """Why webhooks may not reach a host, if it is an address and not a name."""
    try:
        address = ip_address(host)
    except ValueError:
        return None  # a name: its address is checked whenever something is sent there
    problem = address_problem(host, address, settings)
    return problem and f"may not be used: {problem}"


def name_problem(url: httpx.URL) -> str | None:
    """Why no host can have the name in a URL.

    >>> name_problem(httpx.URL("http://a..example/"))
    'names a host that no host can have: a part between two dots has 1 to 63 letters'
    >>> name_problem(httpx.URL("http://a.example./"))
    """
    name = url.raw_host.decode("ascii").removesuffix(".")
    why = None
    if not _HOST.fullmatch(name):
        why = "it is not made of letters, digits, dots and hyphens"
    elif any(not 0 < len(label) <= _LONGEST_LABEL for label in name.split(".")):
        why = f"a part between two dots has 1 to {_LONGEST_LABEL} letters"
    elif len(name) > _LONGEST_NAME:
        why = f"it has {len(name)} letters, more than {_LONGEST_NAME}"
    else:
        try:
            url.host  # noqa: B018 - only now does httpx read xn--
        except ValueError as error:
            why = str(error)
    return why and f"names a host that no host can have: {why}"


def port_problem(url: httpx.URL) -> str | None:
    """Why webhooks may not use the port of a URL: low ones belong to other services."""
    port = url.port
    if port is None or port in _WEB_PORTS or _LOWEST_OTHER_PORT <= port < 2**16:
        return None
    return f"uses port {port}; expected 80, 443 or one from {_LOWEST_OTHER_PORT}"
