"""Who has to know when a container starts and stops? Work that lives beside a container's process, never longer."""

from husk.engine.containers.index import Instance


class Companion:
    """Told by `lifecycle`, with the container's lock held; what it is told takes no time."""

    async def starting(self, instance: Instance) -> None:
        """The process is about to be made; what is raised here keeps it from that."""

    def running(self, instance: Instance) -> None:
        """The process runs: it was started or thawed, or a former daemon started it."""

    def paused(self, instance: Instance) -> None:
        """The process is frozen."""

    def ended(self, instance: Instance) -> None:
        """The process has ended."""
