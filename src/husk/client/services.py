"""Services and their tasks: the engine's, and each by itself."""

from collections.abc import Callable, Mapping
from typing import Any, Unpack

from husk.client.calls import Calls, field
from husk.client.credentials import REGISTRY_AUTH, Auth, Keychain, encoded
from husk.client.filters import filters_of
from husk.client.keywords import ServiceChanges, ServiceOptions
from husk.client.logs import Output, logs
from husk.client.misspelt import require_known
from husk.client.moments import Moment
from husk.client.service_spec import ServiceSpec, changed, document
from husk.client.spec import Command
from husk.client.thing import Declared, Listing, Thing
from husk.errors import HuskError, InvalidParameter

# What engines say to a change of what is not the newest any more.
_STALE = "update out of sequence"
_TRIES = 5


class _Logged(Thing):
    """A thing that writes: a service, or one of its tasks."""

    def logs(
        self,
        *,
        stdout: bool = True,
        stderr: bool = True,
        follow: bool = False,
        tail: int | str = "all",
        since: Moment = None,
        timestamps: bool = False,
        details: bool = False,
    ) -> Output:
        """Read the output that tasks have written.

        :param stdout: read their standard output.
        :param stderr: read their standard error.
        :param follow: go on with the output to come.
        :param tail: the number of lines to begin with, counted from the end; `all` for all.
        :param since: the moment of the first line: a time, seconds since 1970, or a length before now, as `10m`.
        :param timestamps: begin each line with its time.
        :param details: begin each line with its node, service and task.
        :returns: the output: await all of it, or iterate over it.
        """
        return logs(
            self._calls,
            f"{self._path}/logs",
            stdout=stdout,
            stderr=stderr,
            follow=follow,
            tail=tail,
            since=since,
            timestamps=timestamps,
            details=details,
        )


class Task(_Logged):
    """One attempt to run a service.

    for task in await service.tasks():
        print(task.slot, task.state, task.error)
    """

    @property
    def state(self) -> str:
        """The state when it was last asked: new, pending, preparing, starting, running, complete, failed and so on."""
        return str(self._status.get("State", ""))

    @property
    def desired_state(self) -> str:
        """The state that the swarm wants: running, shutdown and so on."""
        return str(self.attrs.get("DesiredState", ""))

    @property
    def slot(self) -> int:
        """The number of this copy of the service; 0 if copies are not counted."""
        return int(self.attrs.get("Slot", 0))

    @property
    def error(self) -> str:
        """The reason of a failure; empty without one."""
        return str(self._status.get("Err", ""))

    @property
    def service_id(self) -> str:
        """The id of its service."""
        return str(self.attrs.get("ServiceID", ""))

    @property
    def container_id(self) -> str:
        """The id of the container that it runs in; empty before there is one."""
        return str((self._status.get("ContainerStatus") or {}).get("ContainerID", ""))

    @property
    def _status(self) -> Mapping[str, Any]:
        return self.attrs.get("Status") or {}

    @property
    def _path(self) -> str:
        return f"/tasks/{self.id}"


class ServiceTasks:
    """`engine.tasks`: those of all services."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def get(self, task: str) -> Task:
        """Find a task.

        :param task: its id, or the beginning of the id.
        :returns: the task.
        :raises NotFound: there is none.
        """
        return Task(self._calls, await self._calls.get(f"/tasks/{task}"))

    async def list(self, *, filters: Mapping[str, Any] | None = None) -> list[Task]:
        """List the tasks of all services, also those that have ended.

        :param filters: conditions by name: `{"service": "web", "desired-state": "running"}`.
        :returns: the tasks.
        """
        found = await self._calls.get("/tasks", {"filters": filters_of(filters)})
        return [Task(self._calls, each) for each in found]


class Service(_Logged, Declared):
    """A service of a swarm: what shall run, and how often.

    service = await engine.services.create("app:1", name="web", replicas=2)
    await service.scale(3)
    """

    @property
    def version(self) -> int:
        """The version of the state in `attrs`. A change that begins with an older version is refused."""
        return self._version

    @property
    def replicas(self) -> int | None:
        """The number of copies that shall run; None if the service has one on each node."""
        mode = self._spec.get("Mode") or {}
        if "Replicated" in mode:
            return int((mode["Replicated"] or {}).get("Replicas", 1))
        if "ReplicatedJob" in mode:
            return int((mode["ReplicatedJob"] or {}).get("TotalCompletions", 1))
        return None

    async def update(self, *, auth: Auth | None = None, **changes: Unpack[ServiceChanges]) -> None:
        """Change the service; fields that are not given stay as the engine has them now.

        Tasks are replaced as `update_config` says.

        :param auth: `username` and `password` for the registry of the image; as before if None.
        :param changes: fields of `ServiceSpec`.
        :raises InvalidParameter: a field is unknown or makes no sense; nothing was changed.
        """
        await self._update(lambda spec: changed(spec, changes), auth=auth)

    async def edit(self, change: Callable[[Mapping[str, Any]], dict[str, Any]], *, auth: Auth | None = None) -> None:
        """Change the service by a function of its specification; it is called again if the engine changes that, too.

        await service.edit(lambda spec: {**spec, "Labels": {"team": "red"}})

        :param change: gets the specification as the API has it, and returns the new one.
        :param auth: `username` and `password` for the registry of the image; as before if None.
        :raises InvalidParameter: a field is unknown or makes no sense; nothing was changed.
        """
        await self._update(change, auth=auth)

    async def scale(self, replicas: int) -> None:
        """Set the number of copies.

        :param replicas: the number.
        :raises InvalidParameter: the service has one task on each node.
        """
        if self.replicas is None:
            raise InvalidParameter(f"{self.name} has one task on each node: it cannot be scaled")
        await self.update(replicas=replicas)

    async def rollback(self) -> None:
        """Go back to the settings before the last change.

        :raises InvalidParameter: there was no change.
        """
        await self._update(dict, rollback="previous")

    async def force_update(self) -> None:
        """Replace all tasks, although nothing has changed."""

        def once_more(spec: Mapping[str, Any]) -> dict[str, Any]:
            count = int((spec.get("TaskTemplate") or {}).get("ForceUpdate", 0))
            return changed(spec, {"extra": {"TaskTemplate": {"ForceUpdate": count + 1}}})

        await self._update(once_more)

    async def tasks(self, *, filters: Mapping[str, Any] | None = None) -> list[Task]:
        """List the tasks of the service, also those that have ended.

        :param filters: conditions by name: `{"desired-state": "running"}`.
        :returns: the tasks.
        """
        wanted = {**filters_of(filters), "service": [self.id]}
        return [Task(self._calls, each) for each in await self._calls.get("/tasks", {"filters": wanted})]

    async def remove(self) -> None:
        """End all tasks, and forget the service."""
        await self._calls.delete(self._path)

    async def _update(
        self,
        change: Callable[[Mapping[str, Any]], dict[str, Any]],
        *,
        rollback: str | None = None,
        auth: Auth | None = None,
    ) -> None:
        """Change what it is now. The engine may change it too, as tasks come and go: then once more, with that."""
        headers = {} if auth is None else {REGISTRY_AUTH: encoded(auth)}
        for left in reversed(range(_TRIES)):
            await self.reload()
            query = {"version": self.version, "rollback": rollback}
            try:
                await self._calls.post(f"{self._path}/update", change(self._spec), query, headers)
                break
            except HuskError as error:
                if _STALE not in error.message or not left:
                    raise
        await self.reload()

    @property
    def _path(self) -> str:
        return f"/services/{self.id}"


class Services:
    """`engine.services`. They need a swarm: `await engine.swarm.init()`."""

    def __init__(self, calls: Calls, keychain: Keychain | None = None) -> None:
        self._calls = calls
        self._keychain = keychain or Keychain()

    async def create(
        self,
        image: str | ServiceSpec,
        command: Command = None,
        *,
        auth: Auth | None = None,
        **spec: Unpack[ServiceOptions],
    ) -> Service:
        """Make a service. A call that is cancelled leaves none behind.

        :param image: the name of an image, or a specification.
        :param command: the command and its arguments; a single string is taken apart as a shell does it.
        :param auth: `username` and `password` for the registry; a login or docker's own files say them if None.
        :param spec: the fields of `ServiceSpec`.
        :returns: the service.
        :raises Conflict: the name is taken.
        :raises InvalidParameter: a field is unknown or makes no sense; nothing was made.
        :raises Unavailable: the engine is no manager of a swarm.
        """
        wanted = image if isinstance(image, ServiceSpec) else _spec(image, command, spec)
        headers = await self._keychain.headers_for(wanted.image, auth)

        async def created() -> Service:
            answer = await self._calls.post("/services/create", document(wanted), {}, headers)
            return await self.get(field(answer, "ID"))

        return await self._calls.made(created(), Service.remove)

    async def get(self, name: str, *, insert_defaults: bool = False) -> Service:
        """Find a service.

        :param name: its name, its id, or the beginning of the id.
        :param insert_defaults: fill in what its settings leave to the engine.
        :returns: the service.
        :raises NotFound: there is none.
        """
        query = {"insertDefaults": insert_defaults or None}
        return Service(self._calls, await self._calls.get(f"/services/{name}", query))

    async def list(self, *, filters: Mapping[str, Any] | None = None, status: bool = False) -> list[Service]:
        """List the services.

        :param filters: conditions by name: `{"mode": "replicated"}`.
        :param status: tell how many tasks run, in `attrs`.
        :returns: the services.
        """
        query = {"filters": filters_of(filters), "status": status}
        return Listing(Service(self._calls, each) for each in await self._calls.get("/services", query))


def _spec(image: str, command: Command, keywords: Mapping[str, Any]) -> ServiceSpec:
    require_known(keywords, ServiceSpec.__struct_fields__, "a service", "ServiceSpec")
    return ServiceSpec(image=image, command=command, **keywords)
