"""A file system that is here already as a source: `stack://diff:…`. So a context that came with the request, or the
result of another build, takes part in a graph.

Graphs go out to clients and frontends and come back, and what is here belongs to others, too: a source is taken only
with the proof that it was made here, in this life of the daemon.
"""

import hashlib
import hmac
import secrets

from msgspec import Struct

from husk.builder.graph import schemes, stacks
from husk.builder.graph.operations import Source
from husk.builder.graph.schemes import PROOF
from husk.builder.solver.interfaces import Watcher
from husk.errors import Forbidden
from husk.registry.manifest import Platform

_KEY = secrets.token_bytes(32)


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
    return Source(f"{schemes.GIVEN}://{stack}", {PROOF: _proof(stack)})


def stack_of(source: Source) -> str:
    """Forbidden for a stack that was not given to whoever names it."""
    stack = source.identifier.removeprefix(f"{schemes.GIVEN}://")
    if not hmac.compare_digest(source.attributes.get(PROOF, "").encode(), _proof(stack).encode()):
        raise Forbidden(f"{source.identifier[:200]} was not given to this build")
    return stack


def _proof(stack: str) -> str:
    return hmac.new(_KEY, stack.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
