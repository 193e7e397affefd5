"""Volumes, directories, images and tmpfs inside containers: what they see, and what `inspect` says about it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from husk.kernel import mount
from tests.integration.volumes.helpers import (
    background,
    create,
    data,
    inspect,
    make_image,
    mounts,
    run,
    volumes,
)
from tests.support.daemon import Answer, Daemon

MS_SHARED = 1 << 20
LOOK = "stat -c '%n %u:%g %a %F' /data /data/* /empty"
SEEN = [
    "/data 12:13 2750 directory",
    "/data/f 12:13 644 regular file",
    "/data/hard 12:13 644 regular file",
    "/data/link 12:13 777 symbolic link",
    "/data/pipe 12:13 644 fifo",
    "/data/sub 12:13 755 directory",
    "/empty 5:6 1777 directory",
]


@pytest.fixture(scope="module")
def image(module_daemon: Daemon) -> str:
    return make_image(module_daemon, "full")


@pytest.fixture(scope="module")
def declaring(module_daemon: Daemon) -> str:
    return make_image(module_daemon, "declaring", "VOLUME /data", "VOLUME /empty/")


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "f").write_text("host\n")
    yield tmp_path
    for target in mount.mounts_below(str(tmp_path)):
        mount.unmount(target, detach=True)


def post(daemon: Daemon, **host_config: Any) -> Answer:
    host_config = {"NetworkMode": "none", **host_config}
    return daemon.http("POST", "/containers/create", {"Image": "full", "Cmd": ["true"], "HostConfig": host_config})


# --- volumes that the image declares


def test_an_image_declares_volumes(daemon: Daemon, declaring: str) -> None:
    container = create(daemon, declaring, "sh", "-c", LOOK)
    shown = mounts(daemon, container)
    assert set(shown) == {"/data", "/empty"} and len(volumes(daemon)) == 2
    name = shown["/data"]["Name"]
    assert shown["/data"] == {
        "Type": "volume", "Name": name, "Source": str(data(daemon, name)), "Destination": "/data", "Driver": "local",
        "Mode": "", "RW": True, "Propagation": "",
    }  # fmt: skip
    (listed,) = daemon.http("GET", "/containers/json?all=1").json()
    assert {(m["Name"], m["Source"]) for m in listed["Mounts"]} == {(m["Name"], "") for m in shown.values()}
    assert (data(daemon, name) / "f").read_text() == "hi\n", "a container that never starts has its volumes filled"
    assert daemon.docker("start", "-a", container).stdout.splitlines() == SEEN
    daemon.docker("rm", "-v", container)
    assert volumes(daemon) == set()


def test_links_stay_links_and_lead_nowhere_on_the_host(daemon: Daemon, declaring: str) -> None:
    container = create(daemon, declaring)
    place = Path(mounts(daemon, container)["/data"]["Source"])
    assert os.readlink(place / "link") == "/etc"
    assert (place / "f").stat().st_ino == (place / "hard").stat().st_ino


def test_a_path_through_a_link_of_the_image_is_the_images_own(daemon: Daemon, image: str) -> None:
    assert run(daemon, "-v", "through:/linked", image, "cat", "/linked/f", "/data/f") == "hi\nhi\n"


def test_what_is_mounted_there_already_takes_the_place(daemon: Daemon, declaring: str, host: Path) -> None:
    options = ["-v", f"{host}:/data", "--tmpfs", "/empty"]
    container = create(daemon, *options, declaring, "cat", "/data/f")
    assert list(mounts(daemon, container)) == ["/data"] and volumes(daemon) == set()
    assert daemon.docker("start", "-a", container).stdout == "host\n"


def test_volumes_of_the_request_and_the_image_add_up(daemon: Daemon, declaring: str) -> None:
    container = create(daemon, "-v", "/more/./", declaring)
    assert set(mounts(daemon, container)) == {"/data", "/empty", "/more"}
    assert set(inspect(daemon, container)["Config"]["Volumes"]) >= {"/data", "/empty/"}


def test_a_volume_over_a_file_is_refused(daemon: Daemon, image: str) -> None:
    answer = daemon.http("POST", "/containers/create", {"Image": image, "Volumes": {"/file": {}}})
    assert (answer.status, answer.message) == (400, "cannot mount volume over existing file, file exists /file")
    answer = daemon.http("POST", "/containers/create", {"Image": image, "Volumes": {"/": {}}})
    assert (answer.status, answer.message) == (400, "invalid specification: destination can't be '/'")
    assert volumes(daemon) == set() and not daemon.docker("ps", "-aq").stdout


# --- volumes by name


def test_the_first_use_copies_and_the_second_does_not(daemon: Daemon, image: str) -> None:
    assert run(daemon, "-v", "first:/data", image, "sh", "-c", "rm -r /data/*; echo own > /data/own") == ""
    assert run(daemon, "-v", "first:/data", image, "ls", "/data") == "own\n"
    assert run(daemon, "-v", "first:/elsewhere", image, "cat", "/elsewhere/own") == "own\n"


@pytest.mark.parametrize("option", ["-v=un:/data:nocopy", "--mount=type=volume,src=un,dst=/data,volume-nocopy"])
def test_nocopy(daemon: Daemon, image: str, option: str) -> None:
    assert run(daemon, option, image, "stat", "-c", "%u:%g %a", "/data") == "0:0 755\n"
    assert os.listdir(data(daemon, "un")) == []


def test_what_inspect_says_about_each_kind(daemon: Daemon, image: str, host: Path) -> None:
    container = create(
        daemon, "-v", "nv:/a", "-v", f"{host}:/b:ro,rprivate", "-v", "nv2:/c:ro,nocopy,z",
        "--mount", "type=volume,src=nv3,dst=/d,ro,volume-label=x=y", "--mount", "type=volume,dst=/e",
        "--mount", "type=tmpfs,dst=/f,tmpfs-size=1m", "--mount", f"type=image,src={image},dst=/g", "--tmpfs", "/h",
        image,
    )  # fmt: skip
    shown = mounts(daemon, container)
    unnamed = shown["/e"]["Name"]

    def volume(name: str, destination: str, mode: str, rw: bool) -> dict[str, object]:
        return {
            "Type": "volume", "Name": name, "Source": str(data(daemon, name)), "Destination": destination,
            "Driver": "local", "Mode": mode, "RW": rw, "Propagation": "",
        }  # fmt: skip

    place = shown["/g"].pop("Source")
    assert place.startswith(str(daemon.config.exec_root))
    assert shown == {
        "/a": volume("nv", "/a", "z", True),
        "/b": {"Type": "bind", "Source": str(host), "Destination": "/b", "Mode": "ro,rprivate", "RW": False,
               "Propagation": "rprivate"},
        "/c": volume("nv2", "/c", "ro,nocopy,z", False),
        "/d": volume("nv3", "/d", "z", False),
        "/e": volume(unnamed, "/e", "z", True),
        "/f": {"Type": "tmpfs", "Source": "", "Destination": "/f", "Mode": "", "RW": True, "Propagation": ""},
        "/g": {"Type": "image", "Name": "full", "Destination": "/g", "Mode": "", "RW": False, "Propagation": ""},
    }  # fmt: skip
    host_config = inspect(daemon, container)["HostConfig"]
    assert set(host_config["Binds"]) == {"nv:/a", f"{host}:/b:ro,rprivate", "nv2:/c:ro,nocopy,z"}
    assert host_config["Mounts"][1:3] == [
        {"Type": "volume", "Target": "/e"},
        {"Type": "tmpfs", "Target": "/f", "TmpfsOptions": {"SizeBytes": 1 << 20}},
    ]
    assert daemon.http("GET", "/volumes/nv3").json()["Labels"] == {"x": "y"}


def test_only_unnamed_volumes_go_with_the_container(daemon: Daemon, declaring: str) -> None:
    options = ["-v", "named:/n", "-v", "/one", "--mount", "type=volume,dst=/two"]
    run(daemon, *options, declaring)
    assert volumes(daemon) == {"named"}
    kept = create(daemon, *options, declaring)
    daemon.docker("rm", kept)
    assert len(volumes(daemon)) == 5
    daemon.docker("volume", "prune", "-f")
    assert volumes(daemon) == {"named"}
    ended = background(daemon, *options, declaring, "sleep", "100")
    daemon.docker("rm", "-f", "-v", ended)
    assert volumes(daemon) == {"named"}


def test_an_unnamed_volume_that_another_container_has_stays(daemon: Daemon, image: str) -> None:
    one = create(daemon, "-v", "/shared", image)
    two = create(daemon, "--volumes-from", one, image)
    daemon.docker("rm", "-v", one)
    assert volumes(daemon) == {mounts(daemon, two)["/shared"]["Name"]}
    daemon.docker("rm", "-v", two)
    assert volumes(daemon) == set()


def test_a_failed_creation_leaves_no_volume_without_a_name(daemon: Daemon, image: str, host: Path) -> None:
    answer = post(daemon, Binds=["/anon"], Mounts=[{"Type": "image", "Source": "nosuch", "Target": "/i"}])
    assert answer.status == 404
    assert volumes(daemon) == set()
    assert os.listdir(daemon.config.data_root / "containers") == []


def test_a_start_that_fails_leaves_the_volume_usable(daemon: Daemon, image: str) -> None:
    container = create(daemon, "-v", "still:/x", image, "/no/such/program")
    assert daemon.docker("start", container, check=False).returncode != 0
    assert run(daemon, "-v", "still:/x", image, "echo", "ok") == "ok\n"


def test_read_only_volumes(daemon: Daemon, image: str) -> None:
    assert "Read-only" in run(daemon, "-v", "ro:/data:ro", image, "touch", "/data/x", check=False)
    assert run(daemon, "-v", "ro:/data:ro", image, "cat", "/data/f") == "hi\n", "it was filled all the same"


def test_a_part_of_a_volume(daemon: Daemon, image: str) -> None:
    run(daemon, "-v", "parts:/data", image)
    option = "type=volume,src=parts,dst=/p,volume-subpath={}"
    assert run(daemon, "--mount", option.format("sub"), image, "ls", "/p") == "g\n"
    assert run(daemon, "--mount", option.format("sub/g"), image, "cat", "/p") == "x\n"
    # The link in the volume leads to /etc.
    refused = run(daemon, "--mount", option.format("link"), image, "ls", "/p", check=False)
    assert "path concatenation escapes the base directory" in refused
    refused = run(daemon, "--mount", option.format("nowhere"), image, "ls", "/p", check=False)
    assert "cannot access path" in refused and "no such file or directory" in refused
    container = create(daemon, "--mount", option.format("sub"), image)
    assert mounts(daemon, container)["/p"]["Source"] == str(data(daemon, "parts"))


# --- --volumes-from


def test_volumes_from_other_containers(daemon: Daemon, declaring: str, host: Path) -> None:
    one = create(daemon, "-v", "nv:/a", "-v", f"{host}:/h", "--mount", "type=tmpfs,dst=/t", declaring)
    two = create(daemon, "-v", "nv2:/a", "--volumes-from", f"{one}:ro", declaring, "sh", "-c", "cat /h/f; touch /h/x")
    theirs, own = mounts(daemon, one), mounts(daemon, two)
    assert set(own) == {"/a", "/h", "/data", "/empty"}
    assert (own["/a"]["Name"], own["/a"]["RW"]) == ("nv2", True)
    assert own["/data"] == {**theirs["/data"], "RW": False}
    assert own["/h"] == {**theirs["/h"], "RW": False}
    done = daemon.docker("start", "-a", two, check=False)
    assert done.stdout == "host\n" and "Read-only" in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nope", "No such container: nope"),
        ("", "volumes-from specification cannot be an empty string"),
        ("x:foo", "invalid mode: foo"),
    ],
)
def test_volumes_from_nowhere(daemon: Daemon, image: str, text: str, message: str) -> None:
    answer = post(daemon, VolumesFrom=[text])
    assert (answer.status, answer.message) == (400, message)


# --- directories of the host


def test_a_missing_source(daemon: Daemon, image: str, host: Path) -> None:
    run(daemon, "-v", f"{host}/made/by/v:/x", image)
    assert (host / "made/by/v").is_dir()
    answer = post(daemon, Mounts=[{"Type": "bind", "Source": f"{host}/nope", "Target": "/x"}])
    assert answer.status == 400
    assert answer.message == f'invalid mount config for type "bind": bind source path does not exist: {host}/nope'
    wish = {"Type": "bind", "Source": f"{host}/wished", "Target": "/x", "BindOptions": {"CreateMountpoint": True}}
    answer = post(daemon, Mounts=[wish])
    assert answer.status == 201
    daemon.docker("start", "-a", answer.json()["Id"])
    assert (host / "wished").is_dir()


def test_duplicate_destinations(daemon: Daemon, image: str) -> None:
    for first in ("-v=one:/x", "--tmpfs=/x", "--mount=type=volume,dst=/x"):
        done = daemon.docker("create", first, "-v", "two:/x/", image, check=False)
        assert "Duplicate mount point: /x" in done.stderr
    assert volumes(daemon) == set()


def test_relabelling_is_accepted(daemon: Daemon, image: str, host: Path) -> None:
    assert run(daemon, "-v", f"{host}:/x:z", "-v", "lab:/y:Z", image, "cat", "/x/f") == "host\n"


@pytest.fixture
def nested(host: Path) -> Path:
    """A directory with another file system mounted in it."""
    (host / "in").mkdir()
    mount.mount("tmpfs", str(host / "in"), "tmpfs")
    return host


def test_recursion(daemon: Daemon, image: str, nested: Path) -> None:
    options = f"type=bind,src={nested},dst=/x"
    look = ["sh", "-c", "touch /x/in/f && echo wrote; touch /x/f"]
    assert "wrote" not in run(daemon, "-v", f"{nested}:/x:ro", image, *look, check=False)
    assert "wrote" not in run(daemon, "--mount", options + ",ro", image, *look, check=False)
    assert "wrote" not in run(daemon, "--mount", options + ",ro,bind-recursive=readonly,bind-propagation=rprivate",
                              image, *look, check=False)  # fmt: skip
    shallow = run(daemon, "--mount", options + ",ro,bind-recursive=writable", image, *look, check=False)
    assert "wrote" in shallow and "touch: /x/f: Read-only" in shallow
    run(daemon, "--mount", options + ",bind-recursive=disabled", image, "touch", "/x/in/not-in-the-tmpfs")
    assert os.listdir(nested / "in") == ["f"]


def test_read_only_was_not_recursive_before_1_44(daemon: Daemon, image: str, nested: Path) -> None:
    wish = {"Type": "bind", "Source": str(nested), "Target": "/x", "ReadOnly": True}
    body = {"Image": image, "Cmd": ["touch", "/x/in/f"], "HostConfig": {"NetworkMode": "none", "Mounts": [wish]}}
    container = daemon.http("POST", "/v1.43/containers/create", body).json()["Id"]
    daemon.docker("start", "-a", container)
    assert os.listdir(nested / "in") == ["f"]


def test_propagation(daemon: Daemon, image: str, host: Path) -> None:
    private = daemon.docker("run", "--rm", "--network", "none", "-v", f"{host}:/x:rshared", image, check=False)
    assert f"path {host} is mounted on" in private.stderr and "but it is not a shared mount" in private.stderr
    mount.bind(str(host), str(host))
    mount.mount("none", str(host), "none", MS_SHARED)
    for directory in ("in", "out"):
        (host / directory).mkdir()
    options = ["-v", f"{host}:/x:rslave", "-v", f"{host}:/y", "--cap-add", "SYS_ADMIN"]
    container = background(daemon, *options, image, "sleep", "100")
    mount.mount("tmpfs", str(host / "in"), "tmpfs")
    (host / "in/late").touch()
    look = "ls /x/in; echo -; ls /y/in"
    assert daemon.docker("exec", container, "sh", "-c", look).stdout == "late\n-\n"
    both = background(daemon, "-v", f"{host}:/x:shared", "--privileged", image, "sleep", "100")
    daemon.docker("exec", both, "mount", "-t", "tmpfs", "t", "/x/out")
    assert str(host / "out") in mount.mounts_below(str(host))
    assert mounts(daemon, both)["/x"]["Propagation"] == "shared"


# --- tmpfs and images


def test_tmpfs(daemon: Daemon, image: str) -> None:
    body = {"Type": "tmpfs", "Target": "/t", "TmpfsOptions": {"SizeBytes": 1 << 20, "Mode": 0o1770,
            "Options": [["exec"], ["uid", "7"]]}}  # fmt: skip
    answer = daemon.http(
        "POST", "/containers/create",
        {"Image": image, "Cmd": ["sh", "-c", "grep ' /t ' /proc/mounts"],
         "HostConfig": {"NetworkMode": "none", "Mounts": [body]}},
    )  # fmt: skip
    (line,) = daemon.docker("start", "-a", answer.json()["Id"]).stdout.splitlines()
    options = line.split()[3].split(",")
    assert {"nosuid", "nodev", "size=1024k", "mode=1770", "uid=7"} <= set(options) and "noexec" not in options


def test_an_image_in_a_container(daemon: Daemon, image: str) -> None:
    look = ["sh", "-c", "cat /i/data/f; touch /i/x"]
    shown = run(daemon, "--mount", f"type=image,src={image},dst=/i", "busybox", *look, check=False)
    assert shown.startswith("hi\n") and "Read-only" in shown
    part = f"type=image,src={image},dst=/i,image-subpath=data/sub"
    assert run(daemon, "--mount", part, "busybox", "ls", "/i") == "g\n"
    missing = run(daemon, "--mount", f"type=image,src={image},dst=/i,image-subpath=no", "busybox", "true", check=False)
    assert "cannot access path" in missing


def test_an_image_that_is_mounted_keeps_its_layers(daemon: Daemon) -> None:
    make_image(daemon, "short")
    container = create(daemon, "--mount", "type=image,src=short,dst=/i", "busybox", "cat", "/i/data/f")
    daemon.docker("rmi", "-f", "short")
    assert daemon.docker("start", "-a", container).stdout == "hi\n"
    before = len(os.listdir(daemon.config.data_root / "layers/l"))
    daemon.docker("rm", container)
    assert len(os.listdir(daemon.config.data_root / "layers/l")) == before - 1


def test_an_image_that_a_running_container_mounts_stays(daemon: Daemon) -> None:
    make_image(daemon, "held:1", "LABEL held=1")
    daemon.docker("tag", "held:1", "held:2")
    container = background(daemon, "--mount", "type=image,src=held:1,dst=/i", "busybox", "sleep", "100")
    # A container that takes over the mounts of another uses the image, too.
    heir = background(daemon, "--volumes-from", container, "busybox", "sleep", "100")
    daemon.docker("rm", "-f", container)
    assert daemon.docker("rmi", "held:1").stdout == "Untagged: held:1\n"
    refused = daemon.docker("rmi", "held:2", check=False)
    assert f"(must force) - container {heir[:12]} is using its referenced image" in refused.stderr
    id = daemon.docker("images", "-q", "--no-trunc", "held:2").stdout.strip()
    refused = daemon.docker("rmi", "-f", id, check=False)
    assert f"(cannot be forced) - image is being used by running container {heir[:12]}" in refused.stderr
    daemon.docker("image", "prune", "-af", "--filter", "label=held=1")
    assert daemon.docker("images", "-q", "--no-trunc", "held:2").stdout.strip() == id
    daemon.docker("rm", "-f", heir)
    assert f"Deleted: {id}" in daemon.docker("rmi", "held:2").stdout


def test_a_part_of_an_image_by_a_link_that_leads_out_is_refused(daemon: Daemon) -> None:
    daemon.docker("run", "--name", "links", "busybox", "ln", "-s", "/etc", "/out")
    daemon.docker("commit", "links", "links")
    refused = run(
        daemon, "--mount", "type=image,src=links,dst=/i,image-subpath=out", "busybox", "ls", "/i", check=False
    )
    daemon.docker("rmi", "links")
    assert "path concatenation escapes the base directory" in refused and "subpath: out" in refused


# --- what other operations see


def test_commit_diff_and_cp_see_volumes_where_they_are(daemon: Daemon, image: str, tmp_path: Path) -> None:
    container = background(daemon, "-v", "seen:/data", "-v", "/new", image, "sh", "-c",
                           "echo v > /data/v; echo n > /new/n; echo r > /root-file; exec sleep 100")  # fmt: skip
    daemon.docker("exec", container, "test", "-f", "/root-file")
    daemon.docker("commit", container, "committed")
    try:
        names = run(daemon, "--entrypoint", "find", "committed", "/data", "/new", "/root-file").split()
        assert "/data/v" not in names and "/new/n" not in names and "/root-file" in names
    finally:
        daemon.docker("rmi", "-f", "committed")
    changed = {line.split(" ", 1)[1] for line in daemon.docker("diff", container).stdout.splitlines()}
    assert "/root-file" in changed and not {"/data/v", "/new/n"} & changed
    for state in ("running", "exited"):
        if state == "exited":
            daemon.docker("kill", container)
        daemon.docker("cp", f"{container}:/data/v", str(tmp_path / state))
        assert (tmp_path / state).read_text() == "v\n"
    (tmp_path / "put").write_text("put\n")
    daemon.docker("cp", str(tmp_path / "put"), f"{container}:/data/put")
    assert (data(daemon, "seen") / "put").read_text() == "put\n"
