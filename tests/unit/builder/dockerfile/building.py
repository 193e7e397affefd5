"""Dockerfiles become graphs, for tests: the engine's part is played by a double that knows a few images."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from husk.builder.dockerfile.convert import convert
from husk.builder.dockerfile.converted import Converted
from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.options import BaseImage, NamedContext, Options, StageAnswer, StageQuestion
from husk.builder.frontend.reading.dockerfiles import look_up
from husk.builder.graph.operations import Files, Source
from husk.engine.model.container_config import ContainerConfig
from husk.engine.model.image import ImageConfig, RootFS
from husk.errors import NotFound
from husk.registry.manifest import Platform

AMD64 = Platform("amd64", "linux")
IMAGES = {
    "busybox": ContainerConfig(env=["PATH=/bin"], cmd=["sh"]),
    "app": ContainerConfig(
        env=["PATH=/bin", "A=1"],
        working_dir="/srv",
        user="web",
        on_build=["COPY . /srv", "RUN --mount=from=tools,target=/t make"],
    ),
    "tools": ContainerConfig(env=["PATH=/tools"]),
    "trigger": ContainerConfig(on_build=["FROM x"]),
}


class Images:
    def __init__(self, contexts: dict[str, NamedContext] | None = None) -> None:
        self.asked: list[str] = []
        self.contexts = contexts or {}

    async def look_up(self, wanted: Sequence[StageQuestion]) -> list[StageAnswer]:
        return await look_up(self, wanted)

    async def image(self, name: str, platform: Platform) -> BaseImage:
        self.asked.append(name)
        if name not in IMAGES:
            raise NotFound(f"no such image: {name}")
        document = ImageConfig(
            architecture=platform.architecture, os="linux", config=IMAGES[name], rootfs=RootFS(diff_ids=["sha256:1"])
        )
        return BaseImage(f"docker.io/library/{name}@sha256:{'0' * 64}", document)

    async def named_context(self, name: str, platform: Platform) -> NamedContext | None:
        return self.contexts.get(name)

    def main_context(self, paths: list[str]) -> Source:
        return Source("local://context", {"paths": ",".join(paths)})


def build(text: str, images: Images | None = None, **options: Any) -> Any:
    options.setdefault("platform", AMD64)
    options.setdefault("build_platform", AMD64)
    return asyncio.run(convert(text, Options(**options), images or Images()))


def bodies(result: Any) -> list[Any]:
    return [vertex.operation.body for vertex in result.graph.needed_for(result.root)]


def first_actions(result: Converted) -> list[Any]:
    return [body.actions[0].action for body in bodies(result) if isinstance(body, Files)]


def names(result: Any) -> list[str]:
    return [vertex.name for vertex in result.graph.needed_for(result.root)]


def histories(result: Converted) -> list[str]:
    return [step.created_by for step in result.image.history]


def refusal(text: str, **options: Any) -> str:
    with pytest.raises(DockerfileError) as caught:
        build(text, **options)
    return str(caught.value)
