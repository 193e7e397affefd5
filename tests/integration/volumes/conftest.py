"""Checks that hold after every test of this folder: no error in the log, no volume on disk that has no record."""

import os
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from tests.support.daemon import Daemon


@pytest.fixture(autouse=True)
def nothing_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    name = "fresh_daemon" if "fresh_daemon" in request.fixturenames else "module_daemon"
    daemon: Daemon = request.getfixturevalue(name)
    before = daemon.log_path.stat().st_size
    yield
    if daemon.process is None:
        daemon.start()
    daemon.remove_containers()
    for volume in daemon.http("GET", "/volumes").json()["Volumes"] or []:
        assert daemon.http("DELETE", "/volumes/" + quote(volume["Name"])).status == 204
    assert os.listdir(daemon.config.data_root / "volumes") == [".trash"]
    assert os.listdir(daemon.config.data_root / "volumes/.trash") == []
    staged = daemon.config.exec_root / "mounts"
    assert not staged.exists() or os.listdir(staged) == []
    with daemon.log_path.open(errors="replace") as log:
        log.seek(before)
        wrong = [line for line in log if "level=error" in line or line.lstrip().startswith("Traceback")]
    assert wrong == []
