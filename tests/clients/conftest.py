"""A compose project in a directory of its own, and engines as drivers in Go see them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.compose import Project, require_compose
from tests.support.daemon import Daemon
from tests.support.dockerd import Dockerd
from tests.support.go_client import GoClient


@pytest.fixture
def project(daemon: Daemon, tmp_path: Path) -> Iterator[Project]:
    require_compose()
    directory = tmp_path / "shop"
    directory.mkdir()
    project = Project(daemon, directory)
    yield project
    project.close()


@pytest.fixture(scope="module")
def dockerd(module_daemon: Daemon) -> Iterator[Dockerd]:
    """Docker's own daemon, with the image that ours has."""
    if reason := Dockerd.missing():
        pytest.skip(reason)
    with Dockerd() as found:
        found.docker_bytes("load", input=module_daemon.docker_bytes("save", "busybox:latest").stdout)
        yield found


@pytest.fixture(params=["husk", "dockerd"])
def api(request: pytest.FixtureRequest) -> Iterator[GoClient]:
    """Both engines: what drivers rely on is what dockerd does."""
    engine = request.getfixturevalue("daemon" if request.param == "husk" else "dockerd")
    yield GoClient(engine)
    ids = engine.docker("ps", "-aq").stdout.split()
    if ids:
        engine.docker("rm", "-fv", *ids)
