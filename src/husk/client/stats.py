"""A container's use of resources, reckoned as the docker client does. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """A container's use of resources at one moment; sizes in bytes, since its start where they only grow.

    async for stats in box.stats():
        print(f"{stats.cpu_percent:.1f} % {stats.memory_usage >> 20} MiB")
        break
    """

    time: datetime  #: The moment
    cpu_percent: float = 0.0  #: Of one processor: two that are busy are 200; 0 in a first sample
    memory_usage: int = 0  #: Memory, without what the kernel only keeps as long as nobody needs the room
    memory_limit: int = 0  #: The most memory
    network_received: int = 0  #: Bytes that came over networks
    network_sent: int = 0  #: Bytes that went over networks
    block_read: int = 0  #: Bytes read from disks
    block_written: int = 0  #: Bytes written to disks
    pids: int = 0  #: Processes
    attrs: Mapping[str, Any]  #: The API's document

    @property
    def memory_percent(self) -> float:
        """The part of the limit that is used; 0 without a limit."""
        return 100 * self.memory_usage / self.memory_limit if self.memory_limit else 0.0


def stats(document: Mapping[str, Any]) -> Stats:
    """A sample out of the API's document."""
    memory = document.get("memory_stats") or {}
    networks = (document.get("networks") or {}).values()
    blocks = (document.get("blkio_stats") or {}).get("io_service_bytes_recursive") or ()
    return Stats(
        time=msgspec.convert(document["read"], datetime),
        cpu_percent=_cpu_percent(document.get("cpu_stats") or {}, document.get("precpu_stats") or {}),
        memory_usage=_memory(memory),
        memory_limit=int(memory.get("limit", 0)),
        network_received=sum(int(each["rx_bytes"]) for each in networks),
        network_sent=sum(int(each["tx_bytes"]) for each in networks),
        block_read=sum(int(each["value"]) for each in blocks if each["op"][:1].lower() == "r"),
        block_written=sum(int(each["value"]) for each in blocks if each["op"][:1].lower() == "w"),
        pids=int((document.get("pids_stats") or {}).get("current", 0)),
        attrs=document,
    )


def _cpu_percent(now: Mapping[str, Any], before: Mapping[str, Any]) -> float:
    used, used_before = now.get("cpu_usage") or {}, before.get("cpu_usage") or {}
    of_container = int(used.get("total_usage", 0)) - int(used_before.get("total_usage", 0))
    of_all = int(now.get("system_cpu_usage", 0)) - int(before.get("system_cpu_usage", 0))
    processors = int(now.get("online_cpus") or 0) or len(used.get("percpu_usage") or ())
    if of_container <= 0 or of_all <= 0 or not before.get("system_cpu_usage"):
        return 0.0
    return 100 * processors * of_container / of_all


def _memory(memory: Mapping[str, Any]) -> int:
    """Files that were read once and may be forgotten are not the container's need: version 1 and 2 of control groups
    tell them by different names."""
    usage, details = int(memory.get("usage", 0)), memory.get("stats") or {}
    idle = int(details.get("total_inactive_file", details.get("inactive_file", 0)))
    return usage - idle if idle < usage else usage
