"""The parts of what builds keep on the disk: diffs, contexts, mirrors of clients' directories, and trees of these."""

import asyncio
from contextlib import AsyncExitStack
from typing import NamedTuple

from husk.builder.store.contexts import Contexts
from husk.builder.store.diffs import DiffStore
from husk.builder.store.sync.mirrors import Mirrors
from husk.builder.store.trees import Trees
from husk.builder.store.workers import jobs
from husk.builder.surroundings import BuildSurroundings


class StoreParts(NamedTuple):
    diffs: DiffStore
    contexts: Contexts
    mirrors: Mirrors
    trees: Trees


async def open_store(around: BuildSurroundings, stack: AsyncExitStack) -> StoreParts:
    images, nursery = around.store, around.nursery
    nursery.load(jobs.__name__, soon=False)
    diffs = await DiffStore.open(images.layers, around.state, images.blobs, nursery, power_held=around.power_held)
    stack.push_async_callback(diffs.close)
    mirrors = await asyncio.to_thread(Mirrors.open, around.config.data_root / "mirrors", diffs, nursery)
    stack.push_async_callback(mirrors.close)
    return StoreParts(diffs, Contexts(diffs, nursery), mirrors, Trees(diffs, nursery, mirrors.table))
