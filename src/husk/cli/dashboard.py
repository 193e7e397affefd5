"""`husk dashboard`: web pages for a daemon that runs, served by a process of their own until ctrl-C."""

import asyncio
import os
import signal
import ssl
from contextlib import AsyncExitStack
from pathlib import Path

import click

from husk.api.edge.tls import server_context
from husk.cli import desktop
from husk.cli.kit.command import HuskCommand, flag, many
from husk.cli.kit.engine import ask
from husk.cli.kit.place import HostChoice
from husk.cli.kit.writing import say
from husk.client.client import Client
from husk.config import TlsConfig
from husk.dashboard.guard import guarded
from husk.dashboard.link_files import opening_page
from husk.dashboard.server import serve
from husk.dashboard.site import DashboardSettings


@click.command(cls=HuskCommand)
@click.option("-H", "--host", metavar="ADDRESS", default="", help="Daemon to show: unix://, tcp:// or ssh://.")
@click.option("--listen", "address", metavar="ADDRESS:PORT", default="127.0.0.1:0", help="Where. [any free port]")
@many("--name", "names", metavar="NAME", help="Another name that browsers know that address by.")
@flag("--read-only", "read_only", help="Change nothing.")
@flag("--no-open", "no_open", help="Do not open a browser: print the link alone.")
@click.option("--tlscert", metavar="FILE", default="", help="Certificate to show, where others reach the address.")
@click.option("--tlskey", metavar="FILE", default="", help="Its key.")
@click.pass_obj
def dashboard(
    place: HostChoice,
    /,
    host: str,
    address: str,
    names: tuple[str, ...],
    read_only: bool,
    no_open: bool,
    tlscert: str,
    tlskey: str,
) -> None:
    """Show a running daemon in the browser, until ctrl-C.

    A link is printed that signs in once. SIGUSR1 prints another one.
    """

    context = _context(tlscert, tlskey)
    guarded(address, context is not None)
    settings = DashboardSettings(address=address, names=names, read_only=read_only, tls=context, flag="--listen")

    async def shown(engine: Client) -> None:
        await _serve(engine, settings, no_open)

    ask(HostChoice(host, "") if host else place, shown)


def _context(certificate: str, key: str) -> ssl.SSLContext | None:
    if not certificate and not key:
        return None

    files = [Path(name).absolute() if name else None for name in (certificate, key)]
    return server_context(TlsConfig(verify=False, ca=Path("/"), cert=files[0], key=files[1]))


async def _serve(engine: Client, settings: object, no_open: bool) -> None:
    assert isinstance(settings, DashboardSettings)
    ended = asyncio.Event()
    async with AsyncExitStack() as open_ones:
        found = await open_ones.enter_async_context(serve(engine, settings))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, ended.set)
        loop.add_signal_handler(signal.SIGUSR1, lambda: say(found.site.link()))
        link = found.site.link()
        say(f"Open this link within ten minutes; it works once:\n\n    {link}\n")
        if not no_open and desktop.present(os.environ):
            page = open_ones.enter_context(opening_page(link))
            await asyncio.to_thread(desktop.show, page)
        await ended.wait()
