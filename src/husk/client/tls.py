"""A connection over TLS whose two directions end by themselves, as those of a plain socket do.

asyncio's own TLS cannot say that no more is sent without ending both. `echo hi | husk run -i …` says exactly that
(`close_notify`), and then waits for what the container writes.
"""

import ssl
from asyncio import StreamReader, StreamWriter
from contextlib import suppress

_PIECE = 1 << 16


class Stream:
    """The reader and the writer of a connection, above those of a plain one."""

    def __init__(self, reader: StreamReader, writer: StreamWriter, context: ssl.SSLContext, host: str) -> None:
        self._reader = reader
        self._writer = writer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._early = b""
        self._ended = False

    async def shake_hands(self) -> None:
        """SSLError says why the other side is not trusted, or does not trust us."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._send()
                if not await self._more():
                    raise ConnectionResetError("the other side closed the connection, and does not speak TLS") from None
                continue
            finally:
                self._send()  # also why we do not trust it
            return

    async def read(self, n: int = -1, /) -> bytes:
        if self._early:
            data, self._early = self._early, b""
            return data
        while not self._ended:
            data = self._decrypted(n if n > 0 else _PIECE)
            if data or self._ended:
                return data
            self._send()  # reading may have to answer, as to an update of keys
            if not await self._more():
                self._ended = True
        return b""

    def at_eof(self) -> bool:
        return self._ended or self._reader.at_eof()

    def write(self, data: bytes, /) -> None:
        left = memoryview(data)
        while left:
            left = left[self._tls.write(left) :]
        self._send()

    async def drain(self) -> None:
        await self._writer.drain()

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        # What has come already is read first: OpenSSL takes it for a fault to find it while it says its last word.
        while data := self._decrypted(_PIECE):
            self._early += data
        with suppress(ssl.SSLError, ValueError):
            self._tls.unwrap()  # our own word is written, and the other side's, which this also wants, comes later
        self._send()

    def is_closing(self) -> bool:
        return self._writer.is_closing()

    def close(self) -> None:
        self._writer.close()

    def _decrypted(self, most: int) -> bytes:
        """Return the decrypted bytes that are here; none if more has to come first, or if the stream has ended."""
        try:
            data = self._tls.read(most)
        except ssl.SSLWantReadError:
            return b""
        except ssl.SSLZeroReturnError:
            data = b""
        except ssl.SSLError as error:
            raise ConnectionResetError(f"TLS: {error.reason or error}") from error
        self._ended = not data
        return data

    async def _more(self) -> bool:
        data = await self._reader.read(_PIECE)
        self._incoming.write(data)
        return bool(data)

    def _send(self) -> None:
        if not self._writer.is_closing() and (data := self._outgoing.read()):
            self._writer.write(data)
