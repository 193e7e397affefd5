import stat
from pathlib import Path

import pytest

from husk.dashboard.link_files import keep_link, opening_page

LINK = "http://127.0.0.1:2380/sign-in?token=a&b"


def test_a_link_is_read_by_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "dashboard-link"
    file.write_text("older and longer than what comes in its place: read by all\n")
    file.chmod(0o644)
    keep_link(file, "http://x/")
    assert file.read_text() == "http://x/\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["dashboard-link"]


def test_a_link_of_somebody_else_in_its_place_is_not_followed(tmp_path: Path) -> None:
    file, other = tmp_path / "dashboard-link", tmp_path / "other"
    file.symlink_to(other)
    keep_link(file, "http://x/")
    assert not other.exists() and not file.is_symlink()


def test_a_link_that_cannot_be_kept_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "dashboard-link").mkdir()
    with pytest.raises(OSError):
        keep_link(tmp_path / "dashboard-link", "http://x/")
    assert [each.name for each in tmp_path.iterdir()] == ["dashboard-link"]


def test_a_page_leads_this_user_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with opening_page(LINK) as page:
        assert 'content="0;url=http://127.0.0.1:2380/sign-in?token=a&amp;b"' in page.read_text()
        assert stat.S_IMODE(page.stat().st_mode) == 0o600 and stat.S_IMODE(page.parent.stat().st_mode) == 0o700
    assert list(tmp_path.iterdir()) == []
