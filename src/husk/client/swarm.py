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
        """Return the document of the swarm: `ID`, `Spec`, `JoinTokens` … Unavailable if the engine is in none."""
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
        """Make one out of this engine: the id of its node. `spec` is the API's own document, for what has no name here.

        Who is cancelled meanwhile leaves none behind.
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
        """Make this engine a node of another one's; NotImplementedYet says where the engine cannot."""
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
        """Leave it; the last manager needs `force`, and takes all services, secrets and configs along."""
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
        """Change its settings, or its tokens; what is not said stays as it is. Times in seconds."""
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
        """Return the key that unlocks a manager after a restart; empty if it needs none."""
        return str(field(await self._calls.get("/swarm/unlockkey"), "UnlockKey"))

    async def unlock(self, key: str) -> None:
        """Let a manager that was restarted go on."""
        await self._calls.post("/swarm/unlock", {"UnlockKey": key})

    async def backup(self, passphrase: str = "") -> bytes:
        """All of it in one file: services, secrets, configs, networks, nodes, tokens and the CA's key, sealed with the
        passphrase. One with autolock takes none: its unlock key opens the file. A Husk alone can do this."""
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
        """Make this engine, which is in none, the only manager of the swarm of a backup: the id of its node.

        Without an address it has that of the manager that made the backup."""
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
        return str((self.attrs.get("Description") or {}).get("Hostname", ""))

    @property
    def state(self) -> str:
        return str((self.attrs.get("Status") or {}).get("State", ""))

    @property
    def role(self) -> str:
        return str(self._spec.get("Role", ""))

    @property
    def availability(self) -> str:
        """active, pause or drain."""
        return str(self._spec.get("Availability", ""))

    async def update(
        self,
        *,
        name: str | None = None,
        role: str | None = None,
        availability: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Change it; what is not said stays as it is."""
        await self.reload()
        said = {"Name": name, "Role": role, "Availability": availability, "Labels": labels}
        spec = {**self._spec, **{key: value for key, value in said.items() if value is not None}}
        await self._calls.post(f"{self._path}/update", spec, {"version": self._version})
        await self.reload()

    async def remove(self, *, force: bool = False) -> None:
        """Forget it; InvalidParameter while it is a manager."""
        await self._calls.delete(self._path, {"force": force})

    @property
    def _path(self) -> str:
        return f"/nodes/{self.id}"


class Nodes:
    """`engine.nodes`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def get(self, node: str) -> Node:
        """By name or id; `self` is the engine's own."""
        return Node(self._calls, await self._calls.get(f"/nodes/{node}"))

    async def list(self, *, filters: Mapping[str, Any] | None = None) -> list[Node]:
        """All, or those that the filters let through."""
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
