"""Figures for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tamis.service.operations import Operations

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

    def watch(self, operations: Operations) -> None:
        """Also tell what operations know."""
        self.registry.register(OperationsCollector(operations))


class OperationsCollector(Collector):
    """Deliveries and files of events as they were sampled last; what is not known is left out."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    def collect(self) -> Iterator[Metric]:
        """Deliveries, attempts by transport and outcome, and files of events."""
        figures, files = self._operations.figures, self._operations.files
        if figures is not None:
            for name, meaning, value in (
                ("waiting", "Deliveries that are not over.", figures.waiting),
                ("dead", "Deliveries that were given up, and are kept.", figures.dead),
                ("oldest_waiting_seconds", "How long the longest overdue delivery is overdue.",
                 figures.oldest_waiting_s),
                ("resting_destinations", "Destinations that rest, of the 20 worst.",
                 sum(one.is_open for one in figures.destinations)),
            ):  # fmt: skip
                yield GaugeMetricFamily(f"tamis_deliveries_{name}", meaning, value)
            attempts = CounterMetricFamily(
                "tamis_delivery_attempts", "Attempts of all senders.",
                labels=["transport", "outcome"],
            )  # fmt: skip
            for (transport, outcome), count in sorted(figures.attempts.items()):
                attempts.add_metric([transport, outcome], count)
            yield attempts
        if files is not None:
            yield GaugeMetricFamily("tamis_event_files", "Files of events.", files.total)
        if files is not None and files.unread is not None:
            unread, oldest = files.unread, files.oldest_unread_s
            yield GaugeMetricFamily(
                "tamis_event_files_unread", "Files the pipeline has not read.", unread
            )
            yield GaugeMetricFamily(
                "tamis_event_files_oldest_unread_seconds", "How long the oldest waits.", oldest
            )
