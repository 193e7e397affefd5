"""A browser for tests of the dashboard, as far as rules are concerned: a cookie, an Origin, the token of forms."""

import asyncio
import re
import ssl
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from husk.dashboard.link_files import NAME
from tests.support.daemon import Daemon
from tests.support.waiting import until

# A container as an engine tells of it.
WEB: dict[str, Any] = {
    "Id": "a" * 64, "Name": "/web", "Created": "2026-01-31T12:00:00Z", "Path": "sh", "Args": ["-c", "<true>"],
    "State": {"Status": "running", "StartedAt": "2026-01-31T12:00:00Z", "FinishedAt": "0001-01-01T00:00:00Z",
              "ExitCode": 0, "OOMKilled": False, "Error": "", "Health": {"Status": "healthy"}},
    "Config": {"Image": "busybox", "Env": ["TOKEN=hunter2", "A=b"], "Labels": {"<k>": "v"}},
    "HostConfig": {"RestartPolicy": {"Name": "always"}}, "RestartCount": 2,
    "NetworkSettings": {"Ports": {"80/tcp": [{"HostIp": "0.0.0.0", "HostPort": "8080"}]},
                        "Networks": {"bridge": {"IPAddress": "10.1.1.2", "GlobalIPv6Address": "", "Aliases": ["w"]}}},
    "Mounts": [{"Type": "volume", "Name": "vol", "Source": "/x", "Destination": "/data", "RW": True}],
}  # fmt: skip


class Page(NamedTuple):
    """An answer, read to its end."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


# Attributes that have addresses, where these are on our own server.
_ADDRESSES = re.compile(rb'\s(?:href|src|action|formaction|data-(?:source|socket|history|upload))="(/[^"]*)"')


class Browser:
    """Opens pages of one dashboard; `link` is a one-time link of it.

    Paths are told and shown without the place of the session that stands before all of them, `root`.
    """

    def __init__(self, link: str, ca: str | None = None) -> None:
        """With TLS, `ca` is the authority that is trusted."""
        self.ca = ca
        parts = urlsplit(link)
        self.link = link
        self.host = parts.netloc
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.root = ""
        self.cookie = ""
        self.csrf = ""

    def sign_in(self) -> Page:
        answer = self.get(self.link.removeprefix(self.origin))
        if answer.status == 200:
            self.cookie, _, told = answer.headers["set-cookie"].partition("; Path=")
            self.root = told.partition("/;")[0]
            self.csrf = token_in(self.get("/containers"))
        return answer

    def get(self, path: str, **headers: str) -> Page:
        return self.ask("GET", path, b"", headers)

    def post(self, path: str, fields: dict[str, str] | None = None, **headers: str) -> Page:
        """As a form of ours does it."""
        body = urlencode({"csrf": self.csrf, **(fields or {})}).encode()
        kind = {"origin": self.origin, "content-type": "application/x-www-form-urlencoded"}
        return self.ask("POST", path, body, {**kind, **headers})

    def ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Page:
        """Any request; names of headers may be written with underlines, an empty value leaves one out."""
        connection, answer = self.open(method, path, body, headers)
        try:
            found = {name.lower(): value for name, value in answer.getheaders()}
            body = answer.read()
            if self.root and found.get("content-type", "").startswith("text/html"):
                elsewhere = [each for each in _ADDRESSES.findall(body) if not each.startswith(self._own)]
                assert not elsewhere, f"{path} leads out of the session: {elsewhere}"
            if "location" in found:
                assert found["location"].startswith(f"{self.root}/"), found["location"]
                found["location"] = found["location"].removeprefix(self.root)
            return Page(answer.status, found, body.replace(self.root.encode(), b"") if self.root else body)
        finally:
            connection.close()

    def open(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[HTTPConnection, HTTPResponse]:
        """An answer whose body is not read yet; the caller closes the connection."""
        named = {name.replace("_", "-"): value for name, value in (headers or {}).items()}
        told = {"host": self.host, "cookie": self.cookie, **named}
        host, _, port = self.host.rpartition(":")
        if self.origin.startswith("https"):
            connection: HTTPConnection = HTTPSConnection(
                host.strip("[]"), int(port), timeout=30, context=ssl.create_default_context(cafile=self.ca)
            )
        else:
            connection = HTTPConnection(host.strip("[]"), int(port), timeout=30)
        try:
            said = {name: value for name, value in told.items() if value}
            connection.request(method, self._address(path), body or None, said)
            return connection, connection.getresponse()
        except BaseException:
            connection.close()
            raise

    @property
    def _own(self) -> tuple[bytes, ...]:
        return f"{self.root}/".encode(), b"/static/"

    def _address(self, path: str) -> str:
        """Return the address of a path of the site for this session; paths for nobody stay as they are."""
        return path if path.startswith(("/static/", "/sign-in", "/~")) else self.root + path


class Asker:
    """A browser for tests that are in the loop of the server."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser

    async def get(self, path: str, **headers: str) -> Page:
        return await asyncio.to_thread(self.browser.get, path, **headers)

    async def post(self, path: str, fields: dict[str, str] | None = None, **headers: str) -> Page:
        return await asyncio.to_thread(self.browser.post, path, fields, **headers)

    async def ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Page:
        return await asyncio.to_thread(self.browser.ask, method, path, body, headers)


def token_in(page: Page) -> str:
    found = re.search(r'name="husk-csrf" content="([^"]+)"', page.text)
    assert found is not None, page
    return found[1]


def links(daemon: Daemon) -> list[str]:
    """The one-time link that a daemon has left for its user, if it has."""
    try:
        return [(daemon.config.exec_root / NAME).read_text().strip()]
    except FileNotFoundError:
        return []


def new_link(daemon: Daemon) -> str:
    """One more, which it leaves when it reads its settings again."""
    known = links(daemon)
    daemon.reload()
    return until(lambda: [link for link in links(daemon) if link not in known], "a new link of the dashboard")[0]
