import pytest

from husk.errors import Unavailable
from husk.swarm.state.no_store import NoStore
from husk.swarm.state.transactions import Delete


async def test_it_says_why_it_cannot_answer() -> None:
    store = NoStore()
    for call in (store.get("a", "b"), store.listing("a"), store.commit(Delete("a", "b")), store.lease(1)):
        with pytest.raises(Unavailable, match="Worker nodes can't be used"):
            await call
    with pytest.raises(Unavailable):
        store.watch()
    await store.close()
