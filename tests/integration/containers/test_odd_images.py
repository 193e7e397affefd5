"""Images from anywhere: whatever stands in their configuration, it is no harm to anybody else, nor to who runs them."""

import hashlib
import io
import json
import os
import tarfile
from typing import Any

import pytest

from tests.support.daemon import Daemon
from tests.support.images import busybox_layer
from tests.support.waiting import until


def load(daemon: Daemon, **config: Any) -> None:
    """The image `odd`: busybox, with other words in its configuration."""
    with tarfile.open(fileobj=io.BytesIO(daemon.docker_bytes("save", "busybox").stdout)) as saved:
        [manifest] = json.loads(_member(saved, "manifest.json"))
        document = json.loads(_member(saved, manifest["Config"]))
        blobs = [_member(saved, layer) for layer in manifest["Layers"]]
    document["config"].update(config)
    made = json.dumps(document).encode()
    name = f"{hashlib.sha256(made).hexdigest()}.json"
    layers = {f"{number}.tar": data for number, data in enumerate(blobs)}
    told = json.dumps([{"Config": name, "RepoTags": ["odd:latest"], "Layers": list(layers)}]).encode()
    content = {name: made, "manifest.json": told, **layers}
    with io.BytesIO() as file:
        with tarfile.open(fileobj=file, mode="w") as archive:
            for member, data in content.items():
                info = tarfile.TarInfo(member)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        daemon.docker_bytes("load", input=file.getvalue())


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None
    return file.read()


def started(daemon: Daemon, **config: Any) -> str:
    """A container of `odd` that runs."""
    answer = daemon.http("POST", "/containers/create", {"Image": "odd", "Cmd": ["sleep", "1000"], **config})
    assert answer.status == 201, answer.body
    container = str(answer.json()["Id"])
    assert daemon.http("POST", f"/containers/{container}/start").status == 204
    return container


def test_odd_ports_break_nobodys_list(daemon: Daemon):
    odd = ["foo", "8080/http", "0/tcp", "99999/tcp", "", "9-8/tcp", "8000-8010/tcp", "7/udp"]
    load(daemon, ExposedPorts={port: {} for port in odd})
    container = started(daemon)
    [listed] = daemon.http("GET", "/containers/json").json()
    assert [(port["PrivatePort"], port["Type"]) for port in listed["Ports"]] == [(7, "udp"), (8000, "tcp")]
    shown = daemon.http("GET", f"/containers/{container}/json").json()
    assert shown["NetworkSettings"]["Ports"] == {"7/udp": None, "8000-8010/tcp": None}
    assert sorted(shown["Config"]["ExposedPorts"]) == sorted(odd)
    for expose, found in (("8005", 1), ("8011", 0), ("7/udp", 1)):
        answer = daemon.http("GET", f'/containers/json?filters={{"expose":["{expose}"]}}')
        assert len(answer.json()) == found
    linked = daemon.docker("run", "--rm", "--link", f"{container}:web", "busybox", "env").stdout
    assert "WEB_PORT_8000_TCP_PORT_END=8010" in linked
    started(daemon, HostConfig={"PublishAllPorts": True})


@pytest.mark.parametrize("publish", [False, True])
def test_all_ports_of_all_protocols_are_a_short_list(daemon: Daemon, publish: bool):
    load(daemon, ExposedPorts={f"1-65535/{protocol}": {} for protocol in ("tcp", "udp", "sctp")})
    if publish:
        body = {"Image": "odd", "HostConfig": {"PublishAllPorts": True}}
        answer = daemon.http("POST", "/containers/create", body)
        assert answer.status == 201
        refused = daemon.http("POST", f"/containers/{answer.json()['Id']}/start")
        assert refused.status == 400 and "too many ports to publish: at most 65536" in refused.message
    else:
        started(daemon)
        assert len(daemon.http("GET", "/containers/json").body) < 4096


def test_no_image_decides_that_its_containers_cannot_be_stopped(daemon: Daemon):
    load(daemon, StopSignal="BOGUS", StopTimeout=10**6)
    container = started(daemon)
    assert "StopTimeout" not in daemon.http("GET", f"/containers/{container}/json").json()["Config"]
    assert daemon.http("POST", f"/containers/{container}/kill?signal=CONT").status == 204
    for verb in ("restart?t=0", "stop?t=0", "start", "kill"):
        assert daemon.http("POST", f"/containers/{container}/{verb}").status == 204
    assert daemon.http("DELETE", f"/containers/{container}?force=1").status == 204


def test_the_times_of_an_images_health_check_are_such_as_the_api_takes(daemon: Daemon):
    load(
        daemon, Healthcheck={"Test": ["CMD", "sh", "-c", "echo x >>/log"], "Interval": 1, "Timeout": -1, "Retries": -3}
    )
    steady = started(daemon)
    load(daemon, Healthcheck={"Test": ["CMD", "true"], "Interval": 10**9})
    each_second = started(daemon)

    def tested() -> int:
        health = daemon.http("GET", f"/containers/{each_second}/json").json()["State"]["Health"]
        return len(health["Log"])

    until(lambda: tested() >= 2, "the check of the twin has run twice")
    assert daemon.docker("exec", steady, "sh", "-c", "cat /log | wc -l").stdout.strip() in ("", "0")


def test_a_user_of_an_image_with_thousands_of_digits_is_refused_in_words(daemon: Daemon):
    daemon.docker(
        "run", "--name", "made", "busybox", "sh", "-c", "echo big:x:$(printf %05000d 0 | tr 0 9):1::/: >>/etc/passwd"
    )
    daemon.docker("commit", "made", "odd")
    answer = daemon.http("POST", "/containers/create", {"Image": "odd", "User": "big", "Cmd": ["true"]})
    refused = daemon.http("POST", f"/containers/{answer.json()['Id']}/start")
    assert (refused.status, refused.message) == (400, "uids and gids must be in range 0-2147483647")


def test_directories_that_things_are_mounted_in_look_as_the_image_says(daemon: Daemon):
    """/etc and those beside it, and the root: nothing of ours lies above them that looks otherwise."""
    said = {"": (0o751, 7), "etc": (0o711, 1001), "proc": (0o555, 0), "dev": (0o750, 3), "dev/shm": (0o1777, 4)}
    with io.BytesIO() as file:
        file.write(busybox_layer().rstrip(b"\0"))
        file.write(bytes(-file.tell() % 512))
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for name, (mode, owner) in said.items():
                info = tarfile.TarInfo(name or "./")
                info.type, info.mode, info.uid, info.gid = tarfile.DIRTYPE, mode, owner, owner
                info.pax_headers = {"SCHILY.xattr.user.husk": name or "root"}
                archive.addfile(info)
        daemon.docker_bytes("import", "-", "looks", input=file.getvalue())
    ran = daemon.docker("run", "--name=looks", "looks", "stat", "-c", "%a %u %g", "/", "/etc").stdout
    assert ran.splitlines() == ["751 7 7", "711 1001 1001"]
    assert daemon.docker("diff", "looks").stdout == ""
    [shown] = json.loads(daemon.docker("inspect", "looks").stdout)
    assert os.path.isdir(shown["GraphDriver"]["Data"]["LowerDir"].split(":")[0])
    with tarfile.open(fileobj=io.BytesIO(daemon.docker_bytes("export", "looks").stdout)) as exported:
        found = {one.name.rstrip("/"): one for one in exported if one.isdir()}
    told = {name: (found[name].mode, found[name].uid) for name in said if name}
    assert told == {name: look for name, look in said.items() if name}
    assert found["etc"].pax_headers.get("SCHILY.xattr.user.husk") in (None, "etc")
    # A daemon that has seen none of this finds them again.
    daemon.restart()
    assert daemon.docker("start", "-a", "looks").stdout == ran
    daemon.docker("commit", "looks", "again")
    assert daemon.docker("run", "--rm", "again", "stat", "-c", "%a %u %g", "/", "/etc").stdout == ran


def test_users_see_the_root_of_an_image_with_an_unusual_directory_in_it(daemon: Daemon):
    """Many have one: /proc and /sys of Alpine and Fedora are 555."""
    with io.BytesIO() as file:
        file.write(busybox_layer().rstrip(b"\0"))
        file.write(bytes(-file.tell() % 512))
        with tarfile.open(fileobj=file, mode="w") as archive:
            info = tarfile.TarInfo("proc")
            info.type, info.mode = tarfile.DIRTYPE, 0o555
            archive.addfile(info)
        daemon.docker_bytes("import", "-", "unusual", input=file.getvalue())
    asked = ("run", "--rm", "--user=1000", "unusual", "stat", "-c", "%a %u", "/", "/etc")
    assert daemon.docker(*asked).stdout == "755 0\n755 0\n"
