"""`husk uninstall`: what was put there goes, what was there or holds what users made stays and is named."""

import json
import os
from pathlib import Path

from tests.support.installing import NEEDS_GROUPADD, SERVICE, SOCKET, everything
from tests.support.programs import WrittenPrograms


@NEEDS_GROUPADD
def test_what_was_put_there_is_taken_back_and_nothing_else(typed, root: Path, systemctl: WrittenPrograms) -> None:
    before = everything(root)
    done = typed("install", "--root", str(root), "--program", "/opt/husk/bin/husk")
    assert done.code == 0, done.err
    assert "ExecStart=/opt/husk/bin/husk serve\n" in (root / SERVICE).read_text()
    assert "SocketGroup=docker\n" in (root / SOCKET).read_text()
    assert "docker:" in (root / "etc/group").read_text()
    assert os.readlink(root / "usr/local/bin/husk") == "/opt/husk/bin/husk"
    assert (root / "usr/local/share/man/man1/husk.1").exists()
    assert "made the group docker" in done.out and "from the next boot on" in done.out
    assert systemctl.told == [f"systemctl --root={root} enable husk.socket husk.service"]
    gone = typed("uninstall", "--root", str(root))
    assert gone.code == 0, gone.err
    assert "removed the group docker" in gone.out
    assert "left " not in gone.out
    assert everything(root) == before
    assert systemctl.told[1:] == [f"systemctl --root={root} disable husk.socket husk.service"]


@NEEDS_GROUPADD
def test_what_was_changed_meanwhile_stays_unless_it_is_forced(typed, root: Path) -> None:
    typed("install", "--root", str(root))
    page = root / "usr/local/share/man/man1/husk.1"
    page.write_text("mine")
    done = typed("uninstall", "--root", str(root))
    assert "left /usr/local/share/man/man1/husk.1: it was changed" in done.out and page.read_text() == "mine"
    typed("install", "--root", str(root), "--force")
    page.write_text("mine")
    typed("uninstall", "--root", str(root), "--force")
    assert not page.exists()


def test_a_group_that_was_there_stays_and_so_do_data_and_settings(typed, root: Path) -> None:
    with (root / "etc/group").open("a") as file:
        file.write("docker:x:999:anna\n")
    typed("install", "--root", str(root))
    (root / "srv/data").mkdir(parents=True)
    (root / "etc/husk/daemon.json").write_text(json.dumps({"data-root": "/srv/data", "exec-root": "/srv/run"}))
    (root / "srv/run/containers/abc").mkdir(parents=True)
    done = typed("uninstall", "--root", str(root))
    assert "docker:x:999:anna" in (root / "etc/group").read_text()
    for line in (
        "left /srv/data: images, containers and volumes (rm -r /srv/data removes them for good)",
        "left 1 running container: the next daemon takes them over",
        "left /etc/husk: your settings",
        "left the group docker, which was there before",
    ):
        assert line in done.out.splitlines()


@NEEDS_GROUPADD
def test_a_group_with_members_stays(typed, root: Path) -> None:
    typed("install", "--root", str(root), "--group", "boxes")
    text = (root / "etc/group").read_text().replace("boxes:x:", "boxes:x:").splitlines()
    (root / "etc/group").write_text("\n".join(f"{each}anna" if each.startswith("boxes") else each for each in text))
    assert "left the group boxes: anna is in it" in typed("uninstall", "--root", str(root)).out
