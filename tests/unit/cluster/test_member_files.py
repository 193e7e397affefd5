from pathlib import Path

from husk.cluster.member_files import install, is_there


def test_what_a_member_is_given_is_for_root_alone(tmp_path: Path) -> None:
    directory = tmp_path / "swarm.etcd"
    assert not is_there(directory)
    install({directory / "ca.crt": b"old and long", directory / "member.key": b"key"})
    install({directory / "ca.crt": b"root"})
    assert is_there(directory) and directory.stat().st_mode & 0o777 == 0o700
    found = {path.name: (path.read_bytes(), path.stat().st_mode & 0o777) for path in directory.iterdir()}
    assert found == {"ca.crt": (b"root", 0o600), "member.key": (b"key", 0o600)}
