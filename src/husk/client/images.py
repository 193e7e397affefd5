"""The images of an engine: getting them, finding them, giving them away."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from husk.client.calls import Calls
from husk.client.filters import filters_of
from husk.client.image import Image, give_name
from husk.client.names import platform_document, split_tag, with_tag
from husk.client.registry_data import RegistryData
from husk.client.thing import Listing, id_of

if TYPE_CHECKING:
    from husk.client.builds import BuildOptions, Builds
    from husk.client.credentials import Auth, Keychain
    from husk.client.progress import BuildProgress, PullProgress

_TAR = {"Content-Type": "application/x-tar"}


class Images:
    """`engine.images`."""

    def __init__(self, calls: Calls, keychain: Callable[[], Keychain]) -> None:
        self._calls = calls
        self._keychain = keychain

    async def get(self, name: str, *, platform: str = "") -> Image:
        """Find an image.

        :param name: its name, its id, or the beginning of the id.
        :param platform: the platform, as `linux/arm64`, where the name has several.
        :returns: the image.
        :raises NotFound: there is none.
        """
        return Image(
            self._calls, await self._calls.get(f"/images/{name}/json", {"platform": platform_document(platform)})
        )

    async def pull(self, name: str, *, platform: str = "", auth: Auth | None = None) -> Image:
        """Get an image from its registry. A call that is cancelled ends the pull.

        :param name: the image, as `repository:tag` or `repository@digest`; the tag is `latest` if none is given.
        :param platform: the platform, as `linux/arm64`; the engine's own if empty.
        :param auth: `username` and `password`; a login or docker's own files say them if None.
        :returns: the image.
        :raises NotFound: the registry has no such image.
        :raises Unauthorized: the registry does not believe the password.
        """
        async for _ in self.pulling(name, platform=platform, auth=auth):
            pass
        return await self.get(name)

    async def pulling(
        self, name: str, *, platform: str = "", all_tags: bool = False, auth: Auth | None = None
    ) -> AsyncIterator[PullProgress]:
        """Get an image from its registry, and tell how it goes on.

        :param name: the image, as `repository:tag` or `repository@digest`; the tag is `latest` if none is given.
        :param all_tags: get all images of the repository `name`.
        :param platform: the platform, as `linux/arm64`; the engine's own if empty.
        :param auth: `username` and `password`; a login or docker's own files say them if None.
        :returns: the progress, line by line.
        :raises NotFound: the registry has no such image.
        :raises Unauthorized: the registry does not believe the password.
        """
        headers = await self._keychain().headers_for(name, auth)
        query = {"fromImage": name if all_tags else with_tag(name), "platform": platform}
        async for line in self._calls.lines("POST", "/images/create", query, b"", headers):
            yield _progress(line)

    async def push(self, name: str, *, platform: str = "", auth: Auth | None = None) -> str:
        """Send an image to the registry that it is named after.

        :param name: the image, as `repository:tag`.
        :param platform: the platform to send, as `linux/arm64`; all that are here if empty.
        :param auth: `username` and `password`; a login or docker's own files say them if None.
        :returns: the digest under which it is there.
        :raises NotFound: there is no such image here.
        :raises Unauthorized: the registry does not believe the password.
        """
        digest = ""
        async for line in self.pushing(name, platform=platform, auth=auth):
            digest = line.digest or digest
        return digest

    async def pushing(
        self, name: str, *, platform: str = "", all_tags: bool = False, auth: Auth | None = None
    ) -> AsyncIterator[PullProgress]:
        """Send an image to the registry that it is named after, and tell how it goes on.

        :param name: the image, as `repository:tag`.
        :param platform: the platform to send, as `linux/arm64`; all that are here if empty.
        :param all_tags: send all images of the repository `name`.
        :param auth: `username` and `password`; a login or docker's own files say them if None.
        :returns: the progress, line by line.
        :raises NotFound: there is no such image here.
        :raises Unauthorized: the registry does not believe the password.
        """
        # An engine may want the header also of who is nobody.
        headers = await self._keychain().headers_for(name, auth) or await self._keychain().headers_for(name, {})
        repository, tag = split_tag(name)
        query = {"tag": tag or (None if all_tags else "latest"), "platform": platform_document(platform)}
        async for line in self._calls.lines("POST", f"/images/{repository}/push", query, b"", headers):
            yield _progress(line)

    async def get_registry_data(self, name: str, *, auth: Auth | None = None) -> RegistryData:
        """Ask the registry for the digest and the platforms of an image, without getting the image.

        :param name: the image, as `repository:tag`.
        :param auth: `username` and `password`; a login or docker's own files say them if None.
        :returns: the data.
        :raises NotFound: the registry has no such image.
        """

        headers = await self._keychain().headers_for(name, auth)
        return RegistryData(name, await self._calls.get(f"/distribution/{name}/json", {}, headers))

    async def search(
        self, term: str, *, limit: int = 0, filters: Mapping[str, Any] | None = None, auth: Auth | None = None
    ) -> list[dict[str, Any]]:
        """Search a registry for images by name.

        :param term: the words to look for; the host of another registry may stand before them.
        :param limit: the largest number of results; the registry's own if 0.
        :param filters: conditions by name: `{"is-official": True, "stars": 10}`.
        :param auth: `username` and `password`; a login or docker's own files say them if None.
        :returns: the API's documents: `name`, `description`, `star_count`, `is_official`.
        """
        headers = await self._keychain().headers_for(term, auth)
        query = {"term": term, "limit": limit or None, "filters": filters_of(filters)}
        return list(await self._calls.get("/images/search", query, headers) or [])

    async def tag(self, image: str | Image, name: str) -> None:
        """Give an image one more name. A call that is cancelled leaves the name as it was.

        :param image: the image, or its name or id.
        :param name: the new name, as `repository:tag`.
        :raises NotFound: there is no such image.
        """
        await give_name(self._calls, id_of(image), *split_tag(name))

    async def remove(
        self, image: str | Image, *, force: bool = False, noprune: bool = False, platforms: Sequence[str] = ()
    ) -> list[dict[str, str]]:
        """Take a name away, and with the last name the image.

        :param image: the image, or its name or id.
        :param force: remove it although a container that does not run is made of it, or it has several names.
        :param noprune: keep the images that it was made of.
        :param platforms: remove these platforms of it alone.
        :returns: the API's documents: what was `Untagged` and `Deleted`.
        :raises NotFound: there is no such image.
        :raises Conflict: a container is made of it.
        """
        query = {"force": force, "noprune": noprune, "platforms": [platform_document(each) for each in platforms]}
        return list(await self._calls.delete(f"/images/{id_of(image)}", query))

    async def prune(self, filters: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Remove the images without a name that nobody uses; with the filter `dangling=false` all that nobody uses.

        :param filters: conditions by name: `{"dangling": False, "until": "24h"}`.
        :returns: the API's document: `ImagesDeleted`, `SpaceReclaimed`.
        """
        found: dict[str, Any] = await self._calls.post("/images/prune", None, {"filters": filters_of(filters)})
        return found

    async def prune_builds(
        self, *, all: bool = False, keep: int = 0, filters: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Remove what builds have kept for later ones.

        :param all: remove the records of Dockerfiles and frontends, too.
        :param keep: the number of bytes that may stay.
        :param filters: conditions by name: `{"until": "24h"}`.
        :returns: the API's document: `CachesDeleted`, `SpaceReclaimed`.
        """
        query = {"all": all, "reserved-space": keep or None, "filters": filters_of(filters)}
        found: dict[str, Any] = await self._calls.post("/build/prune", None, query)
        return found

    async def save(self, *images: str | Image, platforms: Sequence[str] = ()) -> AsyncIterator[bytes]:
        """Pack images into one archive, as `load` takes it.

        async for piece in engine.images.save("busybox", "mine:1"):
            file.write(piece)

        :param images: the images, or their names or ids.
        :param platforms: the platforms to pack; all that are here if empty.
        :returns: the archive, piece by piece.
        :raises NotFound: there is no such image.
        """
        query = {
            "names": [_name(image) for image in images],
            "platform": [platform_document(each) for each in platforms],
        }
        async with self._calls.answer("GET", "/images/get", query) as response:
            async for piece in response.pieces():
                yield piece

    async def load(self, archive: bytes | AsyncIterable[bytes], *, platforms: Sequence[str] = ()) -> list[Image]:
        """Take the images out of an archive that `save` made.

        :param archive: the archive, packed or not, in one piece or in several.
        :param platforms: the platforms to take; all if empty.
        :returns: the images.
        :raises InvalidParameter: the archive cannot be read.
        """
        told = [line.image async for line in self.loading(archive, platforms=platforms)]
        return [await self.get(name) for name in dict.fromkeys(told) if name]

    async def loading(
        self, archive: bytes | AsyncIterable[bytes], *, platforms: Sequence[str] = ()
    ) -> AsyncIterator[PullProgress]:
        """Take the images out of an archive that `save` made, and tell how it goes on.

        :param archive: the archive, packed or not, in one piece or in several.
        :param platforms: the platforms to take; all if empty.
        :returns: the progress, line by line; `image` is the name or id of each image that is here.
        :raises InvalidParameter: the archive cannot be read.
        """
        query = {"quiet": False, "platform": [platform_document(each) for each in platforms]}
        async for line in self._calls.lines("POST", "/images/load", query, archive, _TAR):
            yield _progress(line)

    async def import_image(
        self,
        source: str | bytes | AsyncIterable[bytes],
        name: str = "",
        *,
        changes: Sequence[str] = (),
        message: str = "",
        platform: str = "",
    ) -> Image:
        """Make an image of one layer out of a tar archive of files.

        :param source: the archive in one piece or in several, or its address as text.
        :param name: the name of the image, as `repository:tag`; none if empty.
        :param changes: instructions of a Dockerfile, such as `CMD ["sh"]`.
        :param message: a text for its history.
        :param platform: the platform that the files are for, as `linux/arm64`; the engine's own if empty.
        :returns: the image.
        :raises InvalidParameter: the archive cannot be read.
        """
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
            made = _progress(line).image or made
        return await self.get(made)

    async def build(self, **options: Unpack[BuildOptions]) -> Image:
        """Build an image.

        image = await engine.images.build(path=".", tag="mine:1", buildargs={"VERSION": "2"})

        :param options: the fields of `BuildOptions`.
        :returns: the image.
        :raises BuildError: the build failed; `log` has what it told until then.
        :raises InvalidParameter: an option is unknown or makes no sense.
        """
        return await self._builds.built(self, self.building(**options))

    async def building(self, **options: Unpack[BuildOptions]) -> AsyncIterator[BuildProgress]:
        """Build an image, and tell how it goes on. Whoever leaves the loop ends the build.

        :param options: the fields of `BuildOptions`.
        :returns: the progress, line by line.
        :raises CommandFailed: a step failed.
        :raises InvalidParameter: an option is unknown or makes no sense.
        """
        headers = await self._keychain().headers_for_build(options.get("auths"))
        async for line in self._builds.building(options, headers):
            yield line

    @property
    def _builds(self) -> Builds:
        # A door: contexts are made with tarfile and asyncio.
        from husk.client.builds import Builds

        return Builds(self._calls)

    async def list(self, name: str = "", *, all: bool = False, filters: Mapping[str, Any] | None = None) -> list[Image]:
        """List the images.

        :param name: a repository, or a pattern of names, as `app*`; all if empty.
        :param all: list the images that others are made of, too.
        :param filters: conditions by name: `{"label": "team=red", "dangling": True}`.
        :returns: the images, the newest first.
        """
        wanted = filters_of(filters)
        if name:
            wanted.setdefault("reference", []).append(name)
        found = await self._calls.get("/images/json", {"all": all, "filters": wanted})
        return Listing(Image(self._calls, each) for each in found)


def _name(image: str | Image) -> str:
    return image if isinstance(image, str) else (image.tags or [image.id])[0]


def _progress(line: Mapping[str, Any]) -> PullProgress:
    # A door: msgspec, which a short command would wait longer for than for its answer.
    from husk.client.progress import progress

    return progress(line)
