"""Files of a container of a real daemon, through the dashboard: looked at, downloaded and uploaded."""

import io
import tarfile

import pytest

from tests.support.daemon import Daemon
from tests.support.dashboard import Browser, Page


def upload(browser: Browser, path: str, content: bytes, **headers: str) -> Page:
    told = {"origin": browser.origin, "x-csrf-token": browser.csrf, "accept": "application/json"}
    return browser.ask("POST", path, content, {**told, **headers})


@pytest.fixture(params=["running", "created"])
def box(request: pytest.FixtureRequest, shown: Daemon, browser: Browser) -> str:
    """A container, whose files are told by its own shell where it runs, and by an archive where it does not."""
    verb = ("run", "-d") if request.param == "running" else ("create",)
    shown.docker(*verb, "--name", "box", "busybox", "sleep", "600")
    return "box"


def test_files_come_and_go(box: str, browser: Browser) -> None:
    content = bytes(range(256)) * 2000
    page = upload(browser, "/containers/box/files/upload?path=/etc&file=n%C3%A4me+1.bin", content)
    assert page.status == 200 and "/etc/n\u00e4me 1.bin was written." in page.text
    assert upload(browser, "/containers/box/files/upload?path=/etc&file=empty", b"", content_length="0").status == 200
    listed = browser.get("/containers/box/files?path=/etc").text
    assert "n\u00e4me 1.bin" in listed and "512 kB" in listed and "passwd" in listed and "empty" in listed
    got = browser.get("/containers/box/files/download?path=/etc/n%C3%A4me+1.bin")
    assert got.body == content and got.headers["content-disposition"].startswith("attachment")
    tar = browser.get("/containers/box/files/download?path=/etc").body
    with tarfile.open(fileobj=io.BytesIO(tar)) as entries:
        assert "etc/passwd" in entries.getnames()


def test_files_are_looked_at(box: str, browser: Browser) -> None:
    assert upload(browser, "/containers/box/files/upload?path=/tmp&file=page", b"<script>&\n").status == 200
    assert "&lt;script&gt;&amp;" in browser.get("/containers/box/files?path=/tmp/page").text
    assert upload(browser, "/containers/box/files/upload?path=/tmp&file=blob", b"\0\1").status == 200
    assert "It is no text." in browser.get("/containers/box/files?path=/tmp/blob").text
    assert browser.get("/containers/box/files").status == 200


def test_what_cannot_be_is_said(box: str, browser: Browser) -> None:
    assert browser.get("/containers/box/files?path=/nowhere").status == 404
    assert browser.get("/containers/box/files?path=etc").status == 400
    assert browser.get("/containers/box/files/download?path=/nowhere").status == 404
    assert upload(browser, "/containers/box/files/upload?path=/nowhere&file=a", b"x").status == 404
    assert upload(browser, "/containers/box/files/upload?path=/tmp&file=a/b", b"x").status == 400
    assert (
        upload(browser, "/containers/box/files/upload?path=/tmp&file=a", b"x", **{"x-csrf-token": "no"}).status == 403
    )
    assert (
        upload(browser, "/containers/box/files/upload?path=/tmp&file=a", b"x", origin="http://evil.example").status
        == 403
    )
