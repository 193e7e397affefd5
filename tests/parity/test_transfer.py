"""Images on their way: pull, push, save, load, import, and what registries have; what works and what is refused."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.parity.differences import NEWER, refused
from tests.support.parity import ANY, API, Difference, Engine, Pair
from tests.support.platforms import Platforms
from tests.support.registry import Registry, push_image, tar_of

PASSING = ("Waiting", "Downloading", "Verifying Checksum", "Download complete", "Extracting", "Pushing")
"""Steps of a progress that both leave out when the next one follows soon enough."""

LOWER = "invalid reference format: repository name must be lowercase"
LOWER_NEW = "invalid reference format: repository name (library/Upper) must be lowercase"


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with Registry() as registry:
        yield registry


def lines(engine: Engine, method: str, path: str, body: object = None, /, **query: object) -> list[object]:
    """Status, and the records of a stream without the numbers of its progress."""
    path = f"{API}{path}?{urlencode(query)}"
    answer = engine.client.http(method, path, body, {"X-Registry-Auth": "e30=", "Content-Type": "application/x-tar"})
    if answer.status != 200:
        return [answer.status, answer.message]
    records = [json.loads(line) for line in answer.body.splitlines()]
    told = []
    for record in records:
        record.pop("progressDetail", None)
        record.pop("progress", None)
        if record not in told and record.get("status") not in PASSING:
            told.append(record)
    return [answer.status, *told]


def test_pulls(pair: Pair, registry: Registry) -> None:
    push_image(registry, "app", "1", [tar_of({"a": b"1"})], {"Cmd": ["x"]}, media="docker")
    both = Platforms()
    both.put(registry, "both", "1")
    host = registry.host

    def script(engine: Engine) -> object:
        told: dict[str, Any] = {}

        def pull(**query: object) -> list[object]:
            return lines(engine, "POST", "/images/create", **query)

        told["new"] = pull(fromImage=f"{host}/app", tag="1")
        told["again"] = pull(fromImage=f"{host}/app:1")
        told["no tag"] = pull(fromImage=f"{host}/app", tag="nosuch")
        told["no repository"] = pull(fromImage=f"{host}/nosuch", tag="1")
        told["no digest"] = pull(fromImage=f"{host}/app", tag="sha256:" + "0" * 64)
        told["bad name"] = pull(fromImage="Upper")
        told["bad tag"] = pull(fromImage="app", tag="a b")
        told["bad platform"] = pull(fromImage=f"{host}/both", tag="1", platform="x/y/z/w")
        told["no platform"] = pull(fromImage=f"{host}/both", tag="1", platform="linux/s390x")
        told["by digest"] = pull(fromImage=f"{host}/both@{both.digest}")[0]
        told["nobody there"] = pull(fromImage="127.0.0.1:1/x", tag="1")
        told["nothing"] = pull()
        told["names"] = sorted(engine.get(f"/images/{host}/app:1/json")["body"]["RepoDigests"])
        told["client"] = engine.docker("pull", "-q", f"{host}/app:1")
        for name in (f"{host}/app:1", f"{host}/both@{both.digest}"):
            told[f"rmi {name}"] = engine.ask("DELETE", f"/images/{name}")
        return told

    pair.same(
        script,
        Difference("$.bad name(1)", LOWER, LOWER_NEW, NEWER),
        refused("$.nothing(0)", 500, 400),
        Difference("$.nothing(1)", ANY, "fromImage must name the image to pull", "the words say what is missing"),
    )


def test_pushes(pair: Pair, registry: Registry) -> None:
    def script(engine: Engine) -> object:
        name = f"{registry.host}/pushed"
        engine.docker("tag", "parity", f"{name}:1")
        told = {
            "new": lines(engine, "POST", f"/images/{name}/push", tag="1"),
            "nobody": lines(engine, "POST", "/images/nosuch/push", tag="1"),
            "no tag": lines(engine, "POST", f"/images/{name}/push", tag="nosuch"),
            "bad name": lines(engine, "POST", "/images/Upper/push"),
            "nobody there": lines(engine, "POST", "/images/127.0.0.1:1/x/push", tag="1"),
            "client": engine.docker("push", "-q", f"{name}:1"),
        }
        engine.docker("rmi", f"{name}:1")
        return told

    pair.same(
        script,
        refused("$.bad name(0)", 500, 400),
        Difference("$.bad name(1)", LOWER, LOWER_NEW, NEWER),
        Difference("$.new(4).status", ANY, ANY, "a manifest in fewer bytes"),
        Difference("$.new(5).aux.Size", ANY, ANY, "a manifest in fewer bytes"),
    )


def test_saves_and_loads(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        def load(data: bytes, **query: object) -> list[object]:
            return lines(engine, "POST", "/images/load", data, **query)

        engine.docker("tag", "parity", "saved:1")
        whole = engine.http("GET", "/images/get", names="saved:1").body
        engine.docker("tag", "rich", "saved:1")
        listed = json.dumps([{"Config": "c.json", "RepoTags": ["x:1"], "Layers": []}]).encode()
        told = {
            "nobody": engine.get("/images/nosuch/get"),
            "one is nobody": engine.get("/images/get?names=parity&names=nosuch"),
            "bad name": engine.get("/images/Upper/get"),
            "back": load(whole),
            "back quietly": load(whole, quiet=1),
            "nothing": load(b"")[0],
            "no archive": load(b"no archive at all")[0],
            "no images": load(tar_of({"x": b"y"}))[0],
            "no configuration": load(tar_of({"manifest.json": listed}))[0],
            "half": load(whole[:100_000])[0],
            "client": engine.docker("load", "-q", input=None),
        }
        engine.docker("rmi", "saved:1")
        return told

    pair.same(
        script,
        refused("$.bad name.status", 500, 400),
        Difference("$.bad name.body.message", LOWER, LOWER_NEW.lower(), NEWER),
        Difference("$.nobody.body.message", "no such image: nosuch", "no such image: nosuch:latest", NEWER),
        Difference("$.one is nobody.body.message", "no such image: nosuch", "no such image: nosuch:latest", NEWER),
        Difference(
            "$.client.stderr",
            "open *: no such file or directory\n",
            "this is no archive of images: *",
            "what is missing is said, not the name of a file that only the daemon knows",
        ),
    )


def test_imports(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        def bring(body: bytes | None = None, **query: object) -> list[object]:
            told = lines(engine, "POST", "/images/create", body, **query)
            return told[:1] if told[0] == 200 else told

        told = {
            "bad change": bring(b"", fromSrc="-", repo="x", changes="RUN true"),
            "bad name": bring(b"", fromSrc="-", repo="Upper"),
            "with digest": bring(b"", fromSrc="-", repo="x@sha256:" + "0" * 64),
            "bad scheme": bring(None, fromSrc="ftp://127.0.0.1/x")[0],
            "nobody there": bring(None, fromSrc="http://127.0.0.1:1/x")[0],
            "empty": bring(tar_of({}), fromSrc="-", repo="imported", tag="1"),
        }
        told["shown"] = engine.get("/images/imported:1/json")["body"]["Config"]
        engine.http("DELETE", "/images/imported:1")
        return told

    pair.same(
        script,
        Difference("$.bad name(1)", LOWER, LOWER_NEW, NEWER),
        Difference("$.bad change(1)", "run is *", "RUN is *", NEWER),
        refused("$.bad scheme", 500, 400),
    )


def test_the_rest(pair: Pair, registry: Registry) -> None:
    push_image(registry, "there", "1", [tar_of({"a": b"1"})], {"Cmd": ["x"]}, media="docker")

    def script(engine: Engine) -> object:
        return {
            "distribution": engine.get(f"/distribution/{registry.host}/there:1/json"),
            "nothing there": engine.get(f"/distribution/{registry.host}/nosuch:1/json"),
            "bad name": engine.get("/distribution/Upper/json"),
            "by digest without one": engine.get(f"/distribution/{registry.host}/there@sha256:{'0' * 64}/json"),
            "bad list filter": engine.get("/images/json", filters="{"),
            "prune with a bad filter": engine.post("/images/prune", filters='{"nosuch": ["1"]}'),
            "prune with a bad time": engine.post("/images/prune", filters='{"until": ["never"]}'),
            "df of a bad kind": engine.get("/v1.42/system/df", type="nosuch")["status"],
            "search nothing": engine.get("/images/search", term=f"{registry.host}/")["status"],
            "search too much": engine.get("/images/search", term="x", limit="1000"),
            "search with a bad filter": engine.get("/images/search", term="x", filters='{"nosuch": ["1"]}'),
            "history of a bad name": engine.get("/images/Upper/history"),
        }

    pair.same(
        script,
        refused("$.bad list filter.status", 500, 400),
        Difference("$.bad list filter.body.message", "unexpected end of json input", "invalid filter", NEWER),
        Difference("$.* bad name.body.message", LOWER, LOWER_NEW.lower(), NEWER),
        Difference("$.bad name.body.message", LOWER, LOWER_NEW.lower(), NEWER),
        refused("$.prune with a bad time.status", 500, 400),
        Difference("$.search nothing", 500, 503, "the registry offers no search; that is not our fault"),
        Difference(
            "$.*.body.message",
            "manifest unknown: *",
            "manifest for * not found: manifest unknown: *",
            "it says of what",
        ),
    )
