"""One image for several platforms: kept with all its digests, shown as one, and gone without trace."""

import contextlib
import json
import random
import subprocess
from typing import Any

import pytest

from tests.support.daemon import Daemon
from tests.support.doctor import assert_sound, check_store
from tests.support.images import settled, stored
from tests.support.machine import ARCHITECTURE, DETECTED, FOREIGN, FOREIGN_PLATFORM, FOREIGN_VARIANT
from tests.support.platforms import OTHER, OWN, Platforms, blobs_of, inspect, load, save
from tests.support.registry import (
    OCI_INDEX,
    OCI_MANIFEST,
    Registry,
    make_image,
    push_index,
    tar_of,
)

pytestmark = pytest.mark.usefixtures("all_gone")


def test_a_pull_for_another_platform_adds_to_the_same_image(daemon: Daemon, registry: Registry) -> None:
    both = Platforms()
    name = both.put(registry, "both", "1")
    first = daemon.docker("pull", name)
    assert "Downloaded newer image" in first.stdout
    assert "Downloaded newer image" in daemon.docker("pull", "--platform", f"linux/{FOREIGN}", name).stdout
    assert "Image is up to date" in daemon.docker("pull", "--platform", f"linux/{FOREIGN}", name).stdout
    (shown,) = [i for i in daemon.http("GET", "/images/json").json() if name in i["RepoTags"]]
    assert shown["Id"] == both.own.config_digest
    assert shown["RepoDigests"] == [f"{registry.host}/both@{both.digest}"]
    assert shown["Descriptor"] == {"mediaType": OCI_INDEX, "digest": both.digest, "size": len(both.index)}
    assert both.other.config_digest not in daemon.docker("images", "-aq", "--no-trunc").stdout
    assert inspect(daemon, name)["Id"] == both.own.config_digest
    foreign = inspect(daemon, name, f"?platform={OTHER}")
    assert (foreign["Id"], foreign["Architecture"], foreign["RepoTags"]) == (both.other.config_digest, FOREIGN, [name])
    assert inspect(daemon, both.other.config_digest)["Architecture"] == FOREIGN
    assert daemon.docker("run", "--rm", name).stdout == f"{ARCHITECTURE} 0"


def test_a_platform_that_is_not_here_is_told(daemon: Daemon, registry: Registry) -> None:
    both = Platforms()
    name = both.put(registry, "told", "1")
    daemon.docker("pull", name)
    for method, path in (
        ("GET", f"/v1.49/images/{name}/json?platform={OTHER}"),
        ("GET", f"/images/{name}/history?platform={OTHER}"),
        ("GET", f"/images/{name}/get?platform={OTHER}"),
    ):
        answer = daemon.http(method, path)
        assert answer.status == 404
        assert f"does not provide the specified platform (linux/{FOREIGN})" in answer.message
    created = daemon.http("POST", f"/containers/create?platform=linux/{FOREIGN}", {"Image": name})
    assert created.status == 404
    both_options = daemon.http("GET", f"/v1.49/images/{name}/json?platform={OTHER}&manifests=1")
    assert (both_options.status, both_options.message) == (
        400, "conflicting options: manifests and platform options cannot both be set",
    )  # fmt: skip
    assert daemon.http("GET", f"/v1.49/images/{name}/json?platform=nonsense").status == 400


def test_the_list_shows_each_manifest(daemon: Daemon, registry: Registry) -> None:
    both = Platforms()
    name = both.put(registry, "listed", "1")
    daemon.docker("pull", name)
    daemon.docker("create", "--name", "user", name)
    (user,) = daemon.docker("ps", "-aq", "--no-trunc").stdout.split()

    def manifests() -> list[dict[str, Any]]:
        (shown,) = [i for i in daemon.http("GET", "/images/json?manifests=1").json() if name in i["RepoTags"]]
        assert shown["Manifests"] == inspect(daemon, name, "?manifests=1")["Manifests"]
        found: list[dict[str, Any]] = shown["Manifests"]
        return found

    own, other = manifests()
    assert (own["ID"], own["Available"], own["Kind"]) == (both.own.digest, True, "image")
    content = len(both.own.manifest) + sum(map(len, both.own.blobs.values()))
    unpacked = inspect(daemon, name)["Size"]
    assert own["Size"] == {"Total": content + unpacked, "Content": content}
    assert own["ImageData"] == {
        "Platform": {"architecture": ARCHITECTURE, "os": "linux"}, "Containers": [user], "Size": {"Unpacked": unpacked},
    }  # fmt: skip
    assert other == {
        "ID": both.other.digest,
        "Descriptor": {
            "mediaType": OCI_MANIFEST, "digest": both.other.digest, "size": len(both.other.manifest),
            "platform": FOREIGN_PLATFORM,
        },
        "Available": False,
        "Size": {"Total": 0, "Content": 0},
        "Kind": "image",
        "ImageData": {
            "Platform": FOREIGN_PLATFORM, "Containers": [],
            "Size": {"Unpacked": 0},
        },
    }  # fmt: skip
    daemon.docker("pull", "--platform", f"linux/{FOREIGN}", name)
    assert [manifest["Available"] for manifest in manifests()] == [True, True]
    assert "Manifests" not in daemon.http("GET", "/v1.46/images/json?manifests=1").json()[0]


def test_a_container_gets_the_image_of_its_platform(daemon: Daemon, registry: Registry) -> None:
    both = Platforms()
    name = both.put(registry, "chosen", "1")
    made = daemon.docker("create", "--platform", f"linux/{FOREIGN}", name, "true").stdout.split()[-1]
    assert daemon.http("GET", f"/containers/{made}/json").json()["Image"] == both.other.config_digest
    daemon.docker("pull", name)
    other = daemon.http("POST", f"/containers/create?platform=linux/{ARCHITECTURE}", {"Image": name}).json()["Id"]
    assert daemon.http("GET", f"/containers/{other}/json").json()["Image"] == both.own.config_digest
    assert {c["Image"] for c in daemon.http("GET", "/containers/json?all=1").json()} == {name}
    ancestors = daemon.docker("ps", "-aq", "--no-trunc", "--filter", f"ancestor={name}").stdout.split()
    assert set(ancestors) == {made, other}
    refused = daemon.docker("rmi", name, check=False)
    assert "is using its referenced image" in refused.stderr


def test_the_index_knows_a_platform_better_than_the_image(daemon: Daemon, registry: Registry) -> None:
    """Many images for arm say no variant in their configuration."""
    image = make_image([tar_of({"a": b"v5"})], {"Cmd": ["x"]}, architecture="arm")
    image.platform["variant"] = "v5"
    push_index(registry, "arm", "1", [image])
    name = f"{registry.host}/arm:1"
    daemon.docker("create", "--platform", "linux/arm/v5", name)
    (container,) = daemon.http("GET", "/containers/json?all=1").json()
    assert container["ImageID"] == image.config_digest


def test_an_image_of_another_platform_is_warned_of(daemon: Daemon) -> None:
    both = Platforms()
    load(daemon, both.layout("docker.io/library/foreign:1", both.other))
    body = {"Image": "foreign:1", "Cmd": ["x"]}
    created = daemon.http("POST", "/containers/create", body).json()
    foreign = "/".join(filter(None, ("linux", FOREIGN, FOREIGN_VARIANT)))
    assert created["Warnings"] == [
        f"The requested image's platform ({foreign}) does not match the detected host platform ({DETECTED}) "
        "and no specific platform was requested"
    ]
    assert daemon.http("POST", f"/containers/create?platform=linux/{FOREIGN}", body).json()["Warnings"] == []


def test_a_removal_takes_all_platforms(daemon: Daemon, registry: Registry) -> None:
    both, before = Platforms(attested=True), stored(daemon)
    load(daemon, both.layout("docker.io/library/going:1"))
    daemon.docker("tag", "going:1", "staying:1")
    assert daemon.http("DELETE", "/images/going:1").json() == [{"Untagged": "going:1"}]
    assert blobs_of(save(daemon, "staying:1")) == both.blobs()
    gone = [r.get("Deleted") for r in daemon.http("DELETE", "/images/staying:1").json()]
    assert {both.own.config_digest, both.other.config_digest} <= set(gone)
    assert stored(daemon)[:2] == before[:2]
    load(daemon, both.layout())
    assert both.own.config_digest in daemon.docker("images", "-aq", "--no-trunc").stdout
    daemon.docker("rmi", both.own.config_digest)
    assert stored(daemon)[:2] == before[:2]
    load(daemon, both.layout())
    daemon.docker("image", "prune", "-f")
    assert stored(daemon)[:2] == before[:2]


def test_one_platform_can_go_alone(daemon: Daemon) -> None:
    both = Platforms(attested=True)

    def available() -> list[bool]:
        return [m["Available"] for m in inspect(daemon, "part:1", "?manifests=1")["Manifests"]]

    load(daemon, both.layout("docker.io/library/part:1"))
    gone = daemon.http("DELETE", f"/images/part:1?platforms={OTHER}").json()
    assert {"Deleted": both.other.config_digest} in gone
    assert available() == [True, False, True]
    assert daemon.http("DELETE", f"/images/part:1?platforms={OTHER}").status == 404
    load(daemon, both.layout("docker.io/library/part:1"))
    daemon.docker("rmi", both.other.config_digest)
    assert available() == [True, False, True]
    load(daemon, both.layout("docker.io/library/part:1"))
    daemon.http("DELETE", f"/images/part:1?platforms={OWN}")
    assert available() == [False, True, False], "what is attested of a platform goes with it"
    assert daemon.http("DELETE", f"/images/part:1?platforms={OTHER}").status == 200
    assert daemon.http("GET", "/images/part:1/json").status == 404


def test_a_platform_that_a_container_uses_stays(daemon: Daemon) -> None:
    both = Platforms()
    load(daemon, both.layout("docker.io/library/used:1"))
    daemon.http("POST", f"/containers/create?platform=linux/{FOREIGN}&name=user", {"Image": "used:1", "Cmd": ["x"]})
    for path in (f"/images/used:1?platforms={OTHER}", f"/images/{both.own.config_digest}", "/images/used:1"):
        assert daemon.http("DELETE", path).status == 409, path
    assert daemon.http("DELETE", f"/images/used:1?platforms={OWN}").status == 200
    daemon.docker("rm", "user")


def test_two_indexes_can_share_an_image(daemon: Daemon, registry: Registry) -> None:
    """Releases that changed for one platform alone."""
    first = Platforms("a")
    other = Platforms("b")
    other.own = first.own
    index = json.loads(other.index)
    index["manifests"][0] |= {"digest": first.own.digest, "size": len(first.own.manifest)}
    other.index = json.dumps(index).encode()
    load(daemon, first.layout("docker.io/library/shared:1"))
    load(daemon, other.layout("docker.io/library/shared:2"))
    (shown,) = [i for i in daemon.http("GET", "/images/json").json() if i["Id"] == first.own.config_digest]
    assert shown["RepoTags"] == ["shared:1", "shared:2"]
    daemon.docker("rmi", "shared:1")
    assert daemon.http("GET", f"/images/{first.other.config_digest}/json").status == 404
    assert blobs_of(save(daemon, "shared:2")) == other.blobs()
    assert daemon.docker("run", "--rm", "shared:2").stdout == f"{ARCHITECTURE} a"


def test_the_store_is_sound_with_several_platforms(fresh_daemon: Daemon) -> None:
    both = Platforms(attested=True)
    load(fresh_daemon, both.layout("docker.io/library/sound:1"))
    assert_sound(fresh_daemon)
    fresh_daemon.stop()
    assert_sound(fresh_daemon, "--deep")
    root = fresh_daemon.config.data_root / "blobs/sha256"
    (root / both.digest[7:]).unlink()
    found = check_store(fresh_daemon)
    assert found.returncode == 1 and both.digest in found.stdout
    fixed = check_store(fresh_daemon, "--fix")
    assert "made single images" in fixed.stdout + fixed.stderr
    assert_sound(fresh_daemon)
    fresh_daemon.start()
    assert inspect(fresh_daemon, "sound:1")["Id"] == both.own.config_digest
    assert fresh_daemon.docker("run", "--rm", "sound:1").stdout == f"{ARCHITECTURE} 0"
    assert inspect(fresh_daemon, both.other.config_digest)["Architecture"] == FOREIGN


def test_a_crash_leaves_all_platforms_or_none(fresh_daemon: Daemon, chance: random.Random) -> None:
    both = Platforms(attested=True)
    archive = both.layout("docker.io/library/crash:1")
    for _ in range(3):
        with fresh_daemon.docker_process("load") as loading:
            assert loading.stdin is not None
            loading.stdin.write(archive)
            loading.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                loading.wait(chance.uniform(0, 0.3))
            fresh_daemon.kill9()
        fresh_daemon.start()
        settled(fresh_daemon)
        fresh_daemon.stop()
        assert_sound(fresh_daemon)
        fresh_daemon.start()
        if fresh_daemon.http("GET", "/images/crash:1/json").status == 200:
            assert blobs_of(save(fresh_daemon, "crash:1")) == both.blobs()
            fresh_daemon.docker("rmi", "crash:1")
