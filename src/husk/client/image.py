"""An image, and all that can be done to it."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from husk.client.calls import Calls, field
from husk.client.names import platform_document, split_tag
from husk.client.thing import Thing
from husk.errors import NotFound


class Image(Thing):
    """An image of an engine.

    image = await engine.images.get("busybox")
    await image.tag("mine:1")
    """

    def __repr__(self) -> str:
        return f"<Image {self.short_id} {' '.join(self.tags)}>"

    @property
    def tags(self) -> list[str]:
        return [tag for tag in self.attrs.get("RepoTags") or [] if tag != "<none>:<none>"]

    @property
    def digests(self) -> list[str]:
        """Names with the digest by which a registry knows it."""
        return [name for name in self.attrs.get("RepoDigests") or [] if name != "<none>@<none>"]

    @property
    def labels(self) -> dict[str, str]:
        return dict((self.attrs.get("Config") or self.attrs).get("Labels") or {})

    @property
    def size(self) -> int:
        return int(self.attrs.get("Size", 0))

    async def reload(self) -> None:
        """Ask the engine again."""
        self.attrs = await self._calls.get(f"{self._path}/json")

    async def history(self, *, platform: str = "") -> list[dict[str, Any]]:
        """The steps that it was made by, the last one first: `CreatedBy`, `Size`, `Tags` …"""
        return list(await self._calls.get(f"{self._path}/history", {"platform": platform_document(platform)}))

    async def attestations(
        self, *, types: Sequence[str] = (), statement: bool = False, platform: str = ""
    ) -> list[dict[str, Any]]:
        """List the image's attestations (where it comes from, what is in it); with `statement` in full."""
        query = {"type": list(types), "statement": statement, "platform": platform_document(platform)}
        return list(await self._calls.get(f"{self._path}/attestations", query) or [])

    async def tag(self, repository: str, tag: str = "") -> None:
        """Give it one more name: `repository:tag` in one, or in two.

        Who is cancelled meanwhile finds the name where it was.
        """
        await give_name(self._calls, self.id, *((repository, tag) if tag else split_tag(repository)))
        await self.reload()

    async def save(self, *, platform: str = "") -> AsyncIterator[bytes]:
        """It as an archive that `images.load` takes, under the first of its names."""
        name = (self.tags or [self.id])[0]
        query = {"platform": platform_document(platform)}
        async with self._calls.answer("GET", f"/images/{name}/get", query) as response:
            async for piece in response.pieces():
                yield piece

    async def remove(self, *, force: bool = False, noprune: bool = False) -> list[dict[str, str]]:
        """Remove it with all its names: what was `Untagged` and `Deleted`.

        Conflict while a container is made of it, or where it has several names; `force` removes it nevertheless.
        """
        return list(await self._calls.delete(self._path, {"force": force, "noprune": noprune}))

    @property
    def _path(self) -> str:
        return f"/images/{self.id}"


async def give_name(calls: Calls, image: str, repository: str, tag: str) -> None:
    """Let a name mean an image. Who is cancelled meanwhile finds it as it was: unknown, or another's."""
    name, wanted = f"{repository}:{tag or 'latest'}", {"repo": repository, "tag": tag}
    try:
        before = str(field(await calls.get(f"/images/{name}/json"), "Id"))
    except NotFound:
        before = ""

    async def take_back(_: object) -> None:
        if before:
            await calls.post(f"/images/{before}/tag", None, wanted)
            return
        names = (await calls.get(f"/images/{name}/json")).get("RepoTags") or []
        if len(names) > 1:  # the last name of an image would take the image along
            await calls.delete(f"/images/{name}", {"noprune": True})

    await calls.made(calls.post(f"/images/{image}/tag", None, wanted), take_back)
