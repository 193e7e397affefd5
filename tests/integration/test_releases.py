"""The data root of every release is opened: all that it knew is there, in the form of today."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from husk.storage.state.schema import SCHEMA
from tests.support.daemon import Daemon
from tests.support.doctor import check_store

RELEASES = sorted((Path(__file__).parents[1] / "releases").glob("*.sql"))


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.stem)
def test_the_data_root_of_a_release(release: Path) -> None:
    daemon = Daemon()
    daemon.config.data_root.mkdir()
    (daemon.config.data_root / "swarm.key").write_bytes(bytes(range(32)))
    path = daemon.config.data_root / "state.db"
    with closing(sqlite3.connect(path)) as state:
        state.executescript(release.read_text())
        before = state.execute("SELECT kind, key FROM document ORDER BY kind, key").fetchall()
    with daemon:
        assert "cannot be read" not in daemon.log()
        (box,) = json.loads(daemon.docker("inspect", "box").stdout)
        assert box["Config"]["Image"] == "app:1" and "A=b" in box["Config"]["Env"]
        assert box["HostConfig"]["RestartPolicy"] == {"Name": "on-failure", "MaximumRetryCount": 3}
        assert list(box["NetworkSettings"]["Networks"]) == ["net"]
        assert {mount["Destination"] for mount in box["Mounts"]} == {"/data", "/anonymous"}
        assert json.loads(daemon.docker("volume", "inspect", "data").stdout)[0]["Labels"] == {"team": "red"}
        assert json.loads(daemon.docker("network", "inspect", "net").stdout)[0]["Labels"] == {"a": "b"}
        for image in ("app:1", "registry.example:5000/many:1", "registry.example:5000/mine:1", "busybox"):
            assert daemon.http("GET", f"/images/{image}/json").status == 200
        assert daemon.docker("secret", "ls", "--format", "{{.Name}}").stdout == "word\n"
        assert daemon.docker("config", "ls", "--format", "{{.Name}}").stdout == "conf\n"
        assert daemon.docker("service", "ls", "--format", "{{.Name}}").stdout == "web\n"
        assert "cannot be read" not in check_store(daemon).stdout
        daemon.docker("service", "rm", "web")
        daemon.docker("swarm", "leave", "--force")
        daemon.docker("network", "rm", "-f", "net", check=False)
        daemon.stop()
        with closing(sqlite3.connect(path)) as state:
            assert state.execute("PRAGMA user_version").fetchone()[0] == SCHEMA
            after = state.execute("SELECT kind, key FROM document WHERE schema = ?", (SCHEMA,)).fetchall()
        kept = {row for row in before if row[0] in ("container", "volume", "image", "image-name")}
        assert kept <= set(after)


def test_the_data_root_of_a_later_release_is_refused_and_left_alone() -> None:
    daemon = Daemon()
    try:
        daemon.config.data_root.mkdir()
        path = daemon.config.data_root / "state.db"
        with closing(sqlite3.connect(path)) as state:
            state.executescript(RELEASES[-1].read_text())
            state.execute(f"PRAGMA user_version = {SCHEMA + 1}")
            state.commit()
        before = path.read_bytes()
        with pytest.raises(
            AssertionError, match=rf"later version of Husk \(schema {SCHEMA + 1}; this one knows {SCHEMA}\)"
        ):
            daemon.start()
        assert path.read_bytes() == before
        assert "later version of Husk" in check_store(daemon).stderr
    finally:
        daemon._traces.clean()
        daemon.config.data_root.joinpath("state.db").unlink()
        daemon.close()
