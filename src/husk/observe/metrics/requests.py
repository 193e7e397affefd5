"""Counts requests by the pattern of their route, never by their path.

A request is counted with two additions, and becomes samples only when somebody asks for them: prometheus_client's own
histogram takes longer than the answer to a `_ping`.
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import Histogram
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from husk.observe.metrics.families import Families

# Seconds. Few, for there are as many series of them as operations of the API.
BUCKETS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
_BOUNDS = [*(str(bound) for bound in BUCKETS), "+Inf"]
# Others are what somebody made up.
_METHODS = frozenset({b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS"})
# Actions of dockerd that are operations of the API, and nothing else.
_BY_ROUTE = {"/containers/{id}/changes": "changes", "/commit": "commit"}


class _Series:
    """Requests of one method, route and status: how many took how long, and all of their seconds."""

    __slots__ = ("action", "counts", "seconds")

    def __init__(self, action: Histogram | None) -> None:
        self.counts = [0] * len(_BOUNDS)
        self.seconds = 0.0
        # Where it is also counted as an action on a container.
        self.action = action


class RequestCounts(Collector):
    def __init__(self, families: Families) -> None:
        self.in_flight = 0
        self._actions = families.actions
        self._series: dict[tuple[bytes, str, int], _Series] = {}
        families.registry.register(self)

    def add(self, method: bytes, route: str, status: int, seconds: float) -> None:
        series = self._series.get((method, route, status)) or self._find(method, route, status)
        series.counts[bisect_left(BUCKETS, seconds)] += 1
        series.seconds += seconds
        if series.action is not None:
            series.action.observe(seconds)

    def _find(self, method: bytes, route: str, status: int) -> _Series:
        key = (method if method in _METHODS else b"other", route, status)
        if (series := self._series.get(key)) is None:
            action = _BY_ROUTE.get(route) if status < 400 else None
            series = self._series[key] = _Series(self._actions.labels(action) if action else None)
        return series

    def collect(self) -> Iterator[Metric]:
        """For a thread: what is counted meanwhile is told now or the next time."""
        requests = HistogramMetricFamily(
            "husk_api_request_seconds",
            "How long requests of the API take, those that stream until their end too",
            labels=["method", "route", "code"],
        )
        for (method, route, status), series in list(self._series.items()):
            buckets = list(zip(_BOUNDS, accumulate(tuple(series.counts)), strict=True))
            requests.add_metric([method.decode(), route or "none", str(status)], buckets, series.seconds)
        yield requests
        yield GaugeMetricFamily("husk_api_requests_in_flight", "Requests that are being answered", value=self.in_flight)

    def describe(self) -> Iterator[Metric]:
        return iter(())
