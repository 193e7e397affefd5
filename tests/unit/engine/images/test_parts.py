"""The parts of images: what a reload reaches, and what is done once containers are restored."""

from types import SimpleNamespace
from typing import Any

import pytest

from husk.config import Config
from husk.engine.images import bootstrap
from husk.engine.images.limiter import Limiter
from husk.engine.images.parts import ImageParts
from husk.errors import SystemFault


class Played:
    def __init__(self, images: int = 0) -> None:
        self.done: list[str] = []
        self._images = images
        self.reloaded: list[Config] = []
        registry: Any = SimpleNamespace(reload=self.reloaded.append)
        store: Any = SimpleNamespace(collect=self.collect)
        service: Any = self
        self.parts = ImageParts(service, store, registry, Limiter(1), Limiter(1), power_held=True)

    def __len__(self) -> int:
        return self._images

    async def collect(self) -> None:
        self.done.append("collect")
        raise SystemFault("the disk is full")

    async def make_busybox(self, store: object) -> None:
        self.done.append("busybox")


async def test_a_reload_reaches_the_limits_and_the_registry() -> None:
    played = Played()
    parts, config = played.parts, Config(max_concurrent_downloads=3, max_concurrent_uploads=4)
    parts.reload(config)
    assert played.reloaded == [config]
    for limiter, most in ((parts.downloads, 3), (parts.uploads, 4)):
        for _ in range(most):
            assert not limiter.locked()
            await limiter.__aenter__()
        assert limiter.locked()


@pytest.mark.parametrize(("images", "done"), [(0, ["collect", "collect", "busybox"]), (1, ["collect", "collect"])])
async def test_only_the_first_start_makes_an_image_and_a_full_disk_keeps_nothing_up(
    images: int, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    played = Played(images)
    monkeypatch.setattr(bootstrap, "make_busybox", played.make_busybox)
    await played.parts.restored()
    assert played.done == done
