"""A line that the daemon writes for a request names it, in both forms of the log; the answer names it too."""

import json

import pytest

from tests.support.daemon import Daemon

# The process with number 1 does not hear TERM unless it asks for it: the daemon says that it kills it.
DEAF = ("run", "-d", "--network", "none", "busybox", "sleep", "600")


@pytest.mark.parametrize("form", ["text", "json"])
def test_log_lines_have_the_id_that_the_client_gave(form: str) -> None:
    with Daemon("--log-format", form) as daemon:
        id = daemon.docker(*DEAF).stdout.strip()
        answer = daemon.http("POST", f"/containers/{id}/stop?t=0", headers={"X-Request-Id": "stop-1"})
        assert answer.status == 204
        assert answer.headers["X-Request-Id"] == "stop-1"
        (line,) = [line for line in daemon.log().splitlines() if f"{id[:12]} did not end" in line]
        if form == "json":
            assert json.loads(line)["request_id"] == "stop-1"
        else:
            assert line.endswith(" request_id=stop-1")
        daemon.http("GET", "/_ping", headers={"X-Request-Id": "ping-1"})
        assert "ping-1" not in daemon.log()


def test_requests_without_an_id_get_one_each() -> None:
    with Daemon() as daemon:
        paths = ("/_ping", "/containers/json", "/containers/nope/json", "/nowhere", "/events?until=1")
        ids = [daemon.http("GET", path).headers["X-Request-Id"] for path in paths]
        assert len(set(ids)) == len(paths) and all(ids)
