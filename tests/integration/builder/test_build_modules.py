"""Modules that a plain build does not need are not loaded: code is nearly all that a build leaves in the daemon's
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
BUILDER = "husk.builder"
UNWANTED = {
    "sources from elsewhere": (
        *(f"{BUILDER}.sources.{name}" for name in ("git", "http", "layouts", "seen_files")),
        "husk.builder.store.repositories",
    ),
    "caches that are elsewhere": (f"{BUILDER}.remote_cache.", "husk.builder.store.portable_digest"),
    "exports that are no images here": (
        *(f"{BUILDER}.exporters.{name}" for name in ("archive", "bundle", "local", "tar", "storing", "stated_files")),
        *("husk.builder.store.layer_packing", "husk.builder.store.sync.exports", "husk.builder.store.stack_archives"),
    ),
    "scanners": (f"{BUILDER}.attest.sbom",),
    "frontends that are images, and processes of clients": (
        *(f"{BUILDER}.frontend.gateway", f"{BUILDER}.steps.held", "husk.builder.protocol.processes"),
        "husk.builder.protocol.messages.containers",
    ),
    "questions about a Dockerfile": (f"{BUILDER}.frontend.reading.answers", f"{BUILDER}.dockerfile.questions"),
    "builds that come with POST /build and are BuildKit's": ("husk.builder.protocol.posted",),
    "what a client's session serves and nobody asks for": (
        *("husk.builder.protocol.session.agent", "husk.builder.protocol.session.content"),
        "husk.builder.protocol.history_content",
    ),
    "registries": ("aiohttp", "yarl", "husk.engine.images.pull", "husk.engine.images.push", "husk.engine.images.fetch"),
    "a swarm": ("husk.swarm", "husk.api.types.services"),
    "compression": ("isal", "zstandard", "gzip"),
    "what the standard library has for this, and is large": ("csv", "dataclasses", "tempfile", "argparse"),
}
# The classic door writes to the history of builds, and has no connection of BuildKit's protocol.
NOT_CLASSIC = (
    *("hpack", "husk.rpc.grpc.connection", "husk.rpc.grpc.framing", "husk.rpc.grpc.status", "husk.rpc.grpc.stream"),
    *("husk.rpc.http2", "husk.api.http.h2c", "husk.api.routes.buildkit", "husk.builder.protocol.session"),
    *(f"husk.builder.protocol.{name}" for name in ("control", "gateway", "serve", "server", "worker")),
)
# The classic door has its own code, and contexts that come as archives.
ONLY_CLASSIC = (
    f"{BUILDER}.classic.build",
    f"{BUILDER}.classic.history_cache",
    "husk.builder.store.small_contexts",
    "tarfile",
)


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
