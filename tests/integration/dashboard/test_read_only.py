"""A dashboard that changes nothing: whichever path is asked for, nothing runs, nothing changes, no secret is told."""

import json
import re
from collections.abc import Iterator

import pytest

from husk.dashboard.pages import ROUTES
from husk.dashboard.router import PageKind, PageRoute
from tests.support.daemon import Daemon
from tests.support.dashboard import Browser, links, new_link
from tests.support.waiting import until

SECRET = "hunter2"
_WORDS = {"name": "box", "image": "busybox:latest", "volume": "share", "network": "lan"}
_SOCKET = {
    "upgrade": "websocket", "connection": "Upgrade", "sec_websocket_version": "13",
    "sec_websocket_key": "dGhlIHNhbXBsZSBub25jZQ==",
}  # fmt: skip


@pytest.fixture(scope="module")
def shown() -> Iterator[Daemon]:
    with Daemon("--dashboard", "127.0.0.1:0", "--dashboard-read-only") as daemon:
        until(lambda: links(daemon), "the link of the dashboard")
        daemon.docker("volume", "create", "kept")
        remote = ("-o", "type=cifs", "-o", f"o=username=me,password={SECRET}", "-o", "device=//nas/share")
        daemon.docker("volume", "create", "--label", f"db.password={SECRET}", *remote, "share")
        daemon.docker("network", "create", "--label", f"db.password={SECRET}", "lan")
        secrets = ("-e", f"TOKEN={SECRET}", "--label", f"db.password={SECRET}")
        command = ("sh", "-c", f"sleep 1000; : --password {SECRET}")
        label = f"volume-label=db.password={SECRET}"
        mount = ("--mount", f"type=volume,src=kept,dst=/kept,{label}", "--annotation", f"a.token={SECRET}")
        daemon.docker("run", "-d", "--name", "box", *secrets, *mount, "busybox", *command)
        yield daemon


@pytest.fixture(scope="module")
def browser(shown: Daemon) -> Browser:
    found = Browser(new_link(shown))
    assert found.sign_in().status == 200
    return found


def path_of(route: PageRoute) -> str:
    return re.sub(r"\{(\w+)(\.\.\.)?\}", lambda found: _WORDS.get(found[1], "none"), route.pattern)


def state(daemon: Daemon) -> list[object]:
    """Return the state that a change would change."""
    containers = [
        (one["Id"], one["State"], one["Names"]) for one in daemon.http("GET", "/containers/json?all=1").json()
    ]
    images = sorted((one["Id"], one["RepoTags"]) for one in daemon.http("GET", "/images/json").json())
    volumes = sorted(one["Name"] for one in daemon.http("GET", "/volumes").json()["Volumes"])
    return [containers, images, volumes, len(daemon.http("GET", "/networks").json())]


@pytest.mark.parametrize("route", [each for each in ROUTES if each.kind is PageKind.CHANGE and not each.of_session])
def test_changes_are_refused(shown: Daemon, browser: Browser, route: PageRoute) -> None:
    before = state(shown)
    page = browser.post(path_of(route), {"replicas": "3", "name": "busybox", "force": "1", "all": "1"})
    assert page.status == 403 and "read-only" in page.text
    for method in ("PUT", "DELETE", "PATCH"):
        assert browser.ask(method, path_of(route), b"", {"origin": browser.origin}).status == 405
    assert state(shown) == before


@pytest.mark.parametrize(
    "route", [each for each in ROUTES if each.kind in (PageKind.PAGE, PageKind.SOCKET, PageKind.STREAM)]
)
def test_nothing_runs_and_no_secret_is_told(shown: Daemon, browser: Browser, route: PageRoute) -> None:
    if route.pattern == "/live" or route.pattern.endswith("/lines"):
        return  # They have no end; what they tell is what happens, and the log.
    before = state(shown)
    since = shown.http("GET", "/info").json()["SystemTime"]
    kinds = ("", "?show=*", "?secrets=show", "?path=/proc/1/environ", "?path=/kept", "?execs=show")
    for query in kinds:
        headers = {"origin": browser.origin, **_SOCKET} if route.kind is PageKind.SOCKET else {}
        page = browser.get(path_of(route) + query, **headers)
        assert page.status < 500 or page.status == 503, page
        assert SECRET not in page.body.decode(errors="replace"), query
        assert route.kind is not PageKind.SOCKET or page.status == 403
    until_now = shown.http("GET", "/info").json()["SystemTime"]
    happened = shown.http("GET", f"/events?since={since}&until={until_now}").body.splitlines()
    assert not [each for each in map(json.loads, happened) if each["Action"].startswith("exec")]
    assert state(shown) == before
