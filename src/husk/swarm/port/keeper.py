"""The keeper of a node's certificate. It asks the managers all the time for the one to have, and renews in good time.

    keeper = CertificateKeeper(managers, files.save, identity)
    await keeper.run()      # until cancelled

A new root, another role and the end of a certificate's life all come to the same: a new key, and a certificate for it.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable

from husk.aio.tasks import Tasks
from husk.errors import SystemFault
from husk.swarm.ca import authority, renewal
from husk.swarm.ca.identity import Identity
from husk.swarm.ca.tokens import root_digest
from husk.swarm.port.managers import Managers
from husk.swarm.port.messages import FOLLOW, RENEW, CertificateReply, FollowReply, FollowRequest, RenewRequest
from husk.text.endpoints import MANAGER_PORT, read_endpoint

log = logging.getLogger(__name__)

# In seconds: between two questions that were answered at once, and at most after one that was not. A question costs
# managers little; who stayed away for an hour after a fault would keep a new root waiting for it.
_PAUSE, _LONGEST_PAUSE = 1.0, 15.0
# Between two renewals that nobody asked for, at least, in seconds.
_NOT_AGAIN = 60.0


class CertificateKeeper:
    def __init__(
        self,
        managers: Managers,
        save: Callable[[Identity], None],
        identity: Identity,
        clock: Callable[[], float] = time.time,
        used: Callable[[Identity], None] = lambda identity: None,
    ) -> None:
        """`save` puts an identity on the disk; it is called in a thread. `used` hears of each new one."""
        self._used = used
        self._managers = managers
        self._save = save
        self._clock = clock
        self._tasks = Tasks()
        self.identity = identity
        # By which the moment of its renewal is chosen; and when it was renewed last, by the loop's clock.
        self._chance = random.random()
        self._renewed = -_NOT_AGAIN

    async def run(self) -> None:
        failures = 0
        while True:
            try:
                await self.look()
                failures = 0
                await asyncio.sleep(_PAUSE)
            except Exception as error:  # a full disk, too: there is nobody else who would try again
                failures += 1
                left = authority.look(self.identity.certificate).ends - self._clock()
                if failures == 1 or left <= 0:
                    log.warning("this node's certificate cannot be kept now: %s", error)
                await asyncio.sleep(renewal.wait_again(failures, left, _LONGEST_PAUSE))

    async def look(self) -> None:
        """Ask once, and do what is to be done."""
        known = FollowRequest(roots=root_digest(self.identity.roots))
        told = await self._managers.unary(FOLLOW, known, FollowReply)
        self._managers.know([read_endpoint(text, MANAGER_PORT) for text in told.managers])
        if told.renew or self._is_due():
            await self._renew()
        elif told.roots != self.identity.roots:
            await self._use(self.identity._replace(roots=told.roots))

    async def _renew(self) -> None:
        key, request = await asyncio.to_thread(authority.new_request)
        reply = await self._managers.unary(RENEW, RenewRequest(request=request), CertificateReply)
        if not await asyncio.to_thread(authority.fits, reply.certificate, key):
            raise SystemFault("the manager gave us a certificate that is not ours")
        await self._use(Identity(reply.roots, reply.certificate, key))
        self._chance, self._renewed = random.random(), asyncio.get_running_loop().time()
        log.info("this node has a new certificate")

    async def _use(self, identity: Identity) -> None:
        """From the disk on: a node that dies in between has one that fits."""
        await self._tasks.to_its_end(asyncio.to_thread(self._save, identity), "a certificate on the disk")
        self.identity = identity
        await self._managers.use(identity)
        self._used(identity)

    def _is_due(self) -> bool:
        """By the clock as it is now, which may have been set since the certificate was made."""
        said = authority.look(self.identity.certificate)
        due = renewal.wait(said.made, said.ends, self._clock(), self._chance) == 0
        # A manager whose clock is ahead gives one that seems due at once.
        return due and asyncio.get_running_loop().time() - self._renewed >= _NOT_AGAIN
