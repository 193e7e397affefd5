"""`husk serve` hands every flag of dockerd's to the daemon, in the shape of the configuration file."""

import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from husk.cli import main
from husk.cli.commands import husk
from husk.cli.serve import DaemonCommand
from husk.cli.start import start
from husk.config import Config
from husk.config.load import DOCKERD, SettingsSource, build
from husk.config.settings import PoolSetting, RuntimeSetting, Settings, UlimitSetting
from husk.errors import InvalidParameter
from husk.version import __version__


class Started(list[SettingsSource]):
    """Instead of starting a daemon, remember what it would have been started with."""

    def serve(self, *arguments: str, as_dockerd: bool = False) -> int:
        command = DaemonCommand("serve", "", as_dockerd, start=partial(start, run=self.append))
        return CliRunner().invoke(command, arguments, catch_exceptions=False).exit_code


@pytest.fixture
def started() -> Started:
    return Started()


def test_no_flag_is_no_setting(started):
    assert started.serve() == 0
    assert started == [SettingsSource(Settings(), None)]


def test_every_flag_arrives(started):
    started.serve(
        *["-H", "unix:///a", "--host", "tcp://1.2.3.4:5", "--data-root", "/d", "--exec-root", "/e", "--pidfile", "/p"],
        *["--config-file", "/c.json", "--log-level", "debug", "--log-format", "json", "--insecure-registry", "r:5000"],
        *["--registry-mirror", "https://m", "--default-runtime", "crun", "--add-runtime", "kata=/k", "--bridge", "br1"],
        *["--bip", "10.0.0.1/24", "--default-address-pool", "base=10.1.0.0/16,size=24", "--label", "a=b"],
        *["--group", "staff"],
    )
    flags = Settings(
        hosts=["unix:///a", "tcp://1.2.3.4:5"],
        data_root="/d",
        exec_root="/e",
        pidfile="/p",
        log_level="debug",
        log_format="json",
        insecure_registries=["r:5000"],
        registry_mirrors=["https://m"],
        default_runtime="crun",
        runtimes={"kata": RuntimeSetting("/k")},
        bridge="br1",
        bip="10.0.0.1/24",
        default_address_pools=[PoolSetting("10.1.0.0/16", 24)],
        labels=["a=b"],
        group="staff",
    )
    assert started == [SettingsSource(flags, Path("/c.json"))]


def test_an_error_of_the_user_is_one_line(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["husk", "serve", "--bip", "nonsense"])
    assert ended.value.code == 1
    assert "invalid bip 'nonsense'" in capsys.readouterr().err


def test_help_needs_neither_engine_nor_event_loop():
    code = "import sys, husk.cli.commands; print(sys.modules.keys() & {'asyncio', 'aiohttp', 'msgspec', 'husk.engine'})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


@pytest.mark.parametrize("asked", ["--version", "-v"])
def test_the_version_is_told_however_it_is_asked_for(asked: str):
    told = CliRunner().invoke(husk, [asked])
    assert (told.exit_code, told.output) == (0, f"husk {__version__}\n")


def test_truths_numbers_and_pairs_arrive_as_what_they_are(started):
    started.serve(
        *["--icc=false", "--ipv6", "--tlsverify=0", "--mtu", "1400", "--dns", "192.0.2.1,192.0.2.2", "--feature", "a"],
        *["--feature", "b=false", "--default-network-opt", "bridge=com.docker.network.driver.mtu=1400"],
        *["--default-ulimit", "nofile=1:2", "--default-ulimit", "core=0", "--log-opt", "max-size=1m"],
    )
    assert started == [
        SettingsSource(
            Settings(
                icc=False,
                ipv6=True,
                tlsverify=False,
                mtu=1400,
                dns=["192.0.2.1", "192.0.2.2"],
                features={"a": True, "b": False},
                default_network_opts={"bridge": {"com.docker.network.driver.mtu": "1400"}},
                default_ulimits={"nofile": UlimitSetting(1, 2, "nofile"), "core": UlimitSetting(0, 0, "core")},
                log_opts={"max-size": "1m"},
            )
        )
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--icc=maybe"], 'invalid argument "maybe" for "--icc" flag: it is true or false'),
        (["--mtu", "x"], 'invalid argument "x" for "--mtu" flag: it is a number'),
        (["--log-opt", "x"], "it has the form key=value"),
        (["--add-runtime", "x="], "it has the form name=/path/to/runtime"),
        (["--default-address-pool", "10.0.0.0/8,24"], "it has the form base="),
        (["--default-network-opt", "bridge=x"], "it has the form driver=key=value"),
        (["--default-ulimit", "nofile"], "it has the form name=soft"),
    ],
)
def test_a_flag_in_another_form_is_refused_with_the_form(started, arguments, words):
    with pytest.raises(InvalidParameter, match=re.escape(words)):
        started.serve(*arguments)
    assert started == []


def test_a_program_called_dockerd_has_dockerds_places(started, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["/usr/bin/dockerd", "--bip", "nonsense"])
    assert ended.value.code == 1 and capsys.readouterr().err.startswith("dockerd: invalid bip")
    assert started.serve("--label", "a=b", as_dockerd=True) == 0
    assert started == [SettingsSource(Settings(labels=["a=b"]), None, DOCKERD)]
    config = build(Settings(), DOCKERD)
    assert config.hosts == ("unix:///var/run/docker.sock",)
    assert config.pidfile == Path("/var/run/docker.pid")
    assert config.bridge_name == "docker0"
    assert config.data_root == Config().data_root, "dockerd's store is not ours"


def test_validate_starts_nothing(started, capsys, tmp_path):
    file = tmp_path / "daemon.json"
    file.write_text('{"debug": true}')
    assert started.serve("--validate", "--config-file", str(file)) == 0
    assert started == []
