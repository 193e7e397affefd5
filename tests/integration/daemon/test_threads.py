"""Work that takes long has threads of its own: nobody else waits for it."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from husk.aio.threads import WALKERS
from tests.support.daemon import Daemon
from tests.support.hanging import hanging, stuck_threads
from tests.support.waiting import until

# More than there are threads of any kind.
CLIENTS = 40


@pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="the kernel has no FUSE")
def test_a_container_starts_while_all_who_measure_are_stuck(fresh_daemon: Daemon):
    daemon = fresh_daemon
    daemon.docker("volume", "create", "slow")
    assert daemon.process is not None
    pid = daemon.process.pid
    with ThreadPoolExecutor(CLIENTS) as clients:
        with hanging(daemon.config.data_root / "volumes/slow/_data/away"):
            asked = [clients.submit(daemon.http, "GET", "/system/df?type=volume") for _ in range(CLIENTS)]
            until(lambda: stuck_threads(pid) >= WALKERS, "those who measure are stuck")
            assert daemon.docker("run", "--rm", "busybox", "echo", "hi").stdout == "hi\n"
            assert stuck_threads(pid) == WALKERS
        assert {answer.result().status for answer in asked} <= {200, 500}
    assert daemon.http("GET", "/system/df?type=volume").status == 200
