"""Contexts that come as the body of a request: while one is there, a build finds it under an address of its own, like a
file of the web."""

import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from husk.builder.solver.source_policy import ResolvedFile
from husk.errors import InvalidParameter

# No host of the world has this name; what follows it cannot be guessed.
HOST = "build-context.invalid"


class RequestBody:
    """One context, as a file of the web that can be read once."""

    unchanged = False
    size = 0
    etag = modified = name = ""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks: AsyncIterator[bytes] | None = chunks
        # The file that was made of it, by what was asked for: gone with it, for nobody gets its address again.
        self.made: dict[str, ResolvedFile] = {}

    def chunks(self) -> AsyncIterator[bytes]:
        if self._chunks is None:
            raise InvalidParameter("the context of this build was read before, and cannot be read again")
        chunks, self._chunks = self._chunks, None
        return chunks


class RequestBodies:
    """Those that are on their way, by their addresses."""

    def __init__(self) -> None:
        self._offered: dict[str, RequestBody] = {}

    @contextmanager
    def offer(self, chunks: AsyncIterator[bytes]) -> Iterator[str]:
        """The address of a body, until the block ends."""
        url = f"http://{HOST}/{secrets.token_hex(16)}"
        self._offered[url] = RequestBody(chunks)
        try:
            yield url
        finally:
            del self._offered[url]

    def get(self, url: str) -> RequestBody | None:
        return self._offered.get(url)
