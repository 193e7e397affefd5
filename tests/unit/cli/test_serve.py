"""`husk serve` hands every flag of dockerd's to the daemon, in the shape of the configuration file."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from husk import __version__
from husk.cli import husk, main
from husk.config_load import Source
from husk.config_settings import PoolSetting, RuntimeSetting, Settings


@pytest.fixture
def started(monkeypatch):
    """Instead of starting a daemon, remember what it would have been started with."""
    calls: list[Source] = []
    monkeypatch.setattr("husk.daemon.run", calls.append)
    return calls


def serve(*arguments: str) -> int:
    return CliRunner().invoke(husk, ["serve", *arguments], catch_exceptions=False).exit_code


def test_no_flag_is_no_setting(started):
    assert serve() == 0
    assert started == [Source(Settings(), None)]


def test_every_flag_arrives(started):
    serve(
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
    assert started == [Source(flags, Path("/c.json"))]


def test_an_error_of_the_user_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["husk", "serve", "--bip", "nonsense"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert "invalid bip 'nonsense'" in capsys.readouterr().err


def test_help_needs_neither_engine_nor_event_loop():
    code = "import sys, husk.cli; print(sys.modules.keys() & {'asyncio', 'aiohttp', 'msgspec', 'husk.engine.engine'})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


@pytest.mark.parametrize("asked", ["version", "--version", "-v"])
def test_the_version_is_told_however_it_is_asked_for(asked: str):
    told = CliRunner().invoke(husk, [asked])
    assert (told.exit_code, told.output) == (0, f"husk {__version__}\n")
