"""Steps that classic builds have done before, from one daemon to the next."""

import msgspec

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


def test_the_next_daemon_knows_it():
    state = State()
    SeenSteps.open(state).keep({"a": 5, "b": 7}, {"b": "sha256:image", "c": "sha256:other"})
    seen = SeenSteps.open(state)
    assert [seen.made(id) for id in "abcd"] == [5, 7, None, None]
    assert [seen.image(id) for id in "abcd"] == ["", "sha256:image", "sha256:other", ""]


def test_the_oldest_are_forgotten():
    state = State()
    seen = SeenSteps.open(state)
    seen.keep({"old": 1, "kept": 1}, {})
    seen.keep({str(number): number + 1 for number in range(seen_steps.MOST - 1)}, {})
    assert (seen.made("old"), seen.made("kept")) == (None, 1)
    seen.keep({str(number): 9 for number in range(2 * seen_steps.MOST)}, {})
    assert len(state.written) == seen_steps.MOST
    assert SeenSteps.open(state).made(str(2 * seen_steps.MOST - 1)) == 9
