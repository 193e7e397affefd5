"""Disk usage: what images and containers take, counted once, in the shapes of old and new clients."""

from collections.abc import Iterator

import pytest

from tests.support.daemon import Daemon
from tests.support.images import forget_images
from tests.support.machine import ARCHITECTURE


@pytest.fixture(autouse=True)
def only_busybox(daemon: Daemon) -> Iterator[None]:
    yield
    forget_images(daemon)


SUMS = {"ActiveCount", "TotalCount", "Reclaimable", "TotalSize"}


def test_images_and_containers_are_counted(daemon: Daemon) -> None:
    daemon.docker("run", "--name", "made", "busybox", "sh", "-c", "head -c 7000 /dev/urandom > /new")
    daemon.docker("commit", "made", "child:1")
    usage = daemon.http("GET", "/v1.47/system/df").json()
    assert set(usage) == {"LayersSize", "Images", "Containers", "Volumes", "BuildCache"}
    images = {image["RepoTags"][0]: image for image in usage["Images"]}
    base = images["busybox:latest"]["Size"]
    assert usage["LayersSize"] == base + 7000
    assert images["child:1"]["SharedSize"] == images["busybox:latest"]["SharedSize"] == base
    assert (images["child:1"]["Containers"], images["busybox:latest"]["Containers"]) == (0, 1)
    (container,) = usage["Containers"]
    assert (container["SizeRw"], container["SizeRootFs"]) == (7000, base + 7000)
    assert container["Image"] == "busybox"
    assert (usage["Volumes"], usage["BuildCache"]) == ([], [])


def test_only_what_was_asked_for(daemon: Daemon) -> None:
    usage = daemon.http("GET", "/v1.47/system/df?type=image&type=volume").json()
    assert len(usage["Images"]) == 1 and usage["Containers"] is None and usage["BuildCache"] is None
    assert daemon.http("GET", "/system/df?type=socks").status == 400


def test_sums_for_new_clients(daemon: Daemon) -> None:
    usage = daemon.http("GET", "/v1.52/system/df").json()
    assert set(usage) == {"ImageUsage", "ContainerUsage", "VolumeUsage", "BuildCacheUsage"}
    assert all(set(part) == SUMS for part in usage.values())
    image = usage["ImageUsage"]
    assert image["TotalCount"] == 1 and image["TotalSize"] == image["Reclaimable"] > 0
    verbose = daemon.http("GET", "/v1.52/system/df?verbose=1&type=image").json()
    assert len(verbose["ImageUsage"]["Items"]) == 1 and "ContainerUsage" not in verbose


def test_the_cli_shows_it(daemon: Daemon) -> None:
    shown = daemon.docker("system", "df").stdout
    assert all(word in shown for word in ("Images", "Containers", "Local Volumes", "Build Cache"))
    assert "busybox" in daemon.docker("system", "df", "-v").stdout


def test_the_list_counts_shared_layers_and_shows_manifests(daemon: Daemon) -> None:
    daemon.docker("run", "--name", "made", "busybox", "sh", "-c", "echo > /new")
    daemon.docker("commit", "made", "child:1")
    listed = daemon.http("GET", "/v1.47/images/json?shared-size=1&manifests=1&digests=1").json()
    sizes = {image["RepoTags"][0]: image["SharedSize"] for image in listed}
    assert sizes["child:1"] == sizes["busybox:latest"] > 0
    for image in listed:
        (manifest,) = image["Manifests"]
        assert (manifest["Kind"], manifest["Available"]) == ("image", True)
        assert manifest["Descriptor"]["digest"] == manifest["ID"]
        assert manifest["ImageData"]["Platform"] == {"architecture": ARCHITECTURE, "os": "linux"}
        assert manifest["Size"]["Total"] == manifest["Size"]["Content"] + image["Size"]
    assert "Manifests" not in daemon.http("GET", "/v1.47/images/json").json()[0]
