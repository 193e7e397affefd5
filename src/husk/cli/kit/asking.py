"""Questions of completions to a daemon."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from husk.cli.kit.place import HostChoice
from husk.client import blocking
from husk.client.address import resolve
from husk.client.client import Client, connect, connected


def asked(place: HostChoice, names: Callable[[Client], Awaitable[list[str]]], patience: float) -> list[str]:
    """Ask the daemon for names, for no longer than `patience` seconds."""

    async def told(connection: AbstractAsyncContextManager[Client]) -> list[str]:
        async with connection as engine:
            return await names(engine)

    if dial := blocking.dialer(resolve(place.host, place.context), patience):
        return blocking.run(told(connected(Client(dial))))

    # A door: to load asyncio takes longer than all else that a completion does.
    import asyncio

    return asyncio.run(asyncio.wait_for(told(connect(place.host, context=place.context)), patience))
