"""Subscriptions: created, read, listed, replaced, changed and deleted."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Response

from tamis.errors import InvalidSubscription, quoted
from tamis.model.subscription import DEFAULT_PRIORITY
from tamis.service.key_ring import Caller
from tamis.service.parts import Parts
from tamis.service.problems import BadRequest
from tamis.service.published import new_id
from tamis.service.requests import (
    EachEtag,
    RawBody,
    StrictRoute,
    SubscriberCaller,
    ThatEtag,
    TheParts,
)
from tamis.service.routes.answers import problems, with_etag
from tamis.service.schemas import (
    SubscriptionChanges,
    SubscriptionDraft,
    SubscriptionOut,
    SubscriptionPage,
    SubscriptionReplacement,
)
from tamis.service.told import told_of_row, told_of_saved
from tamis.storage import Saved
from tamis.storage.direct import direct_of
from tamis.storage.drafts import Rules, check_name, read_changes, read_draft
from tamis.storage.idempotency import Token, claim, keep
from tamis.storage.saved import etag_of
from tamis.storage.subscriptions import add

MOST_ON_A_PAGE = 1_000
LONGEST_CURSOR, LONGEST_SEARCH, LONGEST_TOKEN = 4_000, 1_000, 200

_ADJUSTED = frozenset({"priority", "is_paused"})  # fields that nothing else depends on
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

router = APIRouter(prefix="/v1/subscriptions", tags=["subscriptions"], route_class=StrictRoute)

Id = Annotated[str, Path(description="The id of a subscription.", examples=["s1"])]
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1, max_length=LONGEST_TOKEN,
        description="The same key and body again are answered as the first time, for a day.",
        examples=["5f0c2b1e"],
    ),
]  # fmt: skip


def rules_of(caller: Caller, parts: Parts) -> Rules:
    """What is asked of the subscriptions of a caller."""
    return Rules(
        caller.key.owner, caller.key.is_admin, caller.limits.conjunctions, parts.check_transports
    )


@router.post(
    "", status_code=201, response_model=SubscriptionOut, operation_id="createSubscription",
    summary="Save a new subscription",
    responses={**problems(409), 201: with_etag("It is saved.")},
)  # fmt: skip
def create(
    draft: SubscriptionDraft,
    body: RawBody,
    caller: SubscriberCaller,
    parts: TheParts,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Save a subscription under a new id, which the service makes if none is given."""
    held = draft.model_dump(exclude_none=True)
    held.setdefault("id", new_id())
    saved = read_draft(held, rules_of(caller, parts))
    if idempotency_key is None:
        made = parts.subscriptions.create(saved, most=caller.most_subscriptions)
        return _answer(201, told_of_saved(made))
    token = Token(caller.key.prefix, _check_token(idempotency_key), _hash("subscriptions", body))
    with parts.database.writing() as connection:
        earlier = claim(connection, token)
        if earlier is not None and earlier.text is not None:
            return _answer(earlier.status or 201, json.loads(earlier.text))
        made = add(direct_of(connection), saved, caller.most_subscriptions)
        told = told_of_saved(made)
        keep(connection, token, 201, json.dumps(told))
    return _answer(201, told)


@router.get(
    "", response_model=SubscriptionPage, operation_id="listSubscriptions",
    summary="List and search subscriptions", responses=problems(),
)  # fmt: skip
def list_page(
    caller: SubscriberCaller,
    parts: TheParts,
    limit: Annotated[int, Query(ge=1, le=MOST_ON_A_PAGE)] = 100,
    cursor: Annotated[
        str, Query(max_length=LONGEST_CURSOR, description="`next` of the last page.")
    ] = "",
    search: Annotated[
        str, Query(max_length=LONGEST_SEARCH, description="In ids and filters, in any case.")
    ] = "",
    owner: Annotated[str | None, Query(description="Of one owner, for an admin.")] = None,
) -> Response:
    """The subscriptions of the caller (of everybody, for an admin), in the order of their ids."""
    chosen = caller.owner if caller.owner is not None else owner
    for text in (search, owner or ""):
        _check_text(text)
    found = parts.subscriptions.page(
        chosen, after=_id_of_cursor(cursor), most=limit + 1, search=search
    )
    told = {
        "items": [told_of_row(one) for one in found[:limit]],
        "next": _cursor(found[limit - 1].id) if len(found) > limit else None,
    }
    return Response(_ENCODER.encode(told), media_type="application/json")


@router.get(
    "/{id:path}", response_model=SubscriptionOut, operation_id="readSubscription",
    summary="Read a subscription",
    responses={**problems(404), 200: with_etag("It."), 304: with_etag("It is as known.")},
)  # fmt: skip
def read(
    id: Id, caller: SubscriberCaller, parts: TheParts, if_none_match: EachEtag = None
) -> Response:
    """A subscription, with its ETag."""
    row = parts.subscriptions.read(_known_id(id), caller.owner)
    known = [one.strip().removeprefix("W/") for one in (if_none_match or "").split(",")]
    quoted_etag = f'"{row.etag}"'
    if quoted_etag in known or "*" in known:
        return Response(status_code=304, headers={"ETag": quoted_etag})
    return _answer(200, told_of_row(row))


@router.put(
    "/{id:path}", response_model=SubscriptionOut, operation_id="putSubscription",
    summary="Create or replace a subscription",
    responses={
        **problems(409, 412), 200: with_etag("It is replaced."),
        201: with_etag("It is new.", model=SubscriptionOut),
    },
)  # fmt: skip
def put(
    id: Id,
    draft: SubscriptionReplacement,
    caller: SubscriberCaller,
    parts: TheParts,
    if_etag: ThatEtag = None,
    if_none_match: EachEtag = None,
) -> Response:
    """Save a subscription under this id, whether there is one or not.

    With `If-Match` only the one with that ETag, with `If-None-Match: *` only if there is none.
    """
    if if_none_match not in (None, "*"):
        raise BadRequest("If-None-Match of a PUT can be * only: save it if it is not there")
    held = draft.model_dump(exclude_none=True)
    if held.setdefault("id", id) != id:
        raise InvalidSubscription(
            f"the id {quoted(held['id'])} is not that of the address, {quoted(id)}; leave it out"
        )
    saved = read_draft(held, rules_of(caller, parts))

    def make(before: Saved | None) -> Saved:
        if before is None or "owner" in held:
            return saved
        return replace(saved, subscription=_owned(saved, before.owner))

    made, is_new = parts.subscriptions.put(
        id, make, owner=caller.owner, if_etag=if_etag, if_absent=if_none_match == "*",
        most=caller.most_subscriptions,
    )  # fmt: skip
    return _answer(201 if is_new else 200, told_of_saved(made))


@router.patch(
    "/{id:path}", response_model=SubscriptionOut, operation_id="changeSubscription",
    summary="Change a subscription",
    responses={**problems(404, 412), 200: with_etag("It is changed.")},
)  # fmt: skip
def change(
    id: Id,
    changes: SubscriptionChanges,
    caller: SubscriberCaller,
    parts: TheParts,
    if_etag: ThatEtag = None,
) -> Response:
    """Change some fields; with `If-Match` only of what still is as it was read."""
    given = changes.model_dump(exclude_unset=True)
    for name in ("filter", "is_paused"):
        if name in given and given[name] is None:
            raise InvalidSubscription(f"{name} cannot be taken away; give another, or leave it out")
    if given.keys() <= _ADJUSTED:
        if "priority" in given:
            given["priority"] = DEFAULT_PRIORITY if given["priority"] is None else given["priority"]
        row = parts.subscriptions.adjust(
            _known_id(id), **given, owner=caller.owner, if_etag=if_etag
        )
        return _answer(200, told_of_row(row))
    rules, edit = rules_of(caller, parts), read_changes(given)
    made = parts.subscriptions.change(
        _known_id(id), lambda one: edit(one, rules), owner=caller.owner,
        if_etag=if_etag,
    )  # fmt: skip
    return _answer(200, told_of_saved(made))


@router.delete(
    "/{id:path}", status_code=204, operation_id="deleteSubscription",
    summary="Delete a subscription", responses=problems(404, 412),
)  # fmt: skip
def delete(id: Id, caller: SubscriberCaller, parts: TheParts, if_etag: ThatEtag = None) -> Response:
    """Take a subscription away; with `If-Match` only what still is as it was read."""
    parts.subscriptions.delete(_known_id(id), owner=caller.owner, if_etag=if_etag)
    return Response(status_code=204)


def _owned(saved: Saved, owner: str) -> Any:
    return replace(saved.subscription, owner=owner)


def _answer(status: int, held: Mapping[str, Any]) -> Response:
    headers = {"ETag": f'"{etag_of(held["version"], held["created_at"])}"'}
    return Response(_ENCODER.encode(held), status, headers, "application/json")


def _hash(what: str, body: bytes) -> str:
    return sha256(what.encode() + b"\0" + body).hexdigest()


def _check_token(token: str) -> str:
    if not token.isprintable():
        raise BadRequest("the Idempotency-Key holds characters that cannot be shown")
    return token


def _check_text(text: str) -> None:
    if "\0" in text:
        raise BadRequest("a text with the character U+0000 is in no subscription")


def _known_id(id: str) -> str:
    """The id; one that no subscription can have is refused before a database sees it."""
    return check_name(id, "id")


def _cursor(id: str) -> str:
    return base64.urlsafe_b64encode(id.encode()).decode()


def _id_of_cursor(cursor: str) -> str:
    try:
        id = base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True).decode()
    except (ValueError, UnicodeError):
        raise BadRequest(f"the cursor {quoted(cursor)} is none of ours") from None
    _check_text(id)
    return id
