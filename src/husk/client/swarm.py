"""The swarm that an engine is part of, and its nodes."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from husk.client.calls import Calls, field
from husk.client.filters import filters_of
from husk.client.spec import nanoseconds
from husk.client.thing import Declared


class Swarm:
    """`engine.swarm`: services, secrets and configs need one.

    await engine.swarm.init()
    """

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def inspect(self) -> dict[str, Any]:
        """Describe the swarm.

        :returns: the API's document: `ID`, `Spec`, `JoinTokens` and so on.
        :raises Unavailable: the engine is no manager of a swarm.
        """
        found: dict[str, Any] = await self._calls.get("/swarm")
        return found

    async def init(
        self,
        *,
        advertise_addr: str = "",
        listen_addr: str = "0.0.0.0:2377",
        default_addr_pool: Sequence[str] = (),
        subnet_size: int = 0,
        data_path_addr: str = "",
        data_path_port: int = 0,
        force_new_cluster: bool = False,
        availability: str = "",
        autolock_managers: bool = False,
        labels: Mapping[str, str] | None = None,
        task_history_retention_limit: int | None = None,
        spec: Mapping[str, Any] | None = None,
    ) -> str:
        """Make a swarm out of this engine. A call that is cancelled leaves none behind.

        :param advertise_addr: the address or interface that other nodes reach this one at.
        :param listen_addr: the address and port of the cluster port.
        :param default_addr_pool: the networks that subnets of overlay networks are taken from, as `10.20.0.0/16`.
        :param subnet_size: the length of the prefix of those subnets; 24 if 0.
        :param data_path_addr: the address that packets of overlay networks come in at.
        :param data_path_port: the UDP port of overlay networks; 4789 if 0.
        :param force_new_cluster: go on alone with the swarm that this manager is in.
        :param availability: `active`, `pause` or `drain`.
        :param autolock_managers: ask for a key when a manager starts again.
        :param labels: labels.
        :param task_history_retention_limit: the number of ended tasks that are kept for each slot.
        :param spec: the API's own document, for what has no name here.
        :returns: the id of this node.
        :raises Unavailable: the engine is in a swarm.
        :raises InvalidParameter: an address makes no sense.
        """
        document = {
            "ListenAddr": listen_addr,
            "AdvertiseAddr": advertise_addr,
            "DataPathAddr": data_path_addr,
            "DataPathPort": data_path_port,
            "DefaultAddrPool": list(default_addr_pool),
            "SubnetSize": subnet_size,
            "ForceNewCluster": force_new_cluster,
            "Availability": availability,
            "AutoLockManagers": autolock_managers,
            "Spec": _spec(spec or {}, labels, task_history_retention_limit, None, None, None),
        }
        call = self._calls.post("/swarm/init", document)

        async def take_back(_: object) -> None:
            if not force_new_cluster:
                await self.leave(force=True)

        return str(await self._calls.made(call, take_back))

    async def join(
        self,
        remote_addrs: Sequence[str],
        join_token: str,
        *,
        listen_addr: str = "0.0.0.0:2377",
        advertise_addr: str = "",
        data_path_addr: str = "",
        availability: str = "",
    ) -> None:
        """Make this engine a node of a swarm.

        :param remote_addrs: addresses of managers, as `192.0.2.1:2377`.
        :param join_token: the token for workers or for managers, from `inspect`.
        :param listen_addr: the address and port of the cluster port.
        :param advertise_addr: the address or interface that other nodes reach this one at.
        :param data_path_addr: the address that packets of overlay networks come in at.
        :param availability: `active`, `pause` or `drain`.
        :raises Unavailable: the engine is in a swarm, or no manager answers.
        :raises InvalidParameter: the token or an address cannot be read.
        """
        document = {
            "RemoteAddrs": list(remote_addrs),
            "JoinToken": join_token,
            "ListenAddr": listen_addr,
            "AdvertiseAddr": advertise_addr,
            "DataPathAddr": data_path_addr,
            "Availability": availability,
        }
        await self._calls.post("/swarm/join", document)

    async def leave(self, *, force: bool = False) -> None:
        """Leave the swarm.

        :param force: leave although this is the last manager, which takes all services, secrets and configs along.
        :raises Unavailable: the engine is in no swarm, or is a manager and `force` is not given.
        """
        await self._calls.post("/swarm/leave", None, {"force": force})

    async def update(
        self,
        *,
        rotate_worker_token: bool = False,
        rotate_manager_token: bool = False,
        rotate_manager_unlock_key: bool = False,
        labels: Mapping[str, str] | None = None,
        task_history_retention_limit: int | None = None,
        autolock_managers: bool | None = None,
        dispatcher_heartbeat_period: float | None = None,
        node_cert_expiry: float | None = None,
        spec: Mapping[str, Any] | None = None,
    ) -> None:
        """Change settings of the swarm, or its tokens; what is None stays as it is.

        :param rotate_worker_token: make a new token for workers.
        :param rotate_manager_token: make a new token for managers.
        :param rotate_manager_unlock_key: make a new unlock key.
        :param labels: all labels from now on.
        :param task_history_retention_limit: the number of ended tasks that are kept for each slot.
        :param autolock_managers: ask for a key when a manager starts again.
        :param dispatcher_heartbeat_period: seconds between two signs of life of a node.
        :param node_cert_expiry: seconds that a node's certificate is good for.
        :param spec: the API's own document, for what has no name here.
        :raises Unavailable: the engine is no manager of a swarm.
        """
        found = await self.inspect()
        query = {
            "version": field(field(found, "Version"), "Index"),
            "rotateWorkerToken": rotate_worker_token,
            "rotateManagerToken": rotate_manager_token,
            "rotateManagerUnlockKey": rotate_manager_unlock_key,
        }
        document = _spec(
            {**field(found, "Spec"), **(spec or {})},
            labels,
            task_history_retention_limit,
            autolock_managers,
            dispatcher_heartbeat_period,
            node_cert_expiry,
        )
        await self._calls.post("/swarm/update", document, query)

    async def get_unlock_key(self) -> str:
        """Tell the key that unlocks a manager after a restart.

        :returns: the key; empty if the swarm needs none.
        """
        return str(field(await self._calls.get("/swarm/unlockkey"), "UnlockKey"))

    async def unlock(self, key: str) -> None:
        """Unlock a manager that was started again.

        :param key: the unlock key.
        :raises InvalidParameter: it is not the key of this swarm.
        :raises Conflict: the swarm is not locked.
        """
        await self._calls.post("/swarm/unlock", {"UnlockKey": key})

    async def backup(self, passphrase: str = "") -> bytes:
        """Pack the swarm into one sealed file: services, secrets, configs, networks, nodes, tokens and the CA's key.

        :param passphrase: opens the file; a swarm with autolock takes none, as its unlock key opens the file.
        :returns: the file.
        :raises NotFound: the engine is no Husk, and cannot do this.
        :raises Unavailable: the engine is no manager of a swarm.
        """
        async with self._calls.answer("POST", "/swarm/backup", headers=_opened_by(passphrase)) as response:
            return await response.read()

    async def restore(
        self,
        backup: bytes,
        passphrase: str = "",
        *,
        advertise_addr: str = "",
        listen_addr: str = "",
        data_path_addr: str = "",
    ) -> str:
        """Make this engine, which is in no swarm, the only manager of the swarm of a backup.

        :param backup: the file.
        :param passphrase: the passphrase or unlock key that opens it.
        :param advertise_addr: the address that other nodes reach this one at; that of the backup's manager if empty.
        :param listen_addr: the address and port of the cluster port.
        :param data_path_addr: the address that packets of overlay networks come in at.
        :returns: the id of this node.
        :raises Unauthorized: the passphrase does not open the file.
        :raises InvalidParameter: the file is no backup, or is damaged.
        :raises Unavailable: the engine is in a swarm.
        """
        query = {
            "advertiseAddr": advertise_addr or None,
            "listenAddr": listen_addr or None,
            "dataPathAddr": data_path_addr or None,
        }
        headers = {"Content-Type": "application/octet-stream", **_opened_by(passphrase)}
        async with self._calls.answer("POST", "/swarm/restore", query, backup, headers) as response:
            return str(json.loads(await response.read()))


class Node(Declared):
    """A node of a swarm.

    node = await engine.nodes.get("self")
    await node.update(labels={"disk": "ssd"})
    """

    @property
    def name(self) -> str:
        """The name of the host."""
        return str((self.attrs.get("Description") or {}).get("Hostname", ""))

    @property
    def state(self) -> str:
        """The state when it was last asked: ready, down, unknown or disconnected."""
        return str((self.attrs.get("Status") or {}).get("State", ""))

    @property
    def role(self) -> str:
        """The role: manager or worker."""
        return str(self._spec.get("Role", ""))

    @property
    def availability(self) -> str:
        """The availability: active, pause or drain."""
        return str(self._spec.get("Availability", ""))

    async def update(
        self,
        *,
        name: str | None = None,
        role: str | None = None,
        availability: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Change the node; what is None stays as it is.

        :param name: a name for it.
        :param role: `manager` or `worker`: promotes or demotes it.
        :param availability: `active`, `pause` or `drain`.
        :param labels: all labels from now on.
        """
        await self.reload()
        said = {"Name": name, "Role": role, "Availability": availability, "Labels": labels}
        spec = {**self._spec, **{key: value for key, value in said.items() if value is not None}}
        await self._calls.post(f"{self._path}/update", spec, {"version": self._version})
        await self.reload()

    async def remove(self, *, force: bool = False) -> None:
        """Forget the node.

        :param force: also while it is not down.
        :raises InvalidParameter: it is a manager, or is not down and `force` is not given.
        """
        await self._calls.delete(self._path, {"force": force})

    @property
    def _path(self) -> str:
        return f"/nodes/{self.id}"


class Nodes:
    """`engine.nodes`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def get(self, node: str) -> Node:
        """Find a node.

        :param node: its name or id; `self` is the engine's own.
        :returns: the node.
        :raises NotFound: there is none.
        """
        return Node(self._calls, await self._calls.get(f"/nodes/{node}"))

    async def list(self, *, filters: Mapping[str, Any] | None = None) -> list[Node]:
        """List the nodes.

        :param filters: conditions by name: `{"role": "manager"}`.
        :returns: the nodes.
        """
        return [Node(self._calls, each) for each in await self._calls.get("/nodes", {"filters": filters_of(filters)})]


def _opened_by(passphrase: str) -> dict[str, str]:
    return {"X-Husk-Passphrase": base64.urlsafe_b64encode(passphrase.encode()).decode()}


def _spec(
    spec: Mapping[str, Any],
    labels: Mapping[str, str] | None,
    history: int | None,
    autolock: bool | None,
    heartbeat: float | None,
    expiry: float | None,
) -> dict[str, Any]:
    found = dict(spec)
    if labels is not None:
        found["Labels"] = dict(labels)
    if history is not None:
        found["Orchestration"] = {**(found.get("Orchestration") or {}), "TaskHistoryRetentionLimit": history}
    if autolock is not None:
        found["EncryptionConfig"] = {"AutoLockManagers": autolock}
    if heartbeat is not None:
        found["Dispatcher"] = {"HeartbeatPeriod": nanoseconds(heartbeat)}
    if expiry is not None:
        found["CAConfig"] = {**(found.get("CAConfig") or {}), "NodeCertExpiry": nanoseconds(expiry)}
    return found
