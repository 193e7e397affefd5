"""`husk install` and `husk uninstall` as they are typed: what they refuse, and what they leave out."""

from pathlib import Path

import pytest

from husk.errors import InvalidParameter
from tests.support.programs import WrittenPrograms


def test_a_systemd_that_refuses_is_told(typed, root: Path, systemctl: WrittenPrograms) -> None:
    systemctl.add("systemctl", script="echo no >&2; exit 1")
    for verb, said in (("install", "enable"), ("uninstall", "disable")):
        done = typed(verb, "--root", str(root))
        assert f"left out: systemctl {said} husk.socket husk.service failed: no" in done.out


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
