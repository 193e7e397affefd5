"""The images of an engine: getting them, finding them, giving them away."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from husk.client.filters import filters_of
from husk.client.image import Image, give_name
from husk.client.names import platform_document, split_tag, with_tag
from husk.client.thing import id_of

if TYPE_CHECKING:
    from husk.client.builds import BuildOptions
    from husk.client.calls import Calls
    from husk.client.credentials import Auth, Keychain
    from husk.client.progress import BuildProgress, PullProgress
    from husk.client.registry_data import RegistryData

_TAR = {"Content-Type": "application/x-tar"}


class Images:
    """`engine.images`."""

    def __init__(self, calls: Calls, keychain: Callable[[], Keychain]) -> None:
        self._calls = calls
        self._keychain = keychain

    async def get(self, name: str, *, platform: str = "") -> Image:
        """By name or id; NotFound where there is none."""
        return Image(
            self._calls, await self._calls.get(f"/images/{name}/json", {"platform": platform_document(platform)})
        )

    async def pull(self, name: str, *, platform: str = "", auth: Auth | None = None) -> Image:
        """Get an image from its registry. Who is cancelled meanwhile ends it."""
        async for _ in self.pulling(name, platform=platform, auth=auth):
            pass
        return await self.get(name)

    async def pulling(self, name: str, *, platform: str = "", auth: Auth | None = None) -> AsyncIterator[PullProgress]:
        """The same, told as it goes on.

        `auth` has `username` and `password`; without it a login or docker's own files say who we are.
        """
        from husk.client.progress import progress

        headers = await self._keychain().headers_for(name, auth)
        query = {"fromImage": with_tag(name), "platform": platform}
        async for line in self._calls.lines("POST", "/images/create", query, b"", headers):
            yield progress(line)

    async def push(self, name: str, *, platform: str = "", auth: Auth | None = None) -> str:
        """Send an image to the registry that it is named after: the digest under which it is there."""
        digest = ""
        async for line in self.pushing(name, platform=platform, auth=auth):
            digest = line.digest or digest
        return digest

    async def pushing(self, name: str, *, platform: str = "", auth: Auth | None = None) -> AsyncIterator[PullProgress]:
        """The same, told as it goes on."""
        from husk.client.progress import progress

        # An engine may want the header also of who is nobody.
        headers = await self._keychain().headers_for(name, auth) or await self._keychain().headers_for(name, {})
        repository, tag = split_tag(name)
        query = {"tag": tag or "latest", "platform": platform_document(platform)}
        async for line in self._calls.lines("POST", f"/images/{repository}/push", query, b"", headers):
            yield progress(line)

    async def get_registry_data(self, name: str, *, auth: Auth | None = None) -> RegistryData:
        """Ask the registry for the digest and the platforms of an image, without getting the image."""
        from husk.client.registry_data import RegistryData

        headers = await self._keychain().headers_for(name, auth)
        return RegistryData(name, await self._calls.get(f"/distribution/{name}/json", {}, headers))

    async def search(
        self, term: str, *, limit: int = 0, filters: Mapping[str, Any] | None = None, auth: Auth | None = None
    ) -> list[dict[str, Any]]:
        """Search a registry for images by name; each has `name`, `description`, `star_count`, `is_official`."""
        headers = await self._keychain().headers_for(term, auth)
        query = {"term": term, "limit": limit or None, "filters": filters_of(filters)}
        return list(await self._calls.get("/images/search", query, headers) or [])

    async def tag(self, image: str | Image, name: str) -> None:
        """Give an image one more name: `repository:tag`. Who is cancelled meanwhile finds the name where it was."""
        await give_name(self._calls, id_of(image), *split_tag(name))

    async def remove(
        self, image: str | Image, *, force: bool = False, noprune: bool = False, platforms: Sequence[str] = ()
    ) -> list[dict[str, str]]:
        """Take a name away, and with the last name the image: what was `Untagged` and `Deleted`.

        Conflict while a container is made of it; `force` removes it nevertheless. `noprune` keeps the images that it
        was made of.
        """
        query = {"force": force, "noprune": noprune, "platforms": [platform_document(each) for each in platforms]}
        return list(await self._calls.delete(f"/images/{id_of(image)}", query))

    async def prune(self, filters: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Remove those without a name that nobody uses, with the filter `dangling=false` all that nobody uses:
        `ImagesDeleted`, `SpaceReclaimed`."""
        found: dict[str, Any] = await self._calls.post("/images/prune", None, {"filters": filters_of(filters)})
        return found

    async def prune_builds(
        self, *, all: bool = False, keep: int = 0, filters: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Remove what builds have kept for later ones, down to `keep` bytes: `CachesDeleted`, `SpaceReclaimed`."""
        query = {"all": all, "reserved-space": keep or None, "filters": filters_of(filters)}
        found: dict[str, Any] = await self._calls.post("/build/prune", None, query)
        return found

    async def save(self, *images: str | Image, platforms: Sequence[str] = ()) -> AsyncIterator[bytes]:
        """One archive of several images, as `load` takes it.

        async for piece in engine.images.save("busybox", "mine:1"):
            file.write(piece)
        """
        query = {
            "names": [_name(image) for image in images],
            "platform": [platform_document(each) for each in platforms],
        }
        async with self._calls.answer("GET", "/images/get", query) as response:
            async for piece in response.pieces():
                yield piece

    async def load(self, archive: bytes | AsyncIterable[bytes], *, platforms: Sequence[str] = ()) -> list[Image]:
        """The images of an archive that `save` made."""
        told = [line.image async for line in self.loading(archive, platforms=platforms)]
        return [await self.get(name) for name in dict.fromkeys(told) if name]

    async def loading(
        self, archive: bytes | AsyncIterable[bytes], *, platforms: Sequence[str] = ()
    ) -> AsyncIterator[PullProgress]:
        """The same, told as it goes on; `image` is the name or id of each that is here."""
        from husk.client.progress import progress

        query = {"quiet": False, "platform": [platform_document(each) for each in platforms]}
        async for line in self._calls.lines("POST", "/images/load", query, archive, _TAR):
            yield progress(line)

    async def import_image(
        self,
        source: str | bytes | AsyncIterable[bytes],
        name: str = "",
        *,
        changes: Sequence[str] = (),
        message: str = "",
        platform: str = "",
    ) -> Image:
        """An image of one layer out of a tar archive of files: its bytes, or the address that it is at.

        `changes` are instructions of a Dockerfile, such as `CMD ["sh"]`.
        """
        from husk.client.progress import progress

        repository, tag = split_tag(name)
        is_address = isinstance(source, str)
        query = {
            "fromSrc": source if is_address else "-",
            "repo": repository or None,
            "tag": tag or None,
            "message": message or None,
            "changes": [*changes],
            "platform": platform or None,
        }
        content = b"" if isinstance(source, str) else source
        made = ""
        async for line in self._calls.lines("POST", "/images/create", query, content, {} if is_address else _TAR):
            made = progress(line).image or made
        return await self.get(made)

    async def build(self, **options: Unpack[BuildOptions]) -> Image:
        """Build an image; BuildError has what was told until then. `building` lists the options.

        image = await engine.images.build(path=".", tag="mine:1", buildargs={"VERSION": "2"})
        """
        from husk.client import builds

        return await builds.built(self, self.building(**options))

    async def building(self, **options: Unpack[BuildOptions]) -> AsyncIterator[BuildProgress]:
        """The same, told as it goes on. Who leaves meanwhile ends it."""
        from husk.client import builds

        headers = await self._keychain().headers_for_build(options.get("auths"))
        async for line in builds.building(self._calls, options, headers):
            yield line

    async def list(self, name: str = "", *, all: bool = False, filters: Mapping[str, Any] | None = None) -> list[Image]:
        """All, or those of a repository; with `all` also those that others are made of."""
        wanted = filters_of(filters)
        if name:
            wanted.setdefault("reference", []).append(name)
        found = await self._calls.get("/images/json", {"all": all, "filters": wanted})
        return [Image(self._calls, each) for each in found]


def _name(image: str | Image) -> str:
    return image if isinstance(image, str) else (image.tags or [image.id])[0]
