"""In which order do files begin? The longest first, so that no worker is left alone with one at the end; swarms of
several hosts apart from each other.

All tests of a file run on one worker, because most files share a daemon. xdist would begin with the files that have the
most tests: those are unit tests of milliseconds, which make the best ends.
"""

from collections.abc import Iterable

# Files that take longest, as `scripts/run-tests --durations=0` has shown them. A file that is not here is no mistake.
LONGEST = (
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

# Swarms of several hosts: many daemons and members of etcd each, which wait for leases, elections and heartbeats.
# Beside each other they make one another late with those, and then leave the processors idle together.
SWARMS = (
    "integration/services/test_faults.py",
    "integration/services/test_turmoil.py",
    "integration/services/test_workers.py",
    "integration/services/test_worker_networks.py",
    "integration/services/test_shared_networks.py",
    "integration/services/test_encrypted_networks.py",
    "integration/services/test_managers.py",
    "integration/services/test_backup.py",
    "integration/services/test_upgrade.py",
)


def arranged(names: Iterable[str]) -> list[str]:
    """Names of files below the folder of all tests, in the order in which they begin."""
    files = list(dict.fromkeys(names))
    units = [name for name in files if name.startswith("unit/")]
    swarms = [name for name in SWARMS if name in files]
    first = [name for name in LONGEST if name in files]
    known = {*units, *swarms, *first}
    working = first + [name for name in files if name not in known]
    distance = max(1, len(working) // max(1, len(swarms)))
    order: list[str] = []
    for number, name in enumerate(working):
        if swarms and number % distance == 0:
            order.append(swarms.pop(0))
        order.append(name)
    return order + swarms + units
