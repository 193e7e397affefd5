"""Values that nobody may read from the disk."""

from pathlib import Path

import pytest

from husk.errors import SystemFault
from husk.storage.sealing import Sealer


def test_only_the_key_opens_it(tmp_path: Path):
    sealed = Sealer(tmp_path / "key").seal(b"value", "secret 1")
    assert b"value" not in sealed
    assert Sealer(tmp_path / "key").unseal(sealed, "secret 1") == b"value"
    with pytest.raises(SystemFault, match="cannot be unsealed"):
        Sealer(tmp_path / "other").unseal(sealed, "secret 1")


def test_one_value_cannot_take_the_place_of_another(tmp_path: Path):
    sealer = Sealer(tmp_path / "key")
    with pytest.raises(SystemFault):
        sealer.unseal(sealer.seal(b"value", "secret 1"), "secret 2")


def test_the_key_is_for_root_alone_and_made_once(tmp_path: Path):
    path = tmp_path / "key"
    sealer = Sealer(path)
    assert sealer.seal(b"x", "c") != sealer.seal(b"x", "c")
    assert path.stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "key.new").exists()


def test_a_damaged_key_is_named(tmp_path: Path):
    (tmp_path / "key").write_bytes(b"short")
    with pytest.raises(SystemFault, match="not a key"):
        Sealer(tmp_path / "key").seal(b"x", "c")
