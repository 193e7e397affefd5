"""Volumes: the engine's, and each by itself."""

from collections.abc import Mapping
from typing import Any

from husk.client.calls import Calls
from husk.client.filters import filters_of
from husk.client.thing import Listing, Thing
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
        """The name: volumes have no other id."""
        return self.name

    @property
    def short_id(self) -> str:
        """The first 12 characters of the name."""
        return self.name[:12]

    @property
    def name(self) -> str:
        """The name."""
        return str(self.attrs["Name"])

    @property
    def driver(self) -> str:
        """The driver."""
        return str(self.attrs.get("Driver", ""))

    @property
    def mountpoint(self) -> str:
        """The directory of the volume's files on the engine's host."""
        return str(self.attrs.get("Mountpoint", ""))

    @property
    def labels(self) -> dict[str, str]:
        """The labels."""
        return dict(self.attrs.get("Labels") or {})

    async def remove(self, *, force: bool = False) -> None:
        """Remove the volume and its files.

        :param force: a volume that is not there is no failure.
        :raises Conflict: a container has it.
        """
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
        """Make a volume, or give the one that has this name. A call that is cancelled leaves no new one behind.

        :param name: the name; a long random one if empty.
        :param driver: `local`, or a plugin.
        :param driver_opts: options of the driver, as `{"type": "nfs", "device": ":/srv", "o": "addr=192.0.2.1"}`.
        :param labels: labels.
        :returns: the volume.
        :raises Conflict: a volume of this name has other options.
        :raises InvalidParameter: the name or an option makes no sense.
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
        """Find a volume.

        :param name: its name.
        :returns: the volume.
        :raises NotFound: there is none.
        """
        return Volume(self._calls, await self._calls.get(f"/volumes/{name}"))

    async def list(self, *, filters: Mapping[str, Any] | None = None) -> list[Volume]:
        """List the volumes.

        :param filters: conditions by name: `{"dangling": True, "label": "team=red"}`.
        :returns: the volumes.
        """
        found = await self._calls.get("/volumes", {"filters": filters_of(filters)})
        return Listing(Volume(self._calls, each) for each in found.get("Volumes") or [])

    async def prune(self, filters: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Remove the volumes without a name that no container has; with the filter `all=true` those with a name, too.

        :param filters: conditions by name: `{"all": True}`.
        :returns: the API's document: `VolumesDeleted`, `SpaceReclaimed`.
        """
        found: dict[str, Any] = await self._calls.post("/volumes/prune", None, {"filters": filters_of(filters)})
        return found

    async def _has(self, name: str) -> bool:
        try:
            await self.get(name)
        except NotFound:
            return False
        return True
