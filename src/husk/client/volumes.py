"""Volumes: the engine's, and each by itself."""

from collections.abc import Mapping
from typing import Any

from husk.client.calls import Calls
from husk.client.filters import filters_of
from husk.client.thing import Thing
from husk.errors import NotFound


class Volume(Thing):
    """A volume of an engine: files that outlive containers.

    volume = await engine.volumes.create("cache")
    await engine.run("busybox", ["touch", "/cache/x"], volumes=[f"{volume.name}:/cache"])
    """

    def __repr__(self) -> str:
        return f"<Volume {self.name}>"

    @property
    def id(self) -> str:
        return self.name

    @property
    def short_id(self) -> str:
        return self.name[:12]

    @property
    def name(self) -> str:
        return str(self.attrs["Name"])

    @property
    def driver(self) -> str:
        return str(self.attrs.get("Driver", ""))

    @property
    def mountpoint(self) -> str:
        """The directory of the volume's files on the engine's host."""
        return str(self.attrs.get("Mountpoint", ""))

    @property
    def labels(self) -> dict[str, str]:
        return dict(self.attrs.get("Labels") or {})

    async def remove(self, *, force: bool = False) -> None:
        """Conflict while a container has it; with `force` one that is not there is no failure."""
        await self._calls.delete(self._path, {"force": force})

    @property
    def _path(self) -> str:
        return f"/volumes/{self.name}"


class Volumes:
    """`engine.volumes`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def create(
        self,
        name: str = "",
        *,
        driver: str = "local",
        driver_opts: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Volume:
        """A volume; without a name it gets a long random one. One that has this name already is given as it is.

        Who is cancelled meanwhile leaves no new one behind.
        """
        is_new = not name or not await self._has(name)
        document = {
            "Name": name,
            "Driver": driver,
            "DriverOpts": dict(driver_opts or {}),
            "Labels": dict(labels or {}),
        }

        async def created() -> Volume:
            return Volume(self._calls, await self._calls.post("/volumes/create", document))

        async def take_back(volume: Volume) -> None:
            if is_new:
                await volume.remove()

        return await self._calls.made(created(), take_back)

    async def get(self, name: str) -> Volume:
        """By name; NotFound where there is none."""
        return Volume(self._calls, await self._calls.get(f"/volumes/{name}"))

    async def list(self, *, filters: Mapping[str, Any] | None = None) -> list[Volume]:
        """All, or those that the filters let through."""
        found = await self._calls.get("/volumes", {"filters": filters_of(filters)})
        return [Volume(self._calls, each) for each in found.get("Volumes") or []]

    async def prune(self, filters: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Remove those without a name that no container has, with the filter `all=true` the others too:
        `VolumesDeleted`, `SpaceReclaimed`."""
        found: dict[str, Any] = await self._calls.post("/volumes/prune", None, {"filters": filters_of(filters)})
        return found

    async def _has(self, name: str) -> bool:
        try:
            await self.get(name)
        except NotFound:
            return False
        return True
