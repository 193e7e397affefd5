"""Sandboxes that are not needed any more: they are let go, and the kernel is given time to remove them."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from husk.network import sandbox
from husk.network.sandbox import Lease

log = logging.getLogger(__name__)

# How long the kernel may take to remove the interfaces of a dead namespace before we do it: about ten times the usual.
INTERVAL = 0.02
POLLS = 15


async def abandon(
    leases: Sequence[Lease],
    let_go: Callable[[list[str]], None] = sandbox.abandon_all,
    connected: Callable[[Lease], bool] = sandbox.connected,
    interval: float = INTERVAL,
) -> list[Lease]:
    """Let go of these; those whose interfaces are still there when the kernel has had its time."""
    try:
        await asyncio.to_thread(let_go, [lease.sandbox_path for lease in leases])
    except OSError as error:
        # The next start sweeps it.
        log.error("a network namespace cannot be removed: %s", error)
    lingering = list(leases)
    for _ in range(POLLS):
        # The kernel removes them together, so that one which is still there speaks for those before it.
        while lingering and not connected(lingering[-1]):
            lingering.pop()
        if not lingering:
            break
        await asyncio.sleep(interval)
    return lingering
