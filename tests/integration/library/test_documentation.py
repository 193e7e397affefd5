"""Every example of docs/library.md, of the cookbook and of the reference runs.

Those of a page run from its top, with what the examples above have left.
"""

import ast
import asyncio
import inspect
import os
import re
from contextlib import AsyncExitStack
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import husk
from husk.library import blocking
from husk.library.embedded import Engine
from tests.support.compose import PLUGIN, require_compose
from tests.support.daemon import Daemon
from tests.support.engines import Place
from tests.support.surface import examples as docstrings

ROOT = Path(__file__).parents[3]
EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples(page: str) -> list[tuple[int, str]]:
    """(line, code) of each."""
    return [(page.count("\n", 0, found.start(1)), found[1]) for found in EXAMPLE.finditer(page)]


async def run(code: str, line: int, names: dict[str, Any], page: str = "docs/library.md") -> None:
    tree = ast.increment_lineno(ast.parse(code), line)
    compiled = compile(tree, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    outcome = FunctionType(compiled, names)()
    if inspect.isawaitable(outcome):
        await outcome


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it runs real containers")
async def test_examples_of_the_library(daemon, monkeypatch):
    monkeypatch.setenv("HUSK_HOST", daemon.host)
    with Place() as ours, Place() as theirs:
        settings = f'data_root="{theirs.config.data_root}", exec_root="{theirs.config.exec_root}"'
        page = (ROOT / "docs" / "library.md").read_text().replace('data_root="/var/lib/app"', settings)
        page = page.replace("unix:///run/husk.sock", daemon.host)
        found = examples(page)
        assert len(found) > 12
        try:
            async with Engine.open(ours.config) as engine:
                names: dict[str, Any] = {"husk": husk}
                for line, code in found:
                    names["engine"] = engine
                    await run(code, line, names)
        finally:
            blocking.close()


# Those of the reference that need what no test has, each with the reason.
NOT_RUN = {
    "Plugin": "there is no plugin",
    "PullProgress": "there is no registry",
    "RegistryData": "there is no registry",
}
# It ticks for those that watch files, says something for those that read logs, and reads what it is given.
BUSY = "(while :; do echo x >> /tmp/tick; sleep 0.05; done) & echo level=warning ready; exec cat"
COMPOSE = "services: {web: {image: busybox, command: httpd -f -p 80, stop_signal: KILL}}"


@pytest.fixture
def surroundings(daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with what the examples find in theirs."""
    monkeypatch.setenv("HUSK_HOST", daemon.host)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    (tmp_path / "docker/cli-plugins").mkdir(parents=True)
    (tmp_path / "docker/cli-plugins" / PLUGIN.name).symlink_to(PLUGIN)
    (tmp_path / "Dockerfile").write_text("FROM busybox\n")
    (tmp_path / "compose.yaml").write_text(COMPOSE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it runs real containers")
def test_recipes_of_the_cookbook(surroundings: Path):
    require_compose()
    page = ROOT / "docs/howto/cookbook.md"
    found = examples(page.read_text())
    assert len(re.findall(r"^\d+\. ", page.read_text(), re.MULTILINE)) == 20 == len(found) - 2
    names: dict[str, Any] = {}
    try:
        for line, code in found:
            tree = ast.increment_lineno(ast.parse(code), line)
            exec(compile(tree, str(page), "exec"), names)
    finally:
        names["engine"].close()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it runs real containers")
async def test_examples_of_the_reference(surroundings: Path, daemon: Daemon):
    """The example of each public name, on one daemon that is a swarm of its own."""
    require_compose()
    public = {name: getattr(husk, name) for name in husk.__all__}
    with Place() as place:
        settings = f'data_root="{place.config.data_root}", exec_root="{place.config.exec_root}"'
        try:
            async with husk.connect(daemon.host) as engine:
                followed = 0
                await engine.swarm.init(advertise_addr="127.0.0.1")
                await (await engine.images.get("busybox")).tag("app:1")
                secret = await engine.secrets.create("known", b"x")
                service = await engine.services.create("busybox", "sleep 600", stop_grace_period=0.1)
                for name in sorted(set(public) - NOT_RUN.keys() - {"__version__", "errors"}):
                    for code in docstrings(inspect.getdoc(public[name]) or ""):
                        followed += 1
                        code = code.replace('data_root="/var/lib/app"', settings)
                        code = code.replace("unix:///run/husk.sock", daemon.host)
                        names = {**public, "husk": husk, "engine": engine, "secret": secret, "service": service}
                        async with AsyncExitStack() as stack:
                            if re.search(r"\bbox\b", code):
                                box = engine.container("busybox", ["sh", "-c", BUSY], stdin=True, stop_signal="KILL")
                                names["box"] = await stack.enter_async_context(box)
                            try:
                                async with asyncio.timeout(30):
                                    await run(code, 0, names, f"the example of husk.{name}")
                            except Exception as error:
                                error.add_note(f"the example of husk.{name}:\n{code}")
                                raise
                assert followed >= len(public) - len(NOT_RUN) - 2
        finally:
            blocking.close()
