"""Volumes outlive the daemon: what was acknowledged is there, what was half done is gone, mounts follow containers."""

import contextlib
import os
import random
import threading
import time
from http.client import HTTPException

from husk.kernel import mount
from tests.integration.volumes.helpers import background, create, data, make_image, mounts, run, volumes
from tests.support.daemon import Daemon
from tests.support.waiting import until


def test_volumes_are_there_after_a_crash(fresh_daemon: Daemon) -> None:
    daemon = fresh_daemon
    daemon.docker("volume", "create", "--label", "a=b", "kept")
    run(daemon, "-v", "kept:/x", "busybox", "sh", "-c", "echo hi > /x/f")
    container = create(daemon, "-v", "/anon", "-v", "kept:/x", "busybox", "cat", "/x/f")
    before = mounts(daemon, container)
    daemon.docker("volume", "create", "gone")
    daemon.docker("volume", "rm", "gone")
    daemon.kill9()
    (daemon.config.data_root / "volumes/orphan/_data").mkdir(parents=True)
    daemon.start()
    assert mounts(daemon, container) == before
    assert volumes(daemon) == {"kept", before["/anon"]["Name"]}
    assert daemon.docker("start", "-a", container).stdout == "hi\n"
    daemon.docker("rm", "-v", container)
    assert volumes(daemon) == {"kept"}
    until(lambda: not (daemon.config.data_root / "volumes/orphan").exists(), "what has no record is removed")


def test_a_mounted_volume_stays_with_the_container_that_runs(fresh_daemon: Daemon) -> None:
    daemon = fresh_daemon
    for name in ("live", "dead"):
        daemon.docker("volume", "create", "-o", "type=tmpfs", "-o", "device=tmpfs", name)
    part = ["--mount", "type=image,src=busybox,dst=/i,image-subpath=bin"]
    runs = background(daemon, "-v", "live:/x", *part, "busybox", "sh", "-c", "echo hi > /x/f; exec sleep 100")
    ends = background(daemon, "-v", "dead:/x", "-v", "live:/y", *part, "busybox", "sleep", "100")
    pid = int(daemon.docker("inspect", "-f", "{{.State.Pid}}", ends).stdout)
    daemon.kill9()
    os.kill(pid, 9)
    until(lambda: not os.path.exists(f"/proc/{pid}"), "the process ends")
    daemon.start()

    def mounted() -> set[str]:
        points = mount.mounts_below(str(daemon.config.data_root / "volumes"))
        return {point.split("/")[-2] for point in points}

    assert mounted() == {"live"}
    assert os.listdir(daemon.config.exec_root / "mounts") == [runs]
    two = background(daemon, "-v", "live:/x", "busybox", "sleep", "100")
    assert daemon.docker("exec", two, "cat", "/x/f").stdout == "hi\n"
    daemon.docker("rm", "-f", runs)
    assert mounted() == {"live"}
    daemon.docker("rm", "-f", two)
    assert mounted() == set()


def test_a_first_content_that_was_cut_off(fresh_daemon: Daemon) -> None:
    daemon = fresh_daemon
    image = make_image(daemon, "full")
    for name in ("half", "whole"):
        daemon.docker("volume", "create", name)
    daemon.kill9()
    half, whole = data(daemon, "half").parent, data(daemon, "whole").parent
    (half / "_filling").mkdir()
    (half / "_filling/part").touch()
    (whole / "_filled/in").mkdir(parents=True)
    (whole / "_filled/f").write_text("new\n")
    (whole / "_filled/g").write_text("new\n")
    (whole / "_data/g").write_text("a container's own\n")
    os.chown(whole / "_filled", 7, 8)
    daemon.start()
    assert os.listdir(half) == os.listdir(whole) == ["_data"]
    assert run(daemon, "-v", "half:/data", image, "cat", "/data/f") == "hi\n"
    look = "stat -c %u:%g /x; ls /x; cat /x/f /x/g"
    assert run(daemon, "-v", "whole:/x", image, "sh", "-c", look) == "7:8\nf\ng\nin\nnew\na container's own\n"


def test_a_crash_while_containers_with_volumes_come_and_go(fresh_daemon: Daemon, chance: random.Random) -> None:
    """At any moment every volume without a name belongs to a container, and every directory to a volume."""
    daemon = fresh_daemon
    image = make_image(daemon, "full", "VOLUME /data")
    body = {"Image": image, "Volumes": {"/x": {}}, "HostConfig": {"NetworkMode": "none", "Binds": ["named:/data/sub"]}}

    def churn() -> None:
        with contextlib.suppress(OSError, HTTPException, KeyError, ValueError):
            while True:
                container = daemon.http("POST", "/containers/create", body).json()["Id"]
                daemon.http("DELETE", f"/containers/{container}?v=1")

    for _ in range(5):
        threads = [threading.Thread(daemon=True, target=churn) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(chance.uniform(0.05, 0.35))  # the moment is what is tested, not something that is waited for
        daemon.kill9()
        for thread in threads:
            thread.join()
        daemon.start()
        containers = daemon.docker("ps", "-aq", "--no-trunc").stdout.split()
        owned = {point["Name"] for container in containers for point in mounts(daemon, container).values()}
        assert volumes(daemon) <= owned | {"named"} and owned <= volumes(daemon)
        assert set(os.listdir(daemon.config.data_root / "volumes")) == {".trash", *volumes(daemon)}
        daemon.remove_containers()
        daemon.check_no_litter()
