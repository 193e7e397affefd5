"""Secrets and configs: the same operations on two kinds."""

from collections.abc import Callable

from husk.api.calls.call import Call
from husk.api.calls.router import Route, change, read
from husk.api.http.response import Answer
from husk.api.types.services import ObjectCreated, ObjectDocument
from husk.api.views import services as views
from husk.composition import Engine
from husk.engine.model.filters import Filters
from husk.swarm.manager.objects import Objects
from husk.swarm.model.services import ClusterObject, ObjectSpec
from husk.swarm.spec.matching import CONFIG_FILTERS, SECRET_FILTERS
from husk.text.gojson import Reader

_spec = Reader(ObjectSpec)


def _routes(head: str, objects_of: Callable[[Engine], Objects]) -> tuple[Route, ...]:
    async def listing(call: Call) -> Answer:
        objects = objects_of(call.engine)
        accepted = SECRET_FILTERS if objects.kind == "secret" else CONFIG_FILTERS
        found = objects.listing(Filters.parse(call.text("filters"), accepted))
        return call.json([await _document(objects, record) for record in found])

    async def create(call: Call) -> Answer:
        spec = await call.body(_spec)
        call.request.meant = spec
        record = await objects_of(call.engine).create(spec)
        return call.json(ObjectCreated(id=record.id), status=201)

    async def inspect(call: Call) -> Answer:
        objects = objects_of(call.engine)
        return call.json(await _document(objects, objects.find(call.argument)))

    async def update(call: Call) -> Answer:
        spec = await call.body(_spec)
        call.request.meant = spec
        await objects_of(call.engine).update(call.argument, call.object_version(), spec)
        return call.empty(200)

    async def remove(call: Call) -> Answer:
        await objects_of(call.engine).remove(call.argument)
        return call.empty(204)

    return (
        read(head, listing),
        change("POST", f"{head}/create", create),
        read(head + "/{id}", inspect),
        change("POST", head + "/{id}/update", update),
        change("DELETE", head + "/{id}", remove),
    )


async def _document(objects: Objects, record: ClusterObject) -> ObjectDocument:
    return views.object_document(record, await objects.value(record) if objects.kind == "config" else None)


ROUTES = (
    *_routes("/secrets", lambda engine: engine.swarm.secrets),
    *_routes("/configs", lambda engine: engine.swarm.configs),
)
