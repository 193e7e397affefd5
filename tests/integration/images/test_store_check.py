"""`husk doctor --check-store` finds every kind of damage in a real daemon's store, and mends what can be mended."""

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.doctor import assert_sound, check_store
from tests.support.images import busybox_layer, forget_images, settled
from tests.support.registry import Registry, push_image, tar_of


@pytest.fixture
def pulled(daemon: Daemon, registry: Registry) -> Iterator[str]:
    """An image of two layers that was pulled; the daemon is stopped, so that its store can be damaged."""
    name = f"{registry.host}/app:1"
    push_image(registry, "app", "1", [busybox_layer(), tar_of({"etc/motd": b"hello\n", "bin/tool": b"x" * 5000})])
    daemon.docker("pull", name)
    settled(daemon)
    daemon.stop()
    yield name
    if daemon.process is None:
        daemon.start()
    forget_images(daemon)


def database(daemon: Daemon) -> contextlib.closing[sqlite3.Connection]:
    return contextlib.closing(sqlite3.connect(daemon.config.data_root / "state.db", isolation_level=None))


def documents(daemon: Daemon, kind: str) -> dict[str, dict]:
    with database(daemon) as state:
        rows = state.execute("SELECT key, body FROM document WHERE kind = ?", (kind,)).fetchall()
    return {key: json.loads(body) for key, body in rows}


def write(daemon: Daemon, kind: str, key: str, body: bytes) -> None:
    with database(daemon) as state:
        state.execute("INSERT OR REPLACE INTO document (kind, key, body) VALUES (?, ?, ?)", (kind, key, body))


def layer_with(daemon: Daemon, file: str) -> tuple[dict, Path]:
    """The record and the directory of the layer that has this file."""
    for record in documents(daemon, "layer").values():
        path = daemon.config.data_root / "layers/l" / record["directory"]
        if (path / file).exists():
            return record, path
    raise AssertionError(f"no layer has {file}")


def blob(daemon: Daemon, digest: str) -> Path:
    return daemon.config.data_root / "blobs/sha256" / digest.removeprefix("sha256:")


def flip(path: Path) -> None:
    """Change one byte and nothing that stat tells."""
    before = path.stat()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def runs(daemon: Daemon, image: str) -> None:
    if daemon.process is None:
        daemon.start()
    assert daemon.docker("run", "--rm", image, "cat", "/etc/motd").stdout == "hello\n"


def test_a_store_in_use_is_sound_with_and_without_its_daemon(daemon: Daemon, pulled: str):
    assert_sound(daemon)
    assert_sound(daemon, "--deep")
    daemon.start()
    daemon.docker("run", "-d", pulled, "sleep", "600")
    live = check_store(daemon, "--deep")
    assert live.returncode == 0 and "A daemon uses this store" in live.stdout, live.stdout
    refused = check_store(daemon, "--fix")
    assert refused.returncode == 1
    assert refused.stderr.startswith("husk: nothing is mended while a daemon works: the data root")


@pytest.mark.parametrize("damage", ["directory gone", "file short"])
def test_a_damaged_layer_is_unpacked_again(daemon: Daemon, pulled: str, damage: str):
    record, path = layer_with(daemon, "bin/tool")
    if damage == "file short":
        os.truncate(path / "bin/tool", 10)
    else:
        os.rename(path, path.with_name("elsewhere"))
    found = check_store(daemon)
    assert found.returncode == 1
    assert f"FAIL  layer {record['chain_id']}" in found.stdout and "unpacks it again" in found.stdout
    assert check_store(daemon).stdout == found.stdout, "looking changes nothing"
    fixed = check_store(daemon, "--fix")
    assert fixed.returncode == 0 and "unpacked layer" in fixed.stderr, fixed.stderr
    assert_sound(daemon, "--deep")
    runs(daemon, pulled)


def test_only_deep_sees_a_file_that_looks_as_before(daemon: Daemon, pulled: str):
    flip(layer_with(daemon, "bin/tool")[1] / "bin/tool")
    assert check_store(daemon).returncode == 0
    found = check_store(daemon, "--deep")
    assert found.returncode == 1 and "/bin/tool has another content" in found.stdout
    assert check_store(daemon, "--deep", "--fix").returncode == 0
    assert_sound(daemon, "--deep")
    runs(daemon, pulled)


def test_a_layer_that_a_container_runs_on_is_not_exchanged(daemon: Daemon, pulled: str):
    daemon.start()
    daemon.docker("run", "-d", "--name", "user", pulled, "sleep", "600")
    daemon.stop()
    (layer_with(daemon, "bin/tool")[1] / "bin/tool").unlink()
    refused = check_store(daemon, "--fix")
    assert refused.returncode == 1 and "stop container user" in refused.stdout
    daemon.start()
    live = check_store(daemon)
    assert live.returncode == 1 and "stop container user" in live.stdout, "what is damaged is told beside a daemon too"
    daemon.docker("rm", "-f", "user")
    daemon.stop()
    assert check_store(daemon, "--fix").returncode == 0
    runs(daemon, pulled)


def test_an_image_whose_blob_is_damaged_can_be_pulled_again(daemon: Daemon, pulled: str):
    record, _ = layer_with(daemon, "bin/tool")
    flip(blob(daemon, record["blob"]))
    found = check_store(daemon)
    assert found.returncode == 1 and "is damaged: its content has the digest" in found.stdout
    fixed = check_store(daemon, "--fix")
    assert fixed.returncode == 0 and f"docker pull {pulled} brings it back" in fixed.stderr, fixed.stderr
    assert_sound(daemon)
    daemon.start()
    daemon.docker("pull", pulled)
    runs(daemon, pulled)


def test_the_blob_of_a_commit_is_made_again_from_its_files(daemon: Daemon, pulled: str):
    daemon.start()
    script = "echo hello > /etc/motd; ln /etc/motd /etc/same; rm /bin/tool; ln -s x /y; mkdir -m 700 /d"
    daemon.docker("run", "--name", "maker", pulled, "sh", "-c", script)
    daemon.docker("commit", "maker", "made")
    daemon.docker("rm", "maker")
    daemon.stop()
    record, _ = layer_with(daemon, "etc/same")
    blob(daemon, record["blob"]).unlink()
    fixed = check_store(daemon, "--fix")
    assert fixed.returncode == 0 and "packed layer" in fixed.stderr, fixed.stderr
    assert_sound(daemon, "--deep")
    runs(daemon, "made")
    assert daemon.http("GET", "/images/made/get").status == 200


def test_a_layer_that_is_lost_takes_its_image_along(daemon: Daemon, pulled: str):
    record, path = layer_with(daemon, "bin/tool")
    blob(daemon, record["blob"]).unlink()
    os.rename(path, path.with_name("elsewhere"))
    fixed = check_store(daemon, "--fix")
    assert fixed.returncode == 0
    assert "removed the broken image" in fixed.stderr and f"docker pull {pulled} brings it back" in fixed.stderr
    assert_sound(daemon)
    daemon.start()
    daemon.docker("pull", pulled)
    runs(daemon, pulled)


def test_a_manifest_is_composed_again(daemon: Daemon, pulled: str):
    image = next(image for image in documents(daemon, "image").values() if len(image["chain_ids"]) == 2)
    flip(blob(daemon, image["manifest"]))
    assert "its manifest" in check_store(daemon).stdout
    assert check_store(daemon, "--fix").returncode == 0
    assert_sound(daemon)
    runs(daemon, pulled)
    assert daemon.http("GET", f"/images/{image['id']}/get").status == 200


def test_a_configuration_that_is_damaged_breaks_the_image(daemon: Daemon, pulled: str):
    image = next(image for image in documents(daemon, "image").values() if len(image["chain_ids"]) == 2)
    flip(blob(daemon, image["id"]))
    found = check_store(daemon)
    assert f"image {image['id'][7:19]} ({pulled}): its configuration" in found.stdout
    assert check_store(daemon, "--fix").returncode == 0
    assert_sound(daemon)


def test_records_that_mean_nothing_are_forgotten_and_those_of_users_are_kept(daemon: Daemon, pulled: str):
    daemon.start()
    daemon.docker("volume", "create", "precious")
    daemon.docker("run", "--rm", "-v", "precious:/v", pulled, "sh", "-c", "echo kept > /v/file")
    container = daemon.docker("create", pulled, "true").stdout.strip()
    daemon.stop()
    record, _ = layer_with(daemon, "bin/tool")
    write(daemon, "layer", "sha256:" + "2" * 64, json.dumps(record).encode())
    write(daemon, "image-name", "docker.io/library/ghost:latest", b"sha256:" + b"0" * 64)
    write(daemon, "layer", "sha256:" + "1" * 64, b"no JSON")
    write(daemon, "volume", "precious", b"{")
    write(daemon, "container", container, b"[]")
    found = check_store(daemon)
    assert found.returncode == 1 and found.stdout.count("FAIL  ") == 5, found.stdout
    fixed = check_store(daemon, "--fix")
    assert fixed.returncode == 0, fixed.stdout
    lost = daemon.config.data_root / "lost"
    assert (lost / f"container-{container}.json").read_bytes() == b"[]"
    assert any(name.startswith(f"container-{container}-") for name in os.listdir(lost))
    assert_sound(daemon)
    daemon.start()
    assert daemon.docker("run", "--rm", "-v", "precious:/v", pulled, "cat", "/v/file").stdout == "kept\n"
    daemon.docker("volume", "rm", "precious")


def test_leftovers_are_told_and_removed_and_are_no_damage(daemon: Daemon, pulled: str):
    root = daemon.config.data_root
    (root / "layers/l/zz/deep").mkdir(parents=True)
    (root / "layers/trash/zy").mkdir()
    (root / "blobs/ingest/7").write_bytes(b"half")
    (root / "blobs/sha256" / ("0" * 64)).write_bytes(b"wrong")
    (root / "blobs/sha256/README").write_bytes(b"no blob")
    (root / ".check-4194399-x").mkdir()
    found = check_store(daemon)
    assert found.returncode == 0 and found.stdout.count("warn  ") == 6, found.stdout
    assert check_store(daemon, "--quiet").stdout == ""
    assert check_store(daemon, "--fix").returncode == 0
    assert_sound(daemon)
    runs(daemon, pulled)


def test_a_container_without_its_layer_is_told_and_kept(daemon: Daemon, pulled: str):
    daemon.start()
    daemon.docker("create", "--name", "stranded", pulled, "true")
    daemon.stop()
    record, _ = layer_with(daemon, "bin/tool")
    with database(daemon) as state:
        state.execute("DELETE FROM document WHERE kind = 'layer' AND key = ?", (record["chain_id"],))
    fixed = check_store(daemon, "--fix")
    assert fixed.returncode == 1
    assert "container stranded: it cannot start: its layer" in fixed.stdout
    daemon.start()
    daemon.docker("rm", "stranded")
    settled(daemon)
    daemon.stop()
    assert_sound(daemon)


def test_a_store_without_records_is_left_alone(daemon: Daemon, pulled: str):
    state = daemon.config.data_root / "state.db"
    os.rename(state, state.with_name("kept.db"))
    try:
        refused = check_store(daemon, "--fix")
        assert refused.returncode == 1 and "put it back from a backup" in refused.stderr
        state.write_bytes(b"this is no database" * 1000)
        refused = check_store(daemon, "--fix")
        assert refused.returncode == 1 and "put it back from a backup" in refused.stderr.lower()
    finally:
        os.rename(state.with_name("kept.db"), state)
    assert_sound(daemon)
