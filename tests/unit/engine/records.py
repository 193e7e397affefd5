"""Containers and images for tests, in one word each."""

import hashlib
import itertools
from collections.abc import Sequence

from husk.engine.model.clock import rfc3339
from husk.engine.model.container import Container, State, Status
from husk.engine.model.container_config import ContainerConfig, HostConfig
from husk.engine.model.image import Image

SECOND = 10**9
_numbers = itertools.count(1)


def digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def container(
    name: str = "",
    *,
    status: Status = "created",
    exit_code: int = 0,
    image: str = "",
    created_ns: int | None = None,
    config: ContainerConfig | None = None,
    host_config: HostConfig | None = None,
    layers: Sequence[str] | None = None,
    id: str = "",
) -> Container:
    number = next(_numbers)
    name = name or f"container_{number}"
    created = number * SECOND if created_ns is None else created_ns
    return Container(
        id=id or hashlib.sha256(name.encode()).hexdigest(),
        name=name,
        created=rfc3339(created),
        created_ns=created,
        image_id=image,
        config=config or ContainerConfig(),
        host_config=host_config or HostConfig(),
        path="true",
        args=[],
        state=State(status=status, exit_code=exit_code),
        layers=layers or [],
    )


def image(name: str, *, parent: str = "", created_ns: int | None = None, labels: dict[str, str] | None = None) -> Image:
    number = next(_numbers)
    return Image(
        id=digest(name),
        created=rfc3339(number * SECOND if created_ns is None else created_ns),
        architecture="amd64",
        os="linux",
        config=ContainerConfig(labels=labels or {}),
        diff_ids=[digest(name + " diff")],
        chain_ids=[digest(name + " chain")],
        parent=parent,
        manifest=digest(name + " manifest"),
    )
