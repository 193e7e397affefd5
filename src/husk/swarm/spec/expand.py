"""Templates of a service, expanded for one of its tasks in its container's settings, secrets and configs. Pure."""

from collections.abc import Callable, Mapping

import msgspec

from husk.engine.model.container_config import Mount
from husk.errors import HuskError, InvalidParameter
from husk.swarm.model.placement import NodeFacts
from husk.swarm.model.services import ContainerSpec, Service, Task
from husk.text.gotemplate import Effort, Structure, parse

_SAMPLE = "sample"


def words_of(task: Task, service: Service, node: NodeFacts) -> Structure:
    """Return the words that a template can use of a task."""
    return _words(
        service=(service.id, service.spec.name, service.spec.labels),
        node=(node.id, node.hostname, node.architecture, node.os),
        task=(task.id, task.name, str(task.slot) if task.slot else node.id),
    )


def _words(
    service: tuple[str, str, dict[str, str]], node: tuple[str, str, str, str], task: tuple[str, str, str]
) -> Structure:
    platform = Structure(Architecture=node[2], OS=node[3])
    return Structure(
        Service=Structure(ID=service[0], Name=service[1], Labels=service[2]),
        Node=Structure(ID=node[0], Hostname=node[1], Platform=platform),
        Task=Structure(ID=task[0], Name=task[1], Slot=task[2]),
    )


def check(spec: ContainerSpec, labels: dict[str, str]) -> None:
    """Raise where a template cannot be understood, as far as that can be told without a task."""
    words = _words((_SAMPLE, _SAMPLE, labels), (_SAMPLE,) * 4, (_SAMPLE, _SAMPLE, "1"))
    try:
        expanded(spec, words)
    except HuskError as error:
        raise InvalidParameter(f"rpc error: code = InvalidArgument desc = {error.message}") from error


def expanded(spec: ContainerSpec, words: Structure) -> ContainerSpec:
    """The template of a container with variables, mounts and host name as they are for one task.

    Templates of thousands of variables take seconds: call it from a thread.
    """
    reader = _Reader(words)
    return msgspec.structs.replace(
        spec,
        env=[reader.variable(entry) for entry in spec.env],
        mounts=[reader.mount(mount) for mount in spec.mounts],
        hostname=reader.text(spec.hostname, "expanding hostname failed"),
    )


# `secret` and `config`: from the name of a file to what is in it.
Getters = Mapping[str, Callable[[str], str]]


def payload(value: bytes, words: Structure, spec: ContainerSpec, files: Getters) -> bytes:
    """Expand a secret or a config with templates in it for one task. `files` are the others that it has."""

    def variable(name: object) -> str:
        pairs = (entry.partition("=") for entry in spec.env)
        return next((text for key, sign, text in pairs if sign and key == name), "")

    functions: dict[str, Callable[..., object]] = {**files, "env": variable}
    text = value.decode(errors="surrogateescape")
    return parse(text).render(words, functions).encode(errors="surrogateescape")


class _Reader:
    """Reads the templates of one container, which share what they may cost."""

    def __init__(self, words: Structure) -> None:
        self._words = words
        self._effort = Effort()

    def text(self, text: str, what: str) -> str:
        if "{{" not in text:
            return text
        try:
            return parse(text).render(self._words, {}, self._effort)
        except HuskError as error:
            raise InvalidParameter(f"{what}: {error.message}") from error

    def variable(self, entry: str) -> str:
        name, sign, value = entry.partition("=")
        return name + sign + self.text(value, f'expanding env failed: expanding env "{entry}"')

    def mount(self, mount: Mount) -> Mount:
        what = "expanding mounts failed: expanding mount"
        source = self.text(mount.source, f'{what} source "{mount.source}"')
        target = self.text(mount.target, f'{what} target "{mount.target}"')
        options = mount.volume_options
        if options is not None:
            options = msgspec.structs.replace(options, labels=self._map(options.labels))
            if (driver := options.driver_config) is not None:
                driver = msgspec.structs.replace(driver, options=self._map(driver.options))
                options = msgspec.structs.replace(options, driver_config=driver)
        return msgspec.structs.replace(mount, source=source, target=target, volume_options=options)

    def _map(self, entries: dict[str, str] | None) -> dict[str, str] | None:
        what = "expanding mounts failed: expanding map entry"
        return entries and {key: self.text(value, f'{what} "{key}={value}"') for key, value in entries.items()}
