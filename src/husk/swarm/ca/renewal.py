"""The moment of a certificate's renewal: at random between 50 and 80 % of the life of the one that a node has.

Random, so that not all nodes come at the same time; so early, that a manager may be away for a while. Pure.
"""

import random

EARLIEST, LATEST = 0.5, 0.8
# Who has failed tries again, and not at once: in seconds.
AGAIN_SOONEST, AGAIN_LATEST = 5.0, 3600.0


def wait(made: float, ends: float, now: float, chance: float | None = None) -> float:
    """Seconds until a certificate is to be renewed: 0 when it is time, or later than that.

    It is good from the time `made` on, which is an hour before it was signed. Where that is in the future a clock was
    wrong then, and the certificate is good for nobody yet. It is time.
    """
    if made > now:
        return 0.0
    share = EARLIEST + (LATEST - EARLIEST) * (random.random() if chance is None else chance)
    return max(made + (ends - made) * share - now, 0.0)


def wait_again(failures: int, left: float, latest: float | None = None) -> float:
    """Seconds until the next try, after so many that failed: longer each time, and often while little is left."""
    longest = AGAIN_LATEST if latest is None else latest
    return max(min(AGAIN_SOONEST * (1 << min(failures - 1, 16)), longest, left / 4), AGAIN_SOONEST)
