"""Judgements of `husk doctor` on what was found on a host (`husk.cli.survey`): what is missing, and its cure. Pure."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from husk.cli import packages
from husk.cli.survey import INITS, CgroupFacts, HostSurvey, KernelFacts
from husk.errors import HuskError
from husk.network.firewall_owners import cure_of
from husk.storage.lost import DIRECTORY as LOST

Verdict = Literal["ok", "poor", "bad"]

_NAMESPACES = ("mnt", "pid", "net", "uts", "ipc", "cgroup")
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


def judge(facts: HostSurvey) -> list[Finding]:
    """All checks, in the order in which a reader should mend things."""
    programs = [*_runtimes(facts), *_helpers(facts), _client(facts)]
    kernel = facts.kernel
    if kernel is None:
        cure = "run it as root (sudo husk doctor)"
        return [Finding("root", "bad", "the daemon and most checks need root", cure), *programs]
    return [
        Finding("root", "ok", kernel.versions),
        _rights(kernel.status),
        _overlay(facts, kernel),
        *_records(facts, kernel),
        *_lost(facts, kernel),
        _namespaces(kernel),
        *_cgroups(kernel.cgroups),
        _network(facts, kernel),
        *_firewalls(kernel),
        _seccomp(kernel),
        *programs,
    ]


def _records(facts: HostSurvey, kernel: KernelFacts) -> Iterator[Finding]:
    """Judge whether all records of the store can be read, if there is a store."""
    if kernel.store is None:
        return

    cure = f"husk doctor --check-store --data-root {facts.data_root} tells what to do"
    if kernel.store.fault:
        yield Finding("records", "bad", kernel.store.fault, cure)
    elif found := kernel.store.unreadable:
        yield Finding("records", "poor", f"put aside, for they cannot be read: {', '.join(found)}", cure)
    else:
        yield Finding("records", "ok", "all records of the data root can be read")


def _rights(status: str) -> Finding:
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    effective = int(fields.get("CapEff", "0"), 16)
    missing = [name for name, bit in _NEEDED_RIGHTS.items() if not effective >> bit & 1]
    if missing:
        cure = "start the daemon with full capabilities (a privileged container, or the host itself)"
        return Finding("rights", "bad", f"missing {', '.join(missing)}", cure)
    if not effective >> _CAP_SYS_RESOURCE & 1:
        detail = "no CAP_SYS_RESOURCE: hard limits cannot be raised, oom_score_adj cannot be lowered"
        cure = "start the daemon with it; until then such settings are only warned about"
        return Finding("rights", "poor", detail, cure)
    return Finding("rights", "ok", "all capabilities that containers need")


def _overlay(facts: HostSurvey, kernel: KernelFacts) -> Finding:
    if (error := kernel.overlay_fault) is None:
        return Finding("overlayfs", "ok", f"works in {facts.place}")
    if kernel.overlay_known:
        cure = "choose a --data-root on ext4, xfs or btrfs"
    else:
        cure = "load it (modprobe overlay) or another kernel"
    return Finding("overlayfs", "bad", f"an overlay cannot be mounted in {facts.place}: {error.strerror}", cure)


def _lost(facts: HostSurvey, kernel: KernelFacts) -> Iterator[Finding]:
    if found := list(kernel.lost):
        place = facts.data_root / LOST
        detail = f"{len(found)} put aside in {place}, because they could neither be used nor deleted: {found[0]}"
        yield Finding("lost", "poor", detail + (", ..." if found[1:] else ""), "look at them, then delete them")


def _namespaces(kernel: KernelFacts) -> Finding:
    if missing := [name for name in _NAMESPACES if name not in kernel.namespaces]:
        return Finding("namespaces", "bad", f"the kernel lacks {', '.join(missing)}", "use a kernel that has them")
    return Finding("namespaces", "ok", ", ".join(_NAMESPACES))


def _cgroups(facts: CgroupFacts) -> Iterator[Finding]:
    if not facts.mounted:
        cure = "mount -t cgroup2 none /sys/fs/cgroup"
        yield Finding("cgroups", "bad", "no cgroup tree is mounted below /sys/fs/cgroup", cure)
        return
    missing = [name for name in _CONTROLLERS if name not in facts.controllers]
    if missing:
        detail = f"{facts.mode} without {', '.join(missing)}: those limits have no effect"
        yield Finding("cgroups", "poor", detail, "enable them on the kernel's command line (cgroup_enable=memory)")
    else:
        yield Finding("cgroups", "ok", f"{facts.mode}, with {', '.join(sorted(facts.controllers))}")
    for controller in (*facts.in_v2, *facts.unmounted):
        if controller in facts.in_v2:
            detail = f"hybrid host, and {controller} is in the v2 tree: crun 1.8 refuses it, the slower runc is used"
        else:
            detail = (
                f"the v1 tree of {controller} is not mounted: crun would mistake its place, the slower runc is used"
            )
        cure = f"mount -t cgroup -o {controller} cgroup /sys/fs/cgroup/{controller}"
        yield Finding("cgroups", "poor", detail, cure, Fix("controller", controller))


def _network(facts: HostSurvey, kernel: KernelFacts) -> Finding:
    error = kernel.network_fault
    if error is None:
        return Finding("network", "ok", "namespaces, bridge, veth and nftables work")
    if isinstance(error, HuskError):
        if "cannot be loaded" in error.message:
            return Finding("network", "bad", error.message, _cure(facts, "nftables"), Fix("package", "nftables"))
        return Finding("network", "bad", error.message, "use a kernel with nf_tables, nft_nat and nft_masq")
    cure = "use a kernel with net namespaces, bridge and veth (modprobe bridge veth)"
    return Finding("network", "bad", f"bridge and veth do not work: {error.strerror or error}", cure)


def _firewalls(kernel: KernelFacts) -> Iterator[Finding]:
    """Find the firewalls that drop the packets of containers, whatever our own rules say."""
    bridge = kernel.bridge
    for chain in kernel.drop_policies:
        yield Finding(
            "firewall", "poor", f"{chain.where} drops what containers send and get", _accepting(chain.owner, bridge)
        )
    for rules in kernel.legacy_rules:
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


def _seccomp(kernel: KernelFacts) -> Finding:
    if kernel.seccomp:
        return Finding("seccomp", "ok", "system calls of containers are filtered")
    cure = "use a kernel with CONFIG_SECCOMP_FILTER"
    return Finding("seccomp", "poor", "the kernel cannot filter system calls", cure)


def _cure(facts: HostSurvey, need: str) -> str:
    return packages.cure(need, facts.family)


def _runtimes(facts: HostSurvey) -> Iterator[Finding]:
    paths = {name: facts.programs[name] for name in ("crun", "runc") if name in facts.programs}
    if paths:
        yield Finding("runtime", "ok", ", ".join(paths.values()))
    if "crun" not in paths:
        verdict: Verdict = "poor" if paths else "bad"
        detail = "crun is missing: containers start more slowly" if paths else "neither crun nor runc is installed"
        yield Finding("runtime", verdict, detail, _cure(facts, "crun"), Fix("package", "crun"))


def _helpers(facts: HostSurvey) -> Iterator[Finding]:
    if path := facts.programs.get("conmon"):
        yield Finding("conmon", "ok", path)
    else:
        detail = "it keeps a container's output and exit status"
        yield Finding("conmon", "bad", detail, _cure(facts, "conmon"), Fix("package", "conmon"))
    if path := next(filter(None, map(facts.programs.get, INITS)), None):
        yield Finding("init", "ok", path)
    else:
        detail = f"none of {', '.join(INITS)} is here: docker run --init fails"
        yield Finding("init", "poor", detail, _cure(facts, "init"), Fix("package", "init"))
    if "ps" not in facts.programs:
        detail = "it is missing: docker top fails"
        yield Finding("ps", "poor", detail, _cure(facts, "procps"), Fix("package", "procps"))
    if facts.busybox:
        yield Finding("busybox", "ok", f"{facts.busybox} (the first image is made from it)")
    else:
        detail = "no static busybox: there is no local image to begin with"
        yield Finding("busybox", "poor", detail, _cure(facts, "busybox"), Fix("package", "busybox"))


def _client(facts: HostSurvey) -> Finding:
    if facts.client:
        return Finding("client", "ok", facts.client)
    detail = "no docker command: any client of the Docker API works"
    return Finding("client", "poor", detail, f"{_cure(facts, 'client')}, or husk run, husk ps and so on")
