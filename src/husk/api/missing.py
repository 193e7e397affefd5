"""What does the API describe that Husk cannot do yet? Each answers 501; `docs/compatibility.md` lists the same.

An operation leaves this table in the change that adds its handler.
"""

from aiohttp import web

from husk.api.call import Call
from husk.api.router import Handler, Route, read
from husk.errors import NotImplementedYet

MISSING = """
GET    /containers/{id}/top
GET    /containers/{id}/changes
GET    /containers/{id}/export
GET    /containers/{id}/stats
POST   /containers/{id}/update
GET    /containers/{id}/attach/ws
HEAD   /containers/{id}/archive
GET    /containers/{id}/archive
PUT    /containers/{id}/archive
POST   /containers/prune
POST   /containers/{id}/exec
POST   /exec/{id}/start
POST   /exec/{id}/resize
GET    /exec/{id}/json
POST   /build
POST   /build/prune
GET    /images/{name}/attestations
GET    /images/{name}/history
POST   /images/{name}/push
GET    /images/search
POST   /images/prune
GET    /images/{name}/get
GET    /images/get
POST   /images/load
GET    /distribution/{name}/json
GET    /system/df
POST   /volumes/create
GET    /volumes/{name}
PUT    /volumes/{name}
DELETE /volumes/{name}
POST   /volumes/prune
DELETE /networks/{id}
POST   /networks/create
POST   /networks/{id}/connect
POST   /networks/{id}/disconnect
POST   /networks/prune
GET    /plugins/privileges
POST   /plugins/pull
GET    /plugins/{name}/json
DELETE /plugins/{name}
POST   /plugins/{name}/enable
POST   /plugins/{name}/disable
POST   /plugins/{name}/upgrade
POST   /plugins/create
POST   /plugins/{name}/push
POST   /plugins/{name}/set
GET    /nodes
GET    /nodes/{id}
DELETE /nodes/{id}
POST   /nodes/{id}/update
GET    /swarm
POST   /swarm/init
POST   /swarm/join
POST   /swarm/leave
POST   /swarm/update
GET    /swarm/unlockkey
POST   /swarm/unlock
GET    /services
POST   /services/create
GET    /services/{id}
DELETE /services/{id}
POST   /services/{id}/update
GET    /services/{id}/logs
GET    /tasks
GET    /tasks/{id}
GET    /tasks/{id}/logs
GET    /secrets
POST   /secrets/create
GET    /secrets/{id}
DELETE /secrets/{id}
POST   /secrets/{id}/update
GET    /configs
POST   /configs/create
GET    /configs/{id}
DELETE /configs/{id}
POST   /configs/{id}/update
POST   /session
"""


def _missing(method: str, pattern: str) -> Handler:
    async def handler(call: Call) -> web.StreamResponse:
        raise NotImplementedYet(f"{method} {pattern} is not implemented by Husk yet")

    return handler


def _routes() -> tuple[Route, ...]:
    operations = [tuple(line.split()) for line in MISSING.strip().splitlines()]
    return tuple(read(pattern, _missing(method, pattern), method=method) for method, pattern in operations)


ROUTES = _routes()
