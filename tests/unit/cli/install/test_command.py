"""`husk install` and `husk uninstall` as they are typed: what they refuse, and what they leave out."""

from pathlib import Path

import pytest

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
    told = typed(*[str(root) if word == "ROOT" else word for word in words])
    assert told.code == 1 and said in told.err


def test_what_is_told_is_true_below_the_root(typed, root: Path) -> None:
    told = typed("install", "--root", str(root))
    assert f"below {root}: install husk there, or name it with --program" in told.err
    assert not (root / "usr/local/bin/husk").is_symlink()
    assert f"usermod --root {root} -aG docker NAME" in told.out
    program = root / "usr/bin/husk"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.touch(0o755)
    told = typed("install", "--root", str(root), "--force")
    assert told.err == "" and "linked /usr/local/bin/husk to /usr/bin/husk" in told.out
    assert "ExecStart=/usr/bin/husk serve" in (root / "etc/systemd/system/husk.service").read_text()
