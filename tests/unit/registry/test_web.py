"""Files of the web, from a server on loopback that is not always a good one."""

import pytest

from husk.errors import Forbidden, NotFound, SystemFault
from husk.registry.client import RegistryClient
from husk.registry.transport import Interrupted
from husk.registry.web import seconds_of
from tests.support.web import WebServer


@pytest.fixture
def web():
    with WebServer() as server:
        yield server


@pytest.fixture
async def client():
    async with RegistryClient(user_agent="husk/test") as client:
        yield client


async def fetch(client, url, headers=None):
    async with client.file(url, headers or {}) as file:
        return file, b"".join([chunk async for chunk in file.chunks()])


async def test_what_is_said_of_a_file(client, web):
    web.files["/a"] = b"hello"
    web.headers["/a"] = {
        "ETag": '"1"',
        "Last-Modified": "Sat, 03 Feb 2001 04:05:06 GMT",
        "Content-Disposition": 'attachment; filename="../../etc/x.txt"',
    }
    file, data = await fetch(client, f"{web.url}/a", {"Authorization": "basic x"})
    assert (data, file.size, file.unchanged) == (b"hello", 5, False)
    assert (file.etag, seconds_of(file.modified), file.name) == ('"1"', 981173106, "x.txt")
    assert web.asked[0][1]["authorization"] == "basic x"


@pytest.mark.parametrize("said", [f"filename*{'9' * 5000}=x", "filename*=idna''%ff", "filename*=punycode''%80", "=;*'"])
async def test_a_name_that_nobody_can_read_is_none(client, web, said):
    web.files["/a"] = b"hello"
    web.headers["/a"] = {"Content-Disposition": f"attachment; {said}"}
    file, data = await fetch(client, f"{web.url}/a")
    assert (data, file.name) == (b"hello", "")


async def test_a_file_of_which_nothing_is_said(client, web):
    web.files["/a"] = b""
    file, data = await fetch(client, f"{web.url}/a")
    assert (data, file.etag, file.modified, file.name) == (b"", "", "", "")


async def test_a_file_that_is_still_the_same(client, web):
    web.pages["/a"] = lambda request: web.send(request, 304, b"")
    async with client.file(f"{web.url}/a", {"If-None-Match": '"1"'}) as file:
        assert file.unchanged


@pytest.mark.parametrize(("status", "kind"), [(404, NotFound), (403, Forbidden), (500, SystemFault)])
async def test_refusals(client, web, status, kind):
    web.pages["/a"] = lambda request: web.send(request, status, b"")
    with pytest.raises(kind, match=f"failed to GET {web.url}/a with status {status}"):
        await fetch(client, f"{web.url}/a")


async def test_an_answer_that_ends_early(client, web):
    def cut(request):
        request.send_response(200)
        request.send_header("Content-Length", "100")
        request.end_headers()
        request.wfile.write(b"x" * 10)
        request.close_connection = True

    web.pages["/a"] = cut
    with pytest.raises(Interrupted, match="unexpected EOF"):
        await fetch(client, f"{web.url}/a")


@pytest.mark.parametrize("target", ["/a", "ftp://127.0.0.1/x", "file:///etc/passwd", "gopher://127.0.0.1"])
async def test_redirects_that_lead_nowhere(client, web, target):
    web.pages["/a"] = lambda request: web.send(request, 302, b"", {"Location": target})
    with pytest.raises(SystemFault, match="Get "):
        await fetch(client, f"{web.url}/a")
    assert len(web.asked) < 20


async def test_a_redirect_takes_no_secrets_elsewhere(client, web):
    with WebServer() as other:
        other.files["/b"] = b"there"
        web.pages["/a"] = lambda request: web.send(request, 302, b"", {"Location": f"{other.url}/b"})
        _, data = await fetch(client, f"{web.url}/a", {"Authorization": "basic x"})
        assert data == b"there"
        assert "authorization" not in other.asked[0][1]


async def test_hosts_that_are_not_there(client):
    with pytest.raises(SystemFault, match="connection refused"):
        await fetch(client, "http://127.0.0.1:1/x")


@pytest.mark.parametrize("text", ["", "yesterday", "Sat, 99 Feb 2001 04:05:06 GMT"])
def test_times_that_make_no_sense(text):
    assert seconds_of(text) == 0
