"""Husk without one of its shortcuts for copies, to see what that is worth to a user: `bench.copies` starts it.

    sudo .venv/bin/python -m bench.copies --engines husk,husk-without-body,husk-without-outlet

`body` and `outlet`: what a client sends or gets passes through the daemon. The product has no switch for any of this:
here the functions are exchanged before the daemon starts.
"""

import contextlib
import sys
from collections.abc import Iterator

SHORTCUTS = ("body", "outlet")


def exchange(owner: object, name: str, other: object) -> None:
    """Put something else in the place of a function, which has to be there."""
    if not hasattr(owner, name):
        raise SystemExit(f"{owner} has no {name} any more: bench/without.py needs a look")
    setattr(owner, name, other)


def without_body() -> None:
    from husk.api.http.upload import Body

    @contextlib.contextmanager
    def handed_over(self: Body) -> Iterator[None]:
        yield None

    exchange(Body, "handed_over", handed_over)
    exchange(Body, "consumed", lambda self: None)


def without_outlet() -> None:
    from husk.api.routes import container_files

    @contextlib.contextmanager
    def lent_socket(request: object) -> Iterator[None]:
        yield None

    exchange(container_files, "lent_socket", lent_socket)


def main() -> None:
    shortcut = sys.argv.pop(1)
    {"body": without_body, "outlet": without_outlet}[shortcut]()
    from husk.cli import main as husk

    husk()


if __name__ == "__main__":
    main()
