"""Files of containers: archive, changes, cp; and volumes."""

import base64
import json
from typing import Any
from urllib.parse import quote

from tests.parity.differences import NEWER, OWN, refused
from tests.support.parity import ABSENT, ANY, Difference, Engine, Pair
from tests.support.tars import entries, file, tar

MAKE = "cd /tmp; echo hi > f; mkdir -p d/e; ln -s f link; ln -s /etc abs; chmod 4750 f; exec sleep 60"
PATHS = ["/tmp/f", "/tmp/d", "/tmp/d/", "/tmp/d/.", "/tmp/link", "/tmp/abs", "/tmp/f/", "/nosuch", "", "tmp/f", "/"]
CHANGE = "echo hi > /new; rm /etc/group; mkdir -p /d/e; touch /d/e/f; chmod 600 /etc/passwd; rm -r /home"
WITH_OPTIONS = {"Name": "two", "Labels": {"l": "v"}, "DriverOpts": {"type": "tmpfs", "device": "tmpfs", "o": "size=1m"}}
FILTERS: list[dict[str, list[str]]] = [
    {"name": ["on"]}, {"label": ["l"]}, {"label": ["l=w"]}, {"driver": ["local"]}, {"dangling": ["true"]},
    {"dangling": ["x"]}, {"nonsense": ["1"]},
]  # fmt: skip


def stat(engine: Engine, name: str, path: str) -> object:
    answer = engine.http("HEAD", f"/containers/{name}/archive?path={quote(path)}")
    header = answer.headers.get("X-Docker-Container-Path-Stat", "")
    return [answer.status, json.loads(base64.b64decode(header)) if header else None]


def test_archive(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        engine.shell("box", MAKE)
        engine.docker("exec", "box", "sh", "-c", "until test -u /tmp/f; do sleep 0.1; done")
        told: dict[str, Any] = {f"stat {path}": stat(engine, "box", path) for path in PATHS}

        def names(path: str) -> object:
            answer = engine.http("GET", "/containers/box/archive", path=path)
            if answer.status != 200:
                return [answer.status, answer.message]
            found = {n: [m.type.decode(), oct(m.mode), m.uid, m.linkname] for n, m in entries(answer.body).items()}
            return [answer.status, answer.headers["Content-Type"], found]

        def put(path: str, data: bytes, **query: object) -> object:
            return engine.ask("PUT", "/containers/box/archive", data, path=path, **query)

        told |= {f"get {path}": names(path) for path in PATHS if path not in ("/", "/tmp/abs")}
        one = tar(file("new", b"1", mode=0o640, uid=7))
        told |= {
            "put": put("/tmp", one),
            "put to nowhere": put("/nosuch", one),
            "put to a file": put("/tmp/f", one),
            "put to a file/": put("/tmp/f/", one),
            "put to nothing": put("", one),
            "put no archive": put("/tmp", b"x" * 1024)["status"],  # type: ignore[index]
            "put a file on a directory": put("/tmp", tar(file("d", b"1")), noOverwriteDirNonDir=1),
            "put up and away": put("/tmp", tar(file("../../away", b"1"))),
            "put through a link": put("/tmp/abs", tar(file("through", b"1"))),
            "stat new": stat(engine, "box", "/tmp/new"),
            "stat through": stat(engine, "box", "/etc/through"),
            "owner": engine.docker("exec", "box", "stat", "-c", "%u %g %a", "/tmp/new"),
            "cp nobody": engine.docker("cp", "nobody:/x", "-"),
            "cp nothing": engine.docker("cp", "box:/nosuch", "-"),
        }
        return told

    pair.same(
        script,
        Difference("$.get *(2).*(1)", "0o4*", "0o7*", "the type of a file is not among the bits of its mode"),
        Difference("$.get *(2).*(1)", "0o1*", ANY, "the type of a file is not among the bits of its mode"),
        Difference("$.* *(1)", "bad parameter: pathcannot be empty", "bad parameter: path cannot be empty", NEWER),
        Difference("$.put to nothing.body.message", "bad parameter: pathc*", "bad parameter: path c*", NEWER),
        Difference("$.get /tmp/f/(1)", "lstat <directory>*", "not a directory: /tmp/f/", OWN),
        refused("$.put *.status", 500, 400),
        refused("$.put no archive", 500, 400),
        refused("$.put a file on a directory.body.message", "error processing tar file(exit status 1): *", "cannot *"),
        refused("$.put up and away.body.message", "error processing tar file(exit status 1): *", "invalid archive: *"),
    )


def test_archive_of_a_read_only_container(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        engine.start("box", Cmd=["sleep", "60"], host={"ReadonlyRootfs": True, "Binds": ["vol:/v"]})
        data = tar(file("new", b"1"))
        told = {path: engine.ask("PUT", "/containers/box/archive", data, path=path) for path in ("/", "/v")}
        engine.remove("box")
        engine.http("DELETE", "/volumes/vol")
        return told

    pair.same(script, refused("$./.status", 500, 403))


def test_changes(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        engine.create("idle")
        engine.shell("box", CHANGE)
        engine.wait("box")

        def changes(name: str) -> object:
            found = engine.get(f"/containers/{name}/changes")
            return [found["status"], sorted([c["Path"], c["Kind"]] for c in found["body"] or [])]

        return [changes("idle"), changes("box"), engine.docker("diff", "idle")]

    pair.same(script)


def test_volumes(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        told: dict[str, Any] = {
            "create": engine.post("/volumes/create", {"Name": "one"}),
            "again": engine.post("/volumes/create", {"Name": "one"}),
            "with options": engine.post("/volumes/create", WITH_OPTIONS),
            "nameless": engine.post("/volumes/create", {}),
            "bad name": engine.post("/volumes/create", {"Name": "a/b"}),
            "short name": engine.post("/volumes/create", {"Name": "a"}),
            "bad option": engine.post("/volumes/create", {"Name": "x2", "DriverOpts": {"odd": "1"}}),
            "inspect": engine.get("/volumes/two"),
            "inspect nobody": engine.get("/volumes/nosuch"),
        }
        listed = engine.get("/volumes")
        listed["body"]["Volumes"].sort(key=lambda volume: str(volume["Name"]))
        told["list"] = {**listed["body"], "Volumes": [v for v in listed["body"]["Volumes"] if len(v["Name"]) < 60]}
        for each in FILTERS:
            answer = engine.get("/volumes", filters=json.dumps(each))
            told[json.dumps(each)] = (
                sorted(v["Name"] for v in answer["body"]["Volumes"] or []) if answer["status"] == 200 else answer
            )
        engine.create("box", host={"Binds": ["one:/v"]})
        told["in use"] = engine.ask("DELETE", "/volumes/one")
        told["in use, by force"] = engine.ask("DELETE", "/volumes/one", force=1)
        told["remove"] = engine.ask("DELETE", "/volumes/two")
        told["remove nobody"] = engine.ask("DELETE", "/volumes/nosuch")
        told["remove nobody by force"] = engine.ask("DELETE", "/volumes/nosuch", force=1)
        told["prune"] = engine.post("/volumes/prune", filters='{"label!": ["nosuch"]}')
        engine.remove("box")
        told["prune all"] = engine.post("/volumes/prune")
        told["bad prune"] = engine.post("/volumes/prune", filters='{"nosuch": ["1"]}')
        told["client"] = engine.docker("volume", "rm", "nosuch")
        return told

    pair.same(
        script,
        Difference("$.nameless.body.Labels", None, ABSENT, NEWER),
        Difference("$.nameless.body.Labels.com.docker.volume.anonymous", ABSENT, "", NEWER),
    )


def test_volumes_get_what_the_image_has(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        look = "ls -ln /etc | cut -c 1-30; stat -c '%a %u %g' /etc"
        told = [engine.output("box", look, host={"Binds": ["full:/etc"]})]
        told.append(engine.output("box", look, host={"Binds": ["bare:/etc:nocopy"]}))
        told.append(
            engine.output("box", look, host={"Mounts": [{"Type": "volume", "Source": "mounted", "Target": "/etc"}]})
        )
        for name in ("full", "bare", "mounted"):
            engine.http("DELETE", f"/volumes/{name}")
        return told

    pair.same(script)
