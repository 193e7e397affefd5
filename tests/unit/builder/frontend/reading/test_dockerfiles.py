"""The daemon's side of reading a Dockerfile, with the worker's side in the same process."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.options import BaseImage, Options, StageAnswer, StageQuestion
from husk.builder.dockerfile.rules import Span
from husk.builder.frontend.reading import dockerfiles, messages
from husk.builder.frontend.reading.dockerfiles import Dockerfiles, look_up
from husk.builder.frontend.reading.messages import Context
from husk.builder.graph.graph import SourceFile
from husk.builder.graph.operations import Source
from husk.builder.jobs.failure import UnknownQuestion
from husk.engine.model.image import ImageConfig
from husk.errors import InvalidParameter, NotFound
from husk.registry.manifest import host_platform
from tests.support.parsing import Here

FILE = SourceFile("Dockerfile", b"")
CONTEXT = Context(Source("local://context"))


class Sources:
    async def image(self, name, platform):
        if name == "missing":
            raise NotFound("no such image")
        return BaseImage(name, ImageConfig())

    async def named_context(self, name, platform):
        return None


SOURCES: Any = Sources()


async def test_a_file_is_open_for_as_long_as_somebody_asks():
    parsers = Here()
    async with Dockerfiles(parsers).open(b"FROM busybox\nRUN x\n", b"*.o\n") as file:
        assert parsers.open == 1
        assert file.patterns == ["*.o"]
        assert await file.leaves_out(["a", "b.o"]) == ["b.o"]
        assert (await file.syntax({})).syntax is None
        made = await file.convert(Options(), CONTEXT, SOURCES, FILE)
        assert made.root is not None and made.graph[made.root.digest].name == "[2/2] RUN x"
        assert made.graph.files == [FILE]
        with pytest.raises(UnknownQuestion):
            await file.answer("frontend.other", Options(), CONTEXT, SOURCES, FILE)
    assert parsers.open == 0


async def test_what_is_made_of_one_file_has_an_end_for_all_its_platforms_together():
    text = b"FROM scratch\nENV " + b" ".join(b"V%d=" % number for number in range(1000)) + b"\nRUN x\n"
    async with Dockerfiles(Here(), most_weight=1 << 20).open(text) as file:
        made = await file.convert(Options(), CONTEXT, SOURCES, FILE)
        assert made.graph.weight > 1000 * 50
        with pytest.raises(InvalidParameter, match="takes more than 1 MiB"):
            for _ in range(20):
                await file.convert(Options(), CONTEXT, SOURCES, FILE)


async def test_what_is_wrong():
    parsers = Here()
    with pytest.raises(DockerfileError, match="missing: no such image") as wrong:
        async with Dockerfiles(parsers).open(b"FROM scratch\nFROM missing\n") as file:
            await file.convert(Options(), CONTEXT, SOURCES, FILE)
    assert (wrong.value.span, parsers.open) == (Span(2, 2), 0)
    async with Dockerfiles(parsers).open(b"FROM scratch", b"[") as file:
        with pytest.raises(InvalidParameter, match=r"^\.dockerignore: "):
            assert file.patterns


async def test_an_error_of_ours_ends_it(monkeypatch):
    parsers = Here()
    broken: Any = SimpleNamespace(named_context=Sources().named_context)
    with pytest.raises(AttributeError):
        async with Dockerfiles(parsers).open(b"FROM a") as file:
            await file.convert(Options(), CONTEXT, broken, FILE)
    assert parsers.open == 0


async def test_what_is_looked_up():
    platform = host_platform()
    wanted = [
        StageQuestion(["a"], "a", platform),
        StageQuestion(["b"], "", platform),
        StageQuestion([], "missing", platform),
    ]
    image, nothing, missing = await look_up(SOURCES, wanted)
    assert image.image is not None and image.image.reference == "a"
    assert (nothing, missing) == (StageAnswer(), StageAnswer(error="no such image"))


async def test_thousands_of_images_are_looked_up_in_turns():
    class Slow(Sources):
        together = most = 0

        async def image(self, name, platform):
            self.together += 1
            self.most = max(self.most, self.together)
            await asyncio.sleep(0)
            self.together -= 1
            return BaseImage(name, ImageConfig())

    sources = Slow()
    wanted = [StageQuestion([], f"image{number}", host_platform()) for number in range(5 * dockerfiles.AT_ONCE)]
    found = await look_up(sources, wanted)
    assert [one.image.reference for one in found if one.image] == [one.image for one in wanted]
    assert sources.most == dockerfiles.AT_ONCE


async def test_thousands_of_steps_come_in_pieces():
    count = 2 * messages.STEPS_AT_ONCE + 1
    text = b"FROM scratch\n" + b"".join(b"LABEL a%d=b\n" % number for number in range(count))
    async with Dockerfiles(Here()).open(text) as file:
        made = await file.convert(Options(classic=True), CONTEXT, SOURCES, FILE)
    assert [step.code for step in made.steps] == ["FROM scratch", *(f"LABEL a{n}=b" for n in range(count))]
    sizes = [len(messages.decode_steps(piece)) for piece in messages.encode_steps(made.steps)]
    assert sizes == [messages.STEPS_AT_ONCE] * 2 + [2]
