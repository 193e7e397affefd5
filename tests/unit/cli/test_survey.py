"""Facts of a host: read from its files, tried, or found by name."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from husk.cli.survey import HostSurvey, KernelFacts, StoreFacts, Trials, survey
from husk.network.drop_policies import DropPolicy
from husk.network.legacy_rules import LegacyRules
from husk.storage.state.store import Change, StateStore


@dataclass
class Machine:
    """A host of files below a directory, on which nothing is tried."""

    root: Path
    user: int = 0
    overlay_fault: OSError | None = None
    network_fault: OSError | None = None
    bridges: list[Collection[str]] = field(default_factory=list)

    @property
    def data_root(self) -> Path:
        return self.root / "data"

    def write(self, name: str, text: str | bytes = "") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def _drop_policies(self, interfaces: Collection[str]) -> list[DropPolicy]:
        self.bridges.append(interfaces)
        return [DropPolicy("ip", "filter", "FORWARD")]

    async def _legacy_rules(self, interfaces: Collection[str]) -> list[LegacyRules]:
        self.bridges.append(interfaces)
        return [LegacyRules("iptables-legacy", True)]

    def look(self) -> HostSurvey:
        trials = Trials(
            lambda: self.user,
            lambda place: self.overlay_fault,
            lambda: self.network_fault,
            self._drop_policies,
            self._legacy_rules,
        )
        return survey(self.data_root, self.root, str(self.root / "bin"), trials)

    def kernel(self) -> KernelFacts:
        kernel = self.look().kernel
        assert kernel is not None
        return kernel


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    made.write("proc/self/status", "CapEff:\t0\n")
    made.write("proc/self/ns/mnt")
    made.write("proc/filesystems", "\text4\n")
    return made


def test_who_is_not_root_finds_programs_alone(machine: Machine) -> None:
    machine.user = 1000
    machine.write("bin/crun", "#!/bin/sh\n").chmod(0o755)
    facts = machine.look()
    assert facts.kernel is None and facts.programs == {"crun": str(machine.root / "bin/crun")}
    assert machine.bridges == []


def test_what_is_read_and_what_is_tried(machine: Machine) -> None:
    machine.overlay_fault, machine.network_fault = OSError(22, "no"), OSError(95, "no")
    facts = machine.kernel()
    assert (facts.status, facts.namespaces) == ("CapEff:\t0\n", ["mnt"])
    assert not facts.overlay_known and not facts.seccomp
    assert (facts.overlay_fault, facts.network_fault) == (machine.overlay_fault, machine.network_fault)
    assert facts.drop_policies == [DropPolicy("ip", "filter", "FORWARD")]
    assert facts.legacy_rules == [LegacyRules("iptables-legacy", True)]
    machine.write("proc/filesystems", "\text4\nnodev\toverlay\n")
    machine.write("proc/sys/kernel/seccomp/actions_avail")
    facts = machine.kernel()
    assert facts.overlay_known and facts.seccomp


def test_the_place_of_the_data_is_what_is_there_of_it(machine: Machine) -> None:
    assert machine.look().place == machine.root
    machine.data_root.mkdir()
    assert machine.look().place == machine.data_root


@pytest.mark.parametrize(
    ("mark", "bridge"), [(None, "husk0"), ("", "husk0"), ("husk bridge of husk", "docker0"), ("of husk-1", "husk0")]
)
def test_the_default_bridge_is_known_by_its_mark(mark: str | None, bridge: str, machine: Machine) -> None:
    if mark is not None:
        machine.write("sys/class/net/docker0/ifalias", f"{mark}\n")
    assert machine.kernel().bridge == bridge
    assert machine.bridges == [(bridge,), (bridge,)], "firewalls are asked about it"


def elf(*kinds: int) -> bytes:
    """A program of 64 bits with these entries in its table."""
    head = b"\x7fELF\x02\x01".ljust(32, b"\0") + (64).to_bytes(8, "little")
    head = head.ljust(54, b"\0") + (56).to_bytes(2, "little") + len(kinds).to_bytes(2, "little")
    return head.ljust(64, b"\0") + b"".join(kind.to_bytes(4, "little").ljust(56, b"\0") for kind in kinds)


@pytest.mark.parametrize(
    ("program", "static"), [(b"#!/bin/sh\n", False), (b"\x7fELF", False), (elf(1, 2), True), (elf(1, 3), False)]
)
def test_a_static_program_has_no_interpreter(machine: Machine, program: bytes, static: bool) -> None:
    path = machine.write("bin/busybox", program)
    path.chmod(0o755)
    assert machine.look().busybox == (str(path) if static else None)


def test_records_of_a_store(machine: Machine) -> None:
    assert machine.kernel().store is None
    machine.data_root.mkdir()
    StateStore.open(machine.data_root / "state.db").close()
    assert machine.kernel().store == StoreFacts([])
    machine.write("data/state.db", b"no database" * 1000)
    store = machine.kernel().store
    assert store is not None and store.fault


def test_one_bad_record_costs_only_itself(machine: Machine) -> None:
    machine.data_root.mkdir()
    state = StateStore.open(machine.data_root / "state.db")
    asyncio.run(state.commit(Change("network", "abc", b"[]")))
    state.close()
    store = machine.kernel().store
    assert store is not None and list(store.unreadable) == ["network abc"]


def test_what_was_put_aside_is_found(machine: Machine) -> None:
    assert machine.kernel().lost == []
    for name in ("one", "two"):
        (machine.data_root / "lost" / name).mkdir(parents=True)
    assert machine.kernel().lost == ["one", "two"]
