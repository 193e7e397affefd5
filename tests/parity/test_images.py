"""Images: what they look like, how they are named and removed, what commit and import make of a container."""

import json
from typing import Any

from tests.parity.differences import GRAPH, NEWER, refused
from tests.support.images import busybox_layer
from tests.support.parity import ANY, Difference, Engine, Pair

LOWER = "invalid reference format: repository name must be lowercase"
LOWER_NEW = "invalid reference format: repository name (library/upper) must be lowercase"
NOT_DOCKER = Difference("*.DockerVersion", "20.10.*", "", "no version of docker made it")


def cleaned(engine: Engine, shown: object) -> object:
    for image in engine.get("/images/json", all=1)["body"]:
        for name in image["RepoTags"] or []:
            if name not in ("parity:latest", "rich:latest", "<none>:<none>"):
                engine.http("DELETE", f"/images/{name}?force=1")
    engine.post("/images/prune")
    return shown


def test_looking_at_images(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        return {
            "parity": engine.get("/images/parity/json"),
            "rich": engine.get("/images/rich:latest/json"),
            "list": sorted(engine.get("/images/json")["body"], key=lambda image: image["RepoTags"][0]),
            "history": engine.get("/images/rich/history"),
            "nobody": engine.get("/images/nosuch/json"),
            "bad name": engine.get("/images/Upper/json"),
            "history of nobody": engine.get("/images/nosuch/history"),
            "client": engine.docker("history", "--no-trunc", "rich"),
        }

    pair.same(
        script,
        *GRAPH[1:],
        Difference("$.list(?).RepoDigests", None, [], NEWER),
        Difference("$.bad name.body.message", f"no such image: upper: {LOWER}", LOWER_NEW, NEWER),
        Difference(
            "$.nobody.body.message", "no such image: nosuch: no such image: *", "no such image: nosuch:*", NEWER
        ),
    )


def test_filters_of_the_list(pair: Pair) -> None:
    wanted: list[dict[str, list[str]]] = [
        {"reference": ["parity"]}, {"reference": ["par*"]}, {"reference": ["*:latest"]}, {"reference": ["no"]},
        {"label": ["from"]}, {"label": ["from=image"]}, {"label": ["from=x"]}, {"dangling": ["true"]},
        {"dangling": ["false"]}, {"dangling": ["x"]}, {"before": ["rich"]}, {"since": ["rich"]}, {"before": ["nosuch"]},
        {"nonsense": ["1"]},
    ]  # fmt: skip

    def script(engine: Engine) -> object:
        told = {}
        for each in wanted:
            answer = engine.get("/images/json", filters=json.dumps(each))
            if answer["status"] == 200:
                answer["body"] = sorted(name for image in answer["body"] for name in image["RepoTags"])
            told[json.dumps(each)] = answer
        return told

    pair.same(script)


def test_tagging_and_removing(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        engine.create("box")
        told = {
            "tag": engine.post("/images/parity/tag", repo="two", tag="1"),
            "tag again": engine.post("/images/parity/tag", repo="two", tag="1"),
            "tag without a tag": engine.post("/images/parity/tag", repo="example.com/a/b"),
            "tag nobody": engine.post("/images/nosuch/tag", repo="x", tag="y"),
            "tag badly": engine.post("/images/parity/tag", repo="Upper", tag="y"),
            "tag with a bad tag": engine.post("/images/parity/tag", repo="x", tag="a b"),
            "tag to nothing": engine.post("/images/parity/tag"),
            "rmi nobody": engine.ask("DELETE", "/images/nosuch"),
            "untag": engine.ask("DELETE", "/images/two:1"),
            "untag other": engine.ask("DELETE", "/images/example.com/a/b"),
            "in use": engine.ask("DELETE", "/images/parity"),
        }
        ident = engine.get("/images/parity/json")["body"]["Id"]
        told["in use by id"] = engine.ask("DELETE", f"/images/{ident}")
        engine.docker("tag", "rich", "rich:2")
        rich = engine.get("/images/rich/json")["body"]["Id"]
        told["two names by id"] = engine.ask("DELETE", f"/images/{rich}")
        engine.docker("rmi", "rich:2")
        engine.start("up", Cmd=["sleep", "60"])
        told["in use by a running one, by force"] = engine.ask("DELETE", f"/images/{ident}", force=1)
        told["client"] = engine.docker("rmi", "nosuch")
        return told

    pair.same(
        script,
        refused("$.tag * *.status", 500, 400),
        refused("$.tag badly.status", 500, 400),
        Difference("$.tag badly.body.message", LOWER, LOWER_NEW, NEWER),
        Difference("$.tag to nothing.body.message", "invalid reference format", "invalid reference format: *", NEWER),
    )


def test_commit(pair: Pair) -> None:
    changes = [
        "CMD echo shell form", 'CMD ["exec", "form"]', 'ENTRYPOINT ["/bin/sh"]', "ENTRYPOINT sh -c x", "ENV A=1 B=2",
        "ENV C d e", "EXPOSE 80 81/udp", "LABEL x=y z='a b'", "USER daemon", "VOLUME /v /w", "VOLUME [\"/x\"]",
        "WORKDIR /w", "WORKDIR rel", "STOPSIGNAL SIGINT", "ONBUILD RUN true", "HEALTHCHECK CMD true",
        "HEALTHCHECK NONE", "SHELL [\"/bin/ash\"]", "RUN true", "NONSENSE", "ENV", "EXPOSE x", "USER",
    ]  # fmt: skip

    def script(engine: Engine) -> object:
        engine.shell("box", "echo hi > /new; rm /etc/group; mkdir /d")
        engine.wait("box")
        told: dict[str, Any] = {}

        def commit(**query: object) -> object:
            answer = engine.post("/commit", container="box", **query)
            if answer["status"] != 201:
                return answer
            ident = answer["body"]["Id"]
            shown = engine.get(f"/images/{ident}/json")["body"]
            engine.http("DELETE", f"/images/{ident}?force=1")
            return shown

        told["plain"] = commit(repo="made", tag="1", comment="why", author="who")
        for change in changes:
            shown = commit(changes=change)
            told[change] = shown["Config"] if isinstance(shown, dict) and "Config" in shown else shown
        told["bad name"] = commit(repo="Upper")
        told["nobody"] = engine.post("/commit", container="nobody")
        engine.create("rich", "rich", Env=["BOTH=mine"])
        body = {"Cmd": ["given"], "Env": ["GIVEN=1"], "Labels": {"given": "1"}}
        ident = engine.post("/commit", body, container="rich")["body"]["Id"]
        told["with a body"] = engine.get(f"/images/{ident}/json")["body"]["Config"]
        history = engine.get(f"/images/{ident}/history")["body"]
        told["history"] = [[step["CreatedBy"], step["Comment"], step["Size"] > 0] for step in history]
        engine.remove("box", "rich")
        return cleaned(engine, told)

    pair.same(
        script,
        *GRAPH[1:],
        Difference("*.Labels", {}, None, "an image without labels has none, wherever it is from"),
        Difference("$.STOPSIGNAL SIGINT.*", ANY, ANY, "dockerd 25 takes it"),
        refused("$.bad name.status", 500, 400),
        Difference("$.bad name.body.message", LOWER, LOWER_NEW, NEWER),
        Difference("$.plain.Container", "<id of box>", "", "dockerd 26 no longer keeps what it was made from"),
        Difference("$.plain.ContainerConfig.*", ANY, ANY, "dockerd 26 no longer keeps what it was made from"),
        NOT_DOCKER,
    )


def test_export_and_import(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        engine.shell("box", "echo hi > /new; ln -s new /link; mkdir -m 700 /d")
        engine.wait("box")
        data = engine.http("GET", "/containers/box/export").body
        query = {"fromSrc": "-", "repo": "back", "tag": "1", "message": "why", "changes": "CMD cat /link"}
        told = engine.http("POST", "/images/create", data, **query)
        lines = [json.loads(line) for line in told.body.splitlines()]
        again = engine.docker("run", "--rm", "back:1")
        made = engine.get("/images/back:1/json")["body"]
        for key in ("Id", "Size", "VirtualSize", "RootFS", "GraphDriver"):
            made.pop(key)
        bad = engine.http("POST", "/images/create", b"no archive at all", fromSrc="-", repo="bad")
        layer = engine.http("POST", "/images/create", busybox_layer(), fromSrc="-")
        return cleaned(engine, [told.status, [sorted(line) for line in lines], again, made, bad.status, layer.status])

    pair.same(script, NOT_DOCKER, refused("$(4)", 500, 400))


def test_prune(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        engine.create("box")
        engine.post("/commit", {}, container="box", repo="named")
        engine.post("/commit", {"Labels": {"x": "y"}}, container="box")
        kept = engine.post("/images/prune", filters='{"label": ["nosuch"]}')
        loose = engine.post("/images/prune")
        bad = engine.post("/images/prune", filters='{"dangling": ["x"]}')
        loose["body"]["ImagesDeleted"] = sorted(map(str, loose["body"]["ImagesDeleted"]))
        loose["body"]["SpaceReclaimed"] = type(loose["body"]["SpaceReclaimed"]).__name__
        return cleaned(engine, [kept, loose, bad])

    pair.same(script)
