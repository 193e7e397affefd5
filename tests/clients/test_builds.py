"""Builds by other clients than `docker build`: Compose, bake, and the commands that look after the cache."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.building import Builds, Context, buildkit_builds, needs_buildx
from tests.support.compose import Project
from tests.support.daemon import Daemon
from tests.support.images import forget_images

pytestmark = needs_buildx


@pytest.fixture
def builds(daemon: Daemon, tmp_path: Path) -> Iterator[Builds]:
    with buildkit_builds(daemon, tmp_path) as builds:
        yield builds


def test_compose_builds_what_it_runs(project: Project, daemon: Daemon) -> None:
    context = Context(project.directory / "app").write(
        {
            "Dockerfile": "FROM base\nARG WHO\nRUN --mount=type=secret,id=token test -s /run/secrets/token\n"
            'COPY greeting /\nRUN echo $WHO >> /greeting\nCMD ["cat", "/greeting"]\n',
            "greeting": "hello\n",
        }
    )
    (project.directory / "token").write_text("x")
    base = {"context": "app", "dockerfile_inline": "FROM busybox\nRUN echo from base > /base\n"}
    project.write(
        {
            "services": {
                "base": {"build": base, "command": "cat /base"},
                "app": {
                    "build": {
                        "context": "app",
                        "args": {"WHO": "compose"},
                        "additional_contexts": {"base": "service:base"},
                        "secrets": ["token"],
                    },
                },
            },
            "secrets": {"token": {"file": "./token"}},
        }
    )
    project("build")
    assert project.output("run", "--rm", "app").splitlines()[-2:] == ["hello", "compose"]
    context.write({"greeting": "hello again\n"})
    project("up", "--build")
    assert "hello again" in project.output("logs", "app")
    assert "from base" in project.output("logs", "base")
    project("down", "--rmi", "all")
    forget_images(daemon)


def test_bake_with_targets_as_contexts_and_a_matrix(builds: Builds) -> None:
    builds.context.write(
        {
            "docker-bake.hcl": """
variable "WHO" { default = "nobody" }
group "default" { targets = ["final"] }
target "tools" { dockerfile-inline = "FROM busybox\\nRUN echo tool > /tool" }
target "final" {
  name = "final-${kind}"
  matrix = { kind = ["a", "b"] }
  contexts = { tools = "target:tools", files = "./files" }
  dockerfile-inline = "FROM tools\\nARG KIND\\nARG WHO\\nCOPY --from=files . /files\\nRUN echo $KIND $WHO > /kind"
  args = { KIND = kind, WHO = WHO }
  labels = { kind = kind }
  tags = ["final:${kind}"]
}
""",
            "files/one": "1",
        }
    )
    builds.docker("buildx", "bake", "--progress=plain", cwd=builds.context.path, env={"WHO": "me"})
    for kind in ("a", "b"):
        assert builds.sh("cat /tool /kind /files/one", f"final:{kind}") == f"tool\n{kind} me\n1"
        assert builds.config(f"final:{kind}")["Labels"] == {"kind": kind}
    shown = builds.docker("buildx", "bake", "--print", cwd=builds.context.path)
    assert set(json.loads(shown.stdout)["target"]) == {"tools", "final-a", "final-b"}


def test_one_bake_of_many_targets(builds: Builds) -> None:
    """More calls are open on its one connection than most servers of HTTP/2 allow."""
    names = [f"t{number}" for number in range(50)]
    target = {"dockerfile-inline": "FROM scratch\nCOPY file /\n", "output": ["type=cacheonly"]}
    file = {"target": {name: {**target, "labels": {"name": name}} for name in names}}
    builds.context.write({"bake.json": json.dumps(file), "file": "1"})
    builds.docker("buildx", "bake", "--progress=plain", "-f", "bake.json", *names, cwd=builds.context.path)


def test_filters_of_the_prune(builds: Builds) -> None:
    builds.run("FROM busybox\nRUN echo 1 > /1\nRUN --mount=type=cache,target=/c touch /c/x && echo 2 > /2\n")

    def records() -> dict[str, str]:
        lines = builds.docker("buildx", "du", "--format", "json").stdout.splitlines()
        return {one["ID"]: one["Type"] for one in map(json.loads, lines)}

    before = records()
    assert {"regular", "exec.cachemount"} <= set(before.values())
    builds.docker("builder", "prune", "-af", "--filter", "until=1h")
    builds.docker("builder", "prune", "-af", "--keep-storage", "10gb")
    assert records() == before
    builds.docker("builder", "prune", "-af", "--filter", "type=exec.cachemount")
    assert "exec.cachemount" not in records().values()
    one = next(iter(records()))
    builds.docker("builder", "prune", "-af", "--filter", f"id={one}")
    assert one not in records()
    done = builds.docker("builder", "prune", "-af", "--filter", "nonsense=1", check=False)
    assert done.returncode != 0
    builds.docker("builder", "prune", "-af")
    assert records() == {}
