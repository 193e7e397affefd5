"""Work that lives beside a container's process, never longer, and is told when that starts and stops."""

from typing import Generic, TypeVar

C_contra = TypeVar("C_contra", contravariant=True)


class Companion(Generic[C_contra]):
    """`C_contra` is what it has to know of a container.

    It is told with the container's lock held, so what it is told must take no time.
    """

    async def starting(self, container: C_contra, /) -> None:
        """The process is about to be made; what is raised here keeps it from that."""

    def running(self, container: C_contra, /) -> None:
        """The process runs: it was started or thawed, or a former daemon started it."""

    def paused(self, container: C_contra, /) -> None:
        """The process is frozen."""

    def ended(self, container: C_contra, /) -> None:
        """The process has ended."""
