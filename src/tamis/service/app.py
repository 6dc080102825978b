"""The app: all routes behind the gate."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import anyio.to_thread
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.concurrency import run_in_threadpool

from tamis.service.gate import Gate
from tamis.service.parts import Parts
from tamis.service.problems import respond_with_problems
from tamis.service.routes import (
    events,
    keys,
    matching,
    notifications,
    operations,
    subscriptions,
    system,
    transfer,
    webhook_secrets,
)
from tamis.service.routes.page import router as page_router
from tamis.service.schemas import Problem
from tamis.service.sending.unsubscribing import unsubscribe_router
from tamis.service.settings import ServiceSettings
from tamis.service.short_way import ShortWay

__all__ = ["make_app"]

_THREADS = 12  # beside those of the short way; a database has connections for all of them
_ABOUT = """
Save filters, publish events, be told of what matches.

Every request under `/v1` needs an API key: `Authorization: Bearer tamis_<prefix>_<secret>`. Errors
are `application/problem+json`; `type` is a stable name for the class of an error.
"""


def make_app(settings: ServiceSettings) -> FastAPI:
    """The service as an ASGI app; it begins and ends with its lifespan."""
    parts = Parts(settings)
    short_way = ShortWay(parts)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = _THREADS
        await run_in_threadpool(parts.start)
        try:
            yield
        finally:
            await run_in_threadpool(short_way.close)
            await run_in_threadpool(parts.close)

    app = FastAPI(
        title="Tamis", version=version("tamis"), description=_ABOUT, lifespan=lifespan,
        docs_url=None, redoc_url=None, redirect_slashes=False,
    )  # fmt: skip
    app.state.parts = parts
    # The fixed addresses before those with an id in them.
    for module in (
        transfer, subscriptions, events, matching, notifications, operations, webhook_secrets,
        keys, system,
    ):  # fmt: skip
        app.include_router(module.router)
    app.include_router(unsubscribe_router(parts.database), include_in_schema=False)
    app.include_router(page_router)
    app.add_middleware(Gate, parts=parts, short_way=short_way)
    respond_with_problems(app)
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]
    return app


def _document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with the schema of problems that all routes refer to."""
    if app.openapi_schema is None:
        made = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        schemas = made["components"]["schemas"]
        schemas[Problem.__name__] = Problem.model_json_schema(
            ref_template="#/components/schemas/{model}"
        )
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        app.openapi_schema = made
    return app.openapi_schema
