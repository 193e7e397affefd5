"""The swarm that this engine is part of, and its nodes."""

import base64
import ipaddress

from husk.api.calls.call import Call
from husk.api.calls.router import change, read
from husk.api.http.response import Answer, Response, fields
from husk.api.types.services import InitRequest, JoinRequest, NodeUpdate, UnlockKey
from husk.api.views import services as views
from husk.engine.model.filters import Filters
from husk.errors import InvalidParameter
from husk.swarm.model.settings import JoinSettings, NodeSpec, RestoreAddresses, SwarmSpec
from husk.swarm.spec import addresses
from husk.swarm.spec.matching import NODE_FILTERS
from husk.text.endpoints import MANAGER_PORT
from husk.text.gojson import Reader
from husk.text.subnets import has_nobodys

DEFAULT_SUBNET_SIZE, NARROWEST_SUBNET = 24, 29
# Where the cluster port is, unless somebody says otherwise.
USUAL_LISTEN = f"0.0.0.0:{MANAGER_PORT}"

OCTETS = "application/octet-stream"
PASSPHRASE = "X-Husk-Passphrase"

_init = Reader(InitRequest)
_join = Reader(JoinRequest)
_spec = Reader(SwarmSpec)
_node_spec: Reader[NodeSpec] = Reader(NodeUpdate)
_unlock = Reader(UnlockKey)


async def inspect(call: Call) -> Answer:
    return call.json(views.swarm_document(call.engine.swarm.cluster.shown))


async def init(call: Call) -> Answer:
    request = await call.body(_init)
    if not request.force_new_cluster:
        # The first thing to know, whatever else is wrong.
        call.engine.swarm.cluster.check_alone()
    for pool in request.default_addr_pool:
        _check_pool(pool, request.subnet_size or DEFAULT_SUBNET_SIZE)
    if request.auto_lock_managers:
        request.spec.encryption_config.auto_lock_managers = True
    wanted = request.advertise_addr or call.engine.config.swarm_default_advertise_addr
    address, port = await addresses.advertised(wanted)
    listen = await addresses.listening(request.listen_addr) if request.listen_addr else None
    services = call.engine.swarm
    cluster = services.cluster
    if request.force_new_cluster and services.node_role.manager_role.etcd_membership.here:
        await services.node_role.manager_role.start_over()
        return call.json(cluster.node_id)
    if request.force_new_cluster and cluster.active:
        # A swarm of this one node is what it is already.
        return call.json(cluster.node_id)
    data_path = await addresses.data_path(request.data_path_addr)
    # Nobody else makes, joins or restores one meanwhile.
    async with services.node_role.changing:
        cluster.check_alone()
        if listen is not None:
            await services.listener.probe(listen)
        node_id = await cluster.init(
            request.spec,
            advertise=address,
            advertise_port=port or (listen.port if listen else MANAGER_PORT),
            listen=str(listen or ""),
            availability=request.availability,
            pools=request.default_addr_pool,
            subnet_size=request.subnet_size,
            data_path=data_path,
            data_path_port=request.data_path_port,
        )
    await services.started()
    return call.json(node_id)


async def join(call: Call) -> Answer:
    services = call.engine.swarm
    services.cluster.check_alone()
    request = await call.body(_join)
    wanted = request.advertise_addr or call.engine.config.swarm_default_advertise_addr
    advertised = await addresses.advertised(wanted) if wanted else None
    listen = await addresses.listening(request.listen_addr) if request.listen_addr else ""
    wish = JoinSettings(
        remotes=request.remote_addrs,
        token=request.join_token,
        listen=request.listen_addr,
        advertise=advertised.host if advertised is not None else "",
        data_path=await addresses.data_path(request.data_path_addr),
        availability=request.availability,
        port=advertised.port if advertised is not None else 0,
        own_listen="" if str(listen) == USUAL_LISTEN else str(listen),
    )
    await services.node_role.join(wish)
    return call.empty(200)


async def leave(call: Call) -> Answer:
    await call.engine.swarm.leave(call.flag("force"))
    return call.empty(200)


async def backup(call: Call) -> Answer:
    """Husk's own: all of the swarm in one file, which the client's passphrase opens."""
    data = await call.engine.swarm.backups.make(_passphrase(call))
    return Response(200, data, fields({"Content-Type": OCTETS}) + call.common.fields)


async def restore(call: Call) -> Answer:
    """Husk's own: go on with the swarm of such a file."""
    services = call.engine.swarm
    services.cluster.check_alone()
    secret, advertise, listen = _passphrase(call), call.text("advertiseAddr"), call.text("listenAddr")
    where = RestoreAddresses(
        advertise=await addresses.advertised(advertise) if advertise else None,
        listen=await addresses.listening(listen) if listen else None,
        data_path=await addresses.data_path(call.text("dataPathAddr")),
    )
    backups, data = services.backups, bytearray()
    async for piece in call.upload(1 << 20):
        data += piece
        backups.check_size(len(data))
    node_id = await backups.restore(bytes(data), secret, where)
    await services.started()
    return call.json(node_id)


def _passphrase(call: Call) -> str:
    """Read the passphrase that a header carries in base64, as it carries a registry's credentials; InvalidParameter."""
    try:
        return base64.urlsafe_b64decode(call.request.header(PASSPHRASE.lower())).decode()
    except ValueError:
        raise InvalidParameter(f"the header {PASSPHRASE} is not base64 of a text") from None


async def update(call: Call) -> Answer:
    services = call.engine.swarm
    await services.cluster.update(
        await call.body(_spec),
        call.object_version(),
        worker_token=call.flag("rotateWorkerToken"),
        manager_token=call.flag("rotateManagerToken"),
        unlock_key=call.flag("rotateManagerUnlockKey"),
    )
    services.listener.open()
    return call.empty(200)


async def unlock_key(call: Call) -> Answer:
    return call.json(UnlockKey(unlock_key=await call.engine.swarm.cluster.unlock_key()))


async def unlock(call: Call) -> Answer:
    request = await call.body(_unlock)
    services = call.engine.swarm
    await services.cluster.unlock(request.unlock_key)
    if services.cluster.active:  # otherwise its store is waited for
        await services.started()
    return call.empty(200)


async def nodes(call: Call) -> Answer:
    nodes = call.engine.swarm.nodes
    found = nodes.listing(Filters.parse(call.text("filters"), NODE_FILTERS))
    trust = call.engine.swarm.cluster.swarm.trust
    return call.json([views.node_document(node, nodes.leader, trust) for node in found])


async def node(call: Call) -> Answer:
    nodes = call.engine.swarm.nodes
    found = nodes.find(call.argument)
    return call.json(views.node_document(found, nodes.leader, call.engine.swarm.cluster.swarm.trust))


async def update_node(call: Call) -> Answer:
    await call.engine.swarm.update_node(call.argument, await call.body(_node_spec), call.object_version())
    return call.empty(200)


async def remove_node(call: Call) -> Answer:
    await call.engine.swarm.remove_node(call.argument, call.flag("force"))
    return call.empty(200)


def _check_pool(text: str, size: int) -> None:
    try:
        pool = ipaddress.IPv4Network(text)
    except ValueError as error:
        raise InvalidParameter(f"invalid default address pool: {error}") from error
    if has_nobodys(pool):
        raise InvalidParameter(f"invalid default address pool {pool}: containers cannot have these addresses")
    if not pool.prefixlen <= size <= NARROWEST_SUBNET:
        raise InvalidParameter(
            f"invalid subnet size {size}: subnets of the address pool {pool} have /{pool.prefixlen} to "
            f"/{NARROWEST_SUBNET}"
        )


ROUTES = (
    read("/swarm", inspect),
    change("POST", "/swarm/init", init),
    change("POST", "/swarm/join", join),
    change("POST", "/swarm/leave", leave),
    change("POST", "/swarm/update", update),
    change("POST", "/swarm/backup", backup),
    change("POST", "/swarm/restore", restore),
    read("/swarm/unlockkey", unlock_key),
    change("POST", "/swarm/unlock", unlock),
    read("/nodes", nodes),
    read("/nodes/{id}", node),
    change("POST", "/nodes/{id}/update", update_node),
    change("DELETE", "/nodes/{id}", remove_node),
)
