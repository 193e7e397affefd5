"""A root to install into, with a systemd that only writes down what it is told."""

from pathlib import Path

import pytest

from husk.cli.install import systemd


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root with systemd in it; what systemctl is told is in `systemctl`."""
    for name in ("etc", "usr/lib/systemd"):
        (tmp_path / "root" / name).mkdir(parents=True)
    (tmp_path / "root/usr/lib/systemd/systemd").touch()
    (tmp_path / "root/etc/group").write_text("root:x:0:\n")
    (tmp_path / "root/etc/gshadow").write_text("root:*::\n")
    told = tmp_path / "systemctl"

    def tell(place: Path, words: list[str]) -> None:
        with told.open("a") as file:
            print(*words, file=file)

    monkeypatch.setattr(systemd, "_tell", tell)
    return tmp_path / "root"
