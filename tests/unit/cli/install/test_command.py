"""`husk install` and `husk uninstall` as they are typed: what they refuse, and what they leave out."""

from pathlib import Path

import pytest

from husk.cli.install import systemd
from husk.errors import InvalidParameter, SystemFault


def test_a_systemd_that_refuses_is_told(typed, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise SystemFault("systemctl enable failed: no")

    monkeypatch.setattr(systemd, "_tell", refuse)
    assert "left out: systemctl enable failed: no" in typed("install", "--root", str(root)).out
    assert "left out: systemctl enable failed: no" in typed("uninstall", "--root", str(root)).out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["install", "--root", "/no/such"], "is no directory"),
        (["install", "--root", "ROOT", "--prefix", "usr"], "--prefix usr is no absolute path"),
        (["install", "--root", "ROOT", "--program", "husk"], "--program husk is no absolute path"),
        (["uninstall", "--root", "ROOT"], "nothing was installed here"),
    ],
)
def test_what_makes_no_sense(typed, root: Path, words: list[str], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        typed(*[str(root) if word == "ROOT" else word for word in words])
