"""Save and load: archives that Docker, skopeo and Husk itself take, and theirs in every form and compression."""

import bz2
import contextlib
import gzip
import hashlib
import json
import lzma
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import zstandard

from tests.support.daemon import Daemon
from tests.support.dockerd import Dockerd
from tests.support.images import busybox_layer, forget_images, settled, stored
from tests.support.machine import ARCHITECTURE
from tests.support.platforms import Platforms
from tests.support.registry import Registry, digest_of, make_image, push_image, tar_of
from tests.support.tars import files_of
from tests.support.waiting import until

COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda data: data,
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
    "xz": lzma.compress,
    "bzip2": bz2.compress,
}


@pytest.fixture(autouse=True)
def only_busybox(daemon: Daemon) -> Iterator[None]:
    yield
    forget_images(daemon)


@pytest.fixture(scope="module")
def dockerd() -> Iterator[Dockerd]:
    if not Dockerd.available():
        pytest.skip("Docker's own daemon is not installed")
    with Dockerd() as dockerd:
        yield dockerd


def save(daemon: Daemon, *names: str) -> bytes:
    answer = daemon.http("GET", "/images/get?" + "&".join(f"names={quote(name)}" for name in names))
    assert answer.status == 200, answer.body
    assert answer.headers["Content-Type"] == "application/x-tar"
    return answer.body


def load(daemon: Daemon, archive: bytes, query: str = "?quiet=1") -> list[dict[str, Any]]:
    answer = daemon.http("POST", f"/images/load{query}", archive, {"Content-Type": "application/x-tar"})
    assert answer.status == 200, answer.body
    return [json.loads(line) for line in answer.body.splitlines()]


def image_id(daemon: Daemon, name: str) -> str:
    answer = daemon.http("GET", f"/images/{name}/json")
    assert answer.status == 200, answer.body
    return str(answer.json()["Id"])


def committed(daemon: Daemon, name: str, script: str = "echo new > /new; rm /bin/id") -> str:
    daemon.docker("run", "--name", "made", "busybox", "sh", "-c", script)
    daemon.docker("commit", "-c", 'CMD ["cat", "/new"]', "made", name)
    daemon.remove_containers()
    return image_id(daemon, name)


# -- what an archive is ------------------------------------------------------------------------------------------------


def test_an_archive_is_a_docker_archive_and_an_oci_layout(daemon: Daemon) -> None:
    made = committed(daemon, "team/made:1")
    daemon.docker("tag", "team/made:1", "team/made:2")
    found = files_of(save(daemon, "team/made:1", "team/made:2", "busybox"))
    (first, second) = json.loads(found["manifest.json"])
    assert first["RepoTags"] == ["team/made:1", "team/made:2"] and second["RepoTags"] == ["busybox:latest"]
    assert digest_of(found[first["Config"]]) == made
    config = json.loads(found[first["Config"]])
    assert [digest_of(found[layer]) for layer in first["Layers"]] == config["rootfs"]["diff_ids"]
    assert set(json.loads(found["repositories"])) == {"team/made", "busybox"}
    assert json.loads(found["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    index = json.loads(found["index.json"])["manifests"]
    names = [entry["annotations"]["io.containerd.image.name"] for entry in index]
    assert names == ["docker.io/team/made:1", "docker.io/team/made:2", "docker.io/library/busybox:latest"]
    for entry in index:
        manifest = json.loads(found["blobs/sha256/" + entry["digest"].removeprefix("sha256:")])
        for part in [manifest["config"], *manifest["layers"]]:
            assert len(found["blobs/sha256/" + part["digest"].removeprefix("sha256:")]) == part["size"]
    blobs = [name for name in found if name.startswith("blobs/")]
    assert all(hashlib.sha256(found[name]).hexdigest() == name.rpartition("/")[2] for name in blobs)


def test_a_repository_means_all_its_tags_and_an_id_no_name(daemon: Daemon) -> None:
    daemon.docker("tag", "busybox", "many:1")
    daemon.docker("tag", "busybox", "many:2")
    assert json.loads(files_of(save(daemon, "many"))["manifest.json"])[0]["RepoTags"] == ["many:1", "many:2"]
    unnamed = files_of(daemon.http("GET", f"/images/{image_id(daemon, 'busybox')}/get").body)
    assert json.loads(unnamed["manifest.json"])[0]["RepoTags"] is None
    assert "repositories" not in unnamed


def test_what_is_not_here_cannot_be_saved(daemon: Daemon) -> None:
    answer = daemon.http("GET", "/images/get?names=busybox&names=nothing:1")
    assert (answer.status, answer.message) == (404, "No such image: nothing:1")
    assert daemon.http("GET", "/images/get").status == 400
    assert daemon.docker("save", "nothing", check=False).returncode == 1


def test_a_pulled_image_keeps_its_digests_through_an_archive(daemon: Daemon) -> None:
    with Registry() as registry:
        image = push_image(registry, "app", "1", [busybox_layer(), tar_of({"etc/x": b"y"})])
        name = f"{registry.host}/app:1"
        daemon.docker("pull", "-q", name)
        archive = save(daemon, name)
        forget_images(daemon)
        load(daemon, archive)
        assert image_id(daemon, name) == image.config_digest
        told = daemon.docker("push", name).stdout
        assert image.digest in told


# -- round trips -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_what_was_saved_can_be_loaded(daemon: Daemon, compression: str) -> None:
    made = committed(daemon, "team/made:1")
    archive = COMPRESSIONS[compression](save(daemon, "team/made:1"))
    forget_images(daemon)
    assert load(daemon, archive) == [{"stream": "Loaded image: team/made:1\n"}]
    assert image_id(daemon, "team/made:1") == made
    assert daemon.docker("run", "--rm", "team/made:1").stdout == "new\n"
    assert daemon.docker("run", "--rm", "team/made:1", "ls", "/bin/id", check=False).returncode != 0


def test_the_progress_of_a_load(daemon: Daemon) -> None:
    committed(daemon, "team/made:1", "head -c 5000000 /dev/urandom > /new")
    archive = save(daemon, "team/made:1")
    forget_images(daemon)
    told = load(daemon, archive, "")
    assert told[-1] == {"stream": "Loaded image: team/made:1\n"}
    loading = [record for record in told if record.get("status") == "Loading layer"]
    assert loading and all(set(record["progressDetail"]) == {"current", "total"} for record in loading)
    assert all(len(record["id"]) == 12 for record in loading)


def test_loading_what_is_here_changes_nothing(daemon: Daemon) -> None:
    before = settled(daemon)
    archive = save(daemon, "busybox")
    load(daemon, archive)
    assert stored(daemon) == before


def test_a_name_moves_to_the_loaded_image(daemon: Daemon) -> None:
    old = committed(daemon, "moving:1", "echo old > /new")
    archive = save(daemon, "moving:1")
    daemon.docker("rmi", "moving:1")
    new = committed(daemon, "moving:1", "echo new > /new")
    told = load(daemon, archive)
    assert told[0]["stream"].startswith(f"The image moving:1 already exists, renaming the old one with ID {new}")
    assert image_id(daemon, "moving:1") == old


def test_an_image_without_a_name(daemon: Daemon) -> None:
    made = committed(daemon, "team/made:1")
    archive = save(daemon, made)
    forget_images(daemon)
    assert load(daemon, archive) == [{"stream": f"Loaded image ID: {made}\n"}]
    assert image_id(daemon, made) == made


def test_the_cli_and_the_sdk_save_and_load(daemon: Daemon, tmp_path: Path) -> None:
    made = committed(daemon, "team/made:1")
    daemon.docker("save", "-o", str(tmp_path / "a.tar"), "team/made:1", "busybox")
    with contextlib.closing(daemon.sdk()) as client:
        saved = b"".join(client.images.get("team/made:1").save(named=True))
        forget_images(daemon)
        (loaded,) = client.images.load(saved)
        assert (loaded.id, loaded.tags) == (made, ["team/made:1"])
    forget_images(daemon)
    told = daemon.docker("load", "-i", str(tmp_path / "a.tar")).stdout
    assert "Loaded image: team/made:1" in told and "Loaded image: busybox:latest" in told


# -- other engines -----------------------------------------------------------------------------------------------------


def test_docker_loads_what_husk_saved(daemon: Daemon, dockerd: Dockerd) -> None:
    made = committed(daemon, "to/docker:1")
    with Registry() as registry:
        push_image(registry, "gz", "1", [busybox_layer(), tar_of({"etc/gz": b"1"})])
        name = f"{registry.host}/gz:1"
        daemon.docker("pull", "-q", name)
        pulled = image_id(daemon, name)
        dockerd.docker_bytes("load", input=save(daemon, "to/docker:1", name))
    for loaded, expected in (("to/docker:1", made), (name, pulled)):
        assert dockerd.docker("image", "inspect", "-f", "{{.Id}}", loaded).stdout.strip() == expected
    (layers,) = (json.loads(dockerd.docker("image", "inspect", "-f", "{{json .RootFS.Layers}}", "to/docker:1").stdout),)
    assert layers == daemon.http("GET", "/images/to/docker:1/json").json()["RootFS"]["Layers"]


def test_docker_loads_this_hosts_platform_of_several(daemon: Daemon, dockerd: Dockerd) -> None:
    both = Platforms()
    load(daemon, both.layout("docker.io/library/several:1"))
    dockerd.docker_bytes("load", input=save(daemon, "several:1"))
    assert dockerd.docker("images", "-q", "--no-trunc", "several:1").stdout.strip() == both.own.config_digest
    theirs = dockerd.docker_bytes("save", "several:1").stdout
    dockerd.docker("rmi", "several:1")
    daemon.docker("rmi", "several:1")
    load(daemon, theirs)
    assert daemon.docker("run", "--rm", "several:1").stdout == f"{ARCHITECTURE} 0"


def test_husk_loads_what_docker_saved(daemon: Daemon, dockerd: Dockerd) -> None:
    committed(daemon, "there/and:back", "echo one > /new; mkdir -p /d; ln /new /d/hard; ln -s /new /d/soft")
    dockerd.docker_bytes("load", input=save(daemon, "there/and:back"))
    dockerd.docker_bytes("import", "-c", 'CMD ["echo", "two"]', "-", "two:1", input=busybox_layer())
    archive = dockerd.docker_bytes("save", "there/and:back", "two:1").stdout
    ids = dockerd.docker("image", "inspect", "-f", "{{.Id}}", "there/and:back", "two:1").stdout.split()
    forget_images(daemon)
    told = load(daemon, archive)
    assert {r["stream"] for r in told} == {"Loaded image: there/and:back\n", "Loaded image: two:1\n"}
    assert [image_id(daemon, "there/and:back"), image_id(daemon, "two:1")] == ids
    assert daemon.docker("run", "--rm", "there/and:back", "cat", "/d/hard", "/d/soft").stdout == "one\none\n"
    assert daemon.docker("run", "--rm", "two:1").stdout == "two\n"


def test_skopeo_reads_both_sides_of_an_archive(daemon: Daemon, tmp_path: Path) -> None:
    made = committed(daemon, "to/skopeo:1")
    (tmp_path / "a.tar").write_bytes(save(daemon, "to/skopeo:1"))
    for source in (f"docker-archive:{tmp_path}/a.tar", f"oci-archive:{tmp_path}/a.tar"):
        config = skopeo("inspect", "--config", "--raw", source)
        assert digest_of(config.encode()) == made, source
        skopeo("copy", source, f"dir:{tmp_path}/{source.partition(':')[0]}")


def test_husk_loads_what_skopeo_wrote(daemon: Daemon, tmp_path: Path) -> None:
    committed(daemon, "from/skopeo:1")
    (tmp_path / "a.tar").write_bytes(save(daemon, "from/skopeo:1"))
    forget_images(daemon)
    skopeo("copy", f"docker-archive:{tmp_path}/a.tar", f"docker-archive:{tmp_path}/b.tar:other/name:2")
    skopeo("copy", f"docker-archive:{tmp_path}/a.tar", f"oci-archive:{tmp_path}/c.tar:third/name:3")
    for file, name in (("b.tar", "other/name:2"), ("c.tar", "third/name:3")):
        assert load(daemon, (tmp_path / file).read_bytes())[-1] == {"stream": f"Loaded image: {name}\n"}
        assert daemon.docker("run", "--rm", name).stdout == "new\n"
        forget_images(daemon)


def skopeo(*arguments: str) -> str:
    done = subprocess.run(["skopeo", "--insecure-policy", *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_parent_that_is_in_the_archive_stays_one(daemon: Daemon) -> None:
    below = committed(daemon, "below:1")
    daemon.docker("run", "--name", "made", "below:1", "true")
    daemon.docker("commit", "made", "above:1")
    daemon.remove_containers()
    assert _parent(daemon, "above:1") == below
    both, alone = save(daemon, "above:1", "below:1"), save(daemon, "above:1")
    listed = {entry["RepoTags"][0]: entry for entry in json.loads(files_of(both)["manifest.json"])}
    assert (listed["above:1"].get("Parent"), listed["below:1"].get("Parent")) == (below, None)
    daemon.docker("rmi", "above:1", "below:1")
    load(daemon, both)
    assert (_parent(daemon, "above:1"), _parent(daemon, "below:1")) == (below, "")
    daemon.docker("rmi", "above:1", "below:1")
    load(daemon, alone)
    assert _parent(daemon, "above:1") == ""
    lying = both.replace(f'"Parent":"{below}"'.encode(), f'"Parent":"{image_id(daemon, "busybox")}"'.encode())
    daemon.docker("rmi", "above:1")
    load(daemon, lying)
    assert _parent(daemon, "above:1") == "", "only an image of the same archive counts"
    forget_images(daemon)


def _parent(daemon: Daemon, name: str) -> str:
    return str(daemon.http("GET", f"/images/{name}/json").json().get("Parent", ""))


# -- archives that are wrong -------------------------------------------------------------------------------------------


def archive_of(**members: bytes) -> bytes:
    return tar_of({name.replace("__", "/").replace("_", "."): data for name, data in members.items()})


def broken_archives() -> dict[str, bytes]:
    layer = tar_of({"etc/motd": b"hello"})
    image = make_image([layer])
    config = image.blobs[image.config_digest]
    listed = json.dumps([{"Config": "config.json", "RepoTags": ["broken:1"], "Layers": ["layer.tar"]}]).encode()
    whole = {"manifest.json": listed, "config.json": config, "layer.tar": layer}
    digest = image.layer_digests[0].removeprefix("sha256:")
    return {
        "no archive": b"this is no tar at all" * 100,
        "cut off": tar_of(whole)[:1500],
        "cut off in gzip": gzip.compress(tar_of(whole))[:-20],
        "no manifest": tar_of({"config.json": config, "layer.tar": layer}),
        "no config": tar_of({"manifest.json": listed, "layer.tar": layer}),
        "no layer": tar_of({"manifest.json": listed, "config.json": config}),
        "another layer": tar_of({**whole, "layer.tar": tar_of({"etc/motd": b"other"})}),
        "a wrong name": tar_of({**whole, "manifest.json": listed.replace(b"broken:1", b"BROKEN:1")}),
        "no JSON": tar_of({**whole, "manifest.json": b"[{]"}),
        "too many layers": tar_of({**whole, "manifest.json": listed.replace(b'["lay', b'["x", "lay')}),
        "a wrong digest": tar_of({"manifest.json": listed, f"blobs/sha256/{digest}": gzip.compress(layer)}),
        "a path out": tar_of({"../../../etc/motd": layer, "manifest.json": listed}),
    }


@pytest.mark.parametrize("problem", broken_archives())
def test_a_broken_archive_leaves_nothing(daemon: Daemon, problem: str) -> None:
    before = settled(daemon)
    answer = daemon.http(
        "POST", "/images/load?quiet=1", broken_archives()[problem], {"Content-Type": "application/x-tar"}
    )
    assert answer.status == 200, answer.body
    assert json.loads(answer.body.splitlines()[-1])["error"], "told in the stream, as by dockerd"
    until(lambda: stored(daemon) == before, "the store is as before")


def test_a_client_that_leaves_ends_its_load(daemon: Daemon) -> None:
    committed(daemon, "cut:1", "head -c 20000000 /dev/urandom > /new")
    archive = save(daemon, "cut:1")
    forget_images(daemon)
    before = settled(daemon)
    with contextlib.closing(half_sent(daemon, archive)):
        until(lambda: stored(daemon) != before, "the load has begun")
    until(lambda: stored(daemon) == before, "the store is as before")


def half_sent(daemon: Daemon, archive: bytes) -> socket.socket:
    channel = daemon.raw()
    head = f"POST /images/load?quiet=1 HTTP/1.1\r\nHost: x\r\nContent-Length: {len(archive)}\r\n\r\n"
    channel.sendall(head.encode() + archive[: len(archive) // 2])
    return channel


def test_a_daemon_killed_while_it_loads_leaves_nothing(fresh_daemon: Daemon) -> None:
    daemon = fresh_daemon
    made = committed(daemon, "cut:1", "head -c 20000000 /dev/urandom > /new")
    archive = save(daemon, "cut:1")
    forget_images(daemon)
    before = settled(daemon)
    with contextlib.closing(half_sent(daemon, archive)):
        until(lambda: stored(daemon) != before, "the load has begun")
        daemon.kill9()
    daemon.start()
    until(lambda: stored(daemon) == before, "the store is as before")
    load(daemon, archive)
    assert image_id(daemon, "cut:1") == made


def test_an_image_may_be_removed_while_it_is_saved(daemon: Daemon) -> None:
    before = settled(daemon)
    made = committed(daemon, "going:1", "head -c 20000000 /dev/urandom > /new")
    connection = daemon.connection()
    with contextlib.closing(connection):
        connection.request("GET", "/images/going:1/get")
        response = connection.getresponse()
        archive = response.read(1000)
        daemon.docker("rmi", "going:1")
        archive += response.read()
    until(lambda: stored(daemon) == before, "nothing is left of the image")
    load(daemon, archive)
    assert image_id(daemon, "going:1") == made


@pytest.mark.parametrize("compression", ["gzip", "zstd", "xz", "bzip2"])
@pytest.mark.parametrize("layout", [False, True])
def test_layers_inside_may_be_compressed(daemon: Daemon, compression: str, layout: bool) -> None:
    """Docker takes them in any form; what no registry would take is kept plain, so that it can be pushed."""
    packed = COMPRESSIONS[compression](busybox_layer())
    image = make_image([busybox_layer()])
    config = image.blobs[image.config_digest]
    place = "blobs/sha256/" + digest_of(packed)[7:] if layout else "layer.tar"
    listed = [{"Config": "c.json", "RepoTags": ["packed:1"], "Layers": [place]}]
    load(daemon, tar_of({"manifest.json": json.dumps(listed).encode(), "c.json": config, place: packed}))
    assert daemon.docker("run", "--rm", "packed:1", "echo", "unpacked").stdout == "unpacked\n"
    saved = files_of(save(daemon, "packed:1"))
    (layer,) = json.loads(saved["manifest.json"])[0]["Layers"]
    assert saved[layer] == (packed if compression in ("gzip", "zstd") else busybox_layer())


def test_a_compressed_layer_in_the_wrong_place_is_refused(daemon: Daemon) -> None:
    before, place = settled(daemon), "blobs/sha256/" + "0" * 64
    archive = tar_of({place: lzma.compress(busybox_layer())})
    answer = daemon.http("POST", "/images/load?quiet=1", archive, {"Content-Type": "application/x-tar"})
    assert "has the digest" in answer.json()["error"]
    until(lambda: stored(daemon) == before, "what was unpacked is gone")
