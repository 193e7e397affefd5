"""Husk without one of its shortcuts for copies, to see what that is worth to a user: `bench/copies.py` starts it.

    sudo python bench/copies.py husk husk-without-look husk-without-small husk-without-body husk-without-outlet

`look`: every path is looked at by a worker. `small`: a few small files go through a worker like all others. `body` and
`outlet`: what a client sends or gets passes through the daemon. The product has no switch for any of this: here the
functions are exchanged before the daemon starts.
"""

import contextlib
import sys
from collections.abc import Iterator

SHORTCUTS = ("look", "small", "body", "outlet")


def without_look() -> None:
    from husk.engine.containers import copy

    copy.look = lambda *arguments: None  # type: ignore[assignment]


def without_small() -> None:
    from husk.api.routes import container_files
    from husk.engine.containers import copy

    async def put_small(*arguments: object) -> bool:
        return False

    copy.read_small = lambda *arguments: None  # type: ignore[assignment]
    container_files._put_small = put_small  # type: ignore[assignment]


def without_body() -> None:
    from husk.api.http.upload import Body

    @contextlib.contextmanager
    def handed_over(self: Body) -> Iterator[None]:
        yield None

    Body.handed_over = handed_over  # type: ignore[assignment,method-assign]
    Body.consumed = lambda self: None  # type: ignore[method-assign]


def without_outlet() -> None:
    from husk.api.routes import container_files

    @contextlib.contextmanager
    def lent_socket(request: object) -> Iterator[None]:
        yield None

    container_files.lent_socket = lent_socket  # type: ignore[assignment]


def main() -> None:
    shortcut = sys.argv.pop(1)
    {"look": without_look, "small": without_small, "body": without_body, "outlet": without_outlet}[shortcut]()
    from husk.cli import main as husk

    husk()


if __name__ == "__main__":
    main()
