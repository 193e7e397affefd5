"""Modules that a start of the daemon does not need are not loaded: most of its time is the loading of modules."""

import subprocess
import sys
from pathlib import Path

import pytest

# As `husk serve` does it: flags, settings of a file, log, the engine on a fresh data root that has an image, the edge.
START = """
import asyncio, sys
from pathlib import Path
import husk.cli
from husk.cli.flags import plain
from husk.cli.start import start
from husk.config.load import SettingsSource
from husk.config.settings import from_flags
import husk.daemon, husk.observe.log
from husk.composition import Engine

async def main(root):
    (root / "daemon.json").write_text('{"labels": ["a=b"]}')
    given = plain(["--data-root", str(root / "d"), "--exec-root", str(root / "r"), "--bridge", "none"])
    del given["config-file"], given["validate"]
    config = SettingsSource(from_flags(given), root / "daemon.json").load()
    husk.observe.log.set_up(config.log_level, config.log_format)
    async with Engine.open(config, 0, husk.daemon._load_edge) as engine:
        from husk.api.edge.server import ApiEdge
        ApiEdge(engine)
        assert engine.swarm_state == "inactive"
        print("\\n".join(sorted(sys.modules)))

asyncio.run(main(Path(sys.argv[1])))
"""
UNWANTED = {
    "the client of registries": ("aiohttp", "yarl", "multidict", "http.", "email", "husk.registry.client"),
    "transfers of images": tuple(
        f"husk.engine.images.{part}" for part in ("transfers", "pull", "push", "save", "load", "importer")
    ),
    "ciphers": ("cryptography", "cffi"),
    "the command line beyond plain flags": ("click", "rich", "gettext"),
    "archives and compression": ("tarfile", "zstandard", "argparse", "shutil", "tempfile", "lzma", "bz2"),
    "dataclasses, and more luck than the kernel has": ("dataclasses", "secrets", "random"),
    "web pages": ("husk.dashboard", "husk.client", "jinja2", "markupsafe"),
    "WebSockets": ("websockets", "husk.api.http.websocket"),
    "operations of the API and what they show": ("husk.api.routes.", "husk.api.types", "husk.api.views"),
    "a swarm": ("husk.swarm", "husk.storage.secrets.sealing", "husk.network.wireguard.tunnel"),
    "several hosts": ("husk.rpc", "hpack"),
    "builds": ("husk.builder",),
    "verbs of containers": tuple(
        f"husk.engine.containers.{verb}" for verb in ("commit", "copy", "create", "start", "stats", "top", "update")
    ),
    "metrics, traces and the audit log": tuple(f"husk.observe.{part}" for part in ("metrics", "audit", "tracing")),
    "what they are told with": ("prometheus_client", "opentelemetry"),
}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    root = tmp_path_factory.mktemp("start")
    for _ in range(2):  # the first start makes the first image
        done = subprocess.run([sys.executable, "-c", START, str(root)], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize("what", UNWANTED)
def test_a_start_does_not_load(loaded: list[str], what: str) -> None:
    unwanted = UNWANTED[what]
    assert [name for name in loaded if name.startswith(unwanted)] == []


def test_every_unwanted_module_of_ours_exists() -> None:
    source = Path(__file__).parents[3] / "src"
    for names in UNWANTED.values():
        for name in (name.rstrip(".") for name in names if name.startswith("husk.")):
            path = source / name.replace(".", "/")
            assert path.is_dir() or path.with_suffix(".py").is_file(), name
