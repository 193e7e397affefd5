"""Names of packages: the table is whole, and a distribution is known by itself or by what it is like."""

import subprocess
from pathlib import Path

import pytest

from husk.cli import packages
from husk.cli.packages import FAMILIES, cure, family_of, package

ROOT = Path(__file__).parents[3]
DEBIAN, FEDORA, SUSE, ARCH, ALPINE = FAMILIES


@pytest.mark.parametrize(
    ("release", "family"),
    [
        ('PRETTY_NAME="Debian GNU/Linux 12"\nID=debian\n', DEBIAN),
        ("ID=ubuntu\nID_LIKE=debian\n", DEBIAN),
        ('ID=linuxmint\nID_LIKE="ubuntu debian"\n', DEBIAN),
        ("ID=fedora\n", FEDORA),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', FEDORA),
        ('ID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n', SUSE),
        ("ID='arch'\n", ARCH),
        ("ID=manjaro\nID_LIKE=arch\n", ARCH),
        ("# a comment\n\nID=alpine\n", ALPINE),
        ("ID=plan9\n", None),
        ("", None),
    ],
)
def test_the_family_of_a_distribution(release: str, family: object) -> None:
    assert family_of(release) == family


def test_every_family_has_every_need() -> None:
    needs = [line.split()[0] for line in packages.TABLE.read_text().splitlines() if line[:1].isalpha()]
    assert {"crun", "runc", "conmon", "nftables", "iproute2", "procps", "init", "busybox"} <= set(needs)
    for family in FAMILIES:
        for need in needs:
            assert package(need, family)
    assert package("crun", None) is None


def test_what_to_type() -> None:
    assert cure("init", DEBIAN) == "apt-get install tini"
    assert cure("iproute2", FEDORA) == "dnf install iproute"
    assert cure("init", SUSE) == "zypper install catatonit"
    assert cure("crun", ARCH) == "pacman -S crun"
    assert cure("init", ALPINE) == "apk add tini-static"
    assert cure("crun", None) == "install crun by hand: this distribution is not known"


def test_a_need_without_a_package(tmp_path: Path) -> None:
    table = tmp_path / "table"
    table.write_text("# need\ncrun crun - crun crun crun\n")
    assert cure("crun", FEDORA, table) == "install crun by hand: fedora has no package of it"


def test_this_host(tmp_path: Path) -> None:
    places = (tmp_path / "none", tmp_path / "release")
    assert packages.here(places) is None
    (tmp_path / "release").write_text("ID=alpine\n")
    assert packages.here(places) == ALPINE


@pytest.mark.parametrize("family", FAMILIES)
def test_the_set_up_reads_the_same_table(family: packages.Family, tmp_path: Path) -> None:
    release = tmp_path / "os-release"
    release.write_text(f"ID=other\nID_LIKE={family.ids[0]}\n")
    command = 'source scripts/packages; echo "$manager"; package_of init; package_of iproute2'
    done = subprocess.run(
        ["bash", "-euc", command],
        cwd=ROOT,
        env={"OS_RELEASE": str(release)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [family.program, package("init", family), package("iproute2", family)]


def test_the_set_up_says_that_it_does_not_know_a_distribution(tmp_path: Path) -> None:
    release = tmp_path / "os-release"
    release.write_text("ID=plan9\n")
    command = 'source scripts/packages; echo "$manager."; package_of init'
    done = subprocess.run(
        ["bash", "-euc", command],
        cwd=ROOT,
        env={"OS_RELEASE": str(release)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ".\ninit\n"
