"""The answers of two engines' classic builders to `POST /build`, without what is new each time.

The cases are data (`tests/parity/builds/classic.toml`), and what dockerd said of them is kept beside them
(`classic-answers.json`, written by `tests/parity/record_builds.py`).
"""

import io
import json
import re
import tarfile
import tomllib
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from tests.support.build_parity import CORPUS, WRITTEN, base_images
from tests.support.client import Client

ANSWERS = CORPUS / "classic-answers.json"
_FILES = {"a.txt": "a\n", "b.txt": "b\n", "dir/c.txt": "c\n"}
_TAR = {"Content-Type": "application/x-tar"}
_ID = re.compile(r"(sha256:)?\b([0-9a-f]{64}|[0-9a-f]{12})\b")
# Whom a name was asked of; where a file is on the host; where one piece of output ends and the next begins.
_PLACES = ((r" on \S+:53\b", ""), (r"file exists /\S+/merged/", "file exists /"), ("\x1b\\[0m\x1b\\[91m", ""))

Said = list[str]


def cases() -> dict[str, dict[str, Any]]:
    return tomllib.loads((CORPUS / "classic.toml").read_text())


def answers() -> dict[str, list[Said]]:
    told: dict[str, list[Said]] = json.loads(ANSWERS.read_text())
    return told


def said_of_all(engine: Client) -> dict[str, list[Said]]:
    engine.docker_bytes("load", input=base_images()[0])
    return {name: _said_of(engine, name, case) for name, case in cases().items()}


def _said_of(engine: Client, name: str, case: Mapping[str, Any]) -> list[Said]:
    base = f"FROM base\nLABEL case={name}\n"
    built = engine.http("POST", "/build?t=here", context({"Dockerfile": base}), _TAR)
    assert built.status == 200, built.body
    id = engine.http("GET", "/images/here/json").json()["Id"].removeprefix("sha256:")
    ids = {id[:12]: 0}
    builds = [case, *({**case, **other} for other in case.get("then", []))]
    return [_said(engine, build, ids) for build in (builds * 2 if case.get("again") else builds)]


def _said(engine: Client, build: Mapping[str, Any], ids: dict[str, int]) -> Said:
    asked = {key: one if isinstance(one, str) else json.dumps(one) for key, one in build.get("query", {}).items()}
    body = context({"Dockerfile": build["dockerfile"], **_FILES, **build.get("files", {})})
    answer = engine.http("POST", "/build?" + urlencode(asked), body, _TAR)
    return [str(answer.status), *_lines(answer.body, ids)]


def context(files: Mapping[str, str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(text.encode()), WRITTEN
            tar.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


def _lines(body: bytes, ids: dict[str, int]) -> Said:
    """Lines of text, and messages of other kinds as JSON. Each id has a number of its own."""
    text = ""
    for line in filter(None, body.splitlines()):
        message = json.loads(line)
        if message.keys() == {"stream"}:
            text += message["stream"]
        else:
            text += ("" if text.endswith("\n") or not text else "\n") + json.dumps(message) + "\n"
    for pattern, instead in _PLACES:
        text = re.sub(pattern, instead, text)
    text = _ID.sub(lambda found: f"<{'sha' if found[1] else 'id'}{ids.setdefault(found[2][:12], len(ids))}>", text)
    return text.splitlines()
