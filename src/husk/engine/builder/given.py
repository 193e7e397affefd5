"""A file system that is here already as a source: `stack://diff:…`. So a context that came with the request, or the
result of another build, takes part in a graph."""

from msgspec import Struct

from husk.engine.builder import schemes, stacks
from husk.engine.builder.operations import Source
from husk.engine.builder.solver import Watcher
from husk.registry.manifest import Platform


class Given(Struct, frozen=True):
    stack: str
    made: list[str]
    type: str = "source.local"
    description: str = "local source for context"


class GivenStacks:
    async def key(self, source: Source, platform: Platform | None, watcher: Watcher) -> str:
        return stack_of(source)

    async def fetch(self, source: Source, platform: Platform | None, watcher: Watcher) -> Given:
        stack = stack_of(source)
        return Given(stack, stacks.diffs_in(stack))


def source_of(stack: str) -> Source:
    return Source(f"{schemes.GIVEN}://{stack}")


def stack_of(source: Source) -> str:
    return source.identifier.removeprefix(f"{schemes.GIVEN}://")
