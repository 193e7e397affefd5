"""A swarm in one word: a daemon that is one, without services before and after each test."""

from collections.abc import Iterator

import pytest

from tests.support.daemon import Daemon
from tests.support.swarm import Swarm


@pytest.fixture(scope="module")
def swarm_daemon(module_daemon: Daemon) -> Iterator[Daemon]:
    module_daemon.docker("swarm", "init")
    yield module_daemon
    if module_daemon.process is None:
        module_daemon.start()
    module_daemon.docker("swarm", "leave", "--force", check=False)


@pytest.fixture
def swarm(swarm_daemon: Daemon, daemon: Daemon) -> Iterator[Swarm]:
    yield Swarm(daemon)
    if daemon.process is None:
        daemon.start()
    Swarm(daemon).remove_all()


@pytest.fixture
def fresh_swarm(fresh_daemon: Daemon) -> Iterator[Swarm]:
    """One for a single test that kills it."""
    fresh_daemon.docker("swarm", "init")
    yield Swarm(fresh_daemon)
    if fresh_daemon.process is None:
        fresh_daemon.start()
    fresh_daemon.docker("swarm", "leave", "--force", check=False)
