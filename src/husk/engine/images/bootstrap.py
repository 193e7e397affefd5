"""The first image, for hosts where no registry is in reach: a busybox made from the host's own static busybox."""

import logging

from msgspec.structs import replace

from husk.engine.images.make import make_image
from husk.engine.images.store import ImageStore
from husk.engine.model.clock import now_ns, rfc3339
from husk.engine.model.container_config import ContainerConfig
from husk.engine.model.image import HistoryEntry, ImageConfig, RootFS
from husk.registry import reference as references
from husk.registry.manifest import host_platform
from husk.storage.busybox import root_file_system

log = logging.getLogger(__name__)

NAME = "busybox:latest"
MEDIA_TYPE = "application/vnd.docker.image.rootfs.diff.tar"


async def make_busybox(store: ImageStore) -> bool:
    """Make the image if the host has a static busybox; whether it did."""
    archive = await root_file_system()
    if archive is None:
        return False
    created = now_ns()
    async with store.layers.ingest(None, MEDIA_TYPE) as ingest:
        await ingest.write(archive)
        layer = await store.layers.commit(await ingest.finish(), "")
    platform = host_platform()
    document = ImageConfig(
        architecture=platform.architecture,
        os=platform.os,
        created=rfc3339(created),
        config=ContainerConfig(cmd=["sh"], env=["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]),
        rootfs=RootFS(diff_ids=[layer.diff_id]),
        history=[HistoryEntry(created=rfc3339(created), created_by="husk: the host's static busybox")],
    )
    image = await make_image(store.blobs, document, [layer])
    await store.catalog.add(replace(image, last_tagged=rfc3339(created)), references.parse(NAME))
    log.info("made the image %s from this host's busybox", NAME)
    return True
