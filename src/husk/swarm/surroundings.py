"""The parts of the engine that the swarm is built on."""

from typing import NamedTuple

from husk.config import Config
from husk.engine.containers.service import Containers
from husk.engine.images.service import Images
from husk.engine.model.events import Events
from husk.engine.networks.service import Networks
from husk.storage.secrets import memory
from husk.storage.secrets.member_key import Memory
from husk.storage.state.store import StateStore
from husk.swarm.model.node import Machine


class SwarmSurroundings(NamedTuple):
    config: Config
    state: StateStore
    events: Events
    containers: Containers
    images: Images
    networks: Networks
    machine: Machine
    memory: Memory = memory
