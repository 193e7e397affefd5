"""A file system that never answers: whoever looks into it is stuck until it is gone, as with a server that is away."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from husk.kernel.mount import mount, unmount


@contextlib.contextmanager
def hanging(place: Path) -> Iterator[None]:
    place.mkdir()
    # The kernel asks who holds this descriptor; nobody reads the questions.
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    try:
        mount("hanging", str(place), "fuse", data=f"fd={device},rootmode=40000,user_id=0,group_id=0")
        yield
    finally:
        os.close(device)
        unmount(str(place), detach=True)
        place.rmdir()


def stuck_threads(pid: int) -> int:
    """Return how many threads of a process wait for such a file system."""
    found = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            found += (task / "wchan").read_text() in ("fuse_get_req", "request_wait_answer")
    return found
