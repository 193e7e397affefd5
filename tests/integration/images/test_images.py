"""Images through a real daemon: list, inspect, filter, tag, and Docker's rules for removing them."""

import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.daemon import Answer, Daemon
from tests.support.images import Stored, busybox_layer, settled, stored
from tests.support.machine import ARCHITECTURE
from tests.support.registry import Image, Registry, push_image, tar_of
from tests.support.waiting import until

# What dockerd 28 answers to `docker image inspect` (API 1.47), graph driver store.
INSPECT_KEYS = {
    *("Id", "RepoTags", "RepoDigests", "Parent", "Comment", "Created", "DockerVersion", "Author", "Config"),
    *("Architecture", "Os", "Size", "GraphDriver", "RootFS", "Metadata"),
}
SUMMARY_KEYS = {
    *("Id", "ParentId", "RepoTags", "RepoDigests", "Created", "Size", "SharedSize", "Labels", "Containers"),
}


@pytest.fixture(scope="module")
def app() -> Iterator[tuple[Registry, Image]]:
    """An image on top of a shell, in a registry."""
    with Registry() as registry:
        config = {
            "Cmd": ["sleep", "600"],
            "Env": ["PATH=/bin", "A=b"],
            "Labels": {"team": "red", "level": "7"},
            "ExposedPorts": {"80/tcp": {}},
            "WorkingDir": "/etc",
            "User": "33",
            "StopSignal": "SIGINT",
        }
        yield registry, push_image(registry, "team/app", "1", [busybox_layer(), tar_of({"etc/motd": b"app"})], config)


@pytest.fixture
def name(daemon: Daemon, app: tuple[Registry, Image]) -> Iterator[str]:
    """The name of that image, pulled; everything but busybox is gone after the test."""
    full = f"{app[0].host}/team/app:1"
    daemon.docker("pull", "-q", full)
    yield full
    daemon.remove_containers()
    busybox = daemon.docker("images", "-q", "busybox:latest").stdout.strip()
    for image in dict.fromkeys(daemon.docker("images", "-aq").stdout.split()):
        if image != busybox:
            daemon.docker("rmi", "-f", image, check=False)
    assert daemon.docker("images", "-aq").stdout.split() == [busybox]


def inspect(daemon: Daemon, image: str) -> dict[str, Any]:
    answer = daemon.http("GET", f"/v1.47/images/{image}/json")
    assert answer.status == 200, answer.body
    return answer.json()


def listed(daemon: Daemon, **filters: list[str]) -> list[dict[str, Any]]:
    answer = daemon.http("GET", f"/v1.47/images/json?filters={quote(json.dumps(filters))}")
    assert answer.status == 200, answer.body
    return answer.json()


def tags(daemon: Daemon, **filters: list[str]) -> set[str]:
    return {tag for image in listed(daemon, **filters) for tag in image["RepoTags"]}


def delete(daemon: Daemon, image: str, query: str = "") -> Answer:
    return daemon.http("DELETE", f"/images/{image}{query}")


# -- looking -----------------------------------------------------------------------------------------------------------


def test_inspect_has_dockerds_shape(daemon: Daemon, name: str, app: tuple[Registry, Image]) -> None:
    image = app[1]
    shown = inspect(daemon, name)
    assert set(shown) == INSPECT_KEYS
    assert shown["Id"] == image.config_digest
    assert shown["RepoTags"] == [name]
    assert shown["RepoDigests"] == [f"{name.removesuffix(':1')}@{image.digest}"]
    assert shown["Created"] == "2024-01-02T03:04:05.678Z"
    assert (shown["Architecture"], shown["Os"]) == (ARCHITECTURE, "linux")
    assert shown["Config"]["Env"] == ["PATH=/bin", "A=b"]
    assert shown["Config"]["Cmd"] == ["sleep", "600"]
    assert shown["Config"]["Labels"] == {"team": "red", "level": "7"}
    assert shown["Config"]["ExposedPorts"] == {"80/tcp": {}}
    assert shown["Config"]["StopSignal"] == "SIGINT"
    assert shown["Config"]["Entrypoint"] is None
    assert shown["Size"] > len(busybox_layer()) / 2
    assert shown["RootFS"]["Type"] == "layers" and len(shown["RootFS"]["Layers"]) == 2
    assert set(shown["GraphDriver"]) == {"Name", "Data"}
    assert shown["Metadata"]["LastTagTime"] == "0001-01-01T00:00:00Z"


def test_the_list_has_dockerds_shape(daemon: Daemon, name: str, app: tuple[Registry, Image]) -> None:
    (shown,) = listed(daemon, reference=[name])
    assert set(shown) == SUMMARY_KEYS
    assert shown["Id"] == app[1].config_digest
    assert shown["Created"] == 1704164645
    assert (shown["SharedSize"], shown["Containers"]) == (-1, -1)
    old = daemon.http("GET", "/v1.40/images/json").json()
    assert all(image["VirtualSize"] == image["Size"] for image in old)


def test_an_image_is_found_by_all_its_names(daemon: Daemon, name: str, app: tuple[Registry, Image]) -> None:
    image = app[1]
    hexadecimal = image.config_digest.removeprefix("sha256:")
    repository = name.removesuffix(":1")
    for spelled in (
        *(name, image.config_digest, hexadecimal, hexadecimal[:12], f"sha256:{hexadecimal[:8]}"),
        *(f"{repository}@{image.digest}", f"{name}@{image.digest}"),
    ):
        assert inspect(daemon, spelled)["Id"] == image.config_digest, spelled
    answer = daemon.http("GET", "/images/nothing/json")
    assert (answer.status, answer.message) == (404, "No such image: nothing:latest")
    failed = daemon.docker("image", "inspect", "nothing", check=False)
    assert failed.returncode == 1 and "No such image: nothing" in failed.stderr
    assert daemon.http("GET", f"/images/{repository}:2/json").status == 404


def test_filters(daemon: Daemon, name: str) -> None:
    daemon.docker("tag", name, "blue/one:x")
    daemon.docker("tag", name, "green")
    everything = tags(daemon)
    assert everything == {name, "blue/one:x", "green:latest", "busybox:latest"}
    ours = everything - {"busybox:latest"}
    assert tags(daemon, label=["team"]) == tags(daemon, label=["team=red", "level=7"]) == ours
    assert tags(daemon, label=["team=blue"]) == tags(daemon, label=["team", "none"]) == set()
    assert tags(daemon, **{"label!": ["team"]}) == {"busybox:latest"}
    assert tags(daemon, before=["busybox"]) == ours
    assert tags(daemon, since=[name]) == {"busybox:latest"}
    assert tags(daemon, until=["2024-06-01"]) == ours
    assert tags(daemon, dangling=["true"]) == set()
    assert tags(daemon, dangling=["false"]) == everything
    assert tags(daemon, reference=["busy*"]) == {"busybox:latest"}
    for bad in ({"nonsense": ["1"]}, {"dangling": ["perhaps"]}, {"until": ["yesterday"]}):
        assert daemon.http("GET", f"/images/json?filters={quote(json.dumps(bad))}").status == 400, bad
    assert daemon.http("GET", f"/images/json?filters={quote(json.dumps({'before': ['nothing']}))}").status == 404


def test_a_reference_filter_shows_only_the_names_that_match(daemon: Daemon, name: str) -> None:
    daemon.docker("tag", name, "blue/one:x")
    daemon.docker("tag", name, "blue/two:x")
    assert tags(daemon, reference=["blue/*"]) == {"blue/one:x", "blue/two:x"}
    assert tags(daemon, reference=["blue/one"]) == {"blue/one:x"}
    assert daemon.docker("images", "-q", "blue/one:x").stdout.strip()
    assert not daemon.docker("images", "-q", "blue/one:y").stdout.strip()


def test_docker_images_prints_a_table(daemon: Daemon, name: str) -> None:
    lines = daemon.docker("images").stdout.splitlines()
    assert lines[0].split() == ["REPOSITORY", "TAG", "IMAGE", "ID", "CREATED", "SIZE"]
    assert lines[1].startswith("busybox ") and lines[2].startswith(name.removesuffix(":1"))


def test_shared_size(daemon: Daemon, name: str) -> None:
    daemon.docker("commit", daemon.docker("create", name).stdout.strip(), "child")
    shown = daemon.http("GET", "/images/json?shared-size=1").json()
    by_tag = {tag: image for image in shown for tag in image["RepoTags"]}
    assert by_tag["child:latest"]["SharedSize"] == by_tag[name]["Size"]
    assert by_tag["busybox:latest"]["SharedSize"] == 0


# -- naming ------------------------------------------------------------------------------------------------------------


def test_tag(daemon: Daemon, name: str) -> None:
    before = time.time()
    assert daemon.http("POST", f"/images/{name}/tag?repo=my/own&tag=1.0").status == 201
    assert inspect(daemon, "my/own:1.0")["Id"] == inspect(daemon, name)["Id"]
    assert inspect(daemon, name)["Metadata"]["LastTagTime"] > "2025"
    daemon.docker("tag", "busybox", "my/own:1.0")
    assert inspect(daemon, "my/own:1.0")["Id"] == inspect(daemon, "busybox")["Id"], "a tag moves"
    events = daemon.http("GET", f'/events?since={before}&until={time.time()}&filters={{"event":["tag"]}}').body
    assert [json.loads(line)["Actor"]["Attributes"]["name"] for line in events.splitlines()] == ["my/own:1.0"] * 2
    daemon.docker("rmi", "my/own:1.0")


@pytest.mark.parametrize(
    ("query", "status"),
    [("repo=UPPER", 400), ("repo=a&tag=b%20c", 400), ("repo=", 400), (f"repo=a@sha256:{'0' * 64}", 400)],
)
def test_bad_tags_are_refused(daemon: Daemon, query: str, status: int) -> None:
    assert daemon.http("POST", f"/images/busybox/tag?{query}").status == status
    assert daemon.http("POST", "/images/nothing/tag?repo=a").status == 404


# -- removing ----------------------------------------------------------------------------------------------------------


def test_removing_the_only_name_removes_the_image(daemon: Daemon, app: tuple[Registry, Image]) -> None:
    before = settled(daemon)
    full = f"{app[0].host}/team/app:1"
    daemon.docker("pull", full)
    layers = inspect(daemon, full)["RootFS"]["Layers"]
    started = time.time()
    answer = delete(daemon, full)
    digest_name = f"{full.removesuffix(':1')}@{app[1].digest}"
    removals = answer.json()
    assert removals[:3] == [{"Untagged": full}, {"Untagged": digest_name}, {"Deleted": app[1].config_digest}]
    assert [set(removal) for removal in removals[3:]] == [{"Deleted"}] * len(layers)
    assert daemon.http("GET", f"/images/{app[1].config_digest}/json").status == 404
    nothing_new(daemon, before)
    events = daemon.http("GET", f"/events?since={started}&until={time.time()}").body.splitlines()
    assert [json.loads(line)["Action"] for line in events] == ["untag", "untag", "delete"]


def nothing_new(daemon: Daemon, before: Stored) -> None:
    until(lambda: stored(daemon) == before, f"the store holds what it held: {before}")


def test_removing_one_of_two_names_removes_the_name(daemon: Daemon, name: str) -> None:
    daemon.docker("tag", name, "other:1")
    assert delete(daemon, "other:1").json() == [{"Untagged": "other:1"}]
    assert inspect(daemon, name)["RepoTags"] == [name]


def test_two_tags_of_one_repository_go_by_id_only_by_force(
    daemon: Daemon, name: str, app: tuple[Registry, Image]
) -> None:
    daemon.docker("tag", name, name.removesuffix(":1") + ":2")
    assert delete(daemon, app[1].config_digest).status == 409
    out = daemon.docker("rmi", "-f", app[1].config_digest).stdout
    assert out.count("Untagged: ") == 3 and f"Deleted: {app[1].config_digest}" in out


def test_an_id_with_names_in_two_repositories_must_be_forced(
    daemon: Daemon, name: str, app: tuple[Registry, Image]
) -> None:
    daemon.docker("tag", name, "other:1")
    image, short = app[1].config_digest, app[1].config_digest.removeprefix("sha256:")[:12]
    answer = delete(daemon, image)
    assert answer.status == 409
    assert answer.message == (
        f"conflict: unable to delete {short} (must be forced) - image is referenced in multiple repositories"
    )
    assert inspect(daemon, "other:1")["RepoTags"]
    assert delete(daemon, short, "?force=1").status == 200
    assert daemon.http("GET", "/images/other:1/json").status == 404


def test_an_image_with_a_running_container(daemon: Daemon, name: str, app: tuple[Registry, Image]) -> None:
    container = daemon.docker("run", "-d", name).stdout.strip()
    image, short = app[1].config_digest, app[1].config_digest.removeprefix("sha256:")[:12]
    answer = delete(daemon, name)
    assert answer.status == 409
    assert answer.message == (
        f'conflict: unable to remove repository reference "{name}" (must force) - container {container[:12]} '
        f"is using its referenced image {short}"
    )
    for query in ("", "?force=1"):
        answer = delete(daemon, image, query)
        assert answer.status == 409
        assert answer.message == (
            f"conflict: unable to delete {short} (cannot be forced) - image is being used by running container "
            f"{container[:12]}"
        )
        assert inspect(daemon, name)["RepoTags"] == [name], "a refusal changes nothing"
    # By name, force takes the names away; the image stays for the container.
    assert delete(daemon, name, "?force=1").json()[0] == {"Untagged": name}
    assert inspect(daemon, image)["RepoTags"] == []
    daemon.docker("restart", "-t", "0", container)
    daemon.docker("rm", "-f", container)
    daemon.docker("rmi", image)


def test_an_image_with_a_stopped_container(daemon: Daemon, name: str, app: tuple[Registry, Image]) -> None:
    container = daemon.docker("create", name, "cat", "/etc/motd").stdout.strip()
    image, short = app[1].config_digest, app[1].config_digest.removeprefix("sha256:")[:12]
    answer = delete(daemon, image)
    assert (answer.status, answer.message) == (
        409,
        f"conflict: unable to delete {short} (must be forced) - image is being used by stopped container "
        f"{container[:12]}",
    )
    assert delete(daemon, name).status == 409
    assert delete(daemon, image, "?force=1").status == 200
    assert daemon.http("GET", f"/images/{image}/json").status == 404
    # Its layers belong to the container as well.
    assert daemon.docker("start", "-a", container).stdout == "app"
    assert daemon.docker("ps", "-a", "--format", "{{.Image}}").returncode == 0


def test_layers_of_a_removed_container_go_with_it(daemon: Daemon, app: tuple[Registry, Image]) -> None:
    before = settled(daemon)
    full = f"{app[0].host}/team/app:1"
    daemon.docker("pull", full)
    container = daemon.docker("create", full).stdout.strip()
    daemon.docker("rmi", "-f", app[1].config_digest)
    daemon.docker("rm", container)
    nothing_new(daemon, before)


def test_an_image_with_children_stays(daemon: Daemon, name: str, app: tuple[Registry, Image]) -> None:
    container = daemon.docker("create", name).stdout.strip()
    child = daemon.docker("commit", container, "child").stdout.strip()
    daemon.docker("rm", container)
    image, short = app[1].config_digest, app[1].config_digest.removeprefix("sha256:")[:12]
    answer = delete(daemon, image, "?force=1")
    assert (answer.status, answer.message) == (
        409,
        f"conflict: unable to delete {short} (cannot be forced) - image has dependent child images",
    )
    # By name the name goes; the parent is then hidden until its child goes, and goes with it.
    untagged = delete(daemon, name).json()
    assert {"Untagged": name} in untagged and not any("Deleted" in removal for removal in untagged)
    assert image not in daemon.docker("images", "-q", "--no-trunc").stdout
    assert image in daemon.docker("images", "-aq", "--no-trunc").stdout
    deleted = delete(daemon, child).json()
    assert {"Deleted": child} in deleted and {"Deleted": image} in deleted


def test_noprune_keeps_the_parent(daemon: Daemon, name: str, app: tuple[Registry, Image]) -> None:
    container = daemon.docker("create", name).stdout.strip()
    child = daemon.docker("commit", container, "child").stdout.strip()
    daemon.docker("rm", container)
    delete(daemon, name)
    assert {"Deleted": app[1].config_digest} not in delete(daemon, child, "?noprune=1").json()
    assert inspect(daemon, app[1].config_digest)["RepoTags"] == []


def test_removing_what_is_not_there(daemon: Daemon) -> None:
    answer = delete(daemon, "nothing")
    assert (answer.status, answer.message) == (404, "No such image: nothing:latest")
    failed = daemon.docker("rmi", "nothing", check=False)
    assert failed.returncode == 1 and "No such image: nothing" in failed.stderr


def test_a_hexadecimal_name_is_a_name(daemon: Daemon, name: str, app: tuple[Registry, Image]) -> None:
    short = app[1].config_digest.removeprefix("sha256:")[:12]
    daemon.docker("tag", "busybox", short)
    assert set(inspect(daemon, short)["RepoTags"]) == {f"{short}:latest", "busybox:latest"}
    assert delete(daemon, short).json() == [{"Untagged": f"{short}:latest"}]
    assert inspect(daemon, short)["Id"] == app[1].config_digest


def test_images_survive_a_restart(daemon: Daemon, name: str) -> None:
    daemon.docker("tag", name, "kept:1")
    before = (stored(daemon), inspect(daemon, name), inspect(daemon, "kept:1"))
    daemon.restart()
    until(lambda: not stored(daemon).half_written, "the store tidies up")
    assert (stored(daemon), inspect(daemon, name), inspect(daemon, "kept:1")) == before
    assert daemon.docker("run", "--rm", "kept:1", "cat", "motd").stdout == "app"


@pytest.mark.parametrize("target", ["repo=sha256&tag=x", "repo=sha256:x", "repo=docker.io/library/sha256"])
def test_no_tag_may_be_taken_for_an_id(daemon: Daemon, target: str) -> None:
    refused = daemon.http("POST", f"/images/busybox/tag?{target}")
    said = "refusing to create an ambiguous tag using digest algorithm as name"
    assert (refused.status, refused.message) == (400, said)
    daemon.docker("create", "--name", "made", "busybox")
    committed = daemon.http("POST", f"/commit?container=made&{target}")
    imported = daemon.http("POST", f"/images/create?fromSrc=-&{target}", b"")
    assert [(answer.status, answer.message) for answer in (committed, imported)] == [(400, said)] * 2
    daemon.docker("tag", "busybox", "mine/sha256:x")
    daemon.docker("rmi", "mine/sha256:x")
    daemon.remove_containers()
