"""The service: subscriptions, events and notifications over HTTP, and what sends them."""

from tamis.service.app import make_app
from tamis.service.settings import ServiceSettings

__all__ = ["ServiceSettings", "make_app"]
