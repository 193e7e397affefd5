"""The lock of a swarm: which keys open its secrets after a start of the daemon, on the disk and in its record.

A swarm with autolock keeps the key of its secrets in a lock file, and the unlock key that opens it in its record,
sealed, so that every manager has both. The record decides which file counts: each file is there before the record that
asks for it, and goes after it.
"""

import asyncio
import base64
import secrets
from collections.abc import Awaitable, Callable

import msgspec

from husk.errors import InvalidParameter, Unauthorized
from husk.storage.secrets.locks import UNLOCK_KEY_BYTES
from husk.storage.secrets.sealing import Sealer
from husk.swarm.membership import join_tokens
from husk.swarm.model.swarm import Swarm

# What the unlock key is sealed as, in the record.
_UNLOCK = "the unlock key of the swarm"
KEY_PREFIX = "SWMKEY-1-"


class Autolock:
    """The keys of this host for the swarm that it manages."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    @property
    def locked(self) -> bool:
        return self._sealer.locked

    def look(self) -> None:
        """At a start, while the swarm's record is not known. Blocks."""
        self._sealer.look()

    def settle(self, swarm: Swarm | None) -> None:
        """At a start: keep the file that is to count. Blocks."""
        self._sealer.settle(swarm is not None and swarm.autolock)

    async def save(self, swarm: Swarm, write: Callable[[Swarm], Awaitable[None]], *, was: bool, rotate: bool) -> None:
        """`write` a record that may lock or unlock the swarm; `was` tells whether it had autolock, `rotate` asks for
        a new key."""
        if swarm.autolock and (rotate or not was):
            key = new_key()
            old = await asyncio.to_thread(self._sealer.unlock_key) if was else b""
            await asyncio.to_thread(self._sealer.lock, key, besides=old)
            sealed = await asyncio.to_thread(self._sealer.seal, key, _UNLOCK)
            swarm = msgspec.structs.replace(swarm, unlock_key=sealed)
        elif was and not swarm.autolock:
            await asyncio.to_thread(self._sealer.keep_open)
            swarm = msgspec.structs.replace(swarm, unlock_key=b"")
        await write(await asyncio.to_thread(join_tokens.fitting, swarm, self._sealer))
        if swarm.autolock:
            await asyncio.to_thread(self._sealer.keep_locked)
        elif was:
            await asyncio.to_thread(self._sealer.drop_lock)

    async def follow(self, swarm: Swarm) -> None:
        """Another manager may have locked the swarm, or unlocked it: what is on this host's disk is to be alike."""
        if not self.locked and not (swarm.autolock and not swarm.unlock_key):
            await asyncio.to_thread(self._follow, swarm)

    def _follow(self, swarm: Swarm) -> None:
        self._sealer.follow(self._key_of(swarm) if swarm.autolock else b"")

    def shared_keys(self, swarm: Swarm) -> tuple[bytes, bytes]:
        """Return the keys for a new manager: that of secrets, and that which opens it after a start, if any. Blocks."""
        return self._sealer.key(), self._key_of(swarm) if swarm.autolock else b""

    async def told(self) -> str:
        """The unlock key, as people type it."""
        return write_key(await asyncio.to_thread(self._sealer.unlock_key))

    async def unlock(self, key: str) -> None:
        if not await asyncio.to_thread(self._sealer.unlock, read_key(key)):
            raise Unauthorized("swarm could not be unlocked: invalid key provided")

    def shut(self) -> None:
        """As before `unlock`."""
        self._sealer.close()

    async def forget(self) -> None:
        """Nothing that was sealed is needed any more."""
        await asyncio.to_thread(self._sealer.forget)

    def _key_of(self, swarm: Swarm) -> bytes:
        """Swarms of release 0.1 have it in the lock file alone."""
        return self._sealer.unseal(swarm.unlock_key, _UNLOCK) if swarm.unlock_key else self._sealer.unlock_key()


def write_key(key: bytes) -> str:
    return KEY_PREFIX + base64.b64encode(key).decode().rstrip("=")


def read_key(text: str) -> bytes:
    """Docker's form of an unlock key: SWMKEY-1-<base64>."""
    encoded = text.strip().removeprefix(KEY_PREFIX)
    try:
        if not text.strip().startswith(KEY_PREFIX) or not encoded:
            raise ValueError
        return base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except ValueError:
        raise InvalidParameter("invalid key string") from None


def new_key() -> bytes:
    return secrets.token_bytes(UNLOCK_KEY_BYTES)
