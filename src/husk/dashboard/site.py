"""The state that all pages of one dashboard share."""

import ssl
from functools import cached_property

import msgspec

from husk.aio.tasks import Tasks
from husk.client.client import Client
from husk.dashboard.assets import Assets
from husk.dashboard.buildkit import BuildKit
from husk.dashboard.finding import SearchIndex
from husk.dashboard.guard import Guard
from husk.dashboard.live import Live
from husk.dashboard.rendering import Renderer
from husk.dashboard.room import Room
from husk.dashboard.sampling import Sampler
from husk.dashboard.sessions import BrowserSessions
from husk.dashboard.transfers import LayerTransfers
from husk.version import __version__

# No outside address, no script or style inside pages, no frame around them.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    # Not `no-referrer`: with it browsers tell no origin with a form, which every change must.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class DashboardSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a dashboard: its address and names, its TLS, and if it only shows things."""

    address: str = "127.0.0.1:2380"
    # Names that browsers may know it by, besides its address.
    names: tuple[str, ...] = ()
    read_only: bool = False
    tls: ssl.SSLContext | None = None
    # Where another address can be chosen, for who reads that this one is taken.
    flag: str = "--dashboard"


class Site:
    """The engine, and all that serves its pages."""

    def __init__(self, engine: Client, guard: Guard, *, read_only: bool = False) -> None:
        self.engine = engine
        self.guard = guard
        self.read_only = read_only
        self.version = __version__
        self.headers = HEADERS
        self.sessions = BrowserSessions()
        self.assets = Assets()
        self.renderer = Renderer(self.assets)
        self.tasks = Tasks()
        self.live = Live(engine, self.tasks)
        self.transfers = LayerTransfers(engine, self.tasks, self.live)
        self.room = Room(engine, self.tasks, self.live)
        self.sampler = Sampler(engine, self.tasks)
        self.index = SearchIndex(engine, with_secrets=not read_only)

    @cached_property
    def buildkit(self) -> BuildKit:
        """The builder, asked by its own protocol."""

        return BuildKit(self.engine)

    @property
    def secure(self) -> bool:
        return self.guard.scheme == "https"

    def link(self) -> str:
        """A one-time link to sign in with."""
        return f"{self.guard.url}/sign-in?token={self.sessions.make_link()}"
