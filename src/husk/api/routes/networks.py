"""Networks: make them, look at them, put containers on them."""

from msgspec import UNSET, UnsetType, structs

from husk.aio.once import load
from husk.api.calls.call import Call
from husk.api.calls.router import change, read
from husk.api.http.response import Answer
from husk.api.types.networks import (
    ConnectRequest,
    DisconnectRequest,
    NetworkContainer,
    NetworkCreated,
    NetworksPruned,
    Peer,
)
from husk.api.versioning import Version
from husk.api.views import networks as views
from husk.engine.model.filters import Filters
from husk.engine.model.network import Network, NetworkRequest
from husk.engine.networks.requests import check_endpoint
from husk.errors import InvalidParameter, NotFound
from husk.text.gojson import Reader

WITHOUT_CONTAINERS_IN_LIST = Version(1, 52)
WITH_STATUS = Version(1, 52)
WITH_IPV4_LEFT_OUT = Version(1, 48)
PRUNE_FILTERS = ("label", "label!", "until")

_network = Reader(NetworkRequest)
_connect = Reader(ConnectRequest)
_disconnect = Reader(DisconnectRequest)


def listing(call: Call) -> Answer:
    filters = Filters.parse(call.text("filters"), views.FILTERS)
    dangling = filters.boolean("dangling", False) if filters.get("dangling") else None
    for kind in filters.get("type"):
        if kind not in ("builtin", "custom"):
            raise InvalidParameter(f"invalid filter: 'type'='{kind}'")
    containers: dict[str, NetworkContainer] | UnsetType = UNSET if call.version >= WITHOUT_CONTAINERS_IN_LIST else {}
    return call.json(
        [
            views.network(network, containers)
            for network in call.engine.networks.listing()
            if views.matches(network, filters) and dangling in (None, _dangling(call, network))
        ]
    )


def _dangling(call: Call, network: Network) -> bool:
    """Nobody is on it and nobody declares to be; the networks that are always there never are."""
    return not (network.builtin or call.engine.networks.members(network) or _needed(call, network))


def _needed(call: Call, network: Network) -> bool:
    """Tell if a swarm or one of its services needs the network. Where there is no swarm, nothing of it is loaded."""
    declared = call.engine.swarm_if_any
    return declared is not None and declared.networks.needed(network)


def inspect(call: Call) -> Answer:
    networks = call.engine.networks
    network = networks.find(call.argument)
    scope = call.text("scope") or network.scope
    # Tasks may be on these of each node: a swarm has them too.
    declared = call.engine.swarm_if_any
    active = declared is not None and declared.cluster.active
    of_swarm = network.name in ("bridge", "host") and scope == "swarm" and active
    if scope != network.scope and not of_swarm:
        raise NotFound(f"network {call.argument} not found")
    on_it = views.containers_on(network, networks.members(network))
    if (balancer := networks.load_balancer(network)) is not None:
        on_it[balancer.key] = views.load_balancer(balancer)
    shown = views.network(network, on_it)
    shown.scope = scope
    # What is declared is loaded only for who has it.
    cluster = call.engine.swarm.cluster if network.scope == "swarm" else None
    if cluster is not None and cluster.active and not cluster.locked:
        hosts = call.engine.swarm.networks.hosts(network)
        if shown.containers and not hosts:
            hosts = [(cluster.node_id, cluster.advertise_address)]
        if hosts:
            shown.peers = [Peer(name=node[:12], ip=address) for node, address in hosts]
        if call.flag("verbose"):
            services = views.services(call.engine.swarm.on_network(network), cluster.advertise_address)
            shown.services = services or UNSET
    if call.version >= WITH_STATUS:
        addresses = call.engine.swarm.networks.usage(network) if network.vni else networks.addresses(network)
        if addresses:
            shown.status = views.status(addresses)
    return call.json(shown)


async def create(call: Call) -> Answer:
    document = await call.document()
    if document is None:
        raise InvalidParameter("invalid JSON: got EOF while reading request body")
    request = await call.read(document, _network)
    if call.version < WITH_IPV4_LEFT_OUT:
        request = structs.replace(request, enable_ipv4=True)
    call.request.meant = request
    if request.driver == "overlay":
        await load("husk.swarm.opening")
    maker = call.engine.swarm.networks if request.driver == "overlay" else call.engine.networks
    network = await maker.create(request)
    return call.json(NetworkCreated(id=network.id), status=201)


async def remove(call: Call) -> Answer:
    network = call.engine.networks.find(call.argument)
    if network.scope != "swarm":
        await call.engine.networks.remove(network.id)
        return call.empty()
    swarm = call.engine.swarm.networks
    await swarm.let_go(network)
    # A service may have come to it meanwhile.
    await call.engine.networks.remove(network.id, swarm.declared_on)
    return call.empty()


async def prune(call: Call) -> Answer:
    filters = Filters.parse(call.text("filters"), PRUNE_FILTERS)
    removed = await call.engine.networks.prune(filters, lambda network: _needed(call, network))
    return call.json(NetworksPruned(networks_deleted=removed or None))


async def connect(call: Call) -> Answer:
    request = await call.body(_connect)
    call.request.meant = request
    check_endpoint(request.endpoint_config)
    await call.engine.verbs.connections.connect(call.argument, request.container, request.endpoint_config)
    return call.empty(200)


async def disconnect(call: Call) -> Answer:
    request = await call.body(_disconnect)
    call.request.meant = request
    await call.engine.verbs.connections.disconnect(call.argument, request.container, request.force)
    return call.empty(200)


ROUTES = (
    read("/networks", listing),
    read("/networks/{id}", inspect),
    change("POST", "/networks/create", create),
    change("DELETE", "/networks/{id}", remove),
    change("POST", "/networks/prune", prune),
    change("POST", "/networks/{id}/connect", connect),
    change("POST", "/networks/{id}/disconnect", disconnect),
)
