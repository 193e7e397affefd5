"""Answers of servers, from one daemon to the next."""

import msgspec

from husk.builder.solver.source_policy import ResolvedFile
from husk.builder.sources.seen_files import SeenFile, SeenFiles

ONE, TWO = ResolvedFile("sha256:1", "a", etag="1"), ResolvedFile("sha256:2", "a", etag="2")


class State:
    """Written records, as the next daemon reads them."""

    def __init__(self):
        self.written = {}
        self.times = 0

    async def settle(self, *changes, lazy=False):
        self.times += 1
        for change in changes:
            if change.body is None:
                del self.written[change.key]
            else:
                self.written[change.key] = change.body

    def records(self, kind, type):
        return {key: msgspec.json.decode(body, type=type) for key, body in self.written.items()}


async def test_the_next_daemon_knows_it():
    state = State()
    seen = SeenFiles.open(state)
    await seen.keep("https://me:password@host/a", ONE)
    await seen.keep("https://me:password@host/a", TWO)
    await seen.keep("https://me:password@host/a", TWO)
    assert state.times == 2
    assert SeenFiles.open(state).get("https://me:password@host/a") == TWO
    assert "password" not in repr(state.written)


async def test_the_oldest_ones_are_forgotten():
    state = State()
    seen = SeenFiles.open(state, most=2)
    for name in "abac":
        await seen.keep(name, TWO if seen.get(name) else ONE)
    assert [seen.get(name) for name in "abc"] == [TWO, None, ONE]
    again = SeenFiles.open(state, most=2)
    await again.keep("d", ONE)
    assert [again.get(name) for name in "acd"] == [None, ONE, ONE]
    assert all(isinstance(one, SeenFile) for one in state.records("", SeenFile).values())
