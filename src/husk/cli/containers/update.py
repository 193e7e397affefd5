"""`husk update`: other limits for containers, and another restart policy."""

from collections.abc import Mapping
from typing import Any

import click

from husk.cli.containers.spec import cpus_of, size_of
from husk.cli.kit.command import HuskCommand, as_json, number, text
from husk.cli.kit.complete import containers
from husk.cli.kit.engine import ask, each
from husk.cli.kit.place import HostChoice
from husk.cli.kit.writing import complain
from husk.client.client import Client
from husk.errors import InvalidParameter
from husk.text.digits import read_number

_NANO = 1_000_000_000
_SIZES = {"memory": "Memory", "memory_reservation": "MemoryReservation", "memory_swap": "MemorySwap"}
_SAME = {
    "blkio_weight": "BlkioWeight",
    "cpu_period": "CpuPeriod",
    "cpu_quota": "CpuQuota",
    "cpu_rt_period": "CpuRealtimePeriod",
    "cpu_rt_runtime": "CpuRealtimeRuntime",
    "cpu_shares": "CpuShares",
    "cpuset_cpus": "CpusetCpus",
    "cpuset_mems": "CpusetMems",
    "pids_limit": "PidsLimit",
}


@click.command(cls=HuskCommand)
@number("--blkio-weight", help="Block IO (relative weight), between 10 and 1000, or 0 to disable.")
@number("--cpu-period", help="Limit CPU CFS (Completely Fair Scheduler) period.")
@number("--cpu-quota", help="Limit CPU CFS (Completely Fair Scheduler) quota.")
@number("--cpu-rt-period", help="Limit the CPU real-time period in microseconds.")
@number("--cpu-rt-runtime", help="Limit the CPU real-time runtime in microseconds.")
@number("-c", "--cpu-shares", help="CPU shares (relative weight).")
@text("--cpus", help="Number of CPUs.")
@text("--cpuset-cpus", help="CPUs in which to allow execution (0-3, 0,1).")
@text("--cpuset-mems", help="MEMs in which to allow execution (0-3, 0,1).")
@text("-m", "--memory", help="Memory limit.")
@text("--memory-reservation", help="Memory soft limit.")
@text("--memory-swap", help="Swap limit equal to memory plus swap: -1 to enable unlimited swap.")
@number("--pids-limit", help="Tune container pids limit (set -1 for unlimited).")
@text("--restart", help="Restart policy to apply when a container exits.")
@as_json
@click.argument("names", nargs=-1, required=True, metavar="CONTAINER...", shell_complete=containers)
@click.pass_obj
def update(place: HostChoice, /, names: tuple[str, ...], as_json: bool, **flags: Any) -> None:
    """Update configuration of one or more containers."""
    limits = limits_of(flags)
    if not limits:
        raise click.UsageError("you must provide one or more flags when using this command")

    async def updated(engine: Client) -> int:
        async def one(name: str) -> None:
            for warning in await (await engine.containers.get(name)).update(**limits):
                complain(f"WARNING: {warning}")

        return await each(names, one, as_json)

    ask(place, updated)


def limits_of(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Read the limits that flags name, in the API's words."""
    found = {word: flags[name] for name, word in _SAME.items() if flags[name] not in (None, "")}
    found |= {word: size_of(name, flags[name]) for name, word in _SIZES.items() if flags[name]}
    if flags["cpus"]:
        found["NanoCpus"] = round(cpus_of(flags["cpus"]) * _NANO)
    if flags["restart"]:
        name, colon, times = flags["restart"].partition(":")
        if (most := read_number(times or "0")) is None or (colon and not times):
            raise InvalidParameter("invalid restart policy format: maximum retry count must be an integer")
        found["RestartPolicy"] = {"Name": name, **({"MaximumRetryCount": most} if colon else {})}
    return found
