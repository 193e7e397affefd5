"""The swarm that this engine is part of, and its nodes."""

import ipaddress
import socket

from husk.api.call import Call
from husk.api.http.response import Answer
from husk.api.router import change, read
from husk.api.types.services import InitRequest, JoinRequest, UnlockKey
from husk.api.views import services as views
from husk.engine.model.filters import Filters
from husk.engine.services.nodes import NODE_FILTERS
from husk.engine.services.settings import NodeSpec, SwarmSpec
from husk.errors import InvalidParameter, NotImplementedYet
from husk.gojson import Reader

DEFAULT_SUBNET_SIZE, NARROWEST_SUBNET = 24, 29

_init = Reader(InitRequest)
_join = Reader(JoinRequest)
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
        return call.json(cluster.node_id)
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
    services = call.engine.services
    services.cluster.check_alone()
    if call.engine.config.cluster_store is not None:
        # Who has the store is a manager in all but name.
        request = await call.body(_join)
        await services.cluster.enlist(
            request.join_token, advertise=_advertised(request.advertise_addr), availability=request.availability
        )
        await services.started()
        return call.empty(200)
    raise NotImplementedYet(
        "joining a swarm of several hosts needs a cluster store: start the daemon with --cluster-store "
        "etcd://…, the same for all hosts. Without it this engine can only be a swarm of its own (docker swarm init)"
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
    nodes = call.engine.services.nodes
    found = nodes.listing(Filters.parse(call.text("filters"), NODE_FILTERS))
    return call.json([views.node_document(node, nodes.leader) for node in found])


async def node(call: Call) -> Answer:
    nodes = call.engine.services.nodes
    return call.json(views.node_document(nodes.find(call.argument), nodes.leader))


async def update_node(call: Call) -> Answer:
    await call.engine.services.update_node(call.argument, await call.body(_node_spec), call.object_version())
    return call.empty(200)


async def remove_node(call: Call) -> Answer:
    await call.engine.services.remove_node(call.argument, call.flag("force"))
    return call.empty(200)


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
