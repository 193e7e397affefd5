"""Removing what nobody uses, of all kinds at once: docker's `system prune`."""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from husk.client.containers import Containers
from husk.client.filters import filters_of
from husk.client.images import Images
from husk.client.networks import Networks
from husk.client.volumes import Volumes


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """The things that were removed: ids, names of volumes and networks, and how many bytes that makes free.

    print((await engine.prune(volumes=True)).space_reclaimed)
    """

    containers: list[str]  #: Ids of containers
    networks: list[str]  #: Names of networks
    volumes: list[str]  #: Names of volumes
    images: list[str]  #: Ids of images
    build_cache: list[str]  #: Ids of what builds had kept
    space_reclaimed: int  #: Bytes that are free now


class Engine(Protocol):
    """The collections that are pruned."""

    containers: Containers
    images: Images

    @property
    def networks(self) -> Networks: ...

    @property
    def volumes(self) -> Volumes: ...


async def pruned(engine: Engine, all: bool, volumes: bool, filters: Mapping[str, Any]) -> Pruned:
    """Containers go first: what they had is not used any more then."""
    wanted = filters_of(filters)
    # The age of volumes cannot be asked for.
    ageless = {name: value for name, value in wanted.items() if name != "until"}
    containers = await engine.containers.prune(wanted)
    networks = await engine.networks.prune(wanted)
    emptied = await engine.volumes.prune(ageless) if volumes else {}
    images = await engine.images.prune({**wanted, "dangling": not all})
    builds = await engine.images.prune_builds(all=all, filters=wanted)
    answers = (containers, emptied, images, builds)
    return Pruned(
        containers=list(containers.get("ContainersDeleted") or []),
        networks=list(networks.get("NetworksDeleted") or []),
        volumes=list(emptied.get("VolumesDeleted") or []),
        images=[each["Deleted"] for each in images.get("ImagesDeleted") or [] if "Deleted" in each],
        build_cache=list(builds.get("CachesDeleted") or []),
        space_reclaimed=sum(int(answer.get("SpaceReclaimed") or 0) for answer in answers),
    )
