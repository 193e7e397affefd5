"""Checks of a container's limits, devices and kernel settings: the part of `validate` about resources."""

import os
import re

from husk.config.ulimits import check_ulimit
from husk.engine.model.container_config import HostConfig
from husk.errors import InvalidParameter
from husk.runtime.spec.host_facts import online
from husk.text.patterns import pattern

MIN_MEMORY = 6 * 1024 * 1024
# The kernel takes no longer text than a page for it.
_LONGEST_CPUSET = 4095
_CPUSET = pattern(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*", re.ASCII)
_DEVICE_RULE = pattern(r"([acb]) ([0-9]{1,18}|\*):([0-9]{1,18}|\*) ([rwm]{1,3})", re.ASCII)
# What mount(2) does with a tmpfs; changing what is mounted elsewhere is no option of it.
_TMPFS_WORDS = """
defaults ro rw suid nosuid dev nodev exec noexec sync async dirsync mand nomand atime noatime diratime nodiratime
relatime norelatime strictatime nostrictatime private rprivate shared rshared slave rslave unbindable runbindable
"""
_TMPFS_FLAGS = frozenset(_TMPFS_WORDS.split())
_TMPFS_VALUES = frozenset({"size", "mode", "uid", "gid", "nr_inodes", "nr_blocks", "mpol", "huge"})
# The options of one mount are a page; all of them together are taken apart at every start.
_LONGEST_TMPFS, _MOST_TMPFS = 4095, 1 << 16

# Settings of the kernel that belong to an IPC namespace.
_IPC_NAMES = """
msgmax msgmnb msgmni sem shmall shmmax shmmni shm_rmid_forced auto_msgmni sem_next_id msg_next_id shm_next_id
"""
_IPC = frozenset(f"kernel.{name}" for name in _IPC_NAMES.split())


def check(host: HostConfig) -> None:
    """Raise for the first limit that is wrong."""
    _check_memory(host)
    _check_cpu(host)
    _check_block(host)
    if host.shm_size < 0:
        raise InvalidParameter("SHM size can not be less than 0")
    if not -1000 <= host.oom_score_adj <= 1000:
        raise InvalidParameter(f"Invalid value {host.oom_score_adj}, range for oom score adj is [-1000, 1000]")
    _check_cpuset("cpuset cpus", host.cpuset_cpus, "/sys/devices/system/cpu/online", "CPUs")
    _check_cpuset("cpuset mems", host.cpuset_mems, "/sys/devices/system/node/online", "memory nodes")
    _check_ulimits(host)
    _check_devices(host)
    if sum(map(len, (host.tmpfs or {}).values())) > _MOST_TMPFS:
        raise InvalidParameter(f"tmpfs options have more than {_MOST_TMPFS} characters together")
    for options in (host.tmpfs or {}).values():
        _check_tmpfs(options)


def device_rule(text: str) -> tuple[str, int | None, int | None, str]:
    """(type, major, minor, access) of a rule such as `c 10:* rwm`."""
    match = _DEVICE_RULE.fullmatch(text)
    if match is None:
        raise InvalidParameter(f"invalid device cgroup rule format: '{text}'")
    kind, major, minor, access = match.groups()
    return kind, None if major == "*" else int(major), None if minor == "*" else int(minor), access


def _check_memory(host: HostConfig) -> None:
    if host.memory and host.memory < MIN_MEMORY:
        raise InvalidParameter("Minimum memory limit allowed is 6MB")
    if host.memory == 0 and host.memory_swap > 0:
        raise InvalidParameter("You should always set the Memory limit when using Memoryswap limit, see usage")
    if 0 < host.memory_swap < host.memory:
        raise InvalidParameter("Minimum memoryswap limit should be larger than memory limit, see usage")
    if host.memory_swap < -1 or host.memory < 0 or host.memory_reservation < 0:
        raise InvalidParameter("memory limits cannot be negative")
    if 0 < host.memory < host.memory_reservation:
        raise InvalidParameter("Minimum memory limit can not be less than memory reservation limit, see usage")
    if 0 < host.memory_reservation < MIN_MEMORY:
        raise InvalidParameter("Minimum memory reservation allowed is 6MB")
    if host.memory_swappiness is not None and not -1 <= host.memory_swappiness <= 100:
        raise InvalidParameter(f"Invalid value: {host.memory_swappiness}, valid memory swappiness range is 0-100")


def _check_cpu(host: HostConfig) -> None:
    if host.nano_cpus and host.cpu_period:
        raise InvalidParameter("Conflicting options: Nano CPUs and CPU Period cannot both be set")
    if host.nano_cpus and host.cpu_quota:
        raise InvalidParameter("Conflicting options: Nano CPUs and CPU Quota cannot both be set")
    cpus = os.cpu_count() or 1
    if host.nano_cpus < 0 or host.nano_cpus > cpus * 10**9:
        raise InvalidParameter(f"range of CPUs is from 0.01 to {cpus}.00, as there are only {cpus} CPUs available")
    if host.cpu_shares < 0:
        raise InvalidParameter(f"invalid CPU shares ({host.cpu_shares}): value must be a positive integer")
    if host.cpu_period and not 1000 <= host.cpu_period <= 1_000_000:
        raise InvalidParameter("CPU cfs period can not be less than 1ms (i.e. 1000) or larger than 1s (i.e. 1000000)")
    if 0 < host.cpu_quota < 1000:
        raise InvalidParameter("CPU cfs quota can not be less than 1ms (i.e. 1000)")
    if host.cpu_realtime_period < 0 or host.cpu_realtime_runtime < 0:
        raise InvalidParameter("cpu real-time period and runtime cannot be negative")
    if host.cpu_realtime_period and host.cpu_realtime_runtime > host.cpu_realtime_period:
        raise InvalidParameter("cpu real-time runtime cannot be higher than cpu real-time period")
    for wanted, word in ((host.io_maximum_iops, "IOPs"), (host.io_maximum_bandwidth, "bandwidth")):
        if wanted:
            raise InvalidParameter(f"Invalid QoS settings: linux does not support configuration of maximum {word}")


def _check_block(host: HostConfig) -> None:
    weights = [host.blkio_weight, *(item.weight for item in host.blkio_weight_device or ())]
    if any(weight and not 10 <= weight <= 1000 for weight in weights):
        raise InvalidParameter("Range of blkio weight is from 10 to 1000")
    for throttles in (
        host.blkio_device_read_bps,
        host.blkio_device_write_bps,
        host.blkio_device_read_iops,
        host.blkio_device_write_iops,
    ):
        for item in throttles or ():
            if item.rate < 0:
                raise InvalidParameter(f"invalid rate for device {item.path}: {item.rate} is negative")


def _check_ulimits(host: HostConfig) -> None:
    for limit in host.ulimits or ():
        check_ulimit(limit.name, limit.soft, limit.hard)


def _check_devices(host: HostConfig) -> None:
    for device in host.devices or ():
        if not device.path_on_host:
            raise InvalidParameter("invalid device: its path on the host is empty")
        if set(device.cgroup_permissions) - set("rwm"):
            raise InvalidParameter(f"invalid device mode: {device.cgroup_permissions}")
    for rule in host.device_cgroup_rules or ():
        device_rule(rule)


def _check_tmpfs(options: str) -> None:
    if len(options) > _LONGEST_TMPFS:
        raise InvalidParameter(f"tmpfs options have {len(options)} characters, {_LONGEST_TMPFS} is the most")
    for option in options.split(","):
        name, found, _ = option.partition("=")
        if option and name not in (_TMPFS_VALUES if found else _TMPFS_FLAGS):
            raise InvalidParameter(f'invalid tmpfs option "{name}"')


def _check_cpuset(what: str, text: str, there: str, kind: str) -> None:
    """`there` is the file that tells which there are; nobody reads it for a container that asks for none."""
    if not text:
        return
    if len(text) > _LONGEST_CPUSET:
        raise InvalidParameter(
            f"Invalid value {text[:200]} for {what}: it has {len(text)} characters, {_LONGEST_CPUSET} is the most"
        )
    asked = _ranges(text)
    if asked is None:
        raise InvalidParameter(f"Invalid value {text[:200]} for {what}: invalid format: {text[:200]}")
    available = online(there)
    held = {number for first, last in _ranges(available) or () for number in range(first, last + 1)}
    # A set, for a range may be asked for thousands of times, and each is as long as the host is large at most.
    if not all(last in held and held.issuperset(range(first, last + 1)) for first, last in asked):
        raise InvalidParameter(f"Requested {kind} are not available - requested {text[:200]}, available: {available}")


def _ranges(text: str) -> set[tuple[int, int]] | None:
    """Each once; None for what is no list of ranges."""
    if _CPUSET.fullmatch(text) is None:
        return None
    pairs = (part.partition("-") for part in set(text.split(",")))
    found = {(int(first), int(last or first)) for first, _, last in pairs}
    return found if all(first <= last for first, last in found) else None


def check_sysctls(host: HostConfig) -> None:
    """Raise for a setting that would be the host's, or that the chosen namespaces make the host's."""
    for key in host.sysctls or {}:
        name = key.replace("/", ".")
        if not name.isascii() or not name.isprintable() or ".." in name:
            raise InvalidParameter(f'sysctl "{key}" is not in a separate kernel namespace')
        if name in _IPC or name.startswith("fs.mqueue."):
            if host.ipc_mode == "host":
                raise InvalidParameter(f'sysctl "{key}" is not allowed in the hosts ipc namespace')
        elif name.startswith("net."):
            if host.network_mode == "host":
                raise InvalidParameter(f'sysctl "{key}" not allowed in host network namespace')
        elif name == "kernel.domainname":
            if host.uts_mode == "host":
                raise InvalidParameter(f'sysctl "{key}" is not allowed in the hosts uts namespace')
        elif name == "kernel.hostname":
            raise InvalidParameter(f'sysctl "{key}" is not allowed as it conflicts with the OCI "hostname" field')
        else:
            raise InvalidParameter(f'sysctl "{key}" is not in a separate kernel namespace')
