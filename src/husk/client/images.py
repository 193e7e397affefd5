"""Images: the engine's store of them, and each by itself."""

import base64
from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec

from husk.client.calls import Calls
from husk.client.filters import filters_of
from husk.errors import CommandFailed


class PullProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A line of what a pull or push tells: of one layer (`id`), or of the whole."""

    status: str
    id: str = ""
    current: int = 0
    total: int = 0


class Image:
    """An image of an engine. `attrs` is what the engine last said of it; `reload` asks again."""

    def __init__(self, calls: Calls, attrs: Mapping[str, Any]) -> None:
        self._calls = calls
        self.attrs = dict(attrs)

    def __repr__(self) -> str:
        return f"<Image {self.short_id} {' '.join(self.tags)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Image) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def id(self) -> str:
        return str(self.attrs["Id"])

    @property
    def short_id(self) -> str:
        return self.id.removeprefix("sha256:")[:12]

    @property
    def tags(self) -> list[str]:
        return [tag for tag in self.attrs.get("RepoTags") or [] if tag != "<none>:<none>"]

    @property
    def labels(self) -> dict[str, str]:
        return dict((self.attrs.get("Config") or self.attrs).get("Labels") or {})

    async def reload(self) -> None:
        self.attrs = await self._calls.get(f"/images/{self.id}/json")


class Images:
    """`engine.images`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def get(self, name: str) -> Image:
        """By name or id; NotFound where there is none."""
        return Image(self._calls, await self._calls.get(f"/images/{name}/json"))

    async def list(self, *, all: bool = False, filters: Mapping[str, Any] | None = None) -> list[Image]:
        found = await self._calls.get("/images/json", {"all": all, "filters": filters_of(filters)})
        return [Image(self._calls, each) for each in found]

    async def pull(self, name: str, *, platform: str = "", auth: Mapping[str, str] | None = None) -> Image:
        """Get an image from its registry."""
        async for _ in self.pulling(name, platform=platform, auth=auth):
            pass
        return await self.get(name)

    async def pulling(
        self, name: str, *, platform: str = "", auth: Mapping[str, str] | None = None
    ) -> AsyncIterator[PullProgress]:
        """The same, told as it goes on. `auth` has `username` and `password`."""
        headers = {} if auth is None else {"X-Registry-Auth": registry_auth(auth)}
        query = {"fromImage": name if "@" in name or split_tag(name)[1] else f"{name}:latest", "platform": platform}
        async for line in self._calls.lines("POST", "/images/create", query, b"", headers):
            yield progress(line)


def progress(line: Mapping[str, Any]) -> PullProgress:
    """A line of progress; CommandFailed where it tells of a failure."""
    if error := line.get("error"):
        raise CommandFailed(str(error), int((line.get("errorDetail") or {}).get("code") or 1))
    detail = line.get("progressDetail") or {}
    return PullProgress(
        status=str(line.get("status", "")),
        id=str(line.get("id", "")),
        current=int(detail.get("current") or 0),
        total=int(detail.get("total") or 0),
    )


def registry_auth(auth: Mapping[str, str]) -> str:
    """Credentials as the header `X-Registry-Auth` carries them."""
    return base64.urlsafe_b64encode(msgspec.json.encode(dict(auth))).decode()


def split_tag(name: str) -> tuple[str, str]:
    """(repository, tag) of a name; a port of the registry is no tag."""
    repository, colon, tag = name.rpartition(":")
    return (repository, tag) if colon and "/" not in tag else (name, "")
