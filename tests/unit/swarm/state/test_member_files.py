from pathlib import Path

from husk.swarm.state.member_files import install, is_there, read, replace


def test_what_a_member_is_given_is_for_root_alone(tmp_path: Path) -> None:
    directory = tmp_path / "swarm.etcd"
    assert not is_there(directory)
    install({directory / "ca.crt": b"old and long", directory / "member.key": b"key"})
    install({directory / "ca.crt": b"root"})
    assert is_there(directory) and directory.stat().st_mode & 0o777 == 0o700
    found = {path.name: (path.read_bytes(), path.stat().st_mode & 0o777) for path in directory.iterdir()}
    assert found == {"ca.crt": (b"root", 0o600), "member.key": (b"key", 0o600)}


def test_a_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "swarm.etcd/member.crt"
    assert read(path) == b""
    replace(path, b"old")
    held = path.open("rb")
    replace(path, b"new")
    assert held.read() == b"old", "whoever reads it has all of it"
    held.close()
    assert read(path) == b"new" and path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["member.crt"]
