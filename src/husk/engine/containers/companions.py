"""Who is told by `lifecycle` when a container starts and stops."""

from typing import TypeAlias

from husk.engine.containers.index import Instance
from husk.engine.model import companion

Companion: TypeAlias = companion.Companion[Instance]
