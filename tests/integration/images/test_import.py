"""Import: a file system in a tar becomes an image, from the request or from an address, with instructions."""

import bz2
import contextlib
import gzip
import http.server
import json
import lzma
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import zstandard

from tests.support.daemon import Answer, Daemon
from tests.support.images import busybox_layer, forget_images, settled, stored
from tests.support.machine import DETECTED, FOREIGN
from tests.support.waiting import until

COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda data: data,
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
    "xz": lambda data: lzma.compress(data, preset=0),
    "bzip2": bz2.compress,
}


@pytest.fixture(autouse=True)
def only_busybox(daemon: Daemon) -> Iterator[None]:
    yield
    forget_images(daemon)


def import_(daemon: Daemon, archive: bytes, **query: str) -> Answer:
    text = urlencode({"fromSrc": "-", **query})
    return daemon.http("POST", f"/v1.47/images/create?{text}", archive, {"Content-Type": "application/x-tar"})


def inspect(daemon: Daemon, name: str) -> dict[str, Any]:
    answer = daemon.http("GET", f"/v1.47/images/{name}/json")
    assert answer.status == 200, answer.body
    return answer.json()


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_tar_becomes_an_image(daemon: Daemon, compression: str) -> None:
    answer = import_(daemon, COMPRESSIONS[compression](busybox_layer()), repo="from/tar", tag="1")
    assert answer.status == 200, answer.body
    shown = inspect(daemon, "from/tar:1")
    assert [json.loads(line) for line in answer.body.splitlines()] == [{"status": shown["Id"]}]
    assert (shown["Comment"], len(shown["RootFS"]["Layers"])) == ("Imported from -", 1)
    named = "/".join(filter(None, (shown["Os"], shown["Architecture"], shown.get("Variant"))))
    assert named == DETECTED
    assert daemon.docker("run", "--rm", "from/tar:1", "echo", "hi").stdout == "hi\n"


def test_instructions_message_and_platform(daemon: Daemon, tmp_path: Path) -> None:
    (tmp_path / "root.tar").write_bytes(busybox_layer())
    arguments = ["-c", 'CMD ["echo", "made"]', "-c", "ENV A=b", "-c", "LABEL x=y", "-m", "by hand"]
    done = daemon.docker("import", *arguments, "--platform", f"linux/{FOREIGN}", str(tmp_path / "root.tar"), "made:2")
    shown = inspect(daemon, "made:2")
    assert done.stdout.strip() == shown["Id"]
    assert shown["Config"]["Cmd"] == ["echo", "made"]
    assert shown["Config"]["Env"] == ["A=b"] and shown["Config"]["Labels"] == {"x": "y"}
    assert (shown["Comment"], shown["Architecture"]) == ("by hand", FOREIGN)
    (step,) = daemon.http("GET", "/images/made:2/history").json()
    assert step["Comment"] == "by hand" and step["Tags"] == ["made:2"]


def test_without_a_name(daemon: Daemon) -> None:
    answer = import_(daemon, busybox_layer())
    assert inspect(daemon, json.loads(answer.body)["status"])["RepoTags"] == []


def test_from_an_address(daemon: Daemon, tmp_path: Path) -> None:
    (tmp_path / "root.tar.gz").write_bytes(gzip.compress(busybox_layer()))
    handler = lambda *args: http.server.SimpleHTTPRequestHandler(*args, directory=str(tmp_path))  # noqa: E731
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}"
        done = daemon.docker("import", f"{base}/root.tar.gz", "web:1")
        assert f"Downloading from {base}/root.tar.gz" in done.stdout
        assert inspect(daemon, "web:1")["Comment"] == f"Imported from {base}/root.tar.gz"
        missing = daemon.docker("import", f"{base}/nothing", check=False)
        assert missing.returncode == 1 and "404" in missing.stderr
        assert _from(daemon, f"{base}/nothing").status == 404
        server.shutdown()


@pytest.mark.parametrize("code", [400, 401, 403, 404, 500])
def test_what_a_server_refuses_is_passed_on(daemon: Daemon, code: int) -> None:
    class Refusing(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(code)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/root.tar"
        answer = _from(daemon, address)
        server.shutdown()
    assert answer.status == code
    assert f"failed to GET {address} with status {code}" in answer.message


@pytest.mark.parametrize(
    "address", ["http://a b/x", "http://[::1/x", "http://host:port/x", "http://%zz/x", "http://a/%"]
)
def test_a_bad_host_is_the_clients_fault(daemon: Daemon, address: str) -> None:
    answer = _from(daemon, address)
    assert answer.status == 400, answer.body
    assert answer.message.startswith(f'parse "{address}": ')


def _from(daemon: Daemon, address: str) -> Answer:
    return daemon.http("POST", "/images/create?" + urlencode({"fromSrc": address, "repo": "from"}))


def test_the_sdk_imports(daemon: Daemon) -> None:
    with contextlib.closing(daemon.sdk()) as client:
        client.api.import_image_from_data(busybox_layer(), repository="sdk", tag="3")
    assert inspect(daemon, "sdk:3")["RepoTags"] == ["sdk:3"]


@pytest.mark.parametrize(
    ("query", "archive"),
    [
        ({"repo": "BAD"}, busybox_layer()),
        ({"repo": "good", "changes": "RUN true"}, busybox_layer()),
        ({"repo": "good", "platform": "windows/amd64"}, busybox_layer()),
        ({"repo": "good"}, b"no tar" * 1000),
        ({"repo": "good"}, gzip.compress(busybox_layer())[:-100]),
    ],
)
def test_what_is_wrong_leaves_nothing(daemon: Daemon, query: dict[str, str], archive: bytes) -> None:
    before = settled(daemon)
    answer = import_(daemon, archive, **query)
    assert answer.status == 400, answer.body
    until(lambda: stored(daemon) == before, "the store is as before")
