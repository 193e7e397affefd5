"""`docker pull` through a real daemon: from a real registry, and from one that misbehaves on command."""

import base64
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import Daemon
from tests.support.fake_registry import FakeRegistry
from tests.support.images import busybox_layer, forget_images, settled, stored
from tests.support.layers import directory, hard_link, make_tar, member, symlink
from tests.support.machine import ARCHITECTURE, DETECTED, FOREIGN, FOREIGN_VARIANT
from tests.support.platforms import OTHER
from tests.support.pulling import NOISE, in_thread, pull, records, statuses
from tests.support.registry import (
    PASSWORD,
    USERNAME,
    Compression,
    Media,
    Registry,
    make_image,
    push_image,
    push_index,
    tar_of,
)
from tests.support.waiting import until


@pytest.fixture(scope="module")
def locked() -> Iterator[Registry]:
    with Registry(login=True) as registry:
        push_image(registry, "team/app", "1", [tar_of({"motd": b"locked"})], {"Cmd": ["/motd"]})
        yield registry


@pytest.fixture(autouse=True)
def only_busybox(daemon: Daemon) -> Iterator[None]:
    """Each test begins with nothing but the first image, and ends with nothing half done on disk."""
    yield
    forget_images(daemon)
    until(lambda: not stored(daemon).half_written, "the store tidies up")


# -- what comes out of a registry --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("media", "compression"), [("oci", "gzip"), ("oci", "zstd"), ("oci", "none"), ("docker", "gzip")]
)
def test_an_image_of_any_kind_is_pulled_by_tag_and_runs(
    daemon: Daemon, registry: Registry, media: Media, compression: Compression
) -> None:
    layers = [busybox_layer(), tar_of({"etc/motd": f"{media} {compression}".encode()})]
    name = f"{registry.host}/kinds/{media}-{compression}"
    image = push_image(
        registry, f"kinds/{media}-{compression}", "1", layers, {"Cmd": ["cat", "/etc/motd"]}, media, compression
    )
    out = daemon.docker("pull", f"{name}:1").stdout
    assert f"Digest: {image.digest}" in out
    assert f"Status: Downloaded newer image for {name}:1" in out
    assert daemon.docker("run", "--rm", f"{name}:1").stdout == f"{media} {compression}"
    assert daemon.docker("images", "-q", "--no-trunc", name).stdout.strip() == image.config_digest


def test_an_image_pulled_by_digest_has_that_name_only(daemon: Daemon, registry: Registry) -> None:
    image = push_image(registry, "exact", "1", [tar_of({"a": b"a"})])
    name = f"{registry.host}/exact@{image.digest}"
    out = daemon.docker("pull", name).stdout
    assert f"{image.digest}: Pulling from exact" in out
    (shown,) = json.loads(daemon.docker("image", "inspect", name).stdout)
    assert (shown["RepoTags"], shown["RepoDigests"]) == ([], [name])
    assert daemon.docker("rmi", name).stdout.splitlines()[0] == f"Untagged: {name}"
    assert daemon.http("GET", f"/images/{name}/json").status == 404


def test_the_tag_parameter_may_be_a_digest(daemon: Daemon, registry: Registry) -> None:
    image = push_image(registry, "exact-too", "1", [tar_of({"a": b"aa"})])
    answer = pull(daemon, f"{registry.host}/exact-too", image.digest)
    assert records(answer)[0] == {"status": "Pulling from exact-too", "id": image.digest}
    assert daemon.http("GET", f"/images/{registry.host}/exact-too@{image.digest}/json").status == 200


@pytest.mark.parametrize("media", ["oci", "docker"])
def test_the_platform_is_chosen_out_of_an_index(daemon: Daemon, registry: Registry, media: Media) -> None:
    images = [
        make_image([tar_of({"a": arch.encode()})], media=media, architecture=arch, variant=variant)
        for arch, variant in ((FOREIGN, FOREIGN_VARIANT), (ARCHITECTURE, ""), ("s390x", ""))
    ]
    index = push_index(registry, f"many-{media}", "1", images, media)
    name = f"{registry.host}/many-{media}:1"
    assert f"Digest: {index}" in daemon.docker("pull", name).stdout
    assert json.loads(daemon.docker("inspect", name).stdout)[0]["Id"] == images[1].config_digest
    daemon.docker("pull", "--platform", f"linux/{FOREIGN}", name)
    shown = daemon.http("GET", f"/v1.49/images/{name}/json?platform={OTHER}").json()
    assert (shown["Id"], shown["Architecture"], shown.get("Variant", "")) == (
        images[0].config_digest,
        FOREIGN,
        FOREIGN_VARIANT,
    )
    assert shown["RepoDigests"] == [f"{registry.host}/many-{media}@{index}"]


def test_an_index_without_the_platform_is_refused(daemon: Daemon, registry: Registry) -> None:
    push_index(registry, "few", "1", [make_image([tar_of({"a": b""})], architecture="s390x")])
    failed = daemon.docker("pull", f"{registry.host}/few:1", check=False)
    assert failed.returncode == 1
    assert f"no matching manifest for {DETECTED} in the manifest list entries" in failed.stderr
    bad = pull(daemon, f"{registry.host}/few", "1", platform="linux/no/such/thing")
    assert bad.status == 400


def test_an_image_of_one_other_platform_is_pulled_with_a_warning(daemon: Daemon, registry: Registry) -> None:
    push_image(registry, "single", "1", [tar_of({"a": b""})])
    name = f"{registry.host}/single:1"
    said = statuses(pull(daemon, name, platform=f"linux/{FOREIGN}"))
    assert [line for line in said if line.startswith("WARNING")] == [
        f"WARNING: image with reference {name} was found but its platform (linux/{ARCHITECTURE}) "
        f"does not match the specified platform (linux/{FOREIGN})"
    ]
    said = statuses(pull(daemon, name, platform=f"linux/{ARCHITECTURE}"))
    assert not any(line.startswith("WARNING") for line in said)


def test_many_layers_come_in_any_order_and_end_in_the_right_one(daemon: Daemon, registry: Registry) -> None:
    # The base is the slowest: the layers above it are there first and must wait.
    changes = [tar_of({"etc/which": str(n).encode(), f"n{n}": b""}) for n in range(12)]
    name = f"{registry.host}/deep:1"
    push_image(registry, "deep", "1", [busybox_layer(), tar_of({"noise": NOISE * 20}), *changes])
    daemon.docker("pull", name)
    assert daemon.docker("run", "--rm", name, "sh", "-c", "cat /etc/which; ls / | grep -c '^n[0-9]'").stdout == "1112\n"


def test_one_layer_twice_in_an_image(daemon: Daemon, registry: Registry) -> None:
    again = tar_of({"etc/which": b"first"})
    push_image(registry, "twice", "1", [busybox_layer(), again, tar_of({"etc/which": b"second"}), again])
    name = f"{registry.host}/twice:1"
    daemon.docker("pull", name)
    assert daemon.docker("run", "--rm", name, "cat", "/etc/which").stdout == "first"


def test_what_layers_say_is_what_a_container_sees(daemon: Daemon, registry: Registry) -> None:
    base = make_tar(
        directory("etc"),
        directory("keep"),
        directory("hidden"),
        directory("gone"),
        member("hidden/old", b"old", mode=0o644),
        member("gone/file", b"x", mode=0o644),
        member("removed", b"x", mode=0o644),
        member("keep/one", b"one", mode=0o644),
        hard_link("keep/two", "keep/one"),
        symlink("keep/link", "one"),
        member("suid", b"#!/bin/sh\n", mode=0o4755),
        directory("sticky", mode=0o1777),
        member("owned", b"", mode=0o640, uid=1234, gid=4321),
        member("marked", b"", mode=0o644, xattrs={"user.mark": b"here"}),
    )
    top = make_tar(
        member(".wh.removed"),
        member(".wh.gone"),
        directory("hidden"),
        member("hidden/.wh..wh..opq"),
        member("hidden/new", b"new", mode=0o644),
    )
    push_image(registry, "marks", "1", [busybox_layer(), base, top])
    name = f"{registry.host}/marks:1"
    daemon.docker("pull", name)
    script = """
        ls -d /removed /gone 2>/dev/null; ls /hidden; cat /keep/two /keep/link; echo
        stat -c '%n %a %u:%g %h' /suid /sticky /owned /keep/one
    """
    assert daemon.docker("run", "--rm", name, "sh", "-c", script).stdout.splitlines() == [
        "new",
        "oneone",
        "/suid 4755 0:0 1",
        "/sticky 1777 0:0 2",
        "/owned 640 1234:4321 1",
        "/keep/one 644 0:0 2",
    ]
    # busybox has no getfattr: look at the root file system from outside
    container = daemon.docker("run", "-d", name, "sleep", "60").stdout.strip()
    pid = json.loads(daemon.docker("inspect", container).stdout)[0]["State"]["Pid"]
    assert os.getxattr(f"/proc/{pid}/root/marked", "user.mark") == b"here"


def test_setuid_programs_of_an_image_work(daemon: Daemon, registry: Registry) -> None:
    tini = shutil.which("tini-static")
    if tini is None:
        pytest.skip("the host has no tini-static to make a setuid program of (busybox gives up its rights)")
    program = member("tini", Path(tini).read_bytes(), mode=0o4755)
    push_image(registry, "suid", "1", [busybox_layer(), make_tar(program)])
    name = f"{registry.host}/suid:1"
    daemon.docker("pull", name)
    container = daemon.docker("run", "-d", "-u", "1000", name, "/tini", "--", "sleep", "60").stdout.strip()
    pid = json.loads(daemon.docker("inspect", container).stdout)[0]["State"]["Pid"]
    assert "Uid:\t1000\t0\t0\t0" in Path(f"/proc/{pid}/status").read_text()


def test_all_tags_of_a_repository(daemon: Daemon, registry: Registry) -> None:
    images = {tag: push_image(registry, "all", tag, [tar_of({"a": tag.encode()})]) for tag in ("a", "b", "c")}
    out = daemon.docker("pull", "-a", f"{registry.host}/all").stdout
    assert out.count("Pulling from all") == 3
    assert out.count("Status: ") == 1 and f"Status: Downloaded newer image for {registry.host}/all" in out
    for tag, image in images.items():
        assert json.loads(daemon.docker("inspect", f"{registry.host}/all:{tag}").stdout)[0]["Id"] == image.config_digest
    assert f"Status: Image is up to date for {registry.host}/all" in statuses(pull(daemon, f"{registry.host}/all"))
    missing = daemon.docker("pull", "-a", f"{registry.host}/none", check=False)
    assert missing.returncode == 1 and "not found" in missing.stderr


async def test_all_tags_come_in_pages(daemon: Daemon, fake: FakeRegistry) -> None:
    for tag in ("a", "b", "c", "d", "e"):
        fake.add("paged", tag, make_image([tar_of({"a": tag.encode()})]))
    answer = await in_thread(pull, daemon, f"{fake.host}/paged")
    assert [record["id"] for record in records(answer) if record["status"] == "Pulling from paged"] == list("abcde")


def test_a_pulled_blob_is_stored_as_it_came(daemon: Daemon, registry: Registry) -> None:
    image = push_image(registry, "bytes", "1", [tar_of({"a": NOISE})], compression="zstd")
    daemon.docker("pull", f"{registry.host}/bytes:1")
    for digest in (image.digest, *image.blobs):
        content = (daemon.config.data_root / "blobs/sha256" / digest.removeprefix("sha256:")).read_bytes()
        assert "sha256:" + hashlib.sha256(content).hexdigest() == digest


# -- what the client is told -------------------------------------------------------------------------------------------


def test_progress_records(daemon: Daemon, registry: Registry) -> None:
    base, top = tar_of({"noise": NOISE}), tar_of({"top": b""})
    first = push_image(registry, "shapes", "1", [base, top])
    name = f"{registry.host}/shapes:1"
    answer = pull(daemon, name)
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.body.endswith(b"}\r\n")
    said = records(answer)
    assert said[0] == {"status": "Pulling from shapes", "id": "1"}
    assert said[-2:] == [
        {"status": f"Digest: {first.digest}"},
        {"status": f"Status: Downloaded newer image for {name}"},
    ]
    short = first.layer_digests[0].removeprefix("sha256:")[:12]
    of_base = [record for record in said if record.get("id") == short]
    assert of_base[0] == {"status": "Pulling fs layer", "progressDetail": {}, "id": short}
    assert of_base[-1] == {"status": "Pull complete", "progressDetail": {}, "id": short}
    size = len(first.blobs[first.layer_digests[0]])
    loading = [record for record in of_base if record["status"] == "Downloading"][-1]
    assert loading["progressDetail"] == {"current": size, "total": size}
    assert loading["progress"].startswith("[====") and "kB/" in loading["progress"]
    order = list(dict.fromkeys(record["status"] for record in of_base))
    assert order == [
        *("Pulling fs layer", "Downloading", "Verifying Checksum", "Download complete", "Extracting", "Pull complete")
    ]

    assert statuses(pull(daemon, name)) == [
        *("Pulling from shapes", f"Digest: {first.digest}", f"Status: Image is up to date for {name}")
    ]
    assert f"Status: Image is up to date for {name}" in daemon.docker("pull", name).stdout
    second = push_image(registry, "shapes", "1", [base, tar_of({"top": b"new"})])
    assert statuses(pull(daemon, name))[-1] == f"Status: Downloaded newer image for {name}"
    assert json.loads(daemon.docker("inspect", name).stdout)[0]["Id"] == second.config_digest
    # The image that lost its name stays as <none>, as with dockerd.
    assert json.loads(daemon.docker("inspect", first.config_digest).stdout)[0]["RepoTags"] == []


def test_a_pull_publishes_an_event(daemon: Daemon, registry: Registry) -> None:
    push_image(registry, "news", "1", [tar_of({"a": b""})])
    daemon.docker("pull", f"{registry.host}/news:1")
    listed = daemon.http("GET", f'/events?until={time.time()}&filters={{"event":["pull"]}}')
    event = json.loads(listed.body.splitlines()[-1])
    assert event["Type"] == "image"
    assert event["Actor"] == {"ID": f"{registry.host}/news:1", "Attributes": {"name": f"{registry.host}/news"}}


# -- logins ------------------------------------------------------------------------------------------------------------


def test_docker_login_then_pull_then_logout(daemon: Daemon, locked: Registry) -> None:
    name = f"{locked.host}/team/app:1"
    before = daemon.docker("pull", name, check=False)
    assert before.returncode == 1 and "no basic auth credentials" in before.stderr
    wrong = daemon.docker("login", "-u", USERNAME, "--password-stdin", locked.host, input="guess", check=False)
    assert wrong.returncode == 1 and "401 Unauthorized" in wrong.stderr
    done = daemon.docker("login", "-u", USERNAME, "--password-stdin", locked.host, input=PASSWORD)
    assert "Login Succeeded" in done.stdout
    daemon.docker("pull", name)
    daemon.docker("logout", locked.host)
    assert daemon.docker("pull", name, check=False).returncode == 1


@pytest.mark.parametrize("encode", [base64.urlsafe_b64encode, base64.b64encode])
@pytest.mark.parametrize("padded", [True, False])
def test_credentials_in_either_base64(daemon: Daemon, locked: Registry, encode: Any, padded: bool) -> None:
    # `?>~` makes the two alphabets differ; a field that nobody knows is ignored.
    document = {"username": USERNAME, "password": PASSWORD, "serveraddress": locked.host, "note": "?>~?>~\xff"}
    header = encode(json.dumps(document, ensure_ascii=False).encode()).decode()
    answer = pull(daemon, f"{locked.host}/team/app", "1", auth=header if padded else header.rstrip("="))
    assert statuses(answer)[-1].startswith("Status: ")


def test_wrong_credentials_have_a_status_and_change_nothing(daemon: Daemon, locked: Registry) -> None:
    before = settled(daemon)
    header = base64.urlsafe_b64encode(json.dumps({"username": USERNAME, "password": "guess"}).encode()).decode()
    answer = pull(daemon, f"{locked.host}/team/app", "1", auth=header)
    assert (answer.status, answer.message) == (500, "unauthorized: authentication required")
    assert stored(daemon) == before
