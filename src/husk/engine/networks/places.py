"""The places of a container on networks, by what is asked for it. Pure."""

import logging

import msgspec

from husk.engine.model.container import Container, Endpoint
from husk.engine.model.container_config import EndpointRequest
from husk.engine.model.network import BUILTIN
from husk.engine.networks.live import LiveNetwork, Roster
from husk.engine.networks.requests import check_joinable, check_request
from husk.errors import InvalidParameter, NotFound

log = logging.getLogger(__name__)


def places(roster: Roster, mode: str, requests: dict[str, EndpointRequest], links: list[str]) -> dict[str, Endpoint]:
    """A new container's places, by the names of their networks."""
    if mode.startswith("container:"):
        return {}
    if links and mode not in (*BUILTIN, "default", ""):
        # On a network with names a link is one of them.
        own = requests.get(mode, EndpointRequest())
        requests = {**requests, mode: msgspec.structs.replace(own, links=[*(own.links or []), *links])}
    found: dict[str, Endpoint] = {}
    # A client that names networks does not mean the default one besides.
    named = list(requests) if requests and mode in ("bridge", "default", "") else [mode, *requests]
    for reference in dict.fromkeys(named):
        request = requests.get(reference)
        meant = "bridge" if reference == "default" else reference
        try:
            live = roster.find(meant)
        except NotFound:
            # As dockerd: reported at start, because clients take a 404 here for the image.
            log.info("a container asks for the unknown network %s", meant)
            found[meant] = Endpoint(network_name=meant, network_id="", request=request or EndpointRequest())
            continue
        name = live.record.name
        if name in found and request is None:
            continue
        if name in found and found[name].request != EndpointRequest():
            raise InvalidParameter(f"container cannot be connected to network {name} twice")
        endpoint = Endpoint(network_name=name, network_id=live.record.id, request=request or EndpointRequest())
        try:
            check_request(live, endpoint)
        except InvalidParameter as error:
            raise error.within(f"invalid config for network {name}") from None
        found[name] = endpoint
    alone = [name for name in ("host", "none") if name in found]
    if alone and len(found) > 1:
        raise InvalidParameter(f"container cannot be connected to network {alone[0]} and to others")
    return found


def one_more(live: LiveNetwork, record: Container, request: EndpointRequest) -> Endpoint:
    """A container's place on one more network, if it may have it."""
    endpoint = Endpoint(network_name=live.record.name, network_id=live.record.id, request=request, added=True)
    check_joinable(live, record)
    check_request(live, endpoint)
    return endpoint
