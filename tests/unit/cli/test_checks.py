"""Checks of `husk doctor`: each finds what is missing, and names the cure."""

from dataclasses import replace
from pathlib import Path

import pytest

from husk.cli import packages
from husk.cli.checks import Finding, Fix, judge
from husk.cli.survey import CgroupFacts, HostSurvey, KernelFacts, StoreFacts
from husk.errors import HuskError
from husk.network.drop_policies import DropPolicy
from husk.network.legacy_rules import LegacyRules

(DEBIAN, *_) = packages.FAMILIES
ALL_RIGHTS = (1 << 41) - 1
PROGRAMS = {name: f"/usr/bin/{name}" for name in ("crun", "conmon", "tini", "ps")}


def status(effective: int) -> str:
    return f"Name:\tx\nCapEff:\t{effective:016x}\n"


KERNEL = KernelFacts(
    versions="Linux 6.1, Python 3.11",
    status=status(ALL_RIGHTS),
    overlay_fault=None,
    overlay_known=True,
    store=None,
    lost=(),
    namespaces=("mnt", "pid", "net", "uts", "ipc", "cgroup", "user"),
    cgroups=CgroupFacts(controllers=("cpu", "memory", "pids")),
    network_fault=None,
    bridge="husk0",
    drop_policies=(),
    legacy_rules=(),
    seccomp=True,
)
HOST = HostSurvey(Path("/srv/husk"), Path("/srv"), DEBIAN, PROGRAMS, "/bin/busybox", "/usr/bin/docker", KERNEL)


def found(name: str, facts: HostSurvey) -> list[Finding]:
    """Judge a host: the findings of one name."""
    return [finding for finding in judge(facts) if finding.name == name]


def of_kernel(name: str, **facts: object) -> list[Finding]:
    """Judge a host that lacks nothing but what is said: the findings of one name."""
    return found(name, replace(HOST, kernel=replace(KERNEL, **facts)))  # type: ignore[arg-type]


def test_a_host_that_has_all() -> None:
    assert {finding.verdict for finding in judge(HOST)} == {"ok"}
    assert judge(HOST)[0] == Finding("root", "ok", "Linux 6.1, Python 3.11")


def test_without_root_the_doctor_says_so() -> None:
    first, *others = judge(replace(HOST, kernel=None))
    assert (first.name, first.verdict) == ("root", "bad")
    assert {finding.name for finding in others} == {"runtime", "conmon", "init", "busybox", "client"}


def test_missing_rights_are_named() -> None:
    (without_resource,) = of_kernel("rights", status=status(ALL_RIGHTS & ~(1 << 24)))
    assert without_resource.verdict == "poor" and "CAP_SYS_RESOURCE" in without_resource.detail
    (without_admin,) = of_kernel("rights", status=status(ALL_RIGHTS & ~(1 << 21)))
    assert without_admin.verdict == "bad" and "CAP_SYS_ADMIN" in without_admin.detail


@pytest.mark.parametrize("place", ["in_v2", "unmounted"])
def test_a_controller_that_is_not_in_its_place_has_a_cure_that_can_be_applied(place: str) -> None:
    cgroups = replace(KERNEL.cgroups, **{place: ("hugetlb",)})  # type: ignore[arg-type]
    whole, misplaced = of_kernel("cgroups", cgroups=cgroups)
    assert whole.verdict == "ok"
    assert (misplaced.verdict, misplaced.fix) == ("poor", Fix("controller", "hugetlb"))


@pytest.mark.parametrize(
    ("mounted", "controllers", "verdict"),
    [(False, [], "bad"), (True, ["cpu", "memory", "pids"], "ok"), (True, ["cpu"], "poor")],
)
def test_limits_need_their_controllers(mounted: bool, controllers: list[str], verdict: str) -> None:
    cgroups = CgroupFacts(mounted=mounted, controllers=controllers)
    assert [finding.verdict for finding in of_kernel("cgroups", cgroups=cgroups)] == [verdict]


@pytest.mark.parametrize(
    ("installed", "verdicts"),
    [({"crun", "runc"}, ["ok"]), ({"runc"}, ["ok", "poor"]), (set(), ["bad"])],
)
def test_one_runtime_is_enough_and_crun_is_better(installed: set[str], verdicts: list[str]) -> None:
    facts = replace(HOST, programs={name: f"/usr/bin/{name}" for name in installed})
    assert [finding.verdict for finding in found("runtime", facts)] == verdicts


def test_missing_programs_are_packages_to_install() -> None:
    findings = judge(replace(HOST, programs={}, busybox=None))
    assert [finding.fix for finding in findings if finding.fix] == [
        Fix("package", name) for name in ("crun", "conmon", "init", "procps", "busybox")
    ]


def test_a_busybox_that_needs_libraries_is_none() -> None:
    (busybox,) = found("busybox", replace(HOST, busybox=None))
    assert (busybox.verdict, busybox.fix) == ("poor", Fix("package", "busybox"))


def test_any_client_will_do() -> None:
    (client,) = found("client", replace(HOST, client=None))
    assert client.verdict == "poor" and "husk run" in client.cure


def test_records_that_cannot_be_read_are_named() -> None:
    assert of_kernel("records", store=None) == []
    (whole,) = of_kernel("records", store=StoreFacts())
    assert whole.verdict == "ok"
    (broken,) = of_kernel("records", store=StoreFacts(fault="no database"))
    assert broken.verdict == "bad" and "--check-store" in broken.cure
    (aside,) = of_kernel("records", store=StoreFacts(["network abc"]))
    assert aside.verdict == "poor" and "network abc" in aside.detail


def test_what_was_put_aside_is_told() -> None:
    (finding,) = of_kernel("lost", lost=["one", "two"])
    assert finding.verdict == "poor" and "2 put aside" in finding.detail and finding.detail.endswith("one, ...")


def test_what_the_kernel_lacks_is_named() -> None:
    (namespaces,) = of_kernel("namespaces", namespaces=("mnt", "pid", "net", "uts", "ipc"))
    assert namespaces.verdict == "bad" and namespaces.detail.endswith("lacks cgroup")
    (seccomp,) = of_kernel("seccomp", seccomp=False)
    assert seccomp.verdict == "poor"


@pytest.mark.parametrize(("known", "cure"), [(True, "on ext4, xfs or btrfs"), (False, "modprobe overlay")])
def test_an_overlay_that_cannot_be_mounted_has_a_cure(known: bool, cure: str) -> None:
    (finding,) = of_kernel("overlayfs", overlay_fault=OSError(22, "Invalid argument"), overlay_known=known)
    assert finding.verdict == "bad" and cure in finding.cure
    assert finding.detail == "an overlay cannot be mounted in /srv: Invalid argument"


@pytest.mark.parametrize(
    ("error", "fix", "cure"),
    [
        (OSError(95, "Operation not supported"), None, "bridge and veth"),
        (
            HuskError("libnftables.so.1 cannot be loaded"),
            Fix("package", "nftables"),
            packages.cure("nftables", DEBIAN),
        ),
        (HuskError("nft: no such chain type"), None, "nf_tables"),
    ],
)
def test_a_network_that_cannot_be_built_has_a_cure(error: OSError | HuskError, fix: Fix | None, cure: str) -> None:
    (finding,) = of_kernel("network", network_fault=error)
    assert (finding.verdict, finding.fix) == ("bad", fix) and cure in finding.cure


def test_other_firewalls_are_told() -> None:
    assert not of_kernel("firewall", legacy_rules=[LegacyRules("iptables-legacy", False)])
    (chain,) = of_kernel("firewall", drop_policies=[DropPolicy("ip", "filter", "FORWARD")], bridge="docker0")
    assert chain.verdict == "poor" and "have it accept what goes over docker0" in chain.cure
    assert "chain FORWARD of the nftables table ip filter drops" in chain.detail
    (chain,) = of_kernel("firewall", drop_policies=[DropPolicy("ip", "filter", "FORWARD", "ufw")])
    assert chain.cure.startswith("run ufw route allow in on husk0 && ufw route allow out on husk0")
    rules = [LegacyRules("iptables-legacy", True, "iptables-legacy"), LegacyRules("ip6tables-legacy", None)]
    old, unseen = of_kernel("firewall", legacy_rules=rules)
    assert "iptables-legacy -I FORWARD -i husk0 -j ACCEPT" in old.cure
    assert "ip6tables-legacy -S FORWARD" in unseen.cure
