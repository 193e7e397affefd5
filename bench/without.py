"""Husk without one of its fast paths, to see what that is worth to a user: docs/fast-paths.md has all of them.

    sudo .venv/bin/python -m bench.copies --engines husk,husk-without-body,husk-without-outlet
    sudo .venv/bin/python -m bench.containers --engines husk,husk-without-warm,husk-without-filter
    sudo .venv/bin/python -m bench.build --engines husk,husk-without-spares --only steps

The product has no switch for any of this: here the functions are exchanged before the daemon starts.
"""

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any


def exchange(owner: object, name: str, other: object) -> None:
    """Put something else in the place of a function, which has to be there."""
    if not hasattr(owner, name):
        raise SystemExit(f"{owner} has no {name} any more: bench/without.py needs a look")
    setattr(owner, name, other)


def nothing(*arguments: object, **more: object) -> None:
    """Stand for a function that is left out."""


async def nothing_later(*arguments: object, **more: object) -> None:
    """Stand for an asynchronous function that is left out."""


# --- containers


def warm() -> None:
    """Sandboxes are made when they are wanted."""
    from husk.network.warm_pool import WarmPool

    exchange(WarmPool, "warm_up", nothing)
    exchange(WarmPool, "refill", nothing)


def lean() -> None:
    """Containers are made in the host's own mount namespace."""
    from husk.runtime.supervise.conmon import Monitor

    real = Monitor.__init__

    def init(self: Monitor, path: str, moves: Any = None, lean: Any = None) -> None:
        real(self, path, moves)

    exchange(Monitor, "__init__", init)


def compiled() -> None:
    """The runtime compiles the filter of system calls for each container."""
    from husk.runtime.seccomp.precompiled import CompiledFilters

    async def annotations(self: CompiledFilters, profile: object) -> dict[str, str]:
        return {}

    exchange(CompiledFilters, "annotations", annotations)


def moves() -> None:
    """The runtime waits for the kernel's grace period itself."""
    from husk.kernel.cgroup_moves import Moves

    exchange(Moves, "expect", nothing)


def sealed() -> None:
    """The runtime is run from its file, and copies itself into memory for each container."""
    from husk.runtime import runtimes

    exchange(runtimes, "_seal", nothing)


def files() -> None:
    """The runtime is run for each verb: its own files are not read, and its start pipe is not written to."""
    from husk.runtime import runtimes

    exchange(runtimes, "knows_files", lambda version: False)


def volatile() -> None:
    """Files of containers and steps are synced, also where they go with them."""
    from husk.kernel import mount

    exchange(mount, "_supports_volatile", lambda: False)


def crowds() -> None:
    """Control groups and bundles of containers that are removed together go one by one, as they end."""
    from husk.engine.containers.release import Releaser

    exchange(Releaser, "_can_wait", lambda self, record: False)


# --- copies


def body() -> None:
    """Archives that a client sends pass through the daemon."""
    from husk.api.http.upload import UploadedBody

    @contextlib.contextmanager
    def handed_over(self: UploadedBody) -> Iterator[None]:
        yield None

    exchange(UploadedBody, "handed_over", handed_over)
    exchange(UploadedBody, "consumed", nothing)


def outlet() -> None:
    """Archives that a client gets pass through the daemon."""
    from husk.api.routes import container_files

    @contextlib.contextmanager
    def lent_socket(request: object) -> Iterator[None]:
        yield None

    exchange(container_files, "lent_socket", lent_socket)


def reserve() -> None:
    """No worker waits for the next copy."""
    from husk.storage.workers.nursery import Nursery

    exchange(Nursery, "_fill_reserve_after", nothing)


# --- builds


def context() -> None:
    """A worker unpacks small contexts, too."""
    from husk.builder.store import contexts

    exchange(contexts, "_fill", nothing_later)


def sync() -> None:
    """A worker receives small directories, too."""
    from husk.builder.store.sync import mirrors

    async def receive(*arguments: object) -> bytes:
        return b""

    exchange(mirrors, "receive_small", receive)


def diffs() -> None:
    """A worker packs the little that a step has changed, too."""
    from husk.builder.store.diff_packing import SmallDiffs

    exchange(SmallDiffs, "pack", nothing_later)


def spares() -> None:
    """The runtime of a step is loaded when the step begins."""
    from husk.builder.steps.run import Spares

    exchange(Spares, "prepare", nothing)


def ahead() -> None:
    """A context is packed when all of it has come."""
    from husk.builder.store.ahead import AheadTar

    exchange(AheadTar, "open", nothing)


def tars() -> None:
    """Layers are packed when the image is made, not while their files are."""
    from husk.builder.solver import solver

    exchange(solver, "layered", lambda graph, result: frozenset())


# --- answers


def answers() -> None:
    """Lists and inspects are encoded for each question."""
    from husk.api.calls.encoded import KeptAnswers

    exchange(KeptAnswers, "get", nothing)


def heads() -> None:
    """The head of each request is parsed."""
    from husk.api.http import parser

    exchange(parser, "_SHORT", 0)


_WITHOUT: Mapping[str, Callable[[], None]] = {
    function.__name__: function
    for function in (
        *(warm, lean, compiled, moves, sealed, files, volatile, crowds),
        *(body, outlet, reserve),
        *(context, sync, diffs, spares, ahead, tars),
        *(answers, heads),
    )
}
SHORTCUTS = tuple(_WITHOUT)


def main() -> None:
    _WITHOUT[sys.argv.pop(1)]()
    from husk.cli import main as husk

    husk()


if __name__ == "__main__":
    main()
