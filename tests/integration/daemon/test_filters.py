"""The filters of every list and prune: what cannot be read is refused, in one way, and nothing is removed for it."""

import json
from urllib.parse import quote

import pytest

from tests.support.daemon import Answer, Daemon

PRUNES = ("/containers/prune", "/images/prune", "/networks/prune", "/volumes/prune", "/build/prune")
LISTS = (
    "/containers/json",
    "/images/json",
    "/networks",
    "/volumes",
    "/plugins",
    "/images/search?term=x",
    "/events?since=0&until=1",
)


def ask(daemon: Daemon, path: str, filters: str) -> Answer:
    separator = "&" if "?" in path else "?"
    return daemon.http("POST" if path in PRUNES else "GET", f"{path}{separator}filters={quote(filters)}")


@pytest.fixture
def things(daemon: Daemon):
    """One of each kind that a prune would remove."""
    daemon.docker("create", "--name", "spare", "busybox")
    daemon.docker("network", "create", "spare")
    daemon.docker("volume", "create", "spare")
    yield
    daemon.docker("rm", "-f", "spare", check=False)
    daemon.docker("network", "rm", "spare", check=False)
    daemon.docker("volume", "rm", "-f", "spare", check=False)


def left(daemon: Daemon) -> list[bool]:
    kinds = ("container", "network", "volume")
    return [daemon.docker(kind, "inspect", "spare", check=False).returncode == 0 for kind in kinds]


@pytest.mark.parametrize("path", [*PRUNES, *LISTS])
@pytest.mark.parametrize("text", ["{", "[]", '"x"', '{"label": "x"}', '{"label": [1]}'])
def test_what_is_no_filter_is_refused(daemon: Daemon, path: str, text: str):
    answer = ask(daemon, path, text)
    assert (answer.status, answer.message) == (400, "invalid filter")


@pytest.mark.parametrize("path", [*PRUNES, *LISTS])
def test_an_unknown_filter_is_named(daemon: Daemon, path: str):
    answer = ask(daemon, path, '{"colour": ["red"]}')
    if path.startswith("/events"):
        assert answer.status == 200  # dockerd looks for the filters it knows, and at no other
    else:
        assert (answer.status, answer.message) == (400, "invalid filter 'colour'")


@pytest.mark.parametrize("path", PRUNES)
@pytest.mark.parametrize("values", [[""], ["x"], ["1h", "2h"], ["-1"], ["2024-13-40"]])
def test_an_until_that_cannot_be_read_removes_nothing(daemon: Daemon, things: None, path: str, values: list[str]):
    filters = {"until": values} | ({"dangling": ["false"]} if path == "/images/prune" else {})
    answer = ask(daemon, path, json.dumps(filters))
    assert answer.status == 400
    assert "until" in answer.message or "time or duration" in answer.message
    assert left(daemon) == [True, True, True]
    assert daemon.http("GET", "/images/busybox/json").status == 200


@pytest.mark.parametrize("path", ["/containers/prune", "/images/prune", "/networks/prune"])
def test_an_until_without_a_value_removes_nothing(daemon: Daemon, things: None, path: str):
    for filters in ('{"until": []}', '{"until": null}'):
        answer = ask(daemon, path, filters)
        assert (answer.status, answer.message) == (400, "invalid filter 'until'")
    assert left(daemon) == [True, True, True]


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/containers/json", "is-task"), ("/images/json", "dangling"), ("/images/prune", "dangling"),
        ("/volumes", "dangling"), ("/volumes/prune", "all"), ("/networks", "dangling"), ("/plugins", "enabled"),
        ("/images/search?term=x", "is-official"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("values", [[""], ["yes"], ["true", "false"]])
def test_an_unclear_truth_is_refused(daemon: Daemon, path: str, key: str, values: list[str]):
    answer = ask(daemon, path, json.dumps({key: values}))
    assert answer.status == 400
    assert answer.message.startswith(f"invalid filter '{key}")


@pytest.mark.parametrize(
    ("path", "filters"),
    [
        ("/containers/json", {"exited": ["x"]}),
        ("/containers/json", {"exited": ["99999999999999999999"]}),
        ("/containers/json", {"publish": [""]}),
        ("/containers/json", {"expose": ["-1"]}),
        ("/containers/json", {"status": [""]}),
        ("/images/json", {"until": [""]}),
        ("/images/search?term=x", {"stars": ["many"]}),
        ("/networks", {"type": ["other"]}),
        ("/volumes", {"label!": ["x"]}),
        ("/build/prune", {"id": [""]}),
    ],
)
def test_other_values_that_cannot_be_read(daemon: Daemon, path: str, filters: dict[str, list[str]]):
    assert ask(daemon, path, json.dumps(filters)).status == 400
