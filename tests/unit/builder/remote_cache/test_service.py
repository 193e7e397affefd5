"""Caches of a build that begins and ends."""

from typing import Any

import pytest

from husk.builder.jobs.results import Result
from husk.builder.remote_cache.service import CacheService
from husk.builder.solver.interfaces import CacheSource
from husk.errors import NotImplementedYet

INLINE, REGISTRY = CacheSource("inline"), CacheSource("registry", {"ref": "x"})


class Writer:
    def __init__(self):
        self.written = []

    async def write(self, job, result, source):
        self.written.append(source)
        return {"cache.manifest": "{}"}

    async def inline(self, job, result, platform, layers):
        return f"{platform} {len(layers)}".encode()


class Cache:
    def is_whole(self, record):
        return True


@pytest.fixture
def writer():
    return Writer()


@pytest.fixture
def service(writer):
    unused: Any = None
    cache: Any = Cache()
    return CacheService(unused, writer, unused, cache, unused)


def test_a_build_without_caches_asks_nobody(service):
    asker: Any = None
    assert service.elsewhere([])(asker) is None
    assert service.elsewhere([REGISTRY])(asker) is not None


def test_what_cannot_be_written_is_refused_before(service):
    service.check([INLINE, REGISTRY])
    with pytest.raises(NotImplementedYet):
        service.check([CacheSource("s3")])


async def test_the_image_takes_its_own_and_the_rest_goes_elsewhere(service, writer):
    job: Any = None
    result = Result()
    assert service.with_inline(job, result, [REGISTRY]) is result
    inline = service.with_inline(job, result, [INLINE]).inline_cache
    assert await inline("linux/amd64", [None]) == b"linux/amd64 1"
    assert await service.write(job, result, [INLINE, REGISTRY]) == {"cache.manifest": "{}"}
    assert writer.written == [REGISTRY]
