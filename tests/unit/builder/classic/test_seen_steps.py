"""Steps that classic builds have done before, from one daemon to the next."""

import asyncio

import msgspec

from husk.aio.tasks import Tasks
from husk.builder.classic import seen_steps
from husk.builder.classic.seen_steps import SeenSteps


class State:
    """Written records, as the next daemon reads them."""

    def __init__(self):
        self.written = {}

    def settle_soon(self, *changes):
        for change in changes:
            if change.body is None:
                del self.written[change.key]
            else:
                self.written[change.key] = change.body

    def records(self, kind, type):
        return {key: msgspec.json.decode(body, type=type) for key, body in self.written.items()}


async def test_the_next_daemon_knows_it():
    state = State()
    await SeenSteps.open(state).keep({"a": 5, "b": 7}, {"b": "sha256:image", "c": "sha256:other"})
    seen = SeenSteps.open(state)
    assert [seen.made(id) for id in "abcd"] == [5, 7, None, None]
    assert [seen.image(id) for id in "abcd"] == ["", "sha256:image", "sha256:other", ""]


async def test_the_oldest_are_forgotten():
    state = State()
    seen = SeenSteps.open(state)
    await seen.keep({"old": 1, "kept": 1}, {})
    await seen.keep({str(number): number + 1 for number in range(seen_steps.MOST - 1)}, {})
    assert (seen.made("old"), seen.made("kept")) == (None, 1)
    await seen.keep({str(number): 9 for number in range(2 * seen_steps.MOST)}, {})
    assert len(state.written) == seen_steps.MOST
    assert SeenSteps.open(state).made(str(2 * seen_steps.MOST - 1)) == 9


async def test_others_have_their_turn_while_thousands_are_kept():
    turns = 0
    keeping = Tasks().spawn(SeenSteps(State()).keep(dict.fromkeys(map(str, range(5000)), 1), {}), "keep")
    while not keeping.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 20
