"""Operations of the API that Husk cannot do yet. Each answers 501; `docs/compatibility.md` lists the same.

An operation leaves this table in the change that adds its handler.
"""

from husk.api.calls.call import Call
from husk.api.calls.router import Handler, Route, read
from husk.api.http.response import Answer
from husk.errors import NotImplementedYet

MISSING = """
PUT    /volumes/{name}
GET    /plugins/privileges
POST   /plugins/pull
POST   /plugins/{name}/upgrade
POST   /plugins/create
"""


def _missing(method: str, pattern: str) -> Handler:
    async def handler(call: Call) -> Answer:
        raise NotImplementedYet(f"{method} {pattern} is not implemented by Husk yet")

    return handler


def _routes() -> tuple[Route, ...]:
    operations = [tuple(line.split()) for line in MISSING.strip().splitlines()]
    return tuple(read(pattern, _missing(method, pattern), method=method) for method, pattern in operations)


ROUTES = _routes()
