"""The working directory of a container's processes: it is there when the container is made, or it is not made."""

import pytest

from tests.support.daemon import Daemon


def names(daemon: Daemon) -> list[str]:
    return daemon.docker("ps", "-a", "--format", "{{.Names}}").stdout.split()


@pytest.fixture
def linked(daemon: Daemon) -> str:
    """An image whose links lead nowhere, to each other, to a file and to a directory."""
    links = {"dangling": "/not/there", "loop1": "loop2", "loop2": "loop1", "to-file": "/etc/passwd", "to-dir": "tmp"}
    script = "; ".join(f"ln -s {target} /{name}" for name, target in links.items())
    daemon.docker("run", "--name", "links", "busybox", "sh", "-c", script)
    daemon.docker("commit", "links", "linked")
    daemon.docker("rm", "links")
    return "linked"


def test_it_is_made_with_the_container(daemon: Daemon):
    daemon.docker("create", "--name", "box", "-w", "/a/b", "busybox", "pwd")
    assert daemon.docker("diff", "box").stdout == "A /a\nA /a/b\n"
    assert daemon.docker_bytes("cp", "box:/a/b", "-").stdout
    assert daemon.docker("start", "-a", "box").stdout == "/a/b\n"


def test_one_that_is_there_changes_nothing(daemon: Daemon):
    daemon.docker("create", "--name", "box", "-w", "/etc/../tmp/", "busybox", "pwd")
    assert daemon.docker("diff", "box").stdout == ""
    assert daemon.docker("start", "-a", "box").stdout == "/tmp\n"


@pytest.mark.parametrize("path", ["/etc/passwd", "/etc/passwd/below", "/to-file", "/loop1", "/loop1/below"])
def test_one_that_cannot_be_is_refused_and_nothing_is_made(daemon: Daemon, linked: str, path: str):
    body = {"Image": linked, "Cmd": ["true"], "WorkingDir": path}
    answer = daemon.http("POST", "/containers/create?name=refused", body)
    assert answer.status == 400
    assert answer.message.startswith(f"Cannot mkdir: {path}")
    assert names(daemon) == []
    daemon.docker("rmi", linked)


def test_a_link_is_followed_inside_the_container_also_to_what_is_not_there(daemon: Daemon, linked: str):
    for path, real in (("/dangling/deeper", "/not/there/deeper"), ("/dangling", "/not/there"), ("/to-dir/x", "/tmp/x")):
        assert daemon.docker("run", "--rm", "-w", path, linked, "pwd", "-P").stdout == f"{real}\n"
    daemon.docker("rmi", linked)


def test_an_image_whose_working_directory_is_a_loop_is_refused_when_it_is_run(daemon: Daemon, linked: str):
    daemon.docker("create", "--name", "box", linked)
    daemon.docker("commit", "-c", "WORKDIR /loop1", "box", "looping")
    assert daemon.http("POST", "/containers/create", {"Image": "looping", "Cmd": ["true"]}).status == 400
    daemon.docker("rm", "box")
    daemon.docker("rmi", "looping", linked)


def test_a_link_that_appears_before_the_start_is_no_error_of_ours(daemon: Daemon):
    """The container's own doing: told at its next start, as a failure of that start alone."""
    daemon.docker("run", "--name", "box", "-w", "/work", "busybox", "sh", "-c", "rmdir /work; ln -s /work /work")
    done = daemon.docker("start", "box", check=False)
    assert done.returncode != 0 and "too many levels of symbolic links" in done.stderr
