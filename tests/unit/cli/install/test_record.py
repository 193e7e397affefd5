"""Paths of an image: below its root, whatever its links say."""

import os
from pathlib import Path

import pytest

from husk.cli.install.record import Installed, below, digest_of, inside, load, save, write_new
from husk.errors import SystemFault
from tests.support.installing import NEEDS_GROUPADD, SERVICE


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """Files that are not the image's."""
    (tmp_path / "host/systemd/system").mkdir(parents=True)
    (tmp_path / "host/file").write_text("the host's")
    return tmp_path / "host"


def test_links_of_an_image_mean_its_own_files(root: Path, host: Path) -> None:
    (root / "abs").symlink_to(host)
    (root / "up").symlink_to("../../../../..")
    (root / "usr/local").symlink_to("/opt/local")
    assert inside(root, "/abs/file") == root / str(host).lstrip("/") / "file"
    assert below(root, "/abs") == root / "abs" and below(root, "/usr/local/bin/husk") == root / "opt/local/bin/husk"
    assert inside(root, "/up/etc") == root / "etc" and inside(root, "/../../etc") == root / "etc"
    (root / "one").symlink_to("/one")
    with pytest.raises(SystemFault, match="leads nowhere"):
        inside(root, "/one/file")
    assert inside(Path("/"), "/etc/x") == below(Path("/"), "/etc/x") == Path("/etc/x")


def test_nothing_is_written_through_a_link(root: Path, host: Path) -> None:
    (root / "etc/new").symlink_to(host / "file")
    write_new(root / "etc/new", b"ours", 0o755)
    assert (root / "etc/new").read_bytes() == b"ours" and os.stat(root / "etc/new").st_mode & 0o777 == 0o755
    assert (host / "file").read_text() == "the host's"
    os.mkfifo(root / "etc/pipe")
    assert digest_of(root / "etc/pipe") is None


@NEEDS_GROUPADD
def test_an_image_with_links_to_this_host_is_installed_into_and_taken_back(typed, root: Path, host: Path) -> None:
    (root / "etc/systemd").symlink_to(host / "systemd")
    (root / "usr/local").symlink_to(host)
    (root / "etc/husk").mkdir()
    (root / "etc/husk/installed.new").symlink_to(host / "file")
    before = sorted(host.rglob("*"))
    done = typed("install", "--root", str(root), "--program", "/opt/husk")
    assert done.code == 0 and f"wrote /{SERVICE}" in done.out
    assert sorted(host.rglob("*")) == before and (host / "file").read_text() == "the host's"
    own = root / str(host).lstrip("/")
    assert (own / "systemd/system/husk.service").exists() and (own / "share/man/man1/husk.1").exists()
    assert os.readlink(own / "bin/husk") == "/opt/husk"
    assert f"removed /{SERVICE}" in typed("uninstall", "--root", str(root)).out
    assert not (own / "systemd/system/husk.service").exists() and not os.path.lexists(own / "bin/husk")
    assert sorted(host.rglob("*")) == before


def test_a_group_is_not_made_through_a_link(typed, root: Path, host: Path) -> None:
    (root / "etc/group").unlink()
    (root / "etc/group").symlink_to(host / "file")
    done = typed("install", "--root", str(root))
    assert "left out the group" in done.out and "etc/group is a link" in done.out
    assert (host / "file").read_text() == "the host's"


def test_an_images_record_names_nothing_of_this_host(typed, root: Path, host: Path) -> None:
    (root / "etc/husk").mkdir()
    way = f"/..{host}/file"
    save(root, Installed(files={way: digest_of(host / "file") or ""}))
    typed("uninstall", "--root", str(root))
    assert (host / "file").exists()


@pytest.mark.parametrize(
    "record", [Installed(units=["--root=/", "ssh.service"]), Installed(group="--prefix=/"), Installed(group="a b")]
)
def test_a_record_that_tells_programs_something_else_is_none(root: Path, record: Installed) -> None:
    (root / "etc/husk").mkdir()
    save(root, record)
    with pytest.raises(SystemFault, match="is no record of ours"):
        load(root)
