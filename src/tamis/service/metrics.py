"""Figures for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

__all__ = ["Metrics"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """The figures of one service."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "tamis_requests", "Requests answered.", ["method", "route", "status"],
            registry=self.registry,
        )  # fmt: skip
        self.seconds = Histogram(
            "tamis_request_seconds", "Time until the answer began.", ["method", "route"],
            buckets=_SECONDS, registry=self.registry,
        )  # fmt: skip
        self.published = Counter(
            "tamis_published_events", "Events that are durable in the log.", registry=self.registry
        )
        self.imported = Counter(
            "tamis_imported_lines", "Lines of imports.", ["result"], registry=self.registry
        )
        self.subscriptions = Gauge(
            "tamis_indexed_subscriptions", "Subscriptions in the live index.",
            registry=self.registry,
        )  # fmt: skip
        self.sequence = Gauge(
            "tamis_index_sequence", "The last change in the live index.", registry=self.registry
        )
        self.is_ready = Gauge(
            "tamis_ready", "1 when all subscriptions are loaded.", registry=self.registry
        )
        self.feeds = Gauge(
            "tamis_feeds", "Those who follow their notifications.", registry=self.registry
        )
        self.recent = Gauge(
            "tamis_recent_events", "Events a filter is tried on.", registry=self.registry
        )
