"""Plugins: there are none, and clients are told so in Docker's words.

`docker inspect x` asks for a plugin of that name last of all: it takes "not found" for an answer, and nothing else.
"""

from husk.api.calls.call import Call
from husk.api.calls.router import change, read
from husk.api.http.response import Answer
from husk.engine.model.filters import Filters
from husk.errors import NotFound


async def listing(call: Call) -> Answer:
    Filters.parse(call.text("filters"), ("capability", "enabled")).boolean("enabled", False)
    return call.json([])


async def nobody(call: Call) -> Answer:
    raise NotFound(f'plugin "{call.argument}" not found')


ROUTES = (
    read("/plugins", listing),
    read("/plugins/{name}/json", nobody),
    change("DELETE", "/plugins/{name}", nobody),
    change("POST", "/plugins/{name}/enable", nobody),
    change("POST", "/plugins/{name}/disable", nobody),
    change("POST", "/plugins/{name}/push", nobody),
    change("POST", "/plugins/{name}/set", nobody),
)
