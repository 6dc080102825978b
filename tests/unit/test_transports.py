"""Delivery settings that say where notifications go, and which addresses may be reached."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from tamis.errors import InvalidDelivery, InvalidSettings
from tamis.service.sending import SenderSettings, check_transports, read_sender_settings
from tamis.service.sending.addresses import address_problem
from tamis.service.sending.settings import WebhookSettings


def test_all_transports() -> None:
    made = check_transports(
        {
            "webhook": "HTTPS://Example.org:443/a?b=c",
            "mail": ["a@b.example", "c@d.example", "a@b.example"],
            "apprise": "slack://a/b/c",
            "schedule": "every hour",
        }
    )
    assert [(one.transport, one.address) for one in made] == [
        ("webhook", "HTTPS://Example.org:443/a?b=c"),
        ("mail", "a@b.example"),
        ("mail", "c@d.example"),
        ("apprise", "slack://a/b/c"),
    ]
    assert [one.destination for one in made[:3]] == ["https://example.org", "mail", "mail"]
    assert "a/b/c" not in made[3].destination


def test_no_transport_is_no_mistake() -> None:
    assert check_transports({}) == []
    assert check_transports({"webhook": None}) == []


@pytest.mark.parametrize(
    ("delivery", "said"),
    [
        ({"webhok": "https://a.example"}, "did you mean 'webhook'"),
        ({"zzz": 1}, "expected webhook, mail, apprise, schedule"),
        ({"webhook": 7}, "expected a text"),
        ({"webhook": ["https://a.example"]}, "expected a text"),
        ({"webhook": ""}, "must begin with http"),
        ({"webhook": "example.org"}, "must begin with http"),
        ({"webhook": "https://"}, "must begin with http"),
        ({"webhook": "ftp://a.example"}, "must begin with http"),
        ({"webhook": "file:///etc/passwd"}, "must begin with http"),
        ({"webhook": "gopher://a.example"}, "must begin with http"),
        ({"webhook": "http://user:pass@a.example"}, "user or password"),
        ({"webhook": "http://user@a.example"}, "user or password"),
        ({"webhook": "http://a.example:22"}, "port 22"),
        ({"webhook": "http://a.example:25"}, "port 25"),
        ({"webhook": "http://a.example:99999"}, "port 99999"),
        ({"webhook": "http://a b.example"}, "no host can have"),
        ({"webhook": "http://a.example/\r\nx"}, "not a URL"),
        ({"webhook": "http://xn--/"}, "no host can have: Malformed A-label"),
        ({"webhook": "http://xn--a.example/"}, "no host can have"),
        ({"webhook": "http://a..example/"}, "1 to 63 letters"),
        ({"webhook": "http://.example/"}, "1 to 63 letters"),
        ({"webhook": "http://a.example../"}, "1 to 63 letters"),
        ({"webhook": "http://./"}, "no host can have"),
        ({"webhook": f"http://{'a' * 64}.example/"}, "1 to 63 letters"),
        ({"webhook": f"http://{'.'.join(['a' * 50] * 5)}/"}, "254 letters, more than 253"),
        ({"webhook": "http://127.0.0.1"}, "127.0.0.1 is not a public address"),
        ({"webhook": "http://0177.0.0.1"}, "not a URL"),
        ({"webhook": "http://[fe80::1%25eth0]/"}, "host"),
        ({"webhook": "http://[::1]:8080"}, "::1 is not a public address"),
        ({"webhook": "https://a.example/" + "x" * 2_000}, "more than 2,000"),
        ({"mail": "nobody"}, "not an address"),
        ({"mail": "a@b.example\r\nBcc: c@d.example"}, "not an address"),
        ({"mail": "a@b.example\n"}, "not an address"),
        ({"mail": "A <a@b.example>"}, "not an address"),
        ({"mail": "a@b.example,c@d.example"}, "not an address"),
        ({"mail": "ä@b.example"}, "xn--"),
        ({"mail": "a@localhost"}, "not an address"),
        ({"mail": ".a@b.example"}, "not an address"),
        ({"mail": {"to": "a@b.example"}}, "a text or a list"),
        ({"mail": ["a@b.example", 3]}, "a text or a list"),
        ({"mail": [f"a{n}@b.example" for n in range(21)]}, "at most 20"),
        ({"apprise": "json://localhost"}, "may not be used"),
        ({"apprise": "xmls://localhost"}, "may not be used"),
        ({"apprise": "file:///tmp/x"}, "may not be used"),
        ({"apprise": "https://hooks.slack.com/services/a/b/c"}, "may not be used"),
        ({"apprise": "nonsense"}, "may not be used"),
        ({"apprise": "slack://a/b/c\njson://localhost"}, "characters that no URL has"),
    ],
)
def test_settings_that_are_refused(delivery: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidDelivery, match=said):
        check_transports(delivery)


@pytest.mark.parametrize(
    "host", ["a.example.", "xn--bcher-kva.example", "bücher.example", f"{'a' * 63}.example", "a_b"]
)
def test_names_that_hosts_have(host: str) -> None:
    assert check_transports({"webhook": f"http://{host}/"})[0].address == f"http://{host}/"


def test_a_secret_is_not_in_the_message() -> None:
    with pytest.raises(InvalidDelivery) as caught:
        check_transports({"apprise": "jsons://token-of-somebody@host"})
    assert "token-of-somebody" not in str(caught.value)


FORBIDDEN = """
0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 127.0.0.1 127.255.255.254 169.254.169.254 172.16.0.1
172.31.255.255 192.0.0.1 192.0.2.1 192.168.1.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1
239.1.2.3 240.0.0.1 255.255.255.255 :: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:10.0.0.1
::ffff:8.8.8.8 64:ff9b::7f00:1 64:ff9b::808:808 64:ff9b:1::1 100::1 2001::1 2001:db8::1
2002:7f00:1::1 2002:808:808::1 fc00::1 fd12:3456::1 fe80::1 fe80::1%1 fec0::1 ff02::1 ff0e::1
"""


@pytest.mark.parametrize("text", FORBIDDEN.split())
def test_addresses_that_are_not_public(text: str) -> None:
    assert address_problem("a.example", ip_address(text), WebhookSettings()) is not None


@pytest.mark.parametrize("text", ["8.8.8.8", "93.184.215.14", "172.32.0.1", "2606:4700::1111"])
def test_addresses_that_are_public(text: str) -> None:
    assert address_problem("a.example", ip_address(text), WebhookSettings()) is None


def test_what_the_settings_allow() -> None:
    networks = WebhookSettings.model_validate({"allow_networks": ["10.1.0.0/16", "fd00::/8"]})
    problems = [
        address_problem("a.example", ip_address(one), networks)
        for one in ("10.1.2.3", "10.2.0.1", "fd00::5", "::ffff:10.1.2.3")
    ]
    assert [one is None for one in problems] == [True, False, True, False]
    hosts = WebhookSettings(allow_hosts=("hooks.internal",))
    assert address_problem("Hooks.internal.", ip_address("10.1.2.3"), hosts) is None
    assert address_problem("evilhooks.internal", ip_address("10.1.2.3"), hosts) is not None


def test_settings_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "sender.toml"
    file.write_text(
        'concurrency = 7\nlease = "45 s"\n[webhook]\nallow_networks = ["10.0.0.0/8"]\n'
        '[mail]\nhost = "localhost"\nsender = "tamis@b.example"\n'
    )
    made = read_sender_settings(file)
    assert (made.concurrency, made.lease.total_seconds()) == (7, 45)
    assert made.mail is not None
    assert made.mail.port == 587
    file.write_text("concurency = 7\nlease = 45\n[mail]\nhost = 1\npassword = 12345\n")
    with pytest.raises(InvalidSettings) as raised:
        read_sender_settings(file)
    for said in (
        "mail.sender: is missing",
        "concurency: there is no such setting; did you mean 'concurrency'?",
        "lease: expected a length of time such as '500 ms', '2 s', '15 min' or '1 h' (45 was",
        "mail.password: input should be a valid string",
    ):
        assert said in str(raised.value)
    assert "12345" not in str(raised.value)
    with pytest.raises(InvalidSettings, match="No such file"):
        read_sender_settings(tmp_path / "none.toml")
    assert "secret" not in repr(
        SenderSettings.model_validate(
            {"mail": {"host": "a", "sender": "a@b.example", "password": "secret"}}
        )
    )
