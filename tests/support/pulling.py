"""Pulling by the API's own request, and what a pull leaves behind."""

import asyncio
import json
import os
from typing import Any

from tests.support.daemon import Answer, Daemon
from tests.support.fake_registry import FakeRegistry
from tests.support.images import Stored, stored
from tests.support.registry import Image, make_image, tar_of
from tests.support.waiting import until

NOISE = os.urandom(300_000)


def pull(daemon: Daemon, image: str, tag: str = "", auth: str = "", platform: str = "") -> Answer:
    query = f"fromImage={image}" + (f"&tag={tag}" if tag else "") + (f"&platform={platform}" if platform else "")
    return daemon.http("POST", f"/v1.47/images/create?{query}", headers={"X-Registry-Auth": auth} if auth else {})


def records(answer: Answer) -> list[dict[str, Any]]:
    """The lines of a progress stream."""
    assert answer.status == 200, answer.body
    return [json.loads(line) for line in answer.body.splitlines()]


def statuses(answer: Answer) -> list[str]:
    shown = records(answer)
    assert not [record["error"] for record in shown if "error" in record]
    return [record["status"] for record in shown]


def failed(answer: Answer) -> str:
    """The message of a pull that failed in its stream, which says so at its very end."""
    last = records(answer)[-1]
    assert last == {"errorDetail": {"message": last["error"]}, "error": last["error"]}
    return str(last["error"])


def damaged(fake: FakeRegistry) -> tuple[str, Image]:
    image = make_image([tar_of({"base": NOISE}), tar_of({"top": b"top"}), tar_of({"more": b"more"})])
    fake.add("app", "1", image)
    return f"{fake.host}/app", image


def nothing_new(daemon: Daemon, before: Stored) -> None:
    until(lambda: stored(daemon) == before, f"the store holds what it held: {before}")


async def in_thread(function: Any, *arguments: Any) -> Any:
    """Clients block, and the fake registry lives in this thread's loop."""
    return await asyncio.to_thread(function, *arguments)
