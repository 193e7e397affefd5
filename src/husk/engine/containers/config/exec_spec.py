"""The runtime's document for another process in a container: mostly that of the container's first one."""

from collections.abc import Collection, Mapping
from typing import cast

import msgspec

from husk.engine.containers.config.spec import environment
from husk.engine.containers.drivers import Root
from husk.engine.model.container import Container
from husk.engine.model.container_config import ExecConfig
from husk.errors import InvalidParameter
from husk.runtime.spec import capabilities
from husk.runtime.spec.users import ProcessUser, resolve_user
from husk.text.documents import decode

Json = dict[str, object]


class _Bundle(msgspec.Struct):
    """The part of a bundle's config.json that is about the first process."""

    process: Json


def complete(config: ExecConfig, container: Container) -> ExecConfig:
    """The request with the container's own values where it has none."""
    if config.working_dir and not config.working_dir.startswith("/"):
        raise InvalidParameter(f"the working directory '{config.working_dir}' is invalid: it must be an absolute path")
    for entry in config.env:
        if not entry or entry.startswith("="):
            raise InvalidParameter(f"invalid environment variable: {entry}")
    if any("\0" in text for text in (*config.cmd, *config.env, config.user, config.working_dir)):
        raise InvalidParameter("an exec's value contains a NUL character")
    own = container.config
    return msgspec.structs.replace(
        config, user=config.user or own.user, working_dir=config.working_dir or own.working_dir or "/"
    )


def process(
    first: Mapping[str, object],
    container: Container,
    config: ExecConfig,
    user: ProcessUser | None,
    size: list[int] | None,
    available: Collection[str],
) -> Json:
    """The OCI process; `user` None is the first process's own."""
    own = [*container.config.env, *config.env]
    if user is None:
        home = "/" if "HOME=/" in cast(list[str], first.get("env", [])) else ""
    else:
        home = "" if user.listed else "/"
    spec: Json = {
        **first,
        "args": list(config.cmd),
        "env": list(environment(own, container.config.hostname, config.tty, home)),
        "cwd": config.working_dir,
        "terminal": config.tty,
    }
    spec.pop("consoleSize", None)
    size = size or config.console_size
    if config.tty and size and len(size) == 2 and all(size):
        spec["consoleSize"] = {"height": size[0], "width": size[1]}
    if user is not None:
        spec["user"] = {"uid": user.uid, "gid": user.gid, "additionalGids": list(user.additional_gids)}
    if config.privileged:
        every = list(capabilities.resolve(None, None, True, available))
        spec["capabilities"] = {"bounding": every, "effective": every, "permitted": every}
    return spec


def read_and_plan(
    bundle_config: bytes,
    root: Root,
    container: Container,
    config: ExecConfig,
    size: list[int] | None,
    available: Collection[str],
) -> Json:
    """`process` of a running container, with what has to be looked up in its files. Blocking."""
    first = decode(bundle_config, _Bundle).process
    user = find_user(root, container, config.user)
    return process(first, container, config, user, size, available)


def find_user(root: Root, container: Container, user: str) -> ProcessUser | None:
    """Look up `user` in the container; None for the one its first process runs as. Raises for a stranger. Blocking."""
    if user == container.config.user:
        return None
    groups = container.host_config.group_add or []
    return resolve_user(user, root.text_of("/etc/passwd"), root.text_of("/etc/group"), groups)
