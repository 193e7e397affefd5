"""Packages that a plain build does not need are not loaded: code is nearly all that a build leaves in the daemon's
memory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.building import Builds, Context, needs_buildx
from tests.support.daemon import Daemon

pytestmark = needs_buildx

# Python imports it at its start; at the end of a daemon it writes down what was loaded.
NOTES = """
import atexit, os, sys

def write():
    if "serve" in sys.orig_argv:
        with open(os.environ["LOADED"], "w") as file:
            file.write("\\n".join(sys.modules))

atexit.register(write)
"""
SOURCES = Path(__file__).parents[3] / "src"
DOCKERFILE = "FROM busybox\nRUN echo hi > /hi\nCOPY . /all/\n"
UNWANTED = {
    "registries": ("aiohttp", "yarl"),
    "a swarm": ("husk.swarm", "husk.api.types.services"),
    "web pages": ("husk.dashboard", "husk.client"),
}
# The classic door writes to the history of builds, and has no connection of BuildKit's protocol.
NOT_CLASSIC = ("husk.api.routes.buildkit", "husk.builder.protocol.server", "husk.builder.protocol.worker")
# The classic door of the API; its builder comes with the others.
ONLY_CLASSIC = ("husk.api.routes.build", "husk.api.build_request")


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[str]]]:
    """The modules that one build has the daemon load, by each of the doors."""
    root = tmp_path_factory.mktemp("loaded")
    (root / "sitecustomize.py").write_text(NOTES)
    paths = {"PYTHONPATH": f"{root}:{SOURCES}", "LOADED": str(root / "loaded")}
    found = {}
    with Daemon(environment=paths) as daemon:  # its first start has made the first image
        for door in ("buildkit", "classic"):
            daemon.stop()
            daemon.start()
            (root / door).mkdir()
            builds = Builds(daemon, Context(root / door), buildkit=door == "buildkit")
            builds.run(DOCKERFILE, "--no-cache", files={"file": "x"})
            assert daemon.stop() == 0
            found[door] = (root / "loaded").read_text().split()
        daemon.start()
        yield found


@pytest.mark.parametrize("what", UNWANTED)
@pytest.mark.parametrize("door", ["buildkit", "classic"])
def test_a_plain_build_does_not_load(loaded: dict[str, list[str]], door: str, what: str) -> None:
    assert [name for name in loaded[door] if name.startswith(UNWANTED[what])] == []


def test_the_classic_door_is_loaded_by_its_own_builds(loaded: dict[str, list[str]]) -> None:
    assert [name for name in ONLY_CLASSIC if name in loaded["buildkit"]] == []


def test_the_classic_door_does_without_connections_of_buildkit(loaded: dict[str, list[str]]) -> None:
    assert [name for name in loaded["classic"] if name.startswith(NOT_CLASSIC)] == []
    assert [name for name in NOT_CLASSIC if name not in loaded["buildkit"]] == []


def test_every_unwanted_module_of_ours_exists() -> None:
    for name in (name.rstrip(".") for names in (*UNWANTED.values(), ONLY_CLASSIC, NOT_CLASSIC) for name in names):
        if name.startswith("husk."):
            path = SOURCES / name.replace(".", "/")
            assert path.is_dir() or path.with_suffix(".py").is_file(), name
