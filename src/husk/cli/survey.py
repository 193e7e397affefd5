"""Facts of this host that `husk doctor` judges (`husk.cli.checks`).

What can be tried without leaving a trace is tried: an overlay is mounted and a bridge built in a namespace of its own,
instead of believing a list of modules.
"""

import asyncio
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from husk.cli import packages
from husk.cli.packages import Family
from husk.engine.checkup import unreadable_records
from husk.errors import HuskError
from husk.kernel import cgroups, namespaces, needs, rtnetlink
from husk.kernel.netlink import NetlinkSocket
from husk.kernel.nftables import Nftables
from husk.network import drop_policies, legacy_rules
from husk.network.drop_policies import DropPolicy
from husk.network.legacy_rules import LegacyRules
from husk.storage.lost import lost
from husk.swarm.state.kinds import TYPES

# As the engine looks for it (husk.engine.host).
INITS = ("docker-init", "tini-static", "tini", "catatonit")
_PROGRAMS = ("crun", "runc", "conmon", *INITS, "ps")
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Of a daemon with the usual data root, or of one that was started as `dockerd`.
BRIDGE, _USUAL_BRIDGE = "husk0", "docker0"


@dataclass(frozen=True)
class StoreFacts:
    """The records of a store: those that cannot be read, or the reason for which the store itself cannot."""

    unreadable: Collection[str] = ()
    fault: str = ""


@dataclass(frozen=True)
class CgroupFacts:
    """The trees of control groups: `in_v2` and `unmounted` are controllers that are not where crun looks for them."""

    mode: str = "v2"
    mounted: bool = True
    controllers: Collection[str] = ()
    in_v2: tuple[str, ...] = ()
    unmounted: tuple[str, ...] = ()


@dataclass(frozen=True)
class KernelFacts:
    """Facts that only root can find: what the kernel gives, and what lies in the data root."""

    versions: str
    """Of the kernel, and of Python."""
    status: str
    """The text of /proc/self/status."""
    overlay_fault: OSError | None
    overlay_known: bool
    """The kernel lists overlayfs among its file systems."""
    store: StoreFacts | None
    """None where there is no store yet."""
    lost: Collection[str]
    namespaces: Collection[str]
    cgroups: CgroupFacts
    network_fault: OSError | HuskError | None
    bridge: str
    """The name of the default bridge."""
    drop_policies: Collection[DropPolicy]
    legacy_rules: Collection[LegacyRules]
    seccomp: bool


@dataclass(frozen=True)
class HostSurvey:
    """Facts of a host. Without `kernel` they were looked for by somebody who is not root."""

    data_root: Path
    place: Path
    """The deepest directory of the data root's path that is there."""
    family: Family | None
    programs: Mapping[str, str] = field(default_factory=dict)
    """Paths of programs where the daemon looks for them, whatever PATH its caller has."""
    busybox: str | None = None
    """The path of a busybox that needs no libraries."""
    client: str | None = None
    """The path of a docker command, where the caller looks for it."""
    kernel: KernelFacts | None = None


class Trials(NamedTuple):
    """Ways to find what no file tells."""

    user: Callable[[], int]
    overlay: Callable[[Path], OSError | None]
    network: Callable[[], OSError | HuskError | None]
    drop_policies: Callable[[Collection[str]], Collection[DropPolicy]]
    legacy_rules: Callable[[Collection[str]], Coroutine[Any, Any, Collection[LegacyRules]]]


def network_fault() -> OSError | HuskError | None:
    """Make a bridge, a veth pair and a firewall table in a network namespace that is gone afterwards."""
    try:
        with tempfile.TemporaryDirectory(prefix="husk-doctor-") as scratch:
            holder = Path(scratch, "netns")
            namespaces.create(holder, _build_network)
            namespaces.remove(holder)
    except (OSError, HuskError) as error:
        return error
    return None


def _build_network(_: int) -> None:
    with NetlinkSocket() as netlink:
        netlink.execute(rtnetlink.add_bridge("probe0", "02:42:00:00:00:01"), rtnetlink.add_veth("probe1", "probe2"))
    Nftables().run(
        "add table ip probe; add chain ip probe nat { type nat hook postrouting priority 100; }; "
        "add rule ip probe nat masquerade"
    )


TRIALS = Trials(os.geteuid, needs.overlay_fault, network_fault, drop_policies.look, legacy_rules.look)


def survey(data_root: Path, files: Path = Path("/"), path: str = _SYSTEM_PATH, trials: Trials = TRIALS) -> HostSurvey:
    """Look at this host; `files` is where /proc and /sys are, `path` where programs of the system are."""
    programs = {name: found for name in _PROGRAMS if (found := shutil.which(name, path=path))}
    busybox = shutil.which("busybox", path=path)
    return HostSurvey(
        data_root,
        needs.existing(data_root),
        packages.here(),
        programs,
        busybox if busybox and _is_static(Path(busybox)) else None,
        shutil.which("docker"),
        _kernel(data_root, files, trials) if trials.user() == 0 else None,
    )


def _kernel(data_root: Path, files: Path, trials: Trials) -> KernelFacts:
    bridge = _bridge(files / "sys/class/net")
    namespaces = files / "proc/self/ns"
    return KernelFacts(
        versions=f"Linux {platform.release()}, Python {platform.python_version()}",
        status=(files / "proc/self/status").read_text(),
        overlay_fault=trials.overlay(data_root),
        overlay_known="overlay" in (files / "proc/filesystems").read_text(),
        store=_store(data_root),
        lost=lost(data_root),
        namespaces=os.listdir(namespaces),
        cgroups=CgroupFacts(
            cgroups.detect(),
            bool(cgroups.hierarchies()),
            cgroups.controllers(),
            cgroups.hybrid_blocker(),
            cgroups.unmounted(),
        ),
        network_fault=trials.network(),
        bridge=bridge,
        drop_policies=trials.drop_policies((bridge,)),
        legacy_rules=asyncio.run(trials.legacy_rules((bridge,))),
        seccomp=(files / "proc/sys/kernel/seccomp/actions_avail").exists(),
    )


def _store(data_root: Path) -> StoreFacts | None:
    if not (data_root / "state.db").exists():
        return None
    try:
        return StoreFacts(unreadable_records(data_root, TYPES))
    except HuskError as error:
        return StoreFacts(fault=error.message)


def _bridge(interfaces: Path) -> str:
    """The default bridge's name: `docker0` where that is ours."""
    try:
        mark = (interfaces / _USUAL_BRIDGE / "ifalias").read_text().strip()
    except OSError:
        return BRIDGE
    return _USUAL_BRIDGE if mark == "husk bridge of husk" else BRIDGE


def _is_static(program: Path) -> bool:
    """An ELF program without an interpreter needs no libraries and so runs in an empty root filesystem."""
    with program.open("rb") as file:
        head = file.read(4096)
    if head[:6] != b"\x7fELF\x02\x01":  # of 64 bits, little endian
        return False
    table, size, count = (int.from_bytes(head[a:b], "little") for a, b in ((32, 40), (54, 56), (56, 58)))
    kinds = (int.from_bytes(head[table + n * size : table + n * size + 4], "little") for n in range(count))
    return 3 not in kinds
