"""Asking registries: search where there is one, manifests and platforms of what was not pulled, all tags at once."""

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any, ClassVar
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from tests.support.daemon import Daemon
from tests.support.images import busybox_layer, forget_images
from tests.support.machine import ARCHITECTURE
from tests.support.registry import Registry, make_image, push_image, push_index, tar_of

RESULTS = [
    {"name": "team/db", "description": "a database", "star_count": 12, "is_official": False, "is_automated": False},
    {"name": "db", "description": None, "star_count": 900, "is_official": True, "is_automated": False},
]


class _Index(http.server.BaseHTTPRequestHandler):
    asked: ClassVar[list[dict[str, list[str]]]] = []

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        found = url.path == "/v1/search"
        if found:
            self.asked.append(parse_qs(url.query))
        body = json.dumps({"results": RESULTS, "num_results": 2}).encode() if found else b"{}"
        self.send_response(200 if found or url.path == "/v2/" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def index() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Index) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def search(daemon: Daemon, term: str, limit: str = "", **filters: list[str]) -> Any:
    named = {key.replace("official", "is-official"): values for key, values in filters.items()}
    query = f"term={quote(term)}&limit={limit}&filters={quote(json.dumps(named))}"
    return daemon.http("GET", f"/images/search?{query}")


def test_search_in_a_registry_that_offers_it(daemon: Daemon, index: str) -> None:
    assert search(daemon, f"{index}/db", "7").json() == RESULTS
    assert _Index.asked[-1] == {"q": ["db"], "n": ["7"]}
    assert [r["name"] for r in search(daemon, f"{index}/db", official=["true"]).json()] == ["db"]
    assert [r["name"] for r in search(daemon, f"{index}/db", stars=["100"]).json()] == ["db"]
    assert "a database" in daemon.docker("search", "--no-trunc", f"{index}/db").stdout


def test_a_registry_without_search_says_so(daemon: Daemon, registry: Registry) -> None:
    answer = search(daemon, f"{registry.host}/db")
    assert answer.status == 503
    assert f"the registry {registry.host} does not offer search" in answer.message


def test_what_search_refuses(daemon: Daemon, index: str) -> None:
    assert search(daemon, f"{index}/db", "101").message == "limit 101 is outside the range of [1, 100]"
    assert search(daemon, "").status == 400
    assert search(daemon, f"{index}/db", stars=["many"]).status == 400
    assert search(daemon, f"{index}/db", colour=["red"]).status == 400


def test_what_a_registry_has_under_a_name(daemon: Daemon, registry: Registry) -> None:
    image = push_image(registry, "one", "1", [busybox_layer()])
    shown = daemon.http("GET", f"/distribution/{registry.host}/one:1/json").json()
    assert shown == {
        "Descriptor": {"mediaType": image.media_type, "digest": image.digest, "size": len(image.manifest)},
        "Platforms": [{"architecture": ARCHITECTURE, "os": "linux"}],
    }
    arm = make_image([tar_of({"a": b"arm"})], architecture="arm", variant="v7")
    digest = push_index(registry, "two", "1", [image, arm])
    shown = daemon.http("GET", f"/distribution/{registry.host}/two:1/json").json()
    assert shown["Descriptor"]["digest"] == digest
    assert shown["Platforms"] == [
        {"architecture": ARCHITECTURE, "os": "linux"},
        {"architecture": "arm", "os": "linux", "variant": "v7"},
    ]
    assert daemon.http("GET", f"/distribution/{registry.host}/one:2/json").status == 404
    assert daemon.http("GET", "/distribution/BAD/json").status == 400


def test_all_tags_of_a_repository(daemon: Daemon, registry: Registry) -> None:
    for tag in ("1", "2", "latest"):
        push_image(registry, "tagged", tag, [busybox_layer(), tar_of({"tag": tag.encode()})])
    done = daemon.docker("pull", "-a", f"{registry.host}/tagged")
    assert all(f"{tag}: Pulling from tagged" in done.stdout for tag in ("1", "2", "latest"))
    assert f"Status: Downloaded newer image for {registry.host}/tagged" in done.stdout
    listed = daemon.docker("images", "--format", "{{.Tag}}", f"{registry.host}/tagged").stdout.split()
    assert sorted(listed) == ["1", "2", "latest"]
    forget_images(daemon)
