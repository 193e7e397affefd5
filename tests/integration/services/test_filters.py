"""The filters of a swarm's lists: what names nothing, or cannot be read, is refused."""

import json
from urllib.parse import quote

import pytest

from tests.support.swarm import Swarm


@pytest.mark.parametrize(
    ("path", "filters", "status", "message"),
    [
        ("/tasks", {"service": ["nobody"]}, 404, "service nobody not found"),
        ("/tasks", {"node": ["nowhere"]}, 404, "node nowhere not found"),
        ("/tasks", {"desired-state": ["asleep"]}, 400, "Invalid desired-state filter: 'asleep'"),
        ("/nodes", {"role": ["king"]}, 400, "Invalid role filter: 'king'"),
        ("/nodes", {"membership": ["maybe"]}, 400, "Invalid membership filter: 'maybe'"),
        ("/configs", {"names": ["x"]}, 400, "invalid filter 'names'"),
        ("/configs", {"label!": ["x"]}, 400, "invalid filter 'label!'"),
        ("/secrets", {"label!": ["x"]}, 400, "invalid filter 'label!'"),
        ("/services", {"label!": ["x"]}, 400, "invalid filter 'label!'"),
        ("/tasks", {"label!": ["x"]}, 400, "invalid filter 'label!'"),
    ],
)
def test_refused(swarm: Swarm, path: str, filters: dict[str, list[str]], status: int, message: str) -> None:
    answer = swarm.daemon.http("GET", f"{path}?filters={quote(json.dumps(filters))}")
    assert (answer.status, answer.message) == (status, message)


@pytest.mark.parametrize(
    ("path", "filters"),
    [("/nodes", {"role": [""]}), ("/nodes", {"membership": ["Accepted"]}), ("/nodes", {"role": ["manager", "worker"]})],
)
def test_empty_words_and_capitals_are_taken(swarm: Swarm, path: str, filters: dict[str, list[str]]) -> None:
    assert len(swarm.daemon.http("GET", f"{path}?filters={quote(json.dumps(filters))}").json()) == 1
