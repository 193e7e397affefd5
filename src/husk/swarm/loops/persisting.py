"""Work of a worker that goes on for as long as it is in the swarm, whichever manager answers."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from husk.errors import HuskError

log = logging.getLogger(__name__)

# In seconds, between two tries to reach a manager: the first, the longest.
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
# Of such a pause.
SPREAD = 0.5, 1.5


async def again_and_again(work: Callable[[], Awaitable[None]], what: str) -> None:
    """Until this is cancelled."""
    pause = FIRST_PAUSE
    while True:
        begun = asyncio.get_running_loop().time()
        try:
            await work()
        except HuskError as error:
            log.info("%s: no manager is heard: %s", what, error.message)
        except Exception:  # a fault of ours, too: there is nobody else who would try again
            log.exception("%s: this node could not go on, and tries again", what)
        if asyncio.get_running_loop().time() - begun > LONGEST_PAUSE:
            pause = FIRST_PAUSE
        # A manager that goes leaves hundreds of nodes at once: they do not come to the next one all at the same time.
        await asyncio.sleep(pause * random.uniform(*SPREAD))
        pause = min(2 * pause, LONGEST_PAUSE)
