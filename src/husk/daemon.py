"""The daemon, put together of claims, log, engine, HTTP edge and signals. The one place that builds the parts.

    claim the pid file -> open the engine (which claims its directories and reconciles with what a former daemon left)
      -> listen -> tell the user and systemd -> wait for a signal -> stop listening -> close the engine

Containers outlive all of it: their monitors are processes of their own, and the next daemon finds them again.
"""

import asyncio
import gc
import importlib
import logging
import os
import resource
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from husk.aio import stalls, threads
from husk.api.edge.tls import server_context
from husk.api.http.limits import HttpLimits
from husk.api.versioning import MINIMUM, Version, minimum_version
from husk.claims import claimed_pidfile
from husk.composition import Engine
from husk.config import Config, DashboardConfig
from husk.config.load import SettingsSource, reloadable
from husk.errors import Forbidden, HuskError
from husk.kernel import needs
from husk.kernel.limits import raise_open_files
from husk.kernel.memory import keep_little
from husk.kernel.process import stop_ignoring_signals
from husk.observe.log import set_level, set_up

if TYPE_CHECKING:
    from husk.api.edge.counted import Counts
    from husk.api.edge.observed import Observer
    from husk.api.edge.server import ApiEdge
    from husk.dashboard.server import Dashboard
    from husk.observe.audit.writer import AuditWriter

log = logging.getLogger(__name__)

# Whoever sends this many signals does not want to wait for a clean end.
_IMPATIENT = 3
# Where OpenTelemetry's traces go to, in its own words.
_TRACES_TO = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def check(source: SettingsSource) -> None:
    """Check that the settings are sound, without starting anything; HuskError says what is wrong with them."""
    config = source.load()
    _minimum_version()
    _tls_context(config)
    _check_dashboard(config)


def run(source: SettingsSource) -> None:
    """Be the daemon until a signal ends it. HuskError when it cannot start."""
    config = source.load()
    minimum = _minimum_version()
    tls = _tls_context(config)
    _check_dashboard(config)
    if os.geteuid() != 0:
        raise Forbidden("the daemon needs root: it mounts filesystems and makes namespaces. Start it with sudo")
    mounts = Path("/proc/self/mountinfo").read_text(errors="replace")
    needs.require(Path("/proc/self/status").read_text(), mounts)
    needs.require_files(mounts, config.data_root)
    set_up(config.log_level, config.log_format)
    stop_ignoring_signals()
    keep_little()
    # Containers and their monitors must not inherit it: they would report themselves ready in our name.
    notify_socket = os.environ.pop("NOTIFY_SOCKET", "")
    for remark in config.remarks:
        log.info("%s", remark)
    for remark in needs.remarks(mounts):
        log.warning("%s", remark)
    with claimed_pidfile(config), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(Daemon(config, source, notify_socket, tls, minimum).serve())


def _tls_context(config: Config) -> ssl.SSLContext | None:
    if config.tls is None:
        return None
    return server_context(config.tls)


def _check_dashboard(config: Config) -> None:
    if config.dashboard is not None:
        # A door: web pages, which most daemons do not show.
        from husk.dashboard.guard import guarded

        guarded(config.dashboard.address, config.tls is not None)


def _minimum_version() -> Version:
    return minimum_version(os.environ.get("DOCKER_MIN_API_VERSION", ""))


def _load_edge() -> None:
    """Load what serves, which nobody needs before there is an engine."""
    importlib.import_module("husk.api.edge.observed")


def traces(engine: Engine, parts: AsyncExitStack) -> "list[Observer]":
    """Make the observer that tells of spans, until `parts` end. None, and a warning, where it fails."""
    try:
        # A door: OpenTelemetry, which need not be installed.
        from husk.observe.tracing import export, observe
    except ImportError:
        log.warning(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, and what sends traces is not installed: "
            'pip install "husk[otel]" in the environment of the daemon'
        )
        return []
    if (made := export.tracer(parts)) is None:
        return []
    engine.watch.watchers += (observe.EngineTraces(made),)
    return [observe.RequestTraces(made)]


class Daemon:
    """One running daemon and what its signals do."""

    def __init__(
        self,
        config: Config,
        source: SettingsSource,
        notify_socket: str = "",
        tls: ssl.SSLContext | None = None,
        minimum: Version = MINIMUM,
    ) -> None:
        self._config = config
        self._minimum = minimum
        self._tls = tls
        self._source = source
        self._notify_socket = notify_socket
        self._ending = asyncio.Event()
        self._signals = 0
        self._dashboard: Dashboard | None = None
        self._keep_link: Callable[[Path, str], None] = lambda path, link: None
        self._link_path = config.exec_root
        self._audit: AuditWriter | None = None

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(threads.short())
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end, number)
        loop.add_signal_handler(signal.SIGHUP, lambda: log.info("not started yet: SIGHUP has no effect"))
        async with AsyncExitStack() as parts:
            # Containers get the limit that we were given: programs that use select() cannot cope with a high one.
            engine = await parts.enter_async_context(Engine.open(self._config, raise_open_files(), _load_edge))
            if self._ending.is_set():
                return
            # A door: the edge is loaded while the kernel works for the engine (`_load_edge`).
            from husk.api.edge import counted, observed, server

            descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            limits = HttpLimits().within(descriptors)
            counts = await self._counts(engine, parts) if self._config.metrics_addr else None
            observers = self._observers(engine, parts)
            if observers:
                edge: ApiEdge = observed.ObservedEdge(engine, self._minimum, limits, observers, counts)
            elif counts is not None:
                edge = counted.CountedEdge(engine, self._minimum, limits, counts)
            else:
                edge = server.ApiEdge(engine, self._minimum, limits)
            serving = server.serve(edge, self._config.hosts, self._config.group, self._tls, self._config.loopback_only)
            addresses = await parts.enter_async_context(serving)
            for address in addresses:
                if address.startswith("tcp://") and not (self._config.tls and self._config.tls.verify):
                    log.warning("listening on %s without --tlsverify: whoever reaches it is root on this host", address)
            if self._config.dashboard is not None:
                await self._show(parts, edge, self._config.dashboard)
            loop.add_signal_handler(signal.SIGHUP, self._reload, engine)
            # What exists now stays: the garbage collector, off until here, need not ever look at it.
            gc.freeze()
            gc.enable()
            if self._config.debug_stalls:
                parts.enter_context(stalls.watched(loop))
            self._announce(addresses)
            await self._ending.wait()
            self._notify("STOPPING=1")
        log.info("the daemon has ended%s", "; its containers run on" if self._config.live_restore else "")

    async def _counts(self, engine: Engine, parts: AsyncExitStack) -> "Counts":
        """Tell metrics; gives what counts requests."""
        # A door: metrics, for daemons that are scraped.
        from husk.observe.metrics import families, requests, server

        told = families.Families()
        counts = requests.RequestCounts(told)
        serving = server.serve(engine, told, self._config.metrics_addr, self._config.metrics_containers)
        log.info("metrics are told on http://%s/metrics", await parts.enter_async_context(serving))
        return counts

    def _observers(self, engine: Engine, parts: AsyncExitStack) -> "tuple[Observer, ...]":
        """Make the observers of requests: none, and nothing is loaded for them, unless the settings ask for some."""
        found: list[Observer] = []
        if self._config.audit_log is not None:
            # A door: the audit log, for daemons that keep one.
            from husk.observe.audit import lines, writer

            self._audit = writer.AuditWriter(self._config.audit_log)
            parts.push_async_callback(asyncio.to_thread, self._audit.close)
            found.append(lines.AuditLog(self._audit.write))
        if any(os.environ.get(name) for name in _TRACES_TO):
            found += traces(engine, parts)
        return tuple(found)

    def _announce(self, addresses: Sequence[str]) -> None:
        """Say where we listen, with the line to paste: on standard output, whatever the log level."""
        for address in addresses:
            print(f"Husk listens on {address}")
        secured = self._tls is not None and addresses[0].startswith("tcp://")
        verify = " DOCKER_TLS_VERIFY=1 DOCKER_CERT_PATH=~/.docker" if secured else ""
        print(f"Point your tools at it:\n\n    export DOCKER_HOST={addresses[0]}{verify}\n", flush=True)
        self._tell_link()
        self._notify("READY=1")

    async def _show(self, parts: AsyncExitStack, edge: "ApiEdge", wanted: DashboardConfig) -> None:
        """Serve web pages, too. They ask through the edge, as every client does."""
        # A door: web pages, which most daemons do not show.
        from husk.dashboard import inside, link_files, server, site

        engine = await parts.enter_async_context(inside.client_of(edge.server))
        tls = inside.own_context(self._config.tls) if self._config.tls is not None else None
        settings = site.DashboardSettings(
            address=wanted.address, names=wanted.names, read_only=wanted.read_only, tls=tls
        )
        self._keep_link, self._link_path = link_files.keep_link, self._config.exec_root / link_files.NAME
        parts.callback(self._link_path.unlink, missing_ok=True)
        self._dashboard = await parts.enter_async_context(server.serve(engine, settings))

    def _tell_link(self) -> None:
        """Leave a link of the dashboard where the daemon's user alone reads it; a terminal has a person before it."""
        if self._dashboard is None:
            return
        link, path = self._dashboard.site.link(), self._link_path
        try:
            self._keep_link(path, link)
        except OSError as error:
            log.error("the dashboard's link cannot be written to %s: %s", path, error)
            return
        shown = link if sys.stdout.isatty() else f"sudo cat {path}" if os.geteuid() == 0 else f"cat {path}"
        print(f"The dashboard opens with this link, once, within ten minutes:\n\n    {shown}\n", flush=True)

    def _end(self, number: int) -> None:
        self._signals += 1
        if self._signals >= _IMPATIENT:
            log.error("signal %d for the third time: ending at once", number)
            os._exit(128 + number)
        fate = "run on" if self._config.live_restore else "end, too (live-restore is off)"
        log.info("%s: ending; containers %s", signal.Signals(number).name, fate)
        self._ending.set()

    def _reload(self, engine: Engine) -> None:
        """Take over what may change while containers run; a faulty file changes nothing."""
        if self._audit is not None:
            self._audit.reopen()
        try:
            config, left = reloadable(self._config, self._source.load())
            engine.reload(config)
        except HuskError as error:
            log.error("SIGHUP: the configuration stays as it was: %s", error.message)
            return
        set_level(config.log_level)
        self._config = config
        log.info("SIGHUP: configuration reloaded")
        self._tell_link()
        if left:
            log.warning("SIGHUP: these changes need a restart of the daemon: %s", ", ".join(left))

    def _notify(self, state: str) -> None:
        """Tell systemd (Type=notify); nothing happens when somebody else started us."""
        if not self._notify_socket:
            return
        address = self._notify_socket
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
            try:
                channel.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)
            except OSError as error:
                log.warning("systemd cannot be told %s: %s", state, error)
