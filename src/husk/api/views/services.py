"""Swarm, nodes, services and tasks on the wire. Pure: records in, documents out."""

import base64
from collections.abc import Sequence

from msgspec import UNSET, structs

from husk.api.types.services import (
    ContainerStatus,
    Endpoint,
    IpamOptions,
    IpamPool,
    JobStatus,
    JoinTokens,
    ManagerStatus,
    NetworkAttachmentDocument,
    NetworkDocument,
    NetworkSpecDocument,
    NodeDescription,
    NodeDocument,
    NodeEngine,
    NodePlatform,
    NodeResources,
    NodeStatus,
    ObjectDocument,
    ObjectSpecDocument,
    ObjectVersion,
    ServiceDocument,
    ServiceStatus,
    StatusDocument,
    SwarmDocument,
    TaskDocument,
    TlsInfo,
)
from husk.engine.model.network import Network
from husk.swarm.model.node import Node
from husk.swarm.model.services import ClusterObject, DriverSpec, Empty, Service, ServiceSpec, Task
from husk.swarm.model.swarm import Swarm, Trust
from husk.swarm.spec.defaults import with_defaults


def service_document(service: Service, tasks: list[Task] | None = None, *, defaults: bool = False) -> ServiceDocument:
    """`tasks` only where the client asks for the status; `defaults` are written out where it asks for them."""
    is_job = service.spec.mode.is_job
    return ServiceDocument(
        id=service.id,
        version=ObjectVersion(index=service.version),
        created_at=service.created_at,
        updated_at=service.updated_at,
        spec=_with_runtime(with_defaults(service.spec) if defaults else service.spec),
        previous_spec=_with_runtime(service.previous_spec) if service.previous_spec else UNSET,
        endpoint=Endpoint(
            spec=service.spec.endpoint_spec or Empty(), ports=service.ports, virtual_ips=service.virtual_ips
        ),
        update_status=service.update_status or UNSET,
        service_status=UNSET if tasks is None else _status(service, tasks),
        job_status=JobStatus(
            job_iteration=ObjectVersion(index=service.job_iteration), last_execution=service.job_started_at
        )
        if is_job
        else UNSET,
    )


def _with_runtime(spec: ServiceSpec) -> ServiceSpec:
    """Services say what kind of tasks they have; tasks do not."""
    return structs.replace(spec, task_template=structs.replace(spec.task_template, runtime="container"))


def _status(service: Service, tasks: list[Task]) -> ServiceStatus:
    mode = service.spec.mode
    wanted = [task for task in tasks if task.wanted]
    running = sum(1 for task in wanted if task.status.state == "running")
    completed = sum(
        1 for t in tasks if t.status.state == "complete" and t.job_iteration == service.job_iteration and mode.is_job
    )
    if mode.replicated is not None:
        desired = mode.replicated.replicas
    elif mode.replicated_job is not None:
        desired = mode.replicated_job.max_concurrent or 1
    else:
        desired = len({task.node_id for task in wanted if task.alive})
    return ServiceStatus(running_tasks=running, desired_tasks=desired, completed_tasks=completed)


def task_document(task: Task, places: Sequence[tuple[Network, str]] = ()) -> TaskDocument:
    """`places` are its networks, with its address on each."""
    status = task.status
    container = (
        ContainerStatus(container_id=status.container_id, pid=status.pid, exit_code=status.exit_code)
        if status.container_id
        else UNSET
    )
    return TaskDocument(
        id=task.id,
        version=ObjectVersion(index=task.version),
        created_at=task.created_at,
        updated_at=task.updated_at,
        spec=task.spec,
        service_id=task.service_id,
        slot=task.slot or UNSET,
        node_id=task.node_id if status.state != "pending" else "",
        status=StatusDocument(
            timestamp=status.timestamp,
            state=status.state,
            message=status.message,
            err=status.err or UNSET,
            container_status=container,
        ),
        desired_state=task.shown_desired_state,
        networks_attachments=[_attachment(network, address) for network, address in places] or UNSET,
        job_iteration=UNSET if task.job_iteration is None else ObjectVersion(index=task.job_iteration),
    )


def _attachment(network: Network, address: str) -> NetworkAttachmentDocument:
    driver = DriverSpec(name=network.driver)
    return NetworkAttachmentDocument(
        network=NetworkDocument(
            id=network.id,
            version=ObjectVersion(index=1),
            created_at=network.created,
            updated_at=network.created,
            spec=NetworkSpecDocument(
                name=network.name,
                labels=network.labels,
                driver_configuration=driver,
                i_pv6_enabled=network.enable_ipv6,
                internal=network.internal,
                attachable=network.attachable,
                ingress=network.ingress,
                scope=network.scope,
            ),
            driver_state=driver,
            ipam_options=IpamOptions(
                driver=DriverSpec(name="default"),
                configs=[IpamPool(subnet=network.subnet, gateway=network.gateway)],
            ),
        ),
        addresses=[address],
    )


def node_document(node: Node, leader: str, trust: Trust | None = None) -> NodeDocument:
    """`leader` is the id of the node that leads, `trust` the swarm's."""
    told = node.description
    return NodeDocument(
        id=node.id,
        version=ObjectVersion(index=node.version),
        created_at=node.created_at,
        updated_at=node.updated_at,
        spec=node.spec,
        description=NodeDescription(
            hostname=told.hostname,
            platform=NodePlatform(architecture=told.architecture, os=told.os),
            resources=NodeResources(nano_cpus=told.nano_cpus, memory_bytes=told.memory),
            engine=NodeEngine(
                engine_version=told.engine_version,
                labels=told.engine_labels,
                plugins=[{"Type": type, "Name": name} for type, name in told.plugins],
            ),
            tls_info=_tls_info(trust, node.issuer),
        ),
        status=NodeStatus(state=node.status.state, addr=node.status.addr, message=node.status.message or UNSET),
        manager_status=UNSET
        if node.manager is None
        else ManagerStatus(
            leader=True if node.id == leader else UNSET,
            reachability="unreachable" if node.status.state == "down" else node.manager.reachability,
            addr=node.manager.addr,
        ),
    )


def _tls_info(trust: Trust | None, issuer: bytes) -> TlsInfo:
    """`issuer` names the root that signed, or signs."""
    roots = [root for root in (trust.root, trust.next) if root is not None] if trust is not None else []
    signed = next((root for root in roots if root.key_id == issuer), None)
    if trust is None or signed is None:
        return TlsInfo()
    return TlsInfo(
        trust_root=trust.root.certificate, cert_issuer_subject=signed.subject, cert_issuer_public_key=signed.public_key
    )


def swarm_document(swarm: Swarm) -> SwarmDocument:
    return SwarmDocument(
        id=swarm.id,
        version=ObjectVersion(index=swarm.version),
        created_at=swarm.created_at,
        updated_at=swarm.updated_at,
        spec=swarm.spec,
        tls_info=_tls_info(swarm.trust, swarm.trust.signing.key_id if swarm.trust else b""),
        root_rotation_in_progress=swarm.trust is not None and swarm.trust.next is not None,
        default_addr_pool=swarm.default_address_pool,
        subnet_size=swarm.subnet_size,
        data_path_port=swarm.data_path_port,
        join_tokens=JoinTokens(worker=swarm.worker_token, manager=swarm.manager_token),
    )


def object_document(record: ClusterObject, value: bytes | None = None) -> ObjectDocument:
    """`value` only for configs: what a secret is, nobody is told."""
    return ObjectDocument(
        id=record.id,
        version=ObjectVersion(index=record.version),
        created_at=record.created_at,
        updated_at=record.updated_at,
        spec=ObjectSpecDocument(
            name=record.name,
            labels=record.labels,
            data=UNSET if value is None else base64.b64encode(value).decode(),
            templating=record.templating or UNSET,
        ),
    )
