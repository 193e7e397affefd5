"""A full disk: what runs ends as it should, what is to go goes, the daemon starts, and changes are refused in words."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from husk.kernel import cgroups
from tests.support.building import Builds, Context, needs_buildx
from tests.support.daemon import Daemon
from tests.support.disk import SmallDisk, small_disk
from tests.support.lifecycle import create, ended, inspect, logs, post, started, state, status
from tests.support.waiting import until
from tests.support.wire import RawClient

FULL = "no space left on device"
UPGRADE = {"Connection": "Upgrade", "Upgrade": "tcp"}


@dataclass
class Place:
    """A daemon whose data root is on a disk of its own."""

    disk: SmallDisk
    daemon: Daemon

    def names(self) -> set[str]:
        listed = self.daemon.http("GET", "/containers/json?all=1").json()
        return {container["Names"][0].removeprefix("/") for container in listed}

    def mounted(self, container: str) -> bool:
        return any(container in path for path in self.disk.mounts)

    def cgroups(self, container: str) -> list[str]:
        name = f"{self.daemon.config.cgroup_parent.lstrip('/')}/{container}"
        return [str(tree.path / name) for tree in cgroups.hierarchies() if (tree.path / name).is_dir()]

    def files(self) -> set[str]:
        """The names of directories and blobs that containers, volumes and images have."""
        found = set()
        for kind in ("containers", "volumes", "layers", "blobs/sha256"):
            found |= {f"{kind}/{path.name}" for path in (self.disk.root / "data" / kind).glob("*")}
        return found

    def warned(self) -> bool:
        return any(FULL in warning for warning in self.daemon.http("GET", "/info").json()["Warnings"] or ())

    def brimful(self) -> None:
        """Full, and the daemon has noticed: what it kept for such times is given up too."""
        self.disk.fill()
        answer = self.daemon.http("POST", "/images/busybox/tag?repo=too-much&tag=1")
        assert (answer.status, answer.message.endswith(FULL)) == (500, True)
        self.disk.fill()


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    if os.geteuid() != 0:
        pytest.skip("needs root: it runs real containers")
    with small_disk() as disk:
        daemon = Daemon(data_root=disk.root / "data")
        try:
            with daemon:
                yield Place(disk, daemon)
                disk.make_room()
        finally:
            print(daemon.log())


def test_the_end_of_a_container_is_seen_told_and_released(place: Place):
    daemon = place.daemon
    container = started(daemon, "sh", "-c", "while [ ! -e /dev/shm/end ]; do sleep 0.05; done; exit 7")
    place.disk.fill()
    daemon.docker("exec", container, "touch", "/dev/shm/end")
    assert ended(daemon, container) == 7
    assert status(daemon, container) == "exited"
    assert (place.mounted(container), place.cgroups(container)) == (False, [])
    place.disk.make_room()
    until(lambda: daemon.http("POST", "/images/busybox/tag?repo=room&tag=1").status == 201, "there is room again")
    daemon.kill9()
    daemon.start()
    seen = state(daemon, container)
    assert (seen["Status"], seen["ExitCode"]) == ("exited", 7)


def test_the_record_of_an_end_follows_though_nothing_could_be_written(place: Place):
    daemon = place.daemon
    containers = [started(daemon, name=f"c{n}") for n in range(4)]
    place.brimful()
    for number, container in enumerate(containers):
        assert post(daemon, container, f"kill?signal={'INT' if number else 'KILL'}").status == 204
        if number:
            os.kill(state(daemon, container)["Pid"], 9)
        assert ended(daemon, container) == 137
        place.disk.fill()
    place.disk.make_room()
    until(lambda: daemon.http("POST", "/images/busybox/tag?repo=room&tag=1").status == 201, "there is room again")
    daemon.kill9()
    daemon.start()
    assert {status(daemon, container) for container in containers} == {"exited"}
    assert {state(daemon, container)["ExitCode"] for container in containers} == {137}


def test_always_is_kept_on_a_full_disk(place: Place):
    daemon = place.daemon
    container = started(daemon, host={"RestartPolicy": {"Name": "always"}})
    place.brimful()
    os.kill(state(daemon, container)["Pid"], 9)
    until(lambda: inspect(daemon, container)["RestartCount"] > 0, "its end was seen")
    place.disk.make_room()
    until(lambda: status(daemon, container) == "running", "it runs again, at the latest when there is room", 90)


def test_a_pause_that_fails_is_not_shown_and_not_made(place: Place):
    daemon = place.daemon
    container = started(daemon)
    place.brimful()
    answer = post(daemon, container, "pause")
    assert (answer.status, answer.message.endswith(FULL)) == (500, True)
    assert (status(daemon, container), state(daemon, container)["Paused"]) == ("running", False)
    assert daemon.docker("exec", container, "echo", "awake").stdout == "awake\n"


def test_a_paused_container_is_thawed_stopped_and_removed(place: Place):
    daemon = place.daemon
    thawed, stopped = started(daemon), started(daemon)
    for container in (thawed, stopped):
        assert post(daemon, container, "pause").status == 204
    place.brimful()
    assert post(daemon, thawed, "unpause").status == 204
    assert status(daemon, thawed) == "running"
    assert post(daemon, stopped, "stop?t=0").status == 204
    assert status(daemon, stopped) == "exited"
    assert daemon.http("DELETE", f"/containers/{stopped}?force=1").status == 204


def test_everything_can_be_removed(place: Place):
    daemon = place.daemon
    for name in ("one", "two", "three"):
        started(daemon, name=name, Volumes={"/data": {}})
    assert daemon.http("POST", "/volumes/create", {"Name": "cellar"}).status == 201
    assert daemon.http("POST", "/networks/create", {"Name": "lane"}).status == 201
    assert daemon.http("POST", "/images/busybox/tag?repo=other&tag=1").status == 201
    place.brimful()
    for name in ("one", "two", "three"):
        answer = daemon.http("DELETE", f"/containers/{name}?force=1&v=1")
        assert answer.status == 204, answer.body
        place.disk.fill()
    assert (place.names(), place.disk.mounts) == (set(), [])
    assert daemon.http("DELETE", "/volumes/cellar").status == 204
    assert daemon.http("DELETE", "/networks/lane").status == 204
    assert daemon.http("DELETE", "/images/other:1").status == 200
    assert daemon.http("GET", "/volumes").json()["Volumes"] == []
    daemon.restart()
    assert place.names() == set()
    assert daemon.http("GET", "/networks/lane").status == 404


def test_changes_are_refused_in_words_and_leave_nothing(place: Place):
    daemon = place.daemon
    kept, attached = create(daemon, "true", name="kept"), started(daemon, name="attached")
    assert daemon.http("POST", "/networks/create", {"Name": "lane"}).status == 201
    place.brimful()
    before = place.files()
    refused = [
        daemon.http("POST", "/containers/create?name=new", {"Image": "busybox", "Volumes": {"/data": {}}}),
        daemon.http("POST", "/volumes/create", {"Name": "new"}),
        daemon.http("POST", "/networks/create", {"Name": "new"}),
        daemon.http("POST", "/images/busybox/tag?repo=new&tag=1"),
        daemon.http("POST", f"/containers/{kept}/rename?name=new"),
        daemon.http("POST", f"/containers/{kept}/start"),
        daemon.http("POST", f"/commit?container={kept}"),
        daemon.http("POST", f"/containers/{kept}/update", {"RestartPolicy": {"Name": "always"}}),
        daemon.http("POST", "/networks/lane/connect", {"Container": "attached"}),
    ]
    assert [(answer.status, answer.message.endswith(FULL)) for answer in refused] == [(500, True)] * len(refused)
    assert (place.names(), status(daemon, kept)) == ({"kept", "attached"}, "created")
    assert list(inspect(daemon, attached)["NetworkSettings"]["Networks"]) == ["bridge"]
    assert "eth1" not in daemon.docker("exec", attached, "ls", "/sys/class/net").stdout
    assert daemon.http("DELETE", f"/containers/{attached}?force=1").status == 204
    gone = {f"containers/{attached}"}
    until(lambda: place.files() == before - gone, "nothing is left of what was refused")
    assert daemon.http("GET", "/volumes").json()["Volumes"] == []
    assert daemon.http("GET", "/networks/new").status == 404
    assert daemon.http("GET", "/images/new:1/json").status == 404
    assert inspect(daemon, kept)["HostConfig"]["RestartPolicy"]["Name"] != "always"
    assert place.disk.mounts == []
    place.disk.make_room()
    until(lambda: post(daemon, kept, "start").status == 204, "there is room again")
    assert ended(daemon, kept) == 0


@pytest.mark.parametrize("how", ["stopped", "killed", "without its reserve"])
def test_the_daemon_starts_and_says_what_is_wrong(place: Place, how: str):
    daemon = place.daemon
    running, over = started(daemon, name="running"), started(daemon, "sh", "-c", "exit 3", name="over")
    assert ended(daemon, over) == 3
    daemon.kill9() if how == "killed" else daemon.stop()
    if how == "without its reserve":
        (place.disk.root / "data" / "state.reserve").unlink()
    place.disk.fill()
    daemon.start()
    place.disk.fill()
    assert (status(daemon, running), status(daemon, over)) == ("running", "exited")
    assert place.warned()
    assert FULL in daemon.log()
    answer = daemon.http("POST", "/containers/create?name=new", {"Image": "busybox"})
    assert (answer.status, answer.message.endswith(FULL)) == (500, True)
    assert daemon.http("DELETE", f"/containers/{running}?force=1").status == 204
    place.disk.make_room()
    until(lambda: daemon.http("POST", "/containers/create?name=new", {"Image": "busybox"}).status == 201, "room")
    assert not place.warned()
    assert place.names() == {"over", "new"}


def test_a_new_data_root_on_a_full_disk_is_opened_without_an_image(place: Place):
    daemon = place.daemon
    assert daemon.http("DELETE", "/images/busybox:latest").status == 200
    daemon.stop()
    place.disk.fill()
    daemon.start()
    assert daemon.http("GET", "/images/json").json() == []


def test_the_output_goes_on_and_the_log_when_it_can(place: Place):
    daemon = place.daemon
    script = "n=0; while true; do n=$((n + 1)); echo line $n; sleep 0.02; done"
    container = started(daemon, "sh", "-c", script)
    until(lambda: b"line 5\n" in logs(daemon, container), "it writes")
    place.disk.fill()
    with RawClient(daemon.raw()) as client:
        client.request("POST", f"/containers/{container}/attach?stream=1&stdout=1", headers=UPGRADE)
        assert client.head().status == 101
        seen = [client.read_frame()[1] for _ in range(50)]
        assert all(line.startswith(b"line ") for line in seen)
        place.disk.make_room()
        later = seen[-1]
        until(lambda: client.read_frame()[1] in logs(daemon, container), "the log goes on")
    assert status(daemon, container) == "running"
    assert later.startswith(b"line ")


def test_an_image_that_has_no_room_is_told_and_leaves_nothing(place: Place):
    daemon = place.daemon
    archive = daemon.http("GET", "/images/busybox:latest/get").body
    place.disk.fill()
    before = place.files()
    answer = daemon.http(
        "POST", "/images/create?fromSrc=-&repo=new&tag=1", archive, {"Content-Type": "application/x-tar"}
    )
    assert FULL in answer.body.decode().lower()
    assert daemon.http("GET", "/images/new:1/json").status == 404
    until(lambda: place.files() == before, "nothing is left of it")


@needs_buildx
@pytest.mark.parametrize("buildkit", [True, False], ids=["buildkit", "classic"])
def test_a_build_says_that_the_disk_is_full(place: Place, tmp_path: Path, buildkit: bool):
    """Also the first of a daemon: whatever the builder needs to be opened, its door answers."""
    (tmp_path / "context").mkdir()
    builds = Builds(place.daemon, Context(tmp_path / "context"), buildkit=buildkit)
    place.brimful()
    for _ in range(2):
        done = builds.run("FROM busybox\nRUN echo hi > /x\n", check=False)
        said = done.stdout + done.stderr
        assert done.returncode and FULL in said and "booting" not in said, said
    assert place.daemon.http("POST", "/build/prune?all=1").status == 200
    place.disk.make_room()
    builds.run("FROM busybox\nRUN echo hi > /x\n")
