"""The parts of the engine that builds share with the rest of it."""

from msgspec import Struct

from husk.config import Config
from husk.engine.host import EngineHost
from husk.engine.images.service import Images
from husk.engine.images.store import ImageStore
from husk.engine.networks.service import Networks
from husk.registry.client import RegistryClient
from husk.runtime.assembly.paths import Paths
from husk.runtime.runtimes import Runtimes
from husk.storage.state.store import StateStore
from husk.storage.workers.nursery import Nursery
from husk.watch import Watch


class BuildSurroundings(Struct, frozen=True, kw_only=True):
    config: Config
    state: StateStore
    store: ImageStore
    images: Images
    networks: Networks
    runtimes: Runtimes
    host: EngineHost
    paths: Paths
    nursery: Nursery
    registry: RegistryClient
    watch: Watch
    power_held: bool  # has it, since the last daemon ran?
