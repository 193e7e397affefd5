"""The changes to a service that is declared anew: its versions, its published ports. Pure but for the clock."""

from collections.abc import Iterable

import msgspec

from husk.errors import InvalidParameter
from husk.swarm.model.clocks import CLOCK, Clock
from husk.swarm.model.services import Mode, PortConfig, Service, ServiceSpec, UpdateStatus, any_ingress

FIRST_PORT, LAST_PORT = 30000, 32767


def changed_to(
    service: Service, spec: ServiceSpec, ports: list[PortConfig], rollback: bool, clock: Clock = CLOCK
) -> Service:
    """The service with another specification."""
    now = clock.stamp()
    changed = msgspec.structs.replace(
        service,
        spec=spec,
        ports=ports,
        previous_spec=service.spec,
        previous_ports=service.ports,
        previous_spec_version=service.spec_version,
        update_status=None,
    )
    if _runs(spec, ports) != _runs(service.spec, service.ports):
        versions = service.spec_versions + 1
        changed = msgspec.structs.replace(
            changed,
            spec_versions=versions,
            spec_version=service.previous_spec_version if rollback else versions,
            update_status=UpdateStatus(
                state="rollback_started" if rollback else "updating",
                started_at=now,
                message="manually requested rollback" if rollback else "update in progress",
            ),
            update_began_ns=clock.now(),
        )
    if spec.mode.is_job:
        # To update a job is to run it again, whatever has changed.
        changed = msgspec.structs.replace(
            changed, job_iteration=service.job_iteration + 1, job_started_at=now, update_status=None
        )
    return changed


def published_ports(service: Service, spec: ServiceSpec, services: Iterable[Service]) -> list[PortConfig]:
    """The ports of a service, among all of the swarm, with a published one chosen where the client left it open."""
    wanted = spec.endpoint_spec.ports if spec.endpoint_spec else []
    others = [s for s in services if s.id != service.id]
    taken = {(p.protocol, p.published_port) for s in others for p in s.ports if p.publish_mode != "host"}
    kept = {(p.protocol, p.target_port): p.published_port for p in service.ports}
    result = []
    for port in wanted:
        port = msgspec.structs.replace(port)
        if port.publish_mode == "ingress":
            if not port.published_port:
                old = kept.get((port.protocol, port.target_port), 0)
                port.published_port = old or _free_port(port.protocol, taken)
            elif (port.protocol, port.published_port) in taken:
                owner = next(s for s in others for p in s.ports if _clash(p, port))
                raise InvalidParameter(
                    f"rpc error: code = InvalidArgument desc = port '{port.published_port}' is already in use by "
                    f"service '{owner.spec.name}' ({owner.id}) as an ingress port"
                )
            taken.add((port.protocol, port.published_port))
        result.append(port)
    return result


def _free_port(protocol: str, taken: set[tuple[str, int]]) -> int:
    for port in range(FIRST_PORT, LAST_PORT + 1):
        if (protocol, port) not in taken:
            return port
    raise InvalidParameter("rpc error: code = InvalidArgument desc = no port is left for the service")


def _clash(other: PortConfig, port: PortConfig) -> bool:
    same = (other.protocol, other.published_port) == (port.protocol, port.published_port)
    return same and other.publish_mode != "host"


def mode_of(mode: Mode) -> str:
    kinds = {"replicated": mode.replicated, "global": mode.global_, "replicated-job": mode.replicated_job}
    return next((name for name, value in kinds.items() if value is not None), "global-job")


def _runs(spec: ServiceSpec, ports: list[PortConfig]) -> bytes:
    """Encode the parts of a service that make its tasks outdated when they change."""
    host_ports = [port for port in ports if port.publish_mode == "host"]
    template = msgspec.structs.replace(spec.task_template, restart_policy=None, placement=None)
    job = spec.mode if spec.mode.is_job else None
    # Under which names a task is known depends on whether the service has an address of its own.
    named = spec.endpoint_spec is not None and spec.endpoint_spec.mode == "dnsrr"
    return msgspec.json.encode([template, spec.networks, host_ports, any_ingress(ports), named, job])
