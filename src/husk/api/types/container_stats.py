"""A container's use of processor, memory, disks and networks, on the wire."""

from msgspec import UNSET, Struct, UnsetType


class CPUUsage(Struct, kw_only=True):
    total_usage: int = 0
    percpu_usage: list[int] | UnsetType = UNSET
    usage_in_kernelmode: int = 0
    usage_in_usermode: int = 0


class ThrottlingData(Struct, kw_only=True):
    periods: int = 0
    throttled_periods: int = 0
    throttled_time: int = 0


class CPUStats(Struct, kw_only=True):
    cpu_usage: CPUUsage
    system_cpu_usage: int | UnsetType = UNSET
    online_cpus: int | UnsetType = UNSET
    throttling_data: ThrottlingData


class MemoryStats(Struct, kw_only=True, omit_defaults=True):
    usage: int = 0
    max_usage: int = 0
    stats: dict[str, int] = {}
    failcnt: int = 0
    limit: int = 0


class PidsStats(Struct, kw_only=True, omit_defaults=True):
    current: int = 0
    limit: int = 0


class BlkioEntry(Struct, kw_only=True):
    major: int
    minor: int
    op: str
    value: int


class BlkioStats(Struct, kw_only=True):
    io_service_bytes_recursive: list[BlkioEntry] | None = None
    io_serviced_recursive: list[BlkioEntry] | None = None
    io_queue_recursive: list[BlkioEntry] | None = None
    io_service_time_recursive: list[BlkioEntry] | None = None
    io_wait_time_recursive: list[BlkioEntry] | None = None
    io_merged_recursive: list[BlkioEntry] | None = None
    io_time_recursive: list[BlkioEntry] | None = None
    sectors_recursive: list[BlkioEntry] | None = None


class NetworkStats(Struct, kw_only=True):
    rx_bytes: int
    rx_packets: int
    rx_errors: int
    rx_dropped: int
    tx_bytes: int
    tx_packets: int
    tx_errors: int
    tx_dropped: int


class ContainerStats(Struct, kw_only=True):
    id: str
    name: str
    os_type: str = "linux"
    read: str
    cpu_stats: CPUStats
    memory_stats: MemoryStats
    networks: dict[str, NetworkStats] | UnsetType = UNSET
    pids_stats: PidsStats
    blkio_stats: BlkioStats
    num_procs: int = 0
    storage_stats: dict[str, int] = {}
    preread: str
    precpu_stats: CPUStats
