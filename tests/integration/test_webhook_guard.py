"""No way in through webhooks: what is connected to is what was checked."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpcore
import pytest

from tamis.service.sending import SenderSettings
from tamis.service.sending.guard import Resolve
from tamis.service.sending.message import Message
from tamis.service.sending.outcomes import Kind, Outcome
from tamis.service.sending.transports.webhook import WebhookTransport
from tamis.storage.deliveries import Claim
from tests.integration.receiver import Answer, Receiver, receiving
from tests.integration.sending import CERTIFICATES

PEM = Path(__file__).with_name("hooks_example.pem")
LOOPBACK = SenderSettings.model_validate({"webhook": {"allow_networks": ["127.0.0.1/32"]}})
Answers = Callable[[str], Sequence[str]]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


def post(
    url: str,
    settings: SenderSettings = LOOPBACK,
    *,
    names: Answers | None = None,
    certificates: ssl.SSLContext = CERTIFICATES,
    times: int = 1,
) -> Outcome:
    """What comes of a webhook to a URL, where names have these addresses."""
    row: Any = SimpleNamespace(
        id="n1", address=url, subscription_id="s1", matches="[]", spelling='"a = 1"', due="",
        parts=1, part=1, total=0, held_back=0, priority=5, webhook_secret="whsec_c2VjcmV0",
    )  # fmt: skip

    async def resolve(host: str, port: int) -> Sequence[str]:
        assert names is not None, f"{host} was looked up"
        return names(host)

    async def run() -> Outcome:
        resolver: dict[str, Resolve] = {} if names is None else {"resolve": resolve}
        transport = WebhookTransport(settings, certificates=certificates, **resolver)
        try:
            for _ in range(times):
                made = await transport.send(
                    Message(Claim(1, "webhook", "", False, row)), datetime.now(UTC)
                )
            return made
        finally:
            await transport.close()

    return asyncio.run(run())


@pytest.mark.parametrize(
    "address",
    ["127.0.0.2", "10.0.0.1", "169.254.169.254", "::1", "::ffff:7f00:1", "64:ff9b::7f00:1"],
)
def test_a_name_that_leads_inside_is_refused(address: str) -> None:
    made = post("https://hooks.example/", names=lambda host: [address])
    assert made.kind is Kind.HOPELESS
    assert made.problem == f"hooks.example may not be reached: {address} is not a public address"


def test_a_number_that_is_an_address_in_disguise_is_refused() -> None:
    for host in ("2130706434", "0x7f000002", "0177.2", "127.2"):  # all of them 127.0.0.2
        made = post(f"http://{host}:8080/")
        assert made.kind is not Kind.SENT
        assert "may not be reached" in str(made.problem) or "has no address" in str(made.problem)


def test_the_connection_goes_to_the_address_that_was_checked(receiver: Receiver) -> None:
    asked: list[str] = []

    def rebind(host: str) -> Sequence[str]:
        """The first answer is harmless; every later one leads inside."""
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

    url = f"http://hooks.example:{receiver.port}/hook"
    assert post(url, names=rebind).kind is Kind.SENT
    assert asked == ["hooks.example"]
    assert receiver.received[0].headers["host"] == f"hooks.example:{receiver.port}"
    # Asked anew for a new connection, and refused.
    receiver.answer = lambda request: Answer(headers={"connection": "close"})
    asked.clear()
    assert post(url, names=rebind, times=2).kind is Kind.HOPELESS
    assert asked == ["hooks.example"] * 2


def test_a_connection_that_is_too_old_to_be_used_again_is_closed(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[httpcore.AsyncHTTPConnection] = []
    close = httpcore.AsyncHTTPConnection.aclose

    async def note(connection: httpcore.AsyncHTTPConnection) -> None:
        closed.append(connection)
        await close(connection)

    monkeypatch.setattr(httpcore.AsyncHTTPConnection, "aclose", note)
    assert post(receiver.url, times=3).kind is Kind.SENT
    assert len(closed) == 1  # one connection, at the end
    closed.clear()
    monkeypatch.setattr(httpcore.AsyncHTTPConnection, "has_expired", lambda connection: True)
    assert post(receiver.url, times=3).kind is Kind.SENT
    assert len(set(map(id, closed))) == 3


def test_of_several_addresses_only_public_ones_are_tried(receiver: Receiver) -> None:
    url = f"http://hooks.example:{receiver.port}/"
    made = post(url, names=lambda host: ["10.0.0.1", "127.0.0.1"])
    assert made.kind is Kind.SENT
    made = post(url, names=lambda host: [])
    assert (made.kind, made.problem) == (Kind.FAILED, "hooks.example has no address")


def test_a_name_that_cannot_be_looked_up_has_no_address() -> None:
    made = post("http://a..example/")
    assert made.kind is Kind.FAILED
    assert str(made.problem).startswith("a..example has no address: ")


def test_an_allowed_host_may_be_anywhere(receiver: Receiver) -> None:
    given = SenderSettings.model_validate({"webhook": {"allow_hosts": ["hooks.internal"]}})
    url = f"http://hooks.internal:{receiver.port}/"
    assert post(url, given, names=lambda host: ["127.0.0.1"]).kind is Kind.SENT
    other = f"http://other.internal:{receiver.port}/"
    assert post(other, given, names=lambda host: ["127.0.0.1"]).kind is Kind.HOPELESS


def test_redirects_are_followed_with_their_body(receiver: Receiver) -> None:
    def answer(request: Any) -> Answer:
        step = int(request.path.strip("/"))
        return Answer(200) if step == 3 else Answer(307 + step % 2, {"location": f"/{step + 1}"})

    receiver.answer = answer
    assert post(f"{receiver.url}/0").kind is Kind.SENT
    assert [one.path for one in receiver.received] == ["/0", "/1", "/2", "/3"]
    assert len({one.body for one in receiver.received}) == 1
    assert json.loads(receiver.received[3].body)["data"]["id"] == "n1"


def test_more_than_three_redirects_are_not_followed(receiver: Receiver) -> None:
    receiver.answer = lambda request: Answer(308, {"location": "/again"})
    made = post(receiver.url)
    assert (made.kind, made.problem) == (Kind.REFUSED, "redirects more than 3 times")
    assert len(receiver.received) == 4


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("http://127.0.0.2:8080/", "127.0.0.2 is not a public address"),
        ("http://169.254.169.254/latest/meta-data", "169.254.169.254 is not a public address"),
        ("//inside.example:8080/", "inside.example may not be reached"),
        ("https://hooks.example/", "which is https and not http"),
        ("ftp://hooks.example/", "which is ftp and not http"),
        ("http://a:b@hooks.example/", "user or password"),
        ("http://hooks.example:22/", "port 22"),
        ("http://xn--/", "redirects to xn--, which names a host that no host can have"),
        ("http://a..example/", "redirects to a..example, which names a host that no host can have"),
    ],
)
def test_redirects_that_lead_elsewhere(receiver: Receiver, target: str, said: str) -> None:
    receiver.answer = lambda request: Answer(307, {"location": target})
    addresses = {"hooks.example": ["127.0.0.1"], "inside.example": ["10.0.0.1"]}
    made = post(f"http://hooks.example:{receiver.port}/", names=lambda host: addresses[host])
    assert made.kind is Kind.HOPELESS
    assert said in str(made.problem)
    assert len(receiver.received) == 1


def test_a_large_answer_is_left_unread(receiver: Receiver) -> None:
    receiver.answer = lambda request: Answer(200, body=b"x" * 50_000_000)
    given = LOOPBACK.model_copy(
        update={"webhook": LOOPBACK.webhook.model_copy(update={"max_response_bytes": 1_000})}
    )
    assert post(receiver.url, given, times=2).kind is Kind.SENT


def test_a_server_that_takes_too_long(receiver: Receiver) -> None:
    receiver.answer = lambda request: Answer(delay_s=5)
    given = LOOPBACK.model_copy(
        update={"webhook": LOOPBACK.webhook.model_copy(update={"timeout": timedelta(seconds=0.2)})}
    )
    made = post(receiver.url, given)
    assert (made.kind, made.problem) == (Kind.FAILED, "no answer within 0.2 s")


def test_a_server_that_is_down_or_talks_nonsense() -> None:
    with receiving() as gone:
        url = gone.url
    assert post(url).kind is Kind.FAILED

    async def nonsense() -> Outcome:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"220 hello from a mail server\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        made = await asyncio.to_thread(post, f"http://127.0.0.1:{port}/")
        server.close()
        return made

    assert asyncio.run(nonsense()).kind is Kind.FAILED


def test_the_certificate_must_be_that_of_the_name() -> None:
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(PEM)
    trusting = ssl.create_default_context(cafile=PEM)
    with receiving(own) as server:

        def send(host: str, certificates: ssl.SSLContext) -> Outcome:
            url = f"https://{host}:{server.port}/"
            return post(url, names=lambda name: ["127.0.0.1"], certificates=certificates)

        assert send("hooks.example", trusting).kind is Kind.SENT
        assert send("other.example", trusting).kind is Kind.FAILED
        assert send("hooks.example", CERTIFICATES).kind is Kind.FAILED
        assert len(server.received) == 1
