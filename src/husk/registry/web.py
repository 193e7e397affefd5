"""Files of the web: one exchange, and what the server says of the file.

async with open_file(transport, url, {"If-None-Match": etag}) as file:
    if not file.unchanged:
        async for chunk in file.chunks(): ...
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from husk.errors import Forbidden, HuskError, InvalidParameter, NotFound, SystemFault, Unauthorized
from husk.registry.failures import phrase
from husk.registry.headers import readable
from husk.registry.transport import (
    Interrupted,
    Transport,
    Unreachable,
    broken_connection,
    describe,
    is_unknown_name,
    pieces_of,
)

if TYPE_CHECKING:
    from aiohttp import ClientResponse

# What dockerd passes on of a server's refusal of a file; all else is a fault of its own.
_KINDS_OF_REFUSAL: dict[int, type[HuskError]] = {
    400: InvalidParameter,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
}
_NOT_MODIFIED = 304


class WebFile:
    """A file that is about to come."""

    def __init__(self, url: str, response: "ClientResponse") -> None:
        self._url = url
        self._response = response

    @property
    def unchanged(self) -> bool:
        """It is what whoever asked has already."""
        return self._response.status == _NOT_MODIFIED

    @property
    def size(self) -> int:
        """0 if it is not known."""
        return self._response.content_length or 0

    @property
    def etag(self) -> str:
        return self._said("ETag")

    @property
    def modified(self) -> str:
        """As the server writes it; nothing if it says nothing."""
        return self._said("Last-Modified")

    @property
    def name(self) -> str:
        """The name that the server gives the file; empty if it gives none."""

        header = Message()
        header["Content-Disposition"] = self._said("Content-Disposition")
        try:
            return (header.get_filename() or "").rpartition("/")[2]
        except ValueError:
            return ""  # of what a header may say, the library does not expect all

    def _said(self, name: str) -> str:
        return readable(self._response.headers.get(name, ""))

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for piece in pieces_of(self._response):
                yield piece
        except broken_connection() as error:
            raise Interrupted(f'Get "{self._url}": {describe(error, self._url)}') from error


@asynccontextmanager
async def open_file(transport: Transport, url: str, headers: Mapping[str, str] | None = None) -> AsyncIterator[WebFile]:
    """Ask for a file. A refusal is an error, in the kind that tells it."""
    try:
        async with transport.send("GET", url, headers, registry=False) as response:
            if response.status >= 400:
                kind = _KINDS_OF_REFUSAL.get(response.status, SystemFault)
                raise kind(f"failed to GET {url} with status {response.status} {phrase(response.status)}")
            yield WebFile(url, response)
    except Unreachable as error:
        unknown = is_unknown_name(error.__cause__)
        why = error.why or error.message
        raise (NotFound if unknown else SystemFault)(f'Get "{url}": {why}') from error


def seconds_of(modified: str) -> int:
    """A time as servers write it, in seconds since 1970; 0 if there is none or it makes no sense."""

    try:
        return max(0, int(parsedate_to_datetime(modified).timestamp())) if modified else 0
    except (ValueError, OverflowError, OSError):
        return 0
