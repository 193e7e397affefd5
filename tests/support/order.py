"""In which order do files run? The longest first, so that no worker is left alone with one at the end.

All tests of a file run on one worker, because most files share a daemon. xdist would begin with the files that have the
most tests: those are unit tests of milliseconds, which make the best ends.
"""

from collections.abc import Callable
from pathlib import PurePath

# Files that take longest, as `scripts/run-tests --durations=0` has shown them. A file that is not here is no mistake.
LONGEST = (
    "integration/services/test_faults.py",
    "integration/services/test_turmoil.py",
    "integration/services/test_chaos.py",
    "integration/test_power_cut.py",
    "integration/services/test_promise.py",
    "integration/test_crash.py",
    "integration/test_full_disk.py",
    "integration/services/test_endpoints.py",
    "integration/images/test_store_crash.py",
    "integration/services/test_services.py",
    "integration/services/test_swarm.py",
    "integration/test_packaging.py",
    "integration/images/test_platforms.py",
    "clients/test_compose.py",
)


def place_of(root: PurePath) -> Callable[[PurePath], tuple[int, int]]:
    """For a file below `root`, the folder of all tests: where it stands in the order."""

    def place(path: PurePath) -> tuple[int, int]:
        name = path.relative_to(root).as_posix() if path.is_relative_to(root) else ""
        if name in LONGEST:
            return 0, LONGEST.index(name)
        return (2 if name.startswith("unit/") else 1), 0

    return place
