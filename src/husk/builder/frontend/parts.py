"""The parts that make results of what clients ask for: solver, frontends, and the builds themselves."""

from functools import cached_property

from husk.builder.cache.cache import BuildCache
from husk.builder.frontend.dockerfile_frontend import DockerfileFrontend
from husk.builder.frontend.gateway import Bridge, GatewayFrontend
from husk.builder.frontend.reading.definitions import Definitions
from husk.builder.frontend.reading.dockerfiles import Dockerfiles
from husk.builder.jobs.jobs import Jobs
from husk.builder.solver.execution import Execution
from husk.builder.solver.solver import Solver
from husk.builder.sources.parts import SourceParts
from husk.builder.steps.parts import StepParts
from husk.builder.store.parts import StoreParts
from husk.builder.store.workers.parser import Parsers
from husk.builder.surroundings import BuildSurroundings


class FrontendParts:
    def __init__(
        self, around: BuildSurroundings, store: StoreParts, cache: BuildCache, sources: SourceParts, steps: StepParts
    ) -> None:
        self._sources = sources
        self._steps = steps
        self._bridge: Bridge | None = None
        parsers = Parsers(around.nursery)
        self.definitions = Definitions(parsers)
        self.dockerfiles = Dockerfiles(parsers)
        self.execution = Execution(sources.by_scheme, store.trees, steps.run, store.contexts, self.definitions.read)
        self.solver = Solver(self.execution, cache, around.watch)
        builtin = DockerfileFrontend(
            self.solver, store.contexts, sources.images, lambda: sources.layouts, self.dockerfiles
        )
        self.jobs = Jobs(self.solver, builtin, lambda: self.gateway, steps.run.held, steps.remains)

    @cached_property
    def gateway(self) -> GatewayFrontend:
        frontend = GatewayFrontend(self._sources.images, self._steps.run)
        frontend.bridge = self._bridge
        return frontend

    def understand(self, bridge: Bridge) -> None:
        """Let `bridge` answer frontends that are images. It is known before the first of them is asked for."""
        self._bridge = bridge
