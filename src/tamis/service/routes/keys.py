"""Keys: made, listed and revoked by admins."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from tamis.service.limits import Limits
from tamis.service.requests import AdminCaller, SomeCaller, StrictRoute, TheParts
from tamis.service.routes.answers import problems
from tamis.service.schemas import KeyDraft, KeyList, KeyMade, KeyOut
from tamis.storage.drafts import check_name

router = APIRouter(prefix="/v1/keys", tags=["keys"], route_class=StrictRoute)

Prefix = Annotated[
    str, Path(pattern="^[0-9a-f]{10}$", description="Of a key.", examples=["0123456789"])
]


@router.post(
    "", status_code=201, response_model=KeyMade, operation_id="createKey", summary="Make a key",
    responses=problems(),
)  # fmt: skip
def create(draft: KeyDraft, caller: AdminCaller, parts: TheParts) -> KeyMade:
    """Make a key; the answer is the only time its text is told."""
    check_name(draft.owner, "owner")
    if draft.name:
        check_name(draft.name, "name")
    Limits().changed(draft.limits)
    key, text = parts.keys.create(draft.owner, draft.scopes, draft.name, draft.limits)
    return KeyMade(**KeyOut.of(key).model_dump(), key=text)


@router.get(
    "", response_model=KeyList, operation_id="listKeys", summary="List keys", responses=problems()
)
def list_all(caller: AdminCaller, parts: TheParts) -> KeyList:
    """All keys, without their secrets, those that were revoked too."""
    return KeyList(items=[KeyOut.of(key) for key in parts.keys.list()])


@router.get(
    "/own", response_model=KeyOut, operation_id="readOwnKey", summary="The key of this request",
    responses=problems(),
)  # fmt: skip
def read_own(caller: SomeCaller, parts: TheParts) -> KeyOut:
    """Whose key it is, and what it may do."""
    return KeyOut.of(caller.key)


@router.delete(
    "/{prefix}", response_model=KeyOut, operation_id="revokeKey", summary="Revoke a key",
    responses=problems(404),
)  # fmt: skip
def revoke(prefix: Prefix, caller: AdminCaller, parts: TheParts) -> KeyOut:
    """Let a key do nothing any more: here at once, in other processes within five seconds."""
    key = parts.keys.revoke(prefix)
    parts.key_ring.forget(prefix)
    return KeyOut.of(key)
