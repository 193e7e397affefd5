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
        """The names, as `repository:tag`."""
        return [tag for tag in self.attrs.get("RepoTags") or [] if tag != "<none>:<none>"]

    @property
    def digests(self) -> list[str]:
        """The names with the digest by which a registry knows the image."""
        return [name for name in self.attrs.get("RepoDigests") or [] if name != "<none>@<none>"]

    @property
    def labels(self) -> dict[str, str]:
        """The labels."""
        return dict((self.attrs.get("Config") or self.attrs).get("Labels") or {})

    @property
    def size(self) -> int:
        """The bytes that its layers take, unpacked."""
        return int(self.attrs.get("Size", 0))

    def _columns(self) -> dict[str, str]:
        return {"tags": ", ".join(self.tags), "size": f"{self.size / 1e6:.1f} MB", "id": self.short_id}

    async def reload(self) -> None:
        """Ask the engine again, and put its answer into `attrs`."""
        self.attrs = await self._calls.get(f"{self._path}/json")

    async def history(self, *, platform: str = "") -> list[dict[str, Any]]:
        """List the steps that the image was made by, the last one first.

        :param platform: the platform, as `linux/arm64`, where the image has several.
        :returns: the API's documents: `CreatedBy`, `Size`, `Tags` and so on.
        """
        return list(await self._calls.get(f"{self._path}/history", {"platform": platform_document(platform)}))

    async def attestations(
        self, *, types: Sequence[str] = (), statement: bool = False, platform: str = ""
    ) -> list[dict[str, Any]]:
        """List the attestations of the image: where it comes from, and what is in it.

        :param types: the kinds to list, as `https://slsa.dev/provenance/v1`; all if empty.
        :param statement: give each in full.
        :param platform: the platform, as `linux/arm64`, where the image has several.
        :returns: the API's documents.
        """
        query = {"type": list(types), "statement": statement, "platform": platform_document(platform)}
        return list(await self._calls.get(f"{self._path}/attestations", query) or [])

    async def tag(self, repository: str, tag: str = "") -> None:
        """Give the image one more name. A call that is cancelled leaves the name as it was.

        :param repository: the new name, with its tag or without.
        :param tag: the tag, if the name has none; `latest` if both have none.
        """
        await give_name(self._calls, self.id, *((repository, tag) if tag else split_tag(repository)))
        await self.reload()

    async def save(self, *, platform: str = "") -> AsyncIterator[bytes]:
        """Pack the image into an archive that `images.load` takes, under the first of its names.

        :param platform: the platform to pack; all that are here if empty.
        :returns: the archive, piece by piece.
        """
        name = (self.tags or [self.id])[0]
        query = {"platform": platform_document(platform)}
        async with self._calls.answer("GET", f"/images/{name}/get", query) as response:
            async for piece in response.pieces():
                yield piece

    async def remove(self, *, force: bool = False, noprune: bool = False) -> list[dict[str, str]]:
        """Remove the image with all its names.

        :param force: remove it although a container that does not run is made of it, or it has several names.
        :param noprune: keep the images that it was made of.
        :returns: the API's documents: what was `Untagged` and `Deleted`.
        :raises Conflict: a container is made of it, or it has several names.
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
