"""The description of Husk's own operations for programs, in OpenAPI: made once, in a thread, and kept as it travels."""

import asyncio
from functools import cache

from husk.api.calls.call import Call
from husk.api.calls.router import read
from husk.api.http.response import Answer
from husk.api.views import openapi as views
from husk.text.gojson import encode


async def describe(call: Call) -> Answer:
    return call.encoded(await asyncio.to_thread(_encoded, call.engine.system.version))


@cache
def _encoded(version: str) -> bytes:
    return encode(views.document(version)) + b"\n"


ROUTES = (read("/openapi.json", describe),)
