"""`docker top`: the container's processes, as the host's ps sees them."""

import pytest

from tests.support.daemon import Daemon
from tests.support.waiting import until


def test_the_containers_processes_and_no_others(daemon: Daemon):
    daemon.docker("run", "-d", "--name", "box", "busybox", "sh", "-c", "sleep 1234 & sleep 5678; true")
    until(lambda: daemon.docker("top", "box").stdout.count("sleep ") >= 3, "the children run")
    answer = daemon.http("GET", "/containers/box/top").json()
    assert answer["Titles"] == ["UID", "PID", "PPID", "C", "STIME", "TTY", "TIME", "CMD"]
    commands = sorted(row[-1] for row in answer["Processes"])
    assert commands == ["sh -c sleep 1234 & sleep 5678; true", "sleep 1234", "sleep 5678"]


def test_execs_are_shown(daemon: Daemon):
    daemon.docker("run", "-d", "--name", "box", "busybox", "sleep", "1000")
    daemon.docker("exec", "-d", "box", "sleep", "4321")
    until(lambda: "sleep 4321" in daemon.docker("top", "box").stdout, "the second process")


@pytest.mark.parametrize(
    ("arguments", "titles"),
    [
        ("-o pid", ["PID"]),
        ("aux", ["USER", "PID", "%CPU", "%MEM", "VSZ", "RSS", "TTY", "STAT", "START", "TIME", "COMMAND"]),
        ("-eo pid,comm", ["PID", "COMMAND"]),
        ("axf", ["PID", "TTY", "STAT", "TIME", "COMMAND"]),
    ],
)
def test_options_of_ps(daemon: Daemon, arguments: str, titles: list[str]):
    daemon.docker("run", "-d", "--name", "box", "busybox", "sleep", "1000")
    with_options = daemon.http("GET", f"/containers/box/top?ps_args={arguments.replace(' ', '%20')}").json()
    assert with_options["Titles"] == titles
    assert len(with_options["Processes"]) == 1


@pytest.mark.parametrize(
    ("arguments", "status"),
    [("-o%20cmd=PID", 400), ("--nosuch", 500), ("-eo%20cmd", 500), ("%00", 400), ("a%0Ab", 400)],
)
def test_options_that_do_not_work(daemon: Daemon, arguments: str, status: int):
    daemon.docker("run", "-d", "--name", "box", "busybox", "sleep", "1000")
    assert daemon.http("GET", f"/containers/box/top?ps_args={arguments}").status == status


def test_only_of_what_runs(daemon: Daemon):
    daemon.docker("create", "--name", "box", "busybox")
    answer = daemon.http("GET", "/containers/box/top")
    assert answer.status == 409 and "is not running" in answer.message
    assert daemon.http("GET", "/containers/nobody/top").status == 404
