"""The fixture finds what a daemon leaves, and cleans it: otherwise the tests that trust it prove nothing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from husk.kernel import cgroups, mount
from tests.support.daemon import Daemon
from tests.support.waiting import until


@pytest.fixture
def messy():
    """A daemon's names and directories, without the daemon."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    daemon = Daemon()
    yield daemon
    shutil.rmtree(daemon.directory)


def test_a_clean_host_has_no_litter(messy):
    assert messy._traces.clean() == []


def test_every_kind_of_litter_is_found_and_removed(messy, monkeypatch):
    monkeypatch.setattr("tests.support.litter.SETTLE_DEADLINE", 0.0)
    config = messy.config
    mounted = messy.directory / "run/mounted"
    mounted.mkdir(parents=True)
    mount.mount("tmpfs", str(mounted), "tmpfs")
    subprocess.run(["ip", "link", "add", config.bridge_name, "type", "bridge"], check=True)
    subprocess.run(["nft", "add", "table", "ip", config.nft_table], check=True)
    group = cgroups.hierarchies()[0].path / config.cgroup_parent.lstrip("/")
    group.mkdir()
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)", f"{messy.directory}/x"])
    # A process has no command line in the first moment after its exec.
    until(Path(f"/proc/{sleeper.pid}/cmdline").read_bytes, "the program runs")
    left = messy._traces.clean()
    assert sorted(line.split()[0] for line in left) == ["cgroup", "interface", "mount", "nftables", "process"]
    assert sleeper.wait(10) == -9
    assert messy._traces.clean() == []
