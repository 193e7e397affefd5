"""Has a container ended, and what if it ends just now?"""

import asyncio
import contextlib
from collections.abc import Iterator

from husk.engine.containers.index import Exit, Instance
from husk.errors import Conflict, SystemFault


@contextlib.contextmanager
def conflict_if_ended(instance: Instance) -> Iterator[None]:
    """The runtime refuses a process that has ended, also while that end still waits for our lock to be recorded."""
    try:
        yield
    except SystemFault as fault:
        if instance.has_ended:
            raise Conflict(f"container {instance.id} is not running") from fault
        raise


async def within(future: "asyncio.Future[Exit]", seconds: float | None) -> bool:
    done, _ = await asyncio.wait({future}, timeout=seconds)
    return bool(done)
