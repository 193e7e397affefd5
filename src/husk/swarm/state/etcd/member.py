"""A member of etcd that belongs to this host: started, watched, started again when it ends, kept by the next daemon.

    member = Member(MemberSettings(name="m1", directory=data_root / "etcd", client=…, peer=…))
    await member.start()        # one that a former daemon left running is taken over
    await member.wait_ready()
    …
    await member.let_go()       # the daemon ends: etcd goes on for the other hosts
    await member.stop()         # this host is no manager any more

It runs in a session of its own, so that neither the end of the daemon nor Ctrl-C on its terminal ends it. It is known
by its arguments: whatever process was started on its directory is this member, and one with other settings is replaced.
"""

import asyncio
import contextlib
import errno
import logging
import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from husk.aio.tasks import Tasks
from husk.errors import SystemFault, Unavailable
from husk.kernel import process
from husk.rpc.grpc.status import GrpcError
from husk.swarm.state.etcd.certificates import CertificateFiles, tls_context
from husk.swarm.state.etcd.channel import EtcdChannel
from husk.swarm.state.etcd.messages import STATUS, StatusRequest
from husk.swarm.state.transactions import StoreUnavailable
from husk.text.documents import MalformedDocument, decode
from husk.text.endpoints import HostPort

log = logging.getLogger(__name__)

# Before a member that has ended is started again, in seconds: at first, and at most. Who ran for a while has settled.
SOON, LATE, SETTLED = 0.5, 30.0, 60.0
# One that has run for so long does not end for what ended it before. etcd takes 64 MiB of its disk at a time, and dies
# where it cannot have them; what it had of the next it gives back then.
STEADY = 5.0
_LEAST_ROOM = 80 << 20
# How long it may take to end when it is told to.
GRACE = 10.0
# A log that is larger is begun anew with the next start.
_LARGEST_LOG = 1 << 20
# In milliseconds: how often the member that leads says that it is there, and after which silence (up to twice that) the
# others choose another. etcd's own 100 and 1,000 cost managers 4 to 8 KiB/s; docs/scale.md tells why not longer.
HEARTBEAT, ELECTION = 300, 1500
_TOLD = 16_000
# What etcd says before it ends when the others have removed it: it never takes part again with the records it has.
_REMOVED = "data-dir used by this member must be removed"

NOBODY: Mapping[str, HostPort] = MappingProxyType({})


class MemberSettings(NamedTuple):
    """`others` are the members that are there already, by name; with them it joins, without it begins a cluster.
    `revoked` is a list of certificates that are good for nothing, which is read with each connection."""

    name: str
    directory: Path
    client: HostPort
    peer: HostPort
    certificates: CertificateFiles | None = None
    others: Mapping[str, HostPort] = NOBODY
    revoked: Path | None = None


def command(program: str, settings: MemberSettings) -> list[str]:
    """Return the command line of etcd. Clients and members have to show certificates if there are any."""
    scheme = "http" if settings.certificates is None else "https"
    client, peer = f"{scheme}://{settings.client}", f"{scheme}://{settings.peer}"
    members = {settings.name: settings.peer, **settings.others}
    flags = {
        "name": settings.name,
        "data-dir": str(settings.directory / "data"),
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": ",".join(f"{name}={scheme}://{members[name]}" for name in sorted(members)),
        "initial-cluster-state": "existing" if settings.others else "new",
        "heartbeat-interval": str(HEARTBEAT),
        "election-timeout": str(ELECTION),
        # What happened in the last hour is kept for watches that were cut off; older ones start over.
        "auto-compaction-mode": "periodic",
        "auto-compaction-retention": "1h",
        # What is not in a snapshot yet is in memory.
        "snapshot-count": "10000",
        "logger": "zap",
        "log-outputs": "stderr",
        "log-level": "warn",
    }
    if settings.certificates is not None:
        ca, cert, key = map(str, settings.certificates)
        for side in ("", "peer-"):
            flags |= {f"{side}client-cert-auth": "true", f"{side}trusted-ca-file": ca}
            flags |= {f"{side}cert-file": cert, f"{side}key-file": key}
        if settings.revoked is not None:
            flags |= {f"{side}-crl-file": str(settings.revoked) for side in ("client", "peer")}
    return [program, *(f"--{name}={value}" for name, value in flags.items())]


def mark_of(directory: Path) -> str:
    """The argument that every process of a member on this directory has."""
    return f"--data-dir={directory / 'data'}"


def wipe(directory: Path) -> None:
    """End whatever runs on this directory, and remove it. Safe to call twice; blocks."""
    process.kill_given([mark_of(directory)])
    # A thread that looked at the certificate may come to its end beside this: a file that has gone is no end of it.
    while directory.exists():
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(directory)


def find_program() -> str:
    found = shutil.which("etcd", path=f"{os.environ.get('PATH', '')}:/usr/local/bin:/usr/bin")
    if found is None:
        raise Unavailable(
            f"several managers need etcd, and the program is missing on {socket.gethostname()}: install it there "
            "(Debian's package etcd-server)"
        )
    return found


class Member:
    def __init__(self, settings: MemberSettings, program: str = "", ended: Callable[[], None] | None = None) -> None:
        """`ended` is called whenever it has ended by itself."""
        self._settings = settings
        self._program = program
        self._ended = ended
        self._tasks = Tasks()
        self._process: process.Child | None = None
        # Why it does not run, or did not until a moment ago; empty when it does, or has not ended yet.
        self.trouble = ""
        # Has it ended because the others have removed it? Then call `clear`, and have another one added.
        self.removed = False
        # Where in its log that begins which the process that runs says.
        self._says_from = 0

    @property
    def pid(self) -> int:
        """0 while it does not run."""
        return self._process.pid if self._process is not None else 0

    async def start(self) -> None:
        """Run it from now on. Unavailable where there is no etcd."""
        program = self._program or await asyncio.to_thread(find_program)
        argv = command(program, self._settings)
        await asyncio.to_thread(self._settings.directory.mkdir, mode=0o700, parents=True, exist_ok=True)
        found = await asyncio.to_thread(self._adopt, argv)
        self.removed = False
        self._process = found if found is not None else self._spawn(argv)
        self._tasks.spawn(self._keep(argv), f"etcd {self._settings.name}")

    async def start_alone(self, timeout: float = 30.0) -> None:
        """Run it as the only member of its cluster, with the records it has: most others are lost for good."""
        program = self._program or await asyncio.to_thread(find_program)
        argv = command(program, self._settings)
        # What keeps it would start it as usual beside the one that is to be alone.
        await self.stop()
        await asyncio.to_thread(process.kill_given, [self._mark])
        try:
            self._process = self._spawn([*argv, "--force-new-cluster=true"])
            await self.wait_ready(timeout)
        finally:
            # With that flag it would drop members again at each start. Where it was of no use, it goes on as it was.
            await self.stop()
            await self.start()
        await self.wait_ready(timeout)

    async def wait_ready(self, timeout: float = 60.0) -> None:
        """Until it answers and knows a leader. SystemFault, with what it said last, when it does not in that time."""
        certificates = self._settings.certificates
        tls = await asyncio.to_thread(tls_context, certificates) if certificates is not None else None
        channel = EtcdChannel([self._settings.client], tls, timeout)
        try:
            await channel.unary(STATUS, StatusRequest().encode())
        except (StoreUnavailable, GrpcError) as error:
            told = f"{error}. {self.trouble or await asyncio.to_thread(self._said)}"
            raise SystemFault(f"etcd is not ready after {timeout:g} seconds: {told}") from None
        finally:
            await channel.close()

    async def let_go(self) -> None:
        """Watch it no longer; it goes on, and the next daemon takes it over."""
        await self._tasks.cancel_all()
        self._drop()

    async def expect_end(self) -> None:
        """It is about to end, being removed from its cluster: it is not started again. Then call `stop`."""
        await self._tasks.cancel_all()

    async def go_on(self) -> None:
        """It was not removed after all: it is watched again."""
        self._drop()
        await self.start()

    async def stop(self) -> None:
        """End it, and return when it has ended; safe to call twice."""
        await self._tasks.cancel_all()
        if self._process is not None:
            await _end(self._process.pidfd)
            self._drop()

    async def restart(self) -> None:
        """All connections to it end; others go on meanwhile."""
        await self.stop()
        await self.start()

    async def clear(self) -> None:
        """End it, without what it had recorded."""
        await self.stop()
        with contextlib.suppress(FileNotFoundError):
            await asyncio.to_thread(shutil.rmtree, self._settings.directory / "data")

    # --- its life

    async def _keep(self, argv: list[str]) -> None:
        """Start it again whenever it ends, later each time that it did not last."""
        loop = asyncio.get_running_loop()
        pause, begun = SOON / 2, loop.time()
        while True:
            if self._process is not None:
                await self._watch(self._process)
                self._drop()
                self.removed = await asyncio.to_thread(self._was_removed)
                why = "the other members have removed it" if self.removed else await asyncio.to_thread(self._why)
                self.trouble = f"it has ended: {why}"
                if self._ended is not None:
                    self._ended()
            pause = SOON if loop.time() - begun >= SETTLED else min(pause * 2, LATE)
            log.error("etcd %s: %s; starting it again in %g seconds", self._settings.name, self.trouble, pause)
            await asyncio.sleep(pause)
            begun = loop.time()
            try:
                self._process = self._spawn(argv)
            except (SystemFault, OSError) as fault:
                self.trouble = str(fault)

    async def _watch(self, running: process.Child) -> None:
        """Until it ends."""
        try:
            async with asyncio.timeout(STEADY):
                await process.wait_exit(running.pidfd)
        except TimeoutError:
            self.trouble = ""
            await process.wait_exit(running.pidfd)

    def _adopt(self, argv: list[str]) -> process.Child | None:
        """The process that a former daemon left, if it is what we would start; others on its directory are ended."""
        for pid in process.given([self._mark]):
            if process.arguments_of(pid) == [os.fsencode(word) for word in argv]:
                with contextlib.suppress(ProcessLookupError):
                    self._says_from = self._log_size()
                    return process.Child(pid, process.pidfd_open(pid))
        process.kill_given([self._mark])
        return None

    @property
    def _mark(self) -> str:
        """By which its process is known."""
        return mark_of(self._settings.directory)

    def _spawn(self, argv: list[str]) -> process.Child:
        path = self._log
        if self._log_size() > _LARGEST_LOG:
            path.rename(path.with_suffix(".old"))
        self._says_from = self._log_size()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            started = process.spawn(argv, stdout=descriptor, stderr=descriptor)
        finally:
            os.close(descriptor)
        return started

    def _drop(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None

    # --- what it says

    @property
    def _log(self) -> Path:
        return self._settings.directory / "etcd.log"

    def _log_size(self) -> int:
        with contextlib.suppress(FileNotFoundError):
            return self._log.stat().st_size
        return 0

    def _why(self) -> str:
        """Say why the member may have ended: on a full disk it cannot say that itself."""
        with contextlib.suppress(OSError):
            found = os.statvfs(self._settings.directory)
            if (free := found.f_bfree * found.f_frsize) < _LEAST_ROOM:
                room = f"{free >> 20} MiB are free below {self._settings.directory}"
                return f"no space left on device, it seems ({room}): {self._said()}"
        return self._said()

    def _was_removed(self) -> bool:
        return _REMOVED in self._end_of_log(self._says_from)

    def _said(self) -> str:
        lines = self._end_of_log().strip().splitlines()
        return plain(lines[-1]) if lines else "it said nothing"

    def _end_of_log(self, since: int = 0) -> str:
        try:
            with self._log.open("rb") as file:
                file.seek(max(since, os.fstat(file.fileno()).st_size - _TOLD))
                return file.read().decode(errors="replace")
        except OSError:
            return ""


def plain(line: str) -> str:
    """A line of etcd's log without what only its authors read. Pure."""
    try:
        told = decode(line, _Line)
    except MalformedDocument:
        return line
    return ": ".join(filter(None, (told.msg, told.error))) or line


class _Line(msgspec.Struct):
    msg: str = ""
    error: str = ""


async def _end(pidfd: int) -> None:
    process.send_signal(pidfd, signal.SIGTERM)
    try:
        async with asyncio.timeout(GRACE):
            await process.wait_exit(pidfd)
    except TimeoutError:
        process.send_signal(pidfd, signal.SIGKILL)
        await process.wait_exit(pidfd)


def check_free(places: Iterable[HostPort]) -> None:
    """Unavailable for one that another program has. Any other trouble is for etcd to tell."""
    for place in places:
        family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(place)
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    raise Unavailable(
                        f"several managers need etcd, and another program has {place} on {socket.gethostname()}: stop "
                        "it, or choose other ports with --swarm-etcd-ports"
                    ) from None
