"""Checks of this host for the things that containers need. Every check tries the real thing where that leaves no
trace: it mounts an overlay and builds a bridge in a namespace of its own, instead of believing a list of modules."""

import asyncio
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from husk.cli import packages
from husk.engine.checkup import unreadable_records
from husk.errors import HuskError
from husk.kernel import cgroups, namespaces, needs, rtnetlink
from husk.kernel.netlink import NetlinkSocket
from husk.kernel.nftables import Nftables
from husk.network import drop_policies, legacy_rules
from husk.network.drop_policies import DropPolicy
from husk.network.firewall_owners import cure_of
from husk.network.legacy_rules import LegacyRules
from husk.storage.lost import DIRECTORY as LOST
from husk.storage.lost import lost
from husk.swarm.state.kinds import TYPES

Verdict = Literal["ok", "poor", "bad"]

_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# As the engine looks for it (husk.engine.host).
_INITS = ("docker-init", "tini-static", "tini", "catatonit")
_NAMESPACES = ("mnt", "pid", "net", "uts", "ipc", "cgroup")
# Of a daemon with the usual data root, or of one that was started as `dockerd`.
_BRIDGE, _USUAL_BRIDGE = "husk0", "docker0"
_CONTROLLERS = ("cpu", "memory", "pids")
# Bits of the kernel's capability sets, with what is lost without them.
_NEEDED_RIGHTS = {"CAP_SYS_ADMIN": 21, "CAP_NET_ADMIN": 12, "CAP_MKNOD": 27, "CAP_CHOWN": 0, "CAP_SYS_CHROOT": 18}
_CAP_SYS_RESOURCE = 24


class Fix(msgspec.Struct, frozen=True):
    """A cure that `--fix` can apply: a need of packages.txt to install, or a cgroup controller to mount as v1."""

    kind: Literal["package", "controller"]
    value: str


class Finding(msgspec.Struct, frozen=True):
    """One line of the report. `poor` costs something, `bad` means that containers cannot run."""

    name: str
    verdict: Verdict
    detail: str
    cure: str = ""
    fix: Fix | None = None


def examine(data_root: Path) -> list[Finding]:
    """All checks, in the order in which a reader should mend things."""
    if os.geteuid() != 0:
        cure = "run it as root (sudo husk doctor)"
        return [Finding("root", "bad", "the daemon and most checks need root", cure), *_programs()]
    bridge = _bridge(Path("/sys/class/net"))
    return [
        Finding("root", "ok", f"Linux {platform.release()}, Python {platform.python_version()}"),
        *_rights(Path("/proc/self/status").read_text()),
        _overlay(data_root),
        *_records(data_root),
        *_lost(data_root),
        _namespaces(Path("/proc/self/ns")),
        *_cgroups(),
        _network(),
        *_firewalls(drop_policies.look((bridge,)), asyncio.run(legacy_rules.look((bridge,))), bridge),
        _seccomp(Path("/proc/sys/kernel/seccomp/actions_avail")),
        *_programs(),
    ]


def _records(data_root: Path) -> Iterator[Finding]:
    """Check that all records of the store can be read, if there is a store."""
    if not (data_root / "state.db").exists():
        return

    cure = f"husk doctor --check-store --data-root {data_root} tells what to do"
    try:
        found = unreadable_records(data_root, TYPES)
    except HuskError as error:
        yield Finding("records", "bad", error.message, cure)
        return
    if found:
        yield Finding("records", "poor", f"put aside, for they cannot be read: {', '.join(found)}", cure)
    else:
        yield Finding("records", "ok", "all records of the data root can be read")


def _rights(status: str) -> Iterator[Finding]:
    """`status` is the text of /proc/self/status."""
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    effective = int(fields.get("CapEff", "0"), 16)
    missing = [name for name, bit in _NEEDED_RIGHTS.items() if not effective >> bit & 1]
    if missing:
        cure = "start the daemon with full capabilities (a privileged container, or the host itself)"
        yield Finding("rights", "bad", f"missing {', '.join(missing)}", cure)
    elif not effective >> _CAP_SYS_RESOURCE & 1:
        detail = "no CAP_SYS_RESOURCE: hard limits cannot be raised, oom_score_adj cannot be lowered"
        yield Finding(
            "rights", "poor", detail, "start the daemon with it; until then such settings are only warned about"
        )
    else:
        yield Finding("rights", "ok", "all capabilities that containers need")


def _overlay(data_root: Path) -> Finding:
    name, existing = "overlayfs", needs.existing(data_root)
    if (error := needs.overlay_fault(data_root)) is not None:
        known = "overlay" in Path("/proc/filesystems").read_text()
        cure = "choose a --data-root on ext4, xfs or btrfs" if known else "load it (modprobe overlay) or another kernel"
        return Finding(name, "bad", f"an overlay cannot be mounted in {existing}: {error.strerror}", cure)
    return Finding(name, "ok", f"works in {existing}")


def _lost(data_root: Path) -> Iterator[Finding]:
    if found := lost(data_root):
        place = data_root / LOST
        detail = f"{len(found)} put aside in {place}, because they could neither be used nor deleted: {found[0]}"
        yield Finding("lost", "poor", detail + (", ..." if found[1:] else ""), "look at them, then delete them")


def _namespaces(directory: Path) -> Finding:
    missing = [name for name in _NAMESPACES if not (directory / name).exists()]
    if missing:
        return Finding("namespaces", "bad", f"the kernel lacks {', '.join(missing)}", "use a kernel that has them")
    return Finding("namespaces", "ok", ", ".join(_NAMESPACES))


def _cgroups() -> Iterator[Finding]:
    present, mode = cgroups.controllers(), cgroups.detect()
    if not cgroups.hierarchies():
        cure = "mount -t cgroup2 none /sys/fs/cgroup"
        yield Finding("cgroups", "bad", "no cgroup tree is mounted below /sys/fs/cgroup", cure)
        return
    missing = [name for name in _CONTROLLERS if name not in present]
    if missing:
        detail = f"{mode} without {', '.join(missing)}: those limits have no effect"
        yield Finding("cgroups", "poor", detail, "enable them on the kernel's command line (cgroup_enable=memory)")
    else:
        yield Finding("cgroups", "ok", f"{mode}, with {', '.join(sorted(present))}")
    in_v2 = cgroups.hybrid_blocker()
    for controller in (*in_v2, *cgroups.unmounted()):
        if controller in in_v2:
            detail = f"hybrid host, and {controller} is in the v2 tree: crun 1.8 refuses it, the slower runc is used"
        else:
            detail = (
                f"the v1 tree of {controller} is not mounted: crun would mistake its place, the slower runc is used"
            )
        cure = f"mount -t cgroup -o {controller} cgroup /sys/fs/cgroup/{controller}"
        yield Finding("cgroups", "poor", detail, cure, Fix("controller", controller))


def _network() -> Finding:
    """A bridge, a veth pair and a firewall table, in a network namespace that is gone afterwards."""
    try:
        with tempfile.TemporaryDirectory(prefix="husk-doctor-") as scratch:
            holder = Path(scratch, "netns")
            namespaces.create(holder, _build_network)
            namespaces.remove(holder)
    except OSError as error:
        cure = "use a kernel with net namespaces, bridge and veth (modprobe bridge veth)"
        return Finding("network", "bad", f"bridge and veth do not work: {error.strerror or error}", cure)
    except HuskError as error:
        missing = "cannot be loaded" in error.message
        cure = _cure("nftables") if missing else "use a kernel with nf_tables, nft_nat and nft_masq"
        return Finding("network", "bad", error.message, cure, Fix("package", "nftables") if missing else None)
    return Finding("network", "ok", "namespaces, bridge, veth and nftables work")


def _bridge(interfaces: Path) -> str:
    """The default bridge's name: `docker0` where that is ours."""
    try:
        mark = (interfaces / _USUAL_BRIDGE / "ifalias").read_text().strip()
    except OSError:
        return _BRIDGE
    return _USUAL_BRIDGE if mark == "husk bridge of husk" else _BRIDGE


def _firewalls(chains: Iterable[DropPolicy], old: Iterable[LegacyRules], bridge: str = _BRIDGE) -> Iterator[Finding]:
    """Find the firewalls that drop the packets of containers, whatever our own rules say."""
    for chain in chains:
        yield Finding(
            "firewall", "poor", f"{chain.where} drops what containers send and get", _accepting(chain.owner, bridge)
        )
    for rules in old:
        if rules.drop:
            detail = f"chain FORWARD of {rules.program} drops what containers send and get"
            yield Finding("firewall", "poor", detail, _accepting(rules.owner, bridge))
        elif rules.drop is None:
            detail = f"{rules.program} has rules, which the daemon does not see"
            look = f"look with {rules.program} -S FORWARD whether they drop, and accept there what goes over {bridge}"
            yield Finding("firewall", "poor", detail, look)


def _accepting(owner: str, bridge: str) -> str:
    """Say how the owner of a firewall lets the packets of containers pass."""
    if command := cure_of(owner, bridge):
        return f"run {command}, and the same for each br-* (docs/howto/troubleshooting.md)"
    return f"have it accept what goes over {bridge} and br-*: docs/howto/troubleshooting.md tells how"


def _build_network(_: int) -> None:
    with NetlinkSocket() as netlink:
        netlink.execute(rtnetlink.add_bridge("probe0", "02:42:00:00:00:01"), rtnetlink.add_veth("probe1", "probe2"))
    Nftables().run(
        "add table ip probe; add chain ip probe nat { type nat hook postrouting priority 100; }; "
        "add rule ip probe nat masquerade"
    )


def _seccomp(actions: Path) -> Finding:
    if actions.exists():
        return Finding("seccomp", "ok", "system calls of containers are filtered")
    cure = "use a kernel with CONFIG_SECCOMP_FILTER"
    return Finding("seccomp", "poor", "the kernel cannot filter system calls", cure)


def _programs() -> list[Finding]:
    return [*_runtimes(_find), *_helpers(_find), *_clients(shutil.which)]


def _cure(need: str) -> str:
    return packages.cure(need, packages.here())


def _find(name: str) -> str | None:
    """Find a program where the daemon looks for it, whatever PATH its caller has; None if it is not there."""
    return shutil.which(name, path=_SYSTEM_PATH)


def _runtimes(find: Callable[[str], str | None]) -> Iterator[Finding]:
    paths = {name: path for name in ("crun", "runc") if (path := find(name))}
    if paths:
        yield Finding("runtime", "ok", ", ".join(paths.values()))
    if "crun" not in paths:
        verdict: Verdict = "poor" if paths else "bad"
        detail = "crun is missing: containers start more slowly" if paths else "neither crun nor runc is installed"
        yield Finding("runtime", verdict, detail, _cure("crun"), Fix("package", "crun"))


def _helpers(find: Callable[[str], str | None]) -> Iterator[Finding]:
    if path := find("conmon"):
        yield Finding("conmon", "ok", path)
    else:
        cure = _cure("conmon")
        yield Finding("conmon", "bad", "it keeps a container's output and exit status", cure, Fix("package", "conmon"))
    if path := next(filter(None, map(find, _INITS)), None):
        yield Finding("init", "ok", path)
    else:
        detail = f"none of {', '.join(_INITS)} is here: docker run --init fails"
        yield Finding("init", "poor", detail, _cure("init"), Fix("package", "init"))
    if not find("ps"):
        yield Finding("ps", "poor", "it is missing: docker top fails", _cure("procps"), Fix("package", "procps"))
    path = find("busybox")
    if path and _is_static(Path(path)):
        yield Finding("busybox", "ok", f"{path} (the first image is made from it)")
    else:
        detail = "no static busybox: there is no local image to begin with"
        yield Finding("busybox", "poor", detail, _cure("busybox"), Fix("package", "busybox"))


def _clients(find: Callable[[str], str | None]) -> Iterator[Finding]:
    if path := find("docker"):
        yield Finding("client", "ok", path)
    else:
        detail = "no docker command: any client of the Docker API works"
        yield Finding("client", "poor", detail, f"{_cure('client')}, or husk run, husk ps and so on")


def _is_static(program: Path) -> bool:
    """An ELF program without an interpreter needs no libraries and so runs in an empty root filesystem."""
    head = program.read_bytes()[:4096]
    if head[:6] != b"\x7fELF\x02\x01":  # of 64 bits, little endian
        return False
    table, size, count = (int.from_bytes(head[a:b], "little") for a, b in ((32, 40), (54, 56), (56, 58)))
    kinds = (int.from_bytes(head[table + n * size : table + n * size + 4], "little") for n in range(count))
    return 3 not in kinds
