"""A backup is written whole or not at all, and nobody else can read it."""

import base64
import json
from pathlib import Path

import pytest

from husk.cli.swarm.backup import opened_by, write_whole
from husk.errors import SystemFault
from tests.support.fake_engine import failed

SWARM = {"ID": "s1", "Spec": {"EncryptionConfig": {"AutoLockManagers": False}}}


def told(request) -> str:
    return base64.urlsafe_b64decode(request.headers["x-husk-passphrase"]).decode()


def test_a_backup_is_a_file_of_its_own(engine, typed, tmp_path):
    engine.answers("GET", "/swarm", SWARM)
    engine.answers("POST", "/swarm/backup", b"all of it")
    file = tmp_path / "a.backup"
    said = typed("swarm", "backup", "--passphrase-file", "-", str(file), given="correct horse\nmore")
    assert said == (0, f"Swarm s1 is in {file}, 9 bytes. Its passphrase opens it.\n", "")
    assert file.read_bytes() == b"all of it" and file.stat().st_mode & 0o777 == 0o600
    assert told(engine.last("POST", "/swarm/backup")) == "correct horse"


def test_autolock_needs_no_passphrase(engine, typed, tmp_path):
    engine.answers("GET", "/swarm", {"ID": "s1", "Spec": {"EncryptionConfig": {"AutoLockManagers": True}}})
    engine.answers("POST", "/swarm/backup", b"x")
    said = typed("swarm", "backup", "--json", str(tmp_path / "a"))
    assert json.loads(said.out) == {"File": str(tmp_path / "a"), "Swarm": "s1", "Size": 1, "OpenedBy": "unlock key"}


def test_what_is_refused_leaves_no_file(engine, typed, tmp_path):
    engine.answers("GET", "/swarm", failed(503, "This node is not a swarm manager."))
    said = typed("swarm", "backup", str(tmp_path / "a"))
    assert (said.code, said.err) == (1, "Error response from daemon: This node is not a swarm manager.\n")
    engine.answers("GET", "/swarm", SWARM)
    assert "use --passphrase-file" in typed("swarm", "backup", str(tmp_path / "a")).err
    assert "cannot read the passphrase" in typed("swarm", "backup", "--passphrase-file", "/nosuch", "a").err
    assert not list(tmp_path.iterdir())


def test_a_restore_brings_the_file(engine, typed, tmp_path):
    file = tmp_path / "a"
    assert typed("swarm", "restore", str(file)).err == f"husk: cannot read {file}: No such file or directory\n"
    file.write_bytes(b"data")
    engine.answers("POST", "/swarm/restore", "n1")
    words = ("--passphrase-file", "-", "--advertise-addr", "10.0.0.1", "--json")
    said = typed("swarm", "restore", str(file), *words, given="word")
    assert json.loads(said.out) == {"Node": "n1"}
    asked = engine.last("POST", "/swarm/restore")
    assert asked.body == b"data" and told(asked) == "word" and asked.query == {"advertiseAddr": "10.0.0.1"}


@pytest.mark.parametrize(
    ("data", "found"), [(b'{"OpenedBy":"unlock key"}\nxx', "unlock key"), (b"\0\1", ""), (b"{}", "")]
)
def test_what_opens_it_stands_in_the_first_line(data: bytes, found: str):
    assert opened_by(data) == found


def test_nothing_is_left_of_what_cannot_be_written(tmp_path: Path):
    with pytest.raises(SystemFault, match="cannot write"):
        write_whole(tmp_path / "nosuch" / "a", b"x")
    (tmp_path / "a").mkdir()
    with pytest.raises(SystemFault, match="cannot write"):
        write_whole(tmp_path / "a", b"x")
    assert [each.name for each in tmp_path.iterdir()] == ["a"]
