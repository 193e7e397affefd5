"""The records of a release, for tests/releases: one or more of every kind, as this tree's daemon writes them.

python -m tests.support.release > tests/releases/VERSION.sql
"""

import socket
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import husk
from tests.support.daemon import Daemon
from tests.support.images import busybox_layer
from tests.support.platforms import Platforms
from tests.support.registry import Registry, push_image, tar_of

KEY = bytes(range(32))
HEAD = """\
-- The records of a data root of Husk {version}, one or more of every kind: `state.db` as that release wrote it.
-- A release's file never changes; `tests/integration/test_releases.py` opens them all. What is sealed is sealed with
-- the bytes 0 to 31 as `swarm.key`.
PRAGMA journal_mode = WAL;
PRAGMA user_version = {schema};
"""
DOCKERFILE = 'FROM busybox\nENV A=b\nEXPOSE 80\nRUN echo hi > /said\nCMD ["/hello"]\n'


def filled(daemon: Daemon, registry: Registry) -> None:
    """Make something of every kind; nothing of it runs."""
    many = Platforms().put(registry, "many", "1")
    push_image(registry, "mine", "1", [busybox_layer(), tar_of({"mine": b"1"})])
    for image in (many, f"{registry.host}/mine:1"):
        daemon.docker("pull", image)
    daemon.docker("build", "--tag", "app:1", "-", input=DOCKERFILE)
    daemon.docker("volume", "create", "--label", "team=red", "data")
    daemon.docker("network", "create", "--label", "a=b", "net")
    daemon.docker(
        "create", "--name", "box", "--network", "net", "--restart", "on-failure:3", "-p", "127.0.0.1:18080:80",
        "-v", "data:/data", "-v", "/anonymous", "app:1",
    )  # fmt: skip
    daemon.docker("swarm", "init", "--advertise-addr", "127.0.0.1", "--listen-addr", "127.0.0.1:22377")
    daemon.docker("secret", "create", "word", "-", input="secret")
    daemon.docker("config", "create", "conf", "-", input="config")
    daemon.docker("network", "create", "--driver", "overlay", "lan")
    daemon.docker(
        "service", "create", "--detach", "--name", "web", "--constraint", "node.labels.never==true",
        "--secret", "word", "--config", "conf", "--network", "lan", "busybox", "sleep", "1",
    )  # fmt: skip


def statements(path: Path) -> Iterator[str]:
    with closing(sqlite3.connect(path)) as state:
        (schema,) = state.execute("PRAGMA user_version").fetchone()
        yield HEAD.format(version=husk.__version__, schema=schema)
        for name, sql in state.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall():
            yield f"{sql};\n"
            columns = [column for _, column, *_ in state.execute(f"PRAGMA table_info({name})").fetchall()]
            for row in state.execute(
                f"SELECT * FROM {name} ORDER BY 1, 2" if len(columns) > 1 else f"SELECT * FROM {name}"
            ):
                yield f"INSERT INTO {name} VALUES ({', '.join(literal(value) for value in row)});\n"


def literal(value: object) -> str:
    if isinstance(value, bytes):
        return f"\n    CAST({literal(value.decode())} AS BLOB)"
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


def main() -> None:
    with Daemon() as daemon, Registry() as registry:
        daemon.stop()
        (daemon.config.data_root / "swarm.key").write_bytes(KEY)
        daemon.start()
        filled(daemon, registry)
        daemon.stop()
        text = "".join(statements(daemon.config.data_root / "state.db"))
        # Nothing of this machine.
        for own, plain in {
            registry.host: "registry.example:5000",
            str(daemon.config.data_root): "/var/lib/husk",
            str(daemon.config.exec_root): "/run/husk",
            f'"{socket.gethostname()}"': '"host"',
        }.items():
            text = text.replace(own, plain)
        sys.stdout.write(text.replace(", \n", ",\n").replace("\n;\n", ";\n"))
        daemon.start()
        daemon.docker("service", "rm", "web")
        daemon.docker("swarm", "leave", "--force")
        daemon.docker("network", "rm", "net")


if __name__ == "__main__":
    main()
