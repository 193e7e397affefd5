"""The swarm that this engine is, and its one node."""

import ipaddress
import socket

from husk.api.call import Call
from husk.api.http.response import Answer
from husk.api.router import change, read
from husk.api.types.services import InitRequest, UnlockKey
from husk.api.views import services as views
from husk.engine.model.filters import Filters
from husk.engine.services.settings import NodeSpec, SwarmSpec
from husk.errors import InvalidParameter, NotImplementedYet
from husk.gojson import Reader

DEFAULT_SUBNET_SIZE, NARROWEST_SUBNET = 24, 29
NODE_FILTERS = ("id", "label", "membership", "name", "node.label", "role")

_init = Reader(InitRequest)
_spec = Reader(SwarmSpec)
_node_spec = Reader(NodeSpec)
_unlock = Reader(UnlockKey)


async def inspect(call: Call) -> Answer:
    return call.json(views.swarm_document(call.engine.services.cluster.swarm))


async def init(call: Call) -> Answer:
    request = await call.body(_init)
    for pool in request.default_addr_pool:
        _check_pool(pool, request.subnet_size or DEFAULT_SUBNET_SIZE)
    if request.auto_lock_managers:
        request.spec.encryption_config.auto_lock_managers = True
    address = _advertised(request.advertise_addr)
    cluster = call.engine.services.cluster
    if request.force_new_cluster and cluster.active:
        # A swarm of this one node is what it is already.
        return call.json(cluster.swarm.node_id)
    node_id = await cluster.init(
        request.spec,
        advertise=address,
        availability=request.availability,
        pools=request.default_addr_pool,
        subnet_size=request.subnet_size,
        data_path_port=request.data_path_port,
    )
    await call.engine.services.started()
    return call.json(node_id)


async def join(call: Call) -> Answer:
    call.engine.services.cluster.check_alone()
    raise NotImplementedYet(
        "joining a swarm of several hosts needs a cluster store, which Husk does not have yet: this engine can only be "
        "a swarm of its own (docker swarm init)"
    )


async def leave(call: Call) -> Answer:
    await call.engine.services.leave(call.flag("force"))
    return call.empty(200)


async def update(call: Call) -> Answer:
    await call.engine.services.cluster.update(
        await call.body(_spec),
        call.object_version(),
        worker_token=call.flag("rotateWorkerToken"),
        manager_token=call.flag("rotateManagerToken"),
        unlock_key=call.flag("rotateManagerUnlockKey"),
    )
    return call.empty(200)


async def unlock_key(call: Call) -> Answer:
    return call.json(UnlockKey(unlock_key=await call.engine.services.cluster.unlock_key()))


async def unlock(call: Call) -> Answer:
    request = await call.body(_unlock)
    await call.engine.services.cluster.unlock(request.unlock_key)
    await call.engine.services.started()
    return call.empty(200)


async def nodes(call: Call) -> Answer:
    cluster = call.engine.services.cluster
    swarm, facts = cluster.swarm, cluster.node_facts()
    filters = Filters.parse(call.text("filters"), NODE_FILTERS)
    roles = _known(filters, "role", ("manager", "worker"))
    memberships = _known(filters, "membership", ("accepted", "pending"))
    matches = (
        all(swarm.node_id.startswith(value) for value in filters.get("id")[:1])
        and (not filters.get("name") or any(facts.hostname.startswith(v) for v in filters.get("name")))
        and (not roles or "manager" in roles)
        and (not memberships or "accepted" in memberships)
        and Filters({"label": filters.get("node.label")}).matches_labels(swarm.node_spec.labels)
        and filters.matches_labels(facts.engine_labels)
    )
    return call.json([views.node_document(swarm, facts, call.engine.system.version)] if matches else [])


def _known(filters: Filters, key: str, words: tuple[str, ...]) -> list[str]:
    values = [value.lower() for value in filters.get(key) if value]
    for value in values:
        if value not in words:
            raise InvalidParameter(f"Invalid {key} filter: '{value}'")
    return values


async def node(call: Call) -> Answer:
    cluster = call.engine.services.cluster
    swarm = cluster.find_node(call.argument)
    return call.json(views.node_document(swarm, cluster.node_facts(), call.engine.system.version))


async def update_node(call: Call) -> Answer:
    await call.engine.services.update_node(call.argument, await call.body(_node_spec), call.object_version())
    return call.empty(200)


async def remove_node(call: Call) -> Answer:
    swarm = call.engine.services.cluster.find_node(call.argument)
    raise InvalidParameter(
        f"rpc error: code = FailedPrecondition desc = node {swarm.node_id} is a cluster manager and is a member of the "
        "raft cluster. It must be demoted to worker before removal"
    )


def _check_pool(text: str, size: int) -> None:
    try:
        pool = ipaddress.IPv4Network(text)
    except ValueError as error:
        raise InvalidParameter(f"invalid default address pool: {error}") from error
    if not pool.prefixlen <= size <= NARROWEST_SUBNET:
        raise InvalidParameter(
            f"invalid subnet size {size}: subnets of the address pool {pool} have /{pool.prefixlen} to "
            f"/{NARROWEST_SUBNET}"
        )


def _advertised(text: str) -> str:
    """The address that the node tells others: the client's, or the one this host is reached by."""
    address = text.rpartition(":")[0] if text.count(":") == 1 else text.strip("[]")
    if address:
        try:
            return str(ipaddress.ip_address(address))
        except ValueError:
            return address
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # no packet is sent: this asks the routing table
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


ROUTES = (
    read("/swarm", inspect),
    change("POST", "/swarm/init", init),
    change("POST", "/swarm/join", join),
    change("POST", "/swarm/leave", leave),
    change("POST", "/swarm/update", update),
    read("/swarm/unlockkey", unlock_key),
    change("POST", "/swarm/unlock", unlock),
    read("/nodes", nodes),
    read("/nodes/{id}", node),
    change("POST", "/nodes/{id}/update", update_node),
    change("DELETE", "/nodes/{id}", remove_node),
)
