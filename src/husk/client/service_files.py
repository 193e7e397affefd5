"""Secrets and configs: values that the tasks of services get as files."""

import base64
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from husk.client.calls import Calls, field
from husk.client.filters import filters_of
from husk.client.service_spec import ServiceFile
from husk.client.thing import Declared

T = TypeVar("T", bound="_Kept")


class _Kept(Declared):
    """The common part of secrets and configs."""

    _kind = ""

    def reference(self, filename: str = "", *, uid: str = "0", gid: str = "0", mode: int = 0o444) -> ServiceFile:
        """Describe the value as a file of a service's tasks.

        :param filename: the name of the file; the name of the value if empty.
        :param uid: the owner.
        :param gid: the group.
        :param mode: the permissions.
        :returns: the description, for `secrets` or `configs` of `ServiceSpec`.
        """
        return ServiceFile(id=self.id, name=self.name, filename=filename or self.name, uid=uid, gid=gid, mode=mode)

    async def update(self, *, labels: Mapping[str, str]) -> None:
        """Change the labels; nothing else can be changed.

        :param labels: all labels from now on.
        """
        await self.reload()
        spec = {**self._spec, "Labels": dict(labels)}
        await self._calls.post(f"{self._path}/update", spec, {"version": self._version})
        await self.reload()

    async def remove(self) -> None:
        """Remove the value.

        :raises InvalidParameter: a service has it.
        """
        await self._calls.delete(self._path)

    @property
    def _path(self) -> str:
        return f"/{self._kind}/{self.id}"


class ServiceSecret(_Kept):
    """A value that an engine keeps sealed, and never tells.

    secret = await engine.secrets.create("password", b"hunter2")
    await engine.services.create("app:1", secrets=[secret.reference()])
    """

    _kind = "secrets"


class ServiceConfig(_Kept):
    """A value that an engine keeps, and tells.

    config = await engine.configs.create("nginx", b"server {}")
    print(config.data)
    """

    _kind = "configs"

    @property
    def data(self) -> bytes:
        """The value."""
        return base64.b64decode(self._spec.get("Data") or "")


class _Collection(Generic[T]):
    def __init__(self, calls: Calls, of: type[T]) -> None:
        self._calls = calls
        self._of = of

    async def create(
        self, name: str, data: bytes | str, *, labels: Mapping[str, str] | None = None, templating: str = ""
    ) -> T:
        """Keep a value. A call that is cancelled leaves none behind.

        :param name: the name.
        :param data: the value.
        :param labels: labels.
        :param templating: `golang` if the value names what differs between tasks, as a template of Go does.
        :returns: the kept value.
        :raises Conflict: the name is taken.
        :raises Unavailable: the engine is no manager of a swarm.
        """
        value = data.encode() if isinstance(data, str) else data
        document = {"Name": name, "Labels": dict(labels or {}), "Data": base64.b64encode(value).decode()}
        if templating:
            document["Templating"] = {"Name": templating}

        async def created() -> T:
            answer = await self._calls.post(f"{self._path}/create", document)
            return await self.get(field(answer, "ID"))

        return await self._calls.made(created(), self._of.remove)

    async def get(self, name: str) -> T:
        """Find a value.

        :param name: its name, its id, or the beginning of the id.
        :returns: the kept value.
        :raises NotFound: there is none.
        """
        return self._of(self._calls, await self._calls.get(f"{self._path}/{name}"))

    async def list(self, *, filters: Mapping[str, Any] | None = None) -> list[T]:
        """List the values.

        :param filters: conditions by name: `{"name": "password"}`.
        :returns: the kept values.
        """
        found = await self._calls.get(self._path, {"filters": filters_of(filters)})
        return [self._of(self._calls, each) for each in found]

    @property
    def _path(self) -> str:
        return f"/{self._of._kind}"


class Secrets(_Collection[ServiceSecret]):
    """`engine.secrets`."""

    def __init__(self, calls: Calls) -> None:
        super().__init__(calls, ServiceSecret)


class Configs(_Collection[ServiceConfig]):
    """`engine.configs`."""

    def __init__(self, calls: Calls) -> None:
        super().__init__(calls, ServiceConfig)
