"""The ports of a container, as the host of the program reaches them."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from husk.client.looks import looks
from husk.errors import NotFound, Unavailable

_LOCAL = "127.0.0.1"
_EVERYWHERE = ("0.0.0.0", "::", "")


class Port(NamedTuple):
    """A port of a container, where a program can reach it.

    async with engine.container("busybox", "httpd -f -p 80", ports={80: None}) as box:
        await box.port(80).wait_for(timeout=10)
        print(box.port(80).url)
    """

    host: str  #: The address, or the name of the engine's host
    number: int  #: The port there

    @property
    def url(self) -> str:
        """The address for a browser: `http://127.0.0.1:49153`."""
        return self.url_of("http")

    def url_of(self, scheme: str, path: str = "") -> str:
        """Write the address with another scheme, or with a path.

        :param scheme: the scheme, as `https` or `redis`.
        :param path: the path.
        :returns: the address.
        """
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.number}{'/' if path and not path.startswith('/') else ''}{path}"

    async def wait_for(self, timeout: float = 60.0) -> None:
        """Wait until the port takes connections. A published port may take one before the program listens:
        `Container.wait_for` asks the container itself.

        :param timeout: seconds, after which it is given up.
        :raises Unavailable: it takes none.
        """
        try:
            async with asyncio.timeout(timeout):
                async for _ in looks():
                    if await self._open():
                        return
        except TimeoutError:
            raise Unavailable(f"{self.host}:{self.number} takes no connections after {timeout:g} seconds") from None

    async def _open(self) -> bool:
        try:
            _, writer = await asyncio.open_connection(self.host, self.number)
        except OSError:
            return False
        writer.close()
        return True


def port_of(
    port: int | str, published: Mapping[str, Sequence[tuple[str, int]]], ip: str, address: str, name: str
) -> Port:
    """Find a port by its number in the container. NotFound says how it is published where the engine is elsewhere."""
    wanted = str(port) if "/" in str(port) else f"{port}/tcp"
    engine = _host_of(address)
    for host, number in published.get(wanted, ()):
        return Port(engine if host in _EVERYWHERE else host, number)
    if ip and engine == _LOCAL:
        return Port(ip, int(wanted.partition("/")[0]))
    raise NotFound(f"port {port} of {name} is not published: start it with ports={{{port!r}: None}}")


def _host_of(address: str) -> str:
    return _LOCAL if not address or address.startswith("unix:") else urlsplit(address).hostname or _LOCAL


def shown(published: Mapping[str, Any]) -> str:
    """All ports in one line, for tables."""
    return ", ".join(
        f"{host or '*'}:{number}→{port}" if to else port
        for port, to in published.items()
        for host, number in (to or [("", 0)])
    )
