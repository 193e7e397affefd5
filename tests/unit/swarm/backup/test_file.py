"""The file of a backup: what was put in comes out, and only of a whole one, with its passphrase."""

import json

import msgspec
import pytest

from husk.errors import InvalidParameter, SystemFault, Unauthorized
from husk.swarm.backup.file import BackupContent, SavedRecord, read, read_head, write


def content(unlock_key: bytes = b"") -> BackupContent:
    records = [SavedRecord("service", "a", msgspec.Raw(b'{"name":"web"}'))]
    return BackupContent(
        swarm="s", node="n", schema=2, listen_address="", key=b"k" * 32, unlock_key=unlock_key, records=records
    )


def test_what_was_put_in_comes_out():
    data = write(content(), b"word", "now")
    assert read(data, b"word") == content()
    head, _ = read_head(data)
    assert (head.swarm, head.made, head.opened_by) == ("s", "now", "passphrase")
    assert b"web" not in data and b"kkkk" not in data


def test_one_of_a_locked_swarm_says_what_opens_it():
    head, _ = read_head(write(content(b"u" * 32), b"u" * 32, "now"))
    assert head.opened_by == "unlock key"


def test_nothing_is_sealed_with_nothing():
    with pytest.raises(InvalidParameter, match="empty passphrase"):
        write(content(), b"", "now")


@pytest.mark.parametrize("limit", ["LARGEST", "LARGEST_CONTENT"])
def test_one_that_nobody_could_restore_is_not_made(limit: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(f"husk.swarm.backup.file.{limit}", 100)
    with pytest.raises(SystemFault, match="too many records"):
        write(content(), b"word", "now")


def test_a_wrong_passphrase():
    with pytest.raises(Unauthorized, match="this is not its passphrase"):
        read(write(content(), b"word", "now"), b"other")


@pytest.mark.parametrize(
    "data", [b"", b"{}\n", b"\x7fELF" + bytes(5000), b'{"Husk":"swarm backup","Version":1}', b"[]\n"]
)
def test_what_is_no_backup(data: bytes):
    with pytest.raises(InvalidParameter, match="not a backup of a swarm"):
        read(data, b"word")


def test_one_that_is_cut_off():
    data = write(content(), b"word", "now")
    with pytest.raises(InvalidParameter, match="cut off: "):
        read(data[:-1], b"word")
    line = data.index(b"\n")
    with pytest.raises(InvalidParameter, match="cut off: 0 of"):
        read(data[: line + 1], b"word")


def test_any_byte_that_was_changed_is_noticed():
    data = write(content(), b"word", "now")
    for place in (*range(60, data.index(b"\n"), 7), *range(data.index(b"\n") + 1, len(data), 11)):
        changed = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        with pytest.raises(InvalidParameter, match=r"changed|damaged|cut off|not a backup"):
            read_head(changed)
    with pytest.raises(InvalidParameter, match="changed"):
        read_head(data + b"more")


def test_one_of_a_newer_release_says_so():
    line, _, rest = write(content(), b"word", "now").partition(b"\n")
    newer = json.dumps(json.loads(line) | {"Version": 2, "Size": "many"}).encode()
    with pytest.raises(InvalidParameter, match="newer release"):
        read(newer + b"\n" + rest, b"word")


def test_a_head_that_lies_is_noticed():
    """An author who can make a checksum still cannot say that it is another swarm's."""
    from husk.swarm.backup import file as backup_file

    head, sealed = read_head(write(content(), b"word", "now"))
    head.swarm = "other"
    head.checksum = backup_file._checksum(head, sealed)
    with pytest.raises(Unauthorized):
        read(msgspec.json.encode(head) + b"\n" + sealed, b"word")
