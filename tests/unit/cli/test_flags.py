"""The command line is read as dockerd reads it, by us and by click alike."""

from collections.abc import Mapping
from typing import Any

import pytest
from click.testing import CliRunner

from husk.cli import main
from husk.cli.flags import expanded, plain
from husk.cli.serve import DaemonCommand


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (["--icc=false", "--init"], ["--icc=false", "--init=true"]),
        (["-D"], ["--debug=true"]),
        (["-Dl", "warn"], ["--debug=true", "--log-level", "warn"]),
        (["-D=false"], ["--debug=false"]),
        (["-H=unix:///x", "-Hunix:///y"], ["--host", "unix:///x", "--host", "unix:///y"]),
        (["--label", "--icc"], ["--label", "--icc"]),
        (["-l", "-D"], ["--log-level", "-D"]),
        (["--label=a=b"], ["--label=a=b"]),
        (["--unknown", "-x"], ["--unknown", "-x"]),
        (["-v"], ["--version"]),
    ],
)
def test_flags_are_read_as_dockerd_reads_them(written, read):
    assert list(expanded(written)) == read


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["-Dl", "warn", "-H=unix:///x", "-H", "tcp://1.2.3.4:5", "--icc=false", "--bip", "10.0.0.1/24"],
        ["--label", "--icc", "--label=a=b", "--mtu=1400", "--mtu", "1500", "--validate"],
        ["--config-file", "/c.json", "--default-ulimit", "core=0", "--feature", "a", "--feature", "b=false"],
    ],
)
def test_plain_flags_are_read_as_click_reads_them(arguments: list[str]) -> None:
    by_click: list[Mapping[str, Any]] = []
    serve = DaemonCommand("serve", "", start=lambda as_dockerd, given: by_click.append(given))
    assert CliRunner().invoke(serve, arguments, catch_exceptions=False).exit_code == 0
    assert plain(arguments) == by_click[0]


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["-h"], ["--unknown"], ["-x"], ["word"], ["--bip"], ["--bip", ""], ["-v"], ["--restart"]],
)
def test_what_is_not_plain_is_left_to_click(arguments: list[str]) -> None:
    assert plain(arguments) is None


def test_click_complains_about_what_nobody_can_read(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["husk", "serve", "--unknown"])
    assert ended.value.code == 2
    assert capfd.readouterr().err == "husk serve: unknown flag: --unknown. See 'husk serve --help'\n"
