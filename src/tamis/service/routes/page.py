"""The page: files that are part of the package, told with headers that let nothing else in.

One is made: ``transports.js`` says which transports there are, so that the page names none.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files

from fastapi import APIRouter, HTTPException, Request, Response

from tamis.service.sending.transports import fields_of_transports

__all__ = ["router"]

router = APIRouter(include_in_schema=False)

_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    )
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    # Kept, but asked about each time: modules of two versions must never meet.
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True, slots=True)
class _File:
    body: bytes
    kind: str
    etag: str


@cache
def _files() -> dict[str, _File]:
    """The files of the page by name, read or made once."""
    found = {"transports.js": _file(_transports(), _KINDS[".js"])}
    for path in files("tamis.service").joinpath("page").iterdir():
        kind = _KINDS.get("." + path.name.rpartition(".")[2])
        if kind is not None:
            found[path.name] = _file(path.read_bytes(), kind)
    return found


def _file(body: bytes, kind: str) -> _File:
    return _File(body, kind, f'"{sha256(body).hexdigest()[:32]}"')


def _transports() -> bytes:
    """The module that tells the transports; JSON in ASCII is JavaScript too."""
    return f"export const TRANSPORTS = {json.dumps(fields_of_transports(), indent=2)};\n".encode()


@router.api_route("/", methods=["GET", "HEAD"])
async def start(request: Request) -> Response:
    """The page itself."""
    return _answer(request, "index.html")


@router.api_route("/page/{name}", methods=["GET", "HEAD"])
async def part(request: Request, name: str) -> Response:
    """What the page is made of: its style, its modules, its icon."""
    return _answer(request, name)


def _answer(request: Request, name: str) -> Response:
    file = _files().get(name)
    if file is None:
        raise HTTPException(404, f"the page has no part {name!r}")
    headers = {**_HEADERS, "ETag": file.etag}
    known = [
        one.strip().removeprefix("W/")
        for one in request.headers.get("if-none-match", "").split(",")
    ]
    if file.etag in known or "*" in known:
        return Response(status_code=304, headers=headers)
    return Response(file.body, headers=headers, media_type=file.kind)
