"""Prune: what nobody uses goes, what somebody uses stays, and the room it took is told."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.daemon import Daemon
from tests.support.images import forget_images


@pytest.fixture(autouse=True)
def only_busybox(daemon: Daemon) -> Iterator[None]:
    yield
    forget_images(daemon)


def prune(daemon: Daemon, **filters: list[str]) -> dict[str, Any]:
    answer = daemon.http("POST", f"/images/prune?filters={quote(json.dumps(filters))}")
    assert answer.status == 200, answer.body
    return answer.json()


def make(daemon: Daemon, name: str = "", size: int = 1000, *changes: str) -> str:
    daemon.docker("run", "--name", "made", "busybox", "sh", "-c", f"head -c {size} /dev/urandom > /new")
    arguments = [argument for change in changes for argument in ("-c", change)]
    made = daemon.docker("commit", *arguments, "made", *([name] if name else [])).stdout.strip()
    daemon.remove_containers()
    return made


def images(daemon: Daemon) -> set[str]:
    return set(daemon.docker("images", "-aq", "--no-trunc").stdout.split())


def test_only_what_has_no_tag_goes(daemon: Daemon) -> None:
    dangling, named = make(daemon, size=5000), make(daemon, "named:1")
    pruned = prune(daemon)
    assert {"Deleted": dangling} in pruned["ImagesDeleted"]
    assert pruned["SpaceReclaimed"] == 5000
    assert dangling not in images(daemon) and named in images(daemon)
    assert prune(daemon) == {"ImagesDeleted": None, "SpaceReclaimed": 0}


def test_all_unused_go_and_used_ones_stay(daemon: Daemon) -> None:
    used, unused = make(daemon, "used:1"), make(daemon, "unused:1", 3000)
    daemon.docker("tag", "unused:1", "unused:2")
    daemon.docker("create", "--name", "user", "used:1", "true")
    daemon.docker("create", "--name", "base", "busybox", "true")
    pruned = prune(daemon, dangling=["false"])
    assert {"Untagged": "unused:1"} in pruned["ImagesDeleted"] and {"Untagged": "unused:2"} in pruned["ImagesDeleted"]
    assert pruned["SpaceReclaimed"] == 3000
    assert used in images(daemon) and unused not in images(daemon)
    assert daemon.http("GET", "/images/used:1/json").status == 200


def test_filters(daemon: Daemon) -> None:
    red, blue = make(daemon, "", 1000, "LABEL team=red"), make(daemon, "", 1000, "LABEL team=blue")
    assert prune(daemon, label=["team=green"])["ImagesDeleted"] is None
    assert prune(daemon, until=["1h"])["ImagesDeleted"] is None
    assert prune(daemon, **{"label!": ["team=red"]})["SpaceReclaimed"] == 1000
    assert red in images(daemon) and blue not in images(daemon)
    assert prune(daemon, label=["team=red"], until=["0.000001s"])["SpaceReclaimed"] == 1000
    assert daemon.http("POST", f"/images/prune?filters={quote(json.dumps({'color': ['red']}))}").status == 400
    assert daemon.http("POST", f"/images/prune?filters={quote(json.dumps({'dangling': ['maybe']}))}").status == 400


def test_the_cli_prunes(daemon: Daemon) -> None:
    make(daemon)
    assert "Total reclaimed space: 1kB" in daemon.docker("image", "prune", "-f").stdout


def test_docker_system_prune_clears_what_is_unused(daemon: Daemon) -> None:
    daemon.docker("run", "--name", "ended", "busybox", "true")
    out = daemon.docker("system", "prune", "--force", "--volumes").stdout
    assert "Deleted Containers:" in out and "Total reclaimed space:" in out
    assert daemon.docker("ps", "-aq").stdout == ""
