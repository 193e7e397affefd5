"""Paths of the host that are bound into a container: made, refused, or found as they are mounted."""

import os
from pathlib import Path

import pytest

from husk.errors import InvalidParameter, SystemFault
from husk.runtime.assembly import sources


def test_a_missing_source_is_made_only_where_the_client_wants_that(tmp_path: Path) -> None:
    wanted = tmp_path / "a/b"
    with pytest.raises(InvalidParameter, match=f"bind source path does not exist: {wanted}"):
        sources.make_ready(str(wanted), makes=False, propagation="rprivate")
    assert not wanted.exists()
    sources.make_ready(str(wanted), makes=True, propagation="rprivate")
    assert wanted.is_dir()


def test_a_link_that_leads_nowhere_is_there(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    sources.make_ready(str(tmp_path / "link"), makes=False, propagation="")
    assert not sources.exists(str(tmp_path / "link")) and not (tmp_path / "nowhere").exists()


def test_a_source_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemFault, match=r"error while creating mount source path .*: not a directory"):
        sources.make_ready(str(tmp_path / "file/x"), makes=True, propagation="")


@pytest.mark.parametrize(
    ("tags", "wanted", "says"),
    [
        (set(), "rprivate", ""),
        (set(), "private", ""),
        ({"shared"}, "rshared", ""),
        ({"master"}, "rshared", "is not a shared mount"),
        ({"master"}, "rslave", ""),
        ({"shared"}, "slave", ""),
        (set(), "slave", "is not a shared or slave mount"),
    ],
)
def test_mounts_can_only_go_on_where_the_host_shares_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tags: set[str], wanted: str, says: str
) -> None:
    monkeypatch.setattr(sources, "shared_of", lambda path: ("/mnt", tags))
    assert sources.is_shared(str(tmp_path)) == bool(tags)
    if says:
        with pytest.raises(SystemFault, match=f"is mounted on /mnt but it {says}"):
            sources.make_ready(str(tmp_path), makes=False, propagation=wanted)
    else:
        sources.make_ready(str(tmp_path), makes=False, propagation=wanted)


def test_a_file_is_told_from_a_directory_and_flags_are_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Flags:
        f_flag = os.ST_RDONLY | os.ST_NOEXEC

    monkeypatch.setattr(os, "statvfs", lambda path: Flags)
    (tmp_path / "file").write_text("")
    assert sources.flags(str(tmp_path)) == ("ro", "noexec")
    assert sources.flags(str(tmp_path / "file")) == ("file", "ro", "noexec")
