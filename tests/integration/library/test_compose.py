"""A Compose project from a program, by Docker's own plugin, with and without `await`."""

from pathlib import Path

import pytest

import husk
from tests.support.compose import PLUGIN, require_compose
from tests.support.daemon import Daemon

FILE = """
services:
  web:
    image: busybox
    command: sh -c 'echo "level=warn up"; exec sleep 600'
    stop_signal: KILL
"""


def test_a_project_is_put_up_and_taken_down(daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_compose()
    monkeypatch.setattr("husk.client.compose.plugin", lambda: str(PLUGIN))
    (tmp_path / "compose.yaml").write_text(FILE)
    with husk.connect_sync(daemon.host) as engine:
        with engine.compose(tmp_path / "compose.yaml", project="shop") as project:
            (box,) = project.containers()
            assert (project.container("web").status, box.name) == ("running", "shop-web-1")
            for entry in project.logs(follow=True, level="warning"):
                assert (entry.container, entry.text) == ("shop-web-1", "level=warn up")
                break
        assert list(engine.containers.list(all=True)) == []
