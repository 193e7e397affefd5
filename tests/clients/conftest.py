"""A compose project in a directory of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.compose import Project, require_compose
from tests.support.daemon import Daemon


@pytest.fixture
def project(daemon: Daemon, tmp_path: Path) -> Iterator[Project]:
    require_compose()
    directory = tmp_path / "shop"
    directory.mkdir()
    project = Project(daemon, directory)
    yield project
    project.close()
