"""What a start of the daemon does not need: each is loaded and built when it is first asked for."""

from functools import cached_property
from typing import TYPE_CHECKING

from husk.engine.containers.index import Publish
from husk.engine.containers.parts import Parts
from husk.engine.host import Host
from husk.engine.images.store import ImageStore
from husk.engine.networks.service import Networks
from husk.runtime.assembly.assembly import Assembly
from husk.runtime.runtimes import Runtimes
from husk.storage.workers.nursery import Nursery

if TYPE_CHECKING:
    from husk.engine.containers.commit import Committer
    from husk.engine.containers.connect import Connections
    from husk.engine.containers.copy import Copier, Differ
    from husk.engine.containers.stats import Statistics
    from husk.engine.containers.top import Top
    from husk.engine.containers.update import Updater


class LateParts:
    def __init__(
        self,
        *,
        parts: Parts,
        assembly: Assembly,
        runtimes: Runtimes,
        host: Host,
        networks: Networks,
        image_store: ImageStore,
        nursery: Nursery,
        publish: Publish,
    ) -> None:
        self._parts = parts
        self._assembly = assembly
        self._runtimes = runtimes
        self._host = host
        self._networks = networks
        self._image_store = image_store
        self._nursery = nursery
        self._publish = publish

    @cached_property
    def copier(self) -> "Copier":
        from husk.engine.containers.copy import Copier

        return Copier(self._parts.index, self._assembly, self._parts.roots, self._nursery, self._publish)

    @cached_property
    def differ(self) -> "Differ":
        from husk.engine.containers.copy import Differ

        return Differ(self._parts.index, self._assembly, self._parts.roots)

    @cached_property
    def statistics(self) -> "Statistics":
        from husk.engine.containers.stats import Statistics

        return Statistics(self._parts.index, self._assembly.paths)

    @property
    def workers_employed(self) -> int:
        """How many worker processes there have been."""
        return self._nursery.employed

    def worker_processes(self) -> int:
        """How many there are now. It reads a file: not for the event loop."""
        return self._nursery.processes()

    @cached_property
    def top(self) -> "Top":
        from husk.engine.containers.top import Top

        return Top(self._parts.index, self._assembly.paths, self._publish)

    @cached_property
    def updater(self) -> "Updater":
        from husk.engine.containers.update import Updater

        return Updater(self._parts.index, self._assembly.paths, self._runtimes, self._host, self._publish)

    @cached_property
    def connections(self) -> "Connections":
        from husk.engine.containers.connect import Connections

        return Connections(self._parts.index, self._networks, self._assembly.paths, self._parts.tasks)

    @cached_property
    def committer(self) -> "Committer":
        from husk.engine.containers.commit import Committer

        return Committer(self._image_store, self._parts.index, self._assembly, self._parts.pauser, self._publish)
