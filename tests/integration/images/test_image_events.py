"""Events of images: what makes one tells of it, with the labels by which clients choose."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.support.building import Builds, Context, needs_buildx
from tests.support.daemon import Daemon
from tests.support.images import forget_images
from tests.support.registry import Registry
from tests.support.tars import file, tar


@pytest.fixture(autouse=True)
def only_busybox(daemon: Daemon) -> Iterator[None]:
    yield
    daemon.remove_containers()
    forget_images(daemon)
    assert daemon.http("POST", "/build/prune?all=1").status == 200


def told(daemon: Daemon, since: float, **filters: list[str]) -> list[tuple[str, str]]:
    """Actions with names; "id" where the name is the image's id."""
    text = quote(json.dumps({"type": ["image"], **filters}))
    answer = daemon.http("GET", f"/events?since={since}&until={time.time()}&filters={text}")
    actors = [(event["Action"], event["Actor"]) for event in map(json.loads, answer.body.splitlines())]
    return [(what, "id" if (name := a["Attributes"]["name"]) == a["ID"] else name) for what, a in actors]


@pytest.mark.parametrize("buildkit", [False, pytest.param(True, marks=needs_buildx)])
def test_builds_tell_of_what_they_make(daemon: Daemon, tmp_path: Path, buildkit: bool) -> None:
    builds = Builds(daemon, Context(tmp_path), buildkit=buildkit)
    since = time.time()
    builds.run("FROM busybox\nLABEL team=red\n", "-t", "made:1")
    builds.run("FROM busybox\nLABEL team=blue\n")
    red = [("create", "id"), ("tag", "built:latest"), ("tag", "made:1")]
    assert told(daemon, since, label=["team=red"]) == red
    assert told(daemon, since, label=["team=blue"])[0] == ("create", "id")
    assert told(daemon, since, label=["team=green"]) == []


def test_all_of_an_images_life_is_found_by_its_label(daemon: Daemon, tmp_path: Path) -> None:
    since = time.time()
    (tmp_path / "root.tar").write_bytes(tar(file("f", b"1")))
    daemon.docker("import", "-c", "LABEL team=red", str(tmp_path / "root.tar"), "in:1")
    daemon.docker("tag", "in:1", "in:2")
    archive = daemon.docker_bytes("save", "in:1", "in:2").stdout
    daemon.docker("rmi", "in:1", "in:2")
    daemon.docker_bytes("load", input=archive)
    assert told(daemon, since, label=["team=red"]) == [
        ("tag", "in:1"),
        ("import", "id"),
        ("tag", "in:2"),
        ("save", "id"),
        ("untag", "id"),
        ("untag", "id"),
        ("delete", "id"),
        ("load", "id"),
    ]
    since = time.time()
    daemon.docker("create", "--name", "box", "busybox", "true")
    daemon.docker("commit", "-c", "LABEL team=red", "box", "in:3")
    assert told(daemon, since, label=["team=red"]) == [("create", "id"), ("tag", "in:3")]


def test_transfers_are_found_by_the_label_of_what_was_moved(daemon: Daemon, registry: Registry) -> None:
    daemon.docker("create", "--name", "box", "busybox", "true")
    repository = f"{registry.host}/in"
    daemon.docker("commit", "-c", "LABEL team=red", "box", f"{repository}:1")
    since = time.time()
    daemon.docker("push", f"{repository}:1")
    daemon.docker("pull", f"{repository}:1")
    assert told(daemon, since, label=["team=red"]) == [("push", repository), ("pull", repository)]
