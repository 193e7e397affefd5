"""A swarm's own etcd without processes: what managers ask of its members is noted, and answered as a test says."""

import asyncio
import contextlib
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import cast

from husk.errors import HuskError, Unavailable
from husk.swarm.membership.etcd_membership import EtcdDriver
from husk.swarm.state.etcd.certificates import CertificateFiles
from husk.swarm.state.etcd.member import Member, MemberSettings
from husk.swarm.state.etcd.members import KnownMember, Members
from husk.text.endpoints import HostPort


class FakeMember:
    """A member of this host."""

    def __init__(self, etcd: "FakeEtcd", settings: MemberSettings) -> None:
        self.etcd, self.settings = etcd, settings
        self.told: list[str] = []
        self.trouble = ""
        self.removed = False

    async def start(self) -> None:
        if self.etcd.start_fails is not None:
            raise self.etcd.start_fails
        self.told.append("start")

    async def start_alone(self) -> None:
        self.told.append("start alone")

    async def wait_ready(self, timeout: float) -> None:
        self.etcd.on_ready()

    async def let_go(self) -> None:
        self.told.append("let go")

    async def expect_end(self) -> None:
        self.told.append("expect end")

    async def go_on(self) -> None:
        self.told.append("go on")

    async def stop(self) -> None:
        self.told.append("stop")

    async def restart(self) -> None:
        self.told.append("restart")

    async def clear(self) -> None:
        self.told.append("clear")


class FakeEtcd(EtcdDriver):
    """`known` are the members that it has, and `others` what one that is added hears of; those of hosts that are `down`
    do not answer."""

    def __init__(self) -> None:
        self.installed = True
        self.made: list[FakeMember] = []
        self.known: list[KnownMember] = []
        self.others: dict[str, HostPort] = {}
        self.down: set[str] = set()
        # What was asked, of which members, and how it ended.
        self.asked: list[tuple[str, object]] = []
        self.asked_at: list[list[HostPort]] = []
        self.opened = 0
        self.relieved = 0
        self.make_fails: Exception | None = None
        self.start_fails: HuskError | None = None
        self.remove_fails: HuskError | None = None
        self.relieve_fails: HuskError | None = None
        self.on_ready: Callable[[], None] = lambda: None
        self.on_wipe: Callable[[Path], None] = lambda directory: None

    def find_program(self) -> None:
        if not self.installed:
            raise Unavailable("several managers need etcd, and the program is missing here")

    def check_free(self, places: Iterable[HostPort]) -> None:
        """All are."""

    def make(self, settings: MemberSettings, ended: Callable[[], None]) -> Member:
        if self.make_fails is not None:
            raise self.make_fails
        self.made.append(FakeMember(self, settings))
        return cast(Member, self.made[-1])

    def wipe(self, directory: Path) -> None:
        self.on_wipe(directory)
        while directory.exists():
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(directory)

    def open(self, endpoints: list[HostPort], certificates: CertificateFiles) -> Members:
        self.asked_at.append(endpoints)
        self.opened += 1
        return cast(Members, self)

    async def answers(self, endpoint: HostPort, certificates: CertificateFiles) -> bool:
        return endpoint.host not in self.down

    async def relieve(self, endpoints: list[HostPort], certificates: CertificateFiles) -> None:
        self.relieved += 1
        if self.relieve_fails is not None:
            raise self.relieve_fails

    # --- `Members`

    async def close(self) -> None:
        self.opened -= 1

    async def listing(self) -> list[KnownMember]:
        await asyncio.sleep(0)
        return self.known

    async def add(self, peer: HostPort) -> dict[str, HostPort]:
        self.asked.append(("add", peer))
        return self.others

    async def promote(self, peer: HostPort) -> None:
        self.asked.append(("promote", peer))

    async def remove(self, member: KnownMember) -> None:
        self.asked.append(("remove", member.peer))
        if self.remove_fails is not None:
            raise self.remove_fails
