"""What a pipeline does, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tamis.errors import PipelineError
from tamis.spark.pipeline import Status

_COUNTERS = {
    "events": "Events read.",
    "matches": "Matches found.",
    "dead_letters": "Rows that could not be read as events.",
    "notifications": "Notifications handed over to the outbox, in a repeated micro-batch again.",
}
_GAUGES = {
    "index_version": "The version of the subscriptions.",
    "match_seconds": "What the last micro-batch of matching took.",
    "notify_seconds": "What the last micro-batch of notifying took.",
    "waiting_files": "Files of events that wait for the next micro-batch.",
    "read_until": "When the newest file of events was written that was read, since 1970.",
}


class StatusCollector(Collector):
    """The status of a pipeline as metrics, taken when they are asked for."""

    def __init__(self, status: Callable[[], Status]) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        """One metric for each field of the status."""
        status = self._status()
        for name, meaning in _COUNTERS.items():
            yield CounterMetricFamily(f"tamis_{name}", meaning, getattr(status, name))
        for name, meaning in _GAUGES.items():
            yield GaugeMetricFamily(f"tamis_{name}", meaning, getattr(status, name))


def serve_metrics(port: int, status: Callable[[], Status], host: str = "127.0.0.1") -> int:
    """Answer Prometheus on a port (0: any that is free) until the process ends; says which."""
    registry = CollectorRegistry()
    registry.register(StatusCollector(status))
    try:
        server, _ = start_http_server(port, host, registry)
    except OSError as error:
        raise PipelineError(f"metrics_port {port} cannot be used: {error.strerror}") from None
    return int(server.server_port)
