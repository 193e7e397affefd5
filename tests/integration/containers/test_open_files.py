"""The daemon takes all the open files that it may have; containers keep the limit that it was given."""

import resource

import pytest

from tests.support.daemon import RUNTIME, Daemon

SOFT = 1024


@pytest.fixture
def limited():
    """A daemon that was started with a soft limit below the hard one."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] <= SOFT:
        pytest.skip("the hard limit of open files is too low here")
    daemon = Daemon()
    resource.setrlimit(resource.RLIMIT_NOFILE, (SOFT, before[1]))
    try:
        daemon.start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    yield daemon
    assert daemon.close() == []


def test_the_limit_of_the_daemon_is_not_that_of_containers(limited):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert resource.prlimit(limited.pid, resource.RLIMIT_NOFILE) == (hard, hard)
    show = ["busybox", "sh", "-c", "ulimit -Sn; ulimit -Hn"]
    assert limited.docker("run", "--rm", *show).stdout.split() == [str(SOFT), str(hard)]
    assert limited.docker("run", "--rm", "--ulimit", "nofile=77:88", *show).stdout.split() == ["77", "88"]
    if RUNTIME == "runc":
        return  # Debian 12's runs an exec with the limit that it was started with itself, whatever it was told
    limited.docker("run", "-d", "--name", "one", "busybox", "sleep", "99")
    assert limited.docker("exec", "one", *show[1:]).stdout.split() == [str(SOFT), str(hard)]
