"""The power fails right after the API has acknowledged something: it is there when the power is back, and whole."""

import contextlib
import io
import json
import os
import sqlite3
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.doctor import assert_sound, check_store
from tests.support.images import busybox_layer
from tests.support.powercut import Disk
from tests.support.registry import Registry, push_image, tar_of
from tests.support.swarm import Swarm
from tests.support.waiting import until

MARK = "marked\n" * 40_000


class Powered:
    """A daemon whose disk can lose what was not synced."""

    def __init__(self, daemon: Daemon, disk: Disk) -> None:
        self.daemon = daemon
        self.docker = daemon.docker
        self.http = daemon.http
        self._disk = disk

    def post(self, path: str, body: object = None) -> None:
        kind = {"Content-Type": "application/x-tar" if isinstance(body, bytes) else "application/json"}
        answer = self.http("POST", path, body, kind if body is not None else {})
        assert answer.status < 300 and b'"error"' not in answer.body, answer.body

    def sync(self) -> None:
        """Sync the disk: the work before the test's own operation is no part of the test."""
        self._disk.sync()

    def cut(self, *processes: int, start: bool = True) -> None:
        self._disk.cut(self.daemon, *processes, start=start)

    def unsynced(self) -> list[str]:
        """The directories of layers whose files are not known to be on the disk."""
        with contextlib.closing(
            sqlite3.connect(f"file:{self.daemon.config.data_root}/state.db?mode=ro", uri=True)
        ) as db:
            records = [json.loads(body) for (body,) in db.execute("select body from document where kind = 'layer'")]
        return [record["directory"] for record in records if not record["synced"]]

    def has_mark(self, image: str) -> None:
        assert self.docker("run", "--rm", "--pull=never", image, "cat", "/mark").stdout == MARK

    def check(self) -> None:
        """Nothing is damaged, and nothing is left over."""
        self.daemon.stop()
        assert_sound(self.daemon, "--deep")
        self.daemon.start()


@pytest.fixture
def powered() -> Iterator[Powered]:
    daemon = Daemon()
    try:
        with Disk(daemon.config.data_root) as disk:
            daemon.start()
            yield Powered(daemon, disk)
            if daemon.process is None:
                daemon.start()
            daemon.remove_containers()
            daemon.stop()
    finally:
        daemon.close()


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with Registry() as registry:
        push_image(registry, "app", "1", [busybox_layer(), tar_of({"mark": MARK.encode(), "etc/empty": b""})])
        yield registry


def root() -> bytes:
    """A file system with busybox and the mark."""
    buffer = io.BytesIO(busybox_layer())
    with tarfile.open(fileobj=buffer, mode="a") as tar:
        mark = tarfile.TarInfo("mark")
        mark.size = len(MARK)
        tar.addfile(mark, io.BytesIO(MARK.encode()))
    return buffer.getvalue()


def test_an_imported_image(powered: Powered) -> None:
    powered.sync()
    powered.post("/images/create?fromSrc=-&repo=app&tag=1", root())
    powered.cut()
    powered.has_mark("app:1")
    powered.check()


def test_a_loaded_image(powered: Powered) -> None:
    powered.post("/images/create?fromSrc=-&repo=app&tag=1", root())
    archive = powered.daemon.docker_bytes("save", "app:1").stdout
    powered.docker("rmi", "app:1")
    powered.sync()
    powered.post("/images/load", archive)
    powered.cut()
    powered.has_mark("app:1")
    powered.check()


def test_a_pulled_image(powered: Powered, registry: Registry) -> None:
    powered.sync()
    powered.post(f"/images/create?fromImage={registry.host}/app&tag=1")
    powered.cut()
    powered.has_mark(f"{registry.host}/app:1")
    powered.check()


def test_files_of_a_pulled_image_that_were_not_on_the_disk_are_unpacked_again(
    powered: Powered, registry: Registry
) -> None:
    powered.sync()
    powered.post(f"/images/create?fromImage={registry.host}/app&tag=1")
    powered.cut(start=False)
    lost = powered.unsynced()
    layers = powered.daemon.config.data_root / "layers/l"
    marks = [path for name in lost if (path := layers / name / "mark").exists() and path.stat().st_size == len(MARK)]
    assert len(lost) >= 2 and not marks, "the files were on the disk: nothing is shown by this test"
    powered.daemon.start()
    assert powered.unsynced() == []
    powered.has_mark(f"{registry.host}/app:1")
    powered.check()


def test_a_second_power_cut_right_after_the_files_were_unpacked_again(powered: Powered, registry: Registry) -> None:
    powered.sync()
    powered.post(f"/images/create?fromImage={registry.host}/app&tag=1")
    powered.cut()
    powered.cut()
    powered.has_mark(f"{registry.host}/app:1")
    powered.check()


def test_an_image_is_pulled_again_after_a_power_cut(powered: Powered, registry: Registry) -> None:
    powered.sync()
    powered.post(f"/images/create?fromImage={registry.host}/app&tag=1")
    powered.cut()
    assert "up to date" in powered.docker("pull", f"{registry.host}/app:1").stdout
    powered.has_mark(f"{registry.host}/app:1")
    powered.check()


def test_the_store_is_mended_without_a_daemon_after_a_power_cut(powered: Powered, registry: Registry) -> None:
    powered.sync()
    powered.post(f"/images/create?fromImage={registry.host}/app&tag=1")
    powered.cut(start=False)
    assert check_store(powered.daemon).returncode != 0
    check_store(powered.daemon, "--fix")
    assert_sound(powered.daemon, "--deep")
    powered.daemon.start()
    powered.has_mark(f"{registry.host}/app:1")


def test_files_of_layers_are_on_the_disk_soon_and_are_left_alone_then(powered: Powered, registry: Registry) -> None:
    powered.post(f"/images/create?fromImage={registry.host}/app&tag=1")
    until(lambda: not powered.unsynced(), "the files of all layers are on the disk")
    layers = powered.daemon.config.data_root / "layers/l"
    before = set(os.listdir(layers))
    # The record that says so follows within a second; another change waits for it as well.
    powered.docker("tag", f"{registry.host}/app:1", "other:1")
    powered.cut()
    assert set(os.listdir(layers)) == before
    powered.has_mark("other:1")
    powered.check()


def test_a_clean_end_leaves_nothing_to_unpack_again(powered: Powered, registry: Registry) -> None:
    powered.post(f"/images/create?fromImage={registry.host}/app&tag=1")
    powered.daemon.stop()
    assert powered.unsynced() == []
    powered.daemon.start()
    powered.has_mark(f"{registry.host}/app:1")


def test_a_committed_container(powered: Powered) -> None:
    powered.docker("run", "--name", "box", "busybox", "sh", "-c", "yes marked | head -n 40000 > /mark")
    powered.sync()
    powered.post("/commit?container=box&repo=made")
    powered.cut()
    powered.has_mark("made")
    powered.check()


def test_a_container_with_its_volumes_and_their_first_content(powered: Powered) -> None:
    """A named one and one without a name, both filled from the image."""
    powered.post("/images/create?fromSrc=-&repo=app&tag=1", root())
    powered.sync()
    powered.docker("create", "--name", "box", "-v", "named:/etc", "-v", "/bin", "app:1", "true")
    powered.cut()
    mounts = json.loads(powered.docker("inspect", "box").stdout)[0]["Mounts"]
    assert {mount["Destination"] for mount in mounts} == {"/etc", "/bin"}
    for mount in mounts:
        first = "passwd" if mount["Destination"] == "/etc" else "busybox"
        assert (Path(mount["Source"]) / first).stat().st_size > 0
    powered.docker("start", "-a", "box")
    powered.check()


def test_a_volume(powered: Powered) -> None:
    powered.sync()
    powered.docker("volume", "create", "--label", "a=b", "kept")
    powered.cut()
    volume = json.loads(powered.docker("volume", "inspect", "kept").stdout)[0]
    assert volume["Labels"] == {"a": "b"} and Path(volume["Mountpoint"]).is_dir()
    powered.docker("run", "--rm", "-v", "kept:/data", "busybox", "touch", "/data/file")
    powered.check()


def test_names_networks_and_removals(powered: Powered) -> None:
    """Records alone, one cut after each."""
    powered.docker("create", "--name", "old", "busybox")
    powered.docker("create", "--name", "going", "busybox")
    powered.docker("volume", "create", "going")
    powered.sync()
    for command in (
        ("rename", "old", "new"),
        ("tag", "busybox", "other:1"),
        ("network", "create", "net"),
        ("rm", "going"),
        ("volume", "rm", "going"),
        ("update", "--restart", "always", "new"),
    ):
        powered.docker(*command)
        powered.cut()
    assert powered.docker("ps", "-a", "--format", "{{.Names}}").stdout == "new\n"
    assert powered.docker("inspect", "-f", "{{.HostConfig.RestartPolicy.Name}}", "new").stdout == "always\n"
    assert powered.docker("run", "--rm", "--network", "net", "other:1", "echo", "hi").stdout == "hi\n"
    assert powered.docker("volume", "ls", "-q").stdout == ""
    powered.check()


def test_what_ran_with_a_restart_policy_runs_again_and_what_was_stopped_does_not(powered: Powered) -> None:
    for name in ("on", "off"):
        powered.docker("create", "--name", name, "--restart", "unless-stopped", "busybox", "sleep", "600")
    powered.docker("start", "off")
    powered.sync()
    powered.docker("stop", "-t", "0", "off")
    powered.docker("start", "on")
    powered.cut(int(powered.docker("inspect", "-f", "{{.State.Pid}}", "on").stdout))
    until(lambda: powered.docker("ps", "--format", "{{.Names}}").stdout == "on\n", "the one that ran runs again")
    assert powered.docker("inspect", "-f", "{{.State.Status}}", "off").stdout == "exited\n"


def test_secrets_and_the_key_that_opens_them(powered: Powered) -> None:
    powered.docker("swarm", "init", "--advertise-addr", "127.0.0.1")
    powered.sync()
    powered.docker("secret", "create", "word", "-", input="hush")
    powered.cut()
    script = ["sh", "-c", "cat /run/secrets/word; echo; sleep 600"]
    Swarm(powered.daemon).create("web", "--secret", "word", "--network", "host", args=script)
    until(lambda: "hush" in powered.docker("service", "logs", "web").stdout, "the secret can be read")
    powered.docker("swarm", "leave", "--force")


@pytest.mark.parametrize("again", ["import", "load", "pull"])
def test_bringing_a_damaged_image_again_mends_it(powered: Powered, registry: Registry, again: str) -> None:
    """As a power cut left it in the data roots of earlier versions: all files of its layers and its blobs are empty."""
    name, archive = f"{registry.host}/app:1" if again == "pull" else "app:1", b""
    bring = {
        "import": lambda: powered.post("/images/create?fromSrc=-&repo=app&tag=1", root()),
        "load": lambda: powered.post("/images/load", archive),
        "pull": lambda: powered.post(f"/images/create?fromImage={registry.host}/app&tag=1"),
    }
    if again == "load":
        bring["import"]()
    else:
        bring[again]()
    archive = powered.daemon.docker_bytes("save", name).stdout
    powered.daemon.stop()
    data_root = powered.daemon.config.data_root
    for place in ("layers/l", "blobs/sha256"):
        for path in (data_root / place).rglob("*"):
            if path.is_file() and not path.is_symlink():
                path.write_bytes(b"")
    powered.daemon.start()
    bring[again]()
    powered.has_mark(name)
    powered.daemon.stop()
    damaged = check_store(powered.daemon).stdout
    assert "app" not in damaged, damaged
    # The first image was damaged as well, and nobody brought that again.
    check_store(powered.daemon, "--fix")
    assert_sound(powered.daemon, "--deep")
    powered.daemon.start()
    powered.has_mark(name)
