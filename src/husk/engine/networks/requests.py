"""Checks what a client asks of an endpoint, in Docker's words. Pure.

The places of a container on networks, by what is asked for it.
"""

import logging
import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import msgspec

from husk.engine.model.container import Container, Endpoint
from husk.engine.model.container_config import ContainerConfig, EndpointRequest, HostConfig
from husk.engine.model.network import BUILTIN
from husk.engine.networks import port_requests
from husk.engine.networks.endpoints import parse_links, wanted_address, wanted_address6
from husk.engine.networks.live import LiveNetwork, Roster
from husk.errors import Forbidden, InvalidParameter, NotFound
from husk.text.patterns import pattern

HOST_WITH_LINKS = (
    "conflicting options: host type networking can't be used with links. This would result in undefined behavior"
)
_CONTAINER_WITH_LINKS = (
    "conflicting options: container type network can't be used with links. This would result in undefined behavior"
)
_IFNAME = "com.docker.network.endpoint.ifname"
_SYSCTLS = "com.docker.network.endpoint.sysctls"
_INTERFACE = pattern(r"[a-zA-Z0-9_][a-zA-Z0-9_-]{0,14}", re.ASCII)
_SYSCTL = pattern(r"net\.(ipv4|ipv6|mpls)\.(conf|neigh)\.(IFNAME|ifname)\.[a-z0-9_]+=[a-zA-Z0-9 ._-]+", re.ASCII)
_MAC = pattern(r"[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}", re.ASCII)
log = logging.getLogger(__name__)


def check(config: ContainerConfig, host_config: HostConfig, endpoints: Mapping[str, EndpointRequest]) -> None:
    """Raise for the first thing that is wrong with a new container's networks and ports."""
    mode = host_config.network_mode
    port_requests.check(config, host_config)
    _check_mac(config.mac_address)
    if mode == "container" or mode.startswith("container:"):
        if not mode.partition(":")[2]:
            raise InvalidParameter("invalid network mode: invalid container format container:<name|id>")
        _check_sharing(config, host_config)
    parse_links(host_config.links)
    if host_config.links and mode == "host":
        raise InvalidParameter(HOST_WITH_LINKS)
    for request in endpoints.values():
        check_endpoint(request)


def check_endpoint(request: EndpointRequest) -> None:
    _check_mac(request.mac_address)
    if address := wanted_address(request):
        try:
            IPv4Address(address)
        except ValueError:
            raise InvalidParameter(f"invalid endpoint settings:\ninvalid IPv4 address: {address[:40]}") from None
    if address := wanted_address6(request):
        try:
            IPv6Address(address)
        except ValueError:
            raise InvalidParameter(f"invalid endpoint settings:\ninvalid IPv6 address: {address[:40]}") from None
    for address in link_local(request):
        try:
            valid = ip_address(address).is_link_local
        except ValueError:
            valid = False
        if not valid:
            raise InvalidParameter(f"invalid endpoint settings:\ninvalid link-local IP address: {address[:40]}")
    _check_driver_opts(request.driver_opts or {})
    for alias in request.aliases or []:
        if not alias or re.search(r"\s", alias):
            raise InvalidParameter(f"invalid endpoint settings:\ninvalid alias: {alias!r}")
    parse_links(request.links)


def check_attachable(live: LiveNetwork, record: Container) -> None:
    """Networks of the swarm are for its tasks, unless they were made for others too; configurations for nobody."""
    network = live.record
    if network.config_only:
        raise Forbidden("cannot create endpoint on configuration-only network")
    if network.scope == "swarm" and not network.attachable and not record.is_task:
        raise Forbidden(
            f"Could not attach to network {network.name}: rpc error: code = PermissionDenied desc = network "
            f"{network.name} not manually attachable"
        )


def check_joinable(live: LiveNetwork, record: Container) -> None:
    """Raise if this container may not be put on this network, beside those it is on."""
    name = live.record.name
    if name in record.endpoints and not record.on_networks:
        return
    if live.record.config_only:
        raise Forbidden("cannot create endpoint on configuration-only network")
    if name == "host":
        raise InvalidParameter(
            "cannot connect container to host network - container must be created in host network mode"
        )
    if record.host_config.network_mode == "host" or record.host_config.network_mode.startswith("container:"):
        raise InvalidParameter(
            "container sharing network namespace with another container or host cannot be connected to any other "
            "network"
        )
    if name == "none" or "none" in record.endpoints:
        raise InvalidParameter(
            "container cannot be connected to multiple networks with one of the networks in private (none) mode"
        )
    if name in record.endpoints:
        raise Forbidden(f"endpoint with name {record.name} already exists in network {name}")


def check_request(live: LiveNetwork, endpoint: Endpoint) -> None:
    """Raise if the network does not have what the endpoint asks for."""
    network = live.record
    for wanted, chosen in (
        (wanted_address(endpoint.request), network.chosen_subnet),
        (wanted_address6(endpoint.request), network.chosen_subnet6),
    ):
        if wanted and network.builtin:
            raise InvalidParameter(
                "invalid endpoint settings:\nuser specified IP address is supported on user defined networks only"
            )
        if wanted and not chosen:
            raise InvalidParameter(
                "invalid endpoint settings:\nuser specified IP address is supported only when connecting to networks "
                "with user configured subnets"
            )
        if wanted and ip_address(wanted) not in ip_network(network.subnet if "." in wanted else network.subnet6):
            raise InvalidParameter(
                f"invalid endpoint settings:\nno configured subnet or ip-range contain the IP address {wanted}"
            )
    if endpoint.request.aliases and network.builtin:
        raise InvalidParameter(
            "invalid endpoint settings:\nnetwork-scoped alias is supported only for containers in user defined networks"
        )


def link_local(request: EndpointRequest) -> tuple[str, ...]:
    """Addresses of the link that the interface is to have besides; nobody keeps a list of who has them."""
    named = (request.ipam_config or {}).get("LinkLocalIPs") or []
    return tuple(str(address) for address in named) if isinstance(named, list) else (str(named),)


def interface_name(request: EndpointRequest) -> str:
    """Return the name that the interface is to have inside; empty for the next free name."""
    return (request.driver_opts or {}).get(_IFNAME, "")


def interface_sysctls(request: EndpointRequest) -> tuple[tuple[str, str], ...]:
    """(path below /proc/sys, value) of the interface's own settings; IFNAME in it stands for its name.

    In small letters too, for `docker run --network name=x,driver-opt=...` lowers what it is given.
    """
    found = []
    for entry in filter(None, (request.driver_opts or {}).get(_SYSCTLS, "").split(",")):
        if _SYSCTL.fullmatch(entry) is None:
            raise InvalidParameter(
                f"invalid endpoint settings:\nunrecognised network interface sysctl {entry[:80]!r}; it must be of the "
                "form net.X.Y.IFNAME.Z=value, with the string IFNAME instead of the interface's name"
            )
        name, _, value = entry.partition("=")
        found.append((name.replace(".ifname.", ".IFNAME.").replace(".", "/"), value))
    return tuple(found)


def disables_ipv6(host_config: HostConfig, interface: str = "all") -> bool:
    """Return True if the container's owner switches IPv6 off, everywhere in it or on an interface."""
    settings = {name.replace("/", "."): value for name, value in (host_config.sysctls or {}).items()}
    return _is_set(settings.get(f"net.ipv6.conf.{interface}.disable_ipv6", "0"))


def without_ipv6(record: Container, request: EndpointRequest) -> bool:
    """Return True if IPv6 is switched off where this endpoint comes: then it takes no IPv6 address."""
    # The first interface is the one whose name is known ahead.
    name = interface_name(request) or ("" if record.sandbox_path else "eth0")
    here = dict(interface_sysctls(request)).get("net/ipv6/conf/IFNAME/disable_ipv6", "0")
    host_config = record.host_config
    return disables_ipv6(host_config) or disables_ipv6(host_config, name) or _is_set(here)


def _is_set(value: str) -> bool:
    return value.strip() not in ("", "0")


def _check_driver_opts(options: Mapping[str, str]) -> None:
    """Options that no driver here knows are kept and shown, as dockerd's drivers pass over what is not theirs."""
    for name, value in options.items():
        if name == _IFNAME and value and (_INTERFACE.fullmatch(value) is None or value in ("lo", "all", "default")):
            raise InvalidParameter(f"invalid endpoint settings:\ninvalid interface name: {value[:40]!r}")
    interface_sysctls(EndpointRequest(driver_opts=dict(options)))


def _check_sharing(config: ContainerConfig, host_config: HostConfig) -> None:
    for option, given in (
        ("hostname", config.hostname),
        ("custom host-to-IP mapping", host_config.extra_hosts),
        ("dns", host_config.dns),
        ("mac-address", config.mac_address),
    ):
        if given:
            raise InvalidParameter(f"conflicting options: {option} and the network mode")
    if host_config.links:
        raise InvalidParameter(_CONTAINER_WITH_LINKS)


def _check_mac(text: str) -> None:
    if text and _MAC.fullmatch(text) is None:
        raise InvalidParameter(f"{text[:40]} is not a valid mac address")
    # The kernel takes no other for an interface: not that of a group, nor none at all.
    if text and (int(text[:2], 16) & 1 or not text.strip("0:-")):
        raise InvalidParameter(f"{text} is not a valid mac address: it is no single interface's")


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
