"""Unsubscribing: what the link in every mail leads to. It needs no key, only its token."""

from __future__ import annotations

import html
from dataclasses import replace

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from sqlalchemy import select

from tamis.errors import UnknownSubscription
from tamis.service.sending.tokens import PATH, Wish, is_signed, read_token
from tamis.service.sending.transports import TRANSPORTS
from tamis.storage import Database, Saved, SubscriptionStore
from tamis.storage.tables import owners

__all__ = ["unsubscribe", "unsubscribe_router"]


def unsubscribe(database: Database, token: str) -> bool:
    """Do what a token wishes; False if nobody could have made it."""
    wish = _check(database, token)
    if wish is None:
        return False
    try:
        SubscriptionStore(database).change(
            wish.subscription_id, lambda saved: _without(saved, wish.address)
        )
    except UnknownSubscription:  # it was deleted: nothing will be sent
        return True
    return True


def _check(database: Database, token: str) -> Wish | None:
    wish = read_token(token)
    if wish is None:
        return None
    try:
        owner = SubscriptionStore(database).get(wish.subscription_id).owner
    except UnknownSubscription:
        return None
    query = select(owners.c.webhook_secret).where(owners.c.owner == owner)
    with database.reading() as connection:
        secret = connection.execute(query).scalar_one_or_none()
    return wish if secret is not None and is_signed(token, secret) else None


def _without(saved: Saved, address: str) -> Saved:
    """The subscription without an address; paused, if nobody else is told anything by it."""
    held = saved.subscription
    mail = held.delivery.get("mail")
    addresses = mail if isinstance(mail, list | tuple) else [] if mail is None else [mail]
    left = [one for one in addresses if one != address]
    if len(left) == len(addresses):
        return saved
    delivery = {name: given for name, given in held.delivery.items() if name != "mail"}
    if left:
        delivery["mail"] = left
    elif not any(name in delivery for name in TRANSPORTS):
        return replace(saved, is_paused=True)
    return replace(saved, subscription=replace(held, delivery=delivery))


def unsubscribe_router(database: Database) -> APIRouter:
    """The endpoint that links in mails lead to.

    A mail program posts to it at once; a person gets a page that asks first, because programs
    that look for harmful links open every link with GET.
    """
    router = APIRouter(tags=["unsubscribe"])

    @router.get(PATH, response_class=HTMLResponse, summary="Ask before unsubscribing")
    def ask(token: str = "") -> HTMLResponse:
        wish = _check(database, token)
        if wish is None:
            return _page(_UNKNOWN, status=404)
        question = f"<p>Send no more mails of {html.escape(wish.subscription_id)} to "
        form = '<form method="post"><button>Stop these mails</button></form>'
        return _page(f"{question}{html.escape(wish.address)}?</p>{form}")

    @router.post(PATH, response_class=HTMLResponse, summary="Unsubscribe with one click")
    def stop(token: str = "") -> HTMLResponse:
        if not unsubscribe(database, token):
            return _page(_UNKNOWN, status=404)
        return _page("<p>Done: you will get no more of these mails.</p>")

    return router


_UNKNOWN = "<p>This link is not valid, or the subscription is gone.</p>"


def _page(content: str, status: int = 200) -> HTMLResponse:
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    whole = f'<!DOCTYPE html><html lang="en"><head>{head}<title>Tamis</title></head>'
    headers = {
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
        "content-security-policy": "default-src 'none'; form-action 'self'",
    }
    return HTMLResponse(f"{whole}<body>{content}</body></html>", status, headers)
