"""`docker diff`: what a container changed, as dockerd tells it."""

from pathlib import Path

from tests.support.daemon import Daemon


def test_the_three_kinds(daemon: Daemon):
    daemon.docker(
        "run", "--name", "box", "busybox", "sh", "-c", "mkdir /a; echo x >/a/b; rm /etc/group; echo >>/etc/passwd"
    )
    found = daemon.docker("diff", "box").stdout.splitlines()
    assert found == ["A /a", "A /a/b", "C /etc", "D /etc/group", "C /etc/passwd"]


def test_the_answer_on_the_wire(daemon: Daemon):
    daemon.docker("run", "--name", "box", "busybox", "sh", "-c", "echo x >/new")
    assert daemon.http("GET", "/containers/box/changes").json() == [{"Path": "/new", "Kind": 1}]


def test_nothing_changed_is_null(daemon: Daemon):
    daemon.docker("create", "--name", "never-ran", "busybox")
    daemon.docker("run", "--name", "ran", "busybox", "true")
    assert daemon.http("GET", "/containers/never-ran/changes").body == b"null\n"
    assert daemon.http("GET", "/containers/ran/changes").body == b"null\n"
    assert daemon.http("GET", "/containers/nobody/changes").status == 404


def test_a_running_container(daemon: Daemon):
    daemon.docker("run", "-d", "--name", "box", "busybox", "sleep", "1000")
    daemon.docker("exec", "box", "touch", "/tmp/x")
    assert daemon.docker("diff", "box").stdout == "C /tmp\nA /tmp/x\n"


def test_what_is_mounted_is_not_the_containers(daemon: Daemon, tmp_path: Path):
    daemon.docker("run", "--name", "box", "-v", f"{tmp_path}:/tmp", "--tmpfs", "/run", "busybox", "touch", "/tmp/x")
    assert "/tmp/x" not in daemon.docker("diff", "box").stdout


def test_a_container_of_a_committed_image(daemon: Daemon):
    daemon.docker(
        "run", "--name", "box", "busybox", "sh", "-c", "mkdir /d; echo 1 >/d/one; echo 2 >/d/two; rm /etc/group"
    )
    daemon.docker("commit", "box", "changed")
    daemon.docker(
        "run", "--name", "next", "changed", "sh", "-c", "rm -r /d; mkdir /d; echo 1 >/d/one; touch /etc/group"
    )
    found = daemon.docker("diff", "next").stdout.splitlines()
    assert found == ["C /d", "C /d/one", "D /d/two", "C /etc", "A /etc/group"]
    daemon.docker("rm", "next")
    daemon.docker("rmi", "changed")


def test_a_directory_swapped_for_a_link_shows_nothing_of_the_host(daemon: Daemon, tmp_path: Path):
    (tmp_path / "secret").touch()
    daemon.docker("run", "--name", "box", "busybox", "ln", "-s", f"{'../' * 20}{tmp_path}", "/out")
    assert daemon.docker("diff", "box").stdout == "A /out\n"
