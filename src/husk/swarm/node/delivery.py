"""Secrets and configs come into a task as files in memory, bound into its container one by one.

Each task that has any gets a tmpfs of its own below the exec root while it lives: the values are never on a disk. The
container sees only the files, read-only, at the places that the service names.
"""

import asyncio
import logging
import posixpath
from collections.abc import Callable, Collection
from typing import Protocol

from msgspec import Struct

from husk.engine.model.container_config import Mount
from husk.errors import HuskError, InvalidParameter
from husk.storage.secrets.sealing import Sealer
from husk.storage.secrets.task_files import TaskFile, TaskFiles
from husk.swarm.model.services import ContainerSpec, FileTarget, Task
from husk.swarm.spec.expand import payload
from husk.swarm.state.records import SwarmRecords
from husk.text.gotemplate import Structure

SECRETS = "/run/secrets"


log = logging.getLogger(__name__)


class DeliveredFile(Struct, frozen=True):
    """One file of a task."""

    record_id: str
    kind: str
    target: str
    owner: FileTarget


def files_of(spec: ContainerSpec | None) -> list[DeliveredFile]:
    """The files that a template asks for, and where. Pure."""
    if spec is None:
        return []
    secrets = [
        DeliveredFile(r.secret_id, "secret", posixpath.join(SECRETS, r.file.name or r.secret_name), r.file)
        for r in spec.secrets
        if r.file is not None
    ]
    configs = [
        DeliveredFile(r.config_id, "config", posixpath.join("/", r.file.name or r.config_name), r.file)
        for r in spec.configs
        if r.file is not None
    ]
    return secrets + configs


class Value(Struct, frozen=True):
    """The content of a secret or a config; `templated` if it has templates in it."""

    data: bytes
    templated: bool = False


class Values(Protocol):
    """The source from which a node has the secrets and configs of its tasks."""

    def value(self, kind: str, record_id: str) -> Value:
        """Blocks; raises where there is none."""
        ...


class SealedValues:
    """Those of a manager: they are in the records, sealed."""

    def __init__(self, store: SwarmRecords, sealer: Sealer) -> None:
        self._store = store
        self._sealer = sealer

    def value(self, kind: str, record_id: str) -> Value:
        records = self._store.secrets if kind == "secret" else self._store.configs
        if (record := records.get(record_id)) is None:
            raise InvalidParameter(f"{kind} {record_id} not found")
        templated = record.templating is not None and bool(record.templating.name)
        return Value(self._sealer.unseal(record.sealed, record.context), templated)


class Deliveries:
    def __init__(self, files: TaskFiles, values: Values) -> None:
        self._files = files
        self._values = values

    async def deliver(self, task: Task, words: Structure) -> list[Mount]:
        """Write the files of a task; the mounts that bring them into its container."""
        spec = task.spec.container_spec
        if spec is None or not (files := files_of(spec)):
            return []
        return await asyncio.to_thread(self._write, task.id, files, spec, words)

    async def release(self, task: Task) -> None:
        """Drop the files of a task that has ended. Safe to call twice."""
        if files_of(task.spec.container_spec):
            await asyncio.to_thread(self._files.drop, task.id)

    async def sweep(self, alive: Collection[str]) -> None:
        """Drop what an earlier daemon left of tasks that do not live any more; these do."""
        await asyncio.to_thread(self._sweep, alive)

    def _write(self, task_id: str, files: list[DeliveredFile], spec: ContainerSpec, words: Structure) -> list[Mount]:
        contents = [
            TaskFile(
                self._value(file, files, spec, words),
                _number(file.owner.uid),
                _number(file.owner.gid),
                file.owner.mode & 0o7777,
            )
            for file in files
        ]
        paths = self._files.write(task_id, contents)
        return [
            Mount(type="bind", source=str(path), target=file.target, read_only=True)
            for file, path in zip(files, paths, strict=True)
        ]

    def _value(self, file: DeliveredFile, files: list[DeliveredFile], spec: ContainerSpec, words: Structure) -> bytes:
        value = self._values.value(file.kind, file.record_id)
        if not value.templated:
            return value.data

        def others(kind: str) -> Callable[[str], str]:
            return lambda name: self._named(name, kind, files).decode(errors="surrogateescape")

        try:
            return payload(value.data, words, spec, {"secret": others("secret"), "config": others("config")})
        except HuskError as error:
            raise InvalidParameter(
                f"failed to expand templated {file.kind} {file.record_id}: {error.message}"
            ) from error

    def _named(self, name: str, kind: str, files: list[DeliveredFile]) -> bytes:
        """Another file of the task, by the name that the service gives it; as it is kept, whatever templates it has."""
        found = next((file for file in files if file.kind == kind and file.owner.name == name), None)
        if found is None:
            raise InvalidParameter(f"{kind} target {name} not found")
        return self._values.value(found.kind, found.record_id).data

    def _sweep(self, alive: Collection[str]) -> None:
        for name in self._files.tasks():
            if name not in alive:
                try:
                    self._files.drop(name)
                except OSError as error:
                    log.error("cannot release the secrets of task %s: %s", name, error)


def _number(text: str) -> int:
    try:
        return int(text or "0")
    except ValueError:
        raise InvalidParameter(f"invalid owner {text!r} of a secret or config: a number is needed") from None
