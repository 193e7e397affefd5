"""Credentials that came with a service, sealed in its record: the pull for its next task may need them."""

import asyncio

import msgspec

from husk.errors import HuskError
from husk.registry.auth import Credentials
from husk.storage.secrets.sealing import Sealer
from husk.swarm.model.services import Service
from husk.text.documents import decode


class PullCredentials:
    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    async def keep(self, service: Service, credentials: Credentials | None) -> Service:
        """The service with these, for the caller to save; without new ones those that it has stay."""
        if not credentials:
            return service
        value = msgspec.json.encode(credentials)
        sealed = await asyncio.to_thread(self._sealer.seal, value, _context(service))
        return msgspec.structs.replace(service, credentials=sealed)

    async def of(self, service: Service) -> Credentials | None:
        """None where there are none, or none that can be read now: the registry then says what it misses."""
        if not service.credentials:
            return None
        try:
            value = await asyncio.to_thread(self._sealer.unseal, service.credentials, _context(service))
        except HuskError:
            return None
        return decode(value, Credentials)


def _context(service: Service) -> str:
    return f"credentials of service {service.id}"
