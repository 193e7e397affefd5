"""Compose projects: how the plugin is called, and what its end means. A script stands for the plugin."""

import json

import pytest

from husk.client import compose
from husk.client.client import Client
from husk.errors import CommandFailed, NotFound, NotImplementedYet

PLUGIN = """#!/bin/sh
echo "$DOCKER_HOST $COMPOSE_FILE $WANTED $*" >> "$SAID"
case "$*" in
  *config*) echo '{"name": "shop"}' ;;
  *bad*) echo "no such service: bad" >&2; exit 3 ;;
esac
"""


@pytest.fixture
def said(tmp_path, monkeypatch):
    (tmp_path / "docker-compose").write_text(PLUGIN)
    (tmp_path / "docker-compose").chmod(0o755)
    (tmp_path / "compose.yaml").write_text("services: {}\n")
    monkeypatch.setenv("SAID", str(tmp_path / "said"))
    monkeypatch.setenv("COMPOSE_FILE", "of-somebody-else")
    monkeypatch.setattr(compose, "plugin", lambda: str(tmp_path / "docker-compose"))
    monkeypatch.chdir(tmp_path)

    def lines() -> list[str]:
        file = f"--file {tmp_path}/compose.yaml "
        text = (tmp_path / "said").read_text()
        return [line.replace(file, "").replace("--ansi never --progress plain ", "") for line in text.splitlines()]

    return lines


@pytest.fixture
async def client(engine):
    client = Client(engine.dial, "unix:///the.sock")
    yield client
    await client.close()


async def test_a_project_is_up_for_a_block(client, engine, said):
    label = "com.docker.compose.container-number"
    listed = [{"Id": f"c{each}", "Names": [f"/web-{each}"], "Labels": {label: str(each)}} for each in (2, 1)]
    engine.answers("GET", "/containers/json", listed)
    engine.answers("GET", "/containers/c1/json", {"Id": "c1", "Name": "/web-1"})
    async with client.compose(environment={"WANTED": "x"}) as project:
        assert project.name == "shop"
        assert (await project.container("web")).name == "web-1"
    asked = json.loads(engine.last("GET", "/containers/json").query["filters"])
    assert asked == {"label": ["com.docker.compose.project=shop", "com.docker.compose.service=web"]}
    begin = "unix:///the.sock  x "
    assert said() == [
        f"{begin}config --format json",
        f"{begin}--project-name shop up --detach --remove-orphans --wait",
        f"{begin}--project-name shop down --remove-orphans",
    ]


async def test_what_fails_says_why_and_leaves_nothing(client, said):
    project = client.compose(project="mine")
    with pytest.raises(CommandFailed, match="compose up failed:\nno such service: bad") as raised:
        await project.up("bad", build=True, wait=False)
    assert raised.value.code == 3
    with pytest.raises(CommandFailed, match="compose up failed"):
        async with client.compose(project="bad"):
            pass
    assert said()[-1].endswith("--project-name bad down --remove-orphans")


async def test_a_service_without_containers(client, engine, said):
    engine.answers("GET", "/containers/json", [])
    with pytest.raises(NotFound, match="the service web of the project shop has no container"):
        await client.compose().container("web")
    assert [entry async for entry in client.compose().logs()] == []


async def test_no_file_no_address_no_plugin(client, engine, said, tmp_path):
    with pytest.raises(NotFound, match="there is no Compose file"):
        await client.compose("none.yaml").up()
    with pytest.raises(NotImplementedYet, match="connect to a daemon"):
        await Client(engine.dial).compose(project="x").up()


def test_where_the_plugin_is(tmp_path, monkeypatch):
    monkeypatch.setattr(compose, "_PLACES", (str(tmp_path / "system"),))
    environment = {"DOCKER_CONFIG": str(tmp_path / "own"), "PATH": str(tmp_path / "path")}
    with pytest.raises(NotFound, match="its package is docker-compose-v2"):
        compose.plugin(environment)
    for place in ("path", "system", "own/cli-plugins"):
        found = tmp_path / place / "docker-compose"
        found.parent.mkdir(parents=True)
        found.write_text("")
        found.chmod(0o755)
        assert compose.plugin(environment) == str(found)
