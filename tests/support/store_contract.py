"""The contract of every cluster store, as tests: a class to be inherited, with the fixture `store` of one
implementation.

class TestMine(StoreContract):
    @pytest.fixture
    async def store(self): ...
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from husk.errors import InvalidParameter
from husk.swarm.state.cluster_store import ClusterStore
from husk.swarm.state.transactions import NEW, Check, ClusterRecord, Delete, News, Put, Stale, Step, version_in
from tests.support.waiting import until_async


def body(text: str) -> bytes:
    return b'{"text":"%s"}' % text.encode()


def text_of(record: ClusterRecord | None) -> str:
    assert record is not None
    return record.body.decode().partition('"text":"')[2].partition('"')[0]


class Reader:
    """Follows a watch, and knows what somebody who has read all of it knows."""

    def __init__(self, news: AsyncIterator[News]) -> None:
        self._news = news
        self.known: dict[tuple[str, str], str] = {}
        self.told: list[News] = []
        self._task = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        async for news in self._news:
            self.told.append(news)
            if news.all:
                self.known.clear()
            self.known |= {record.name: text_of(record) for record in news.records}
            for name in news.gone:
                self.known.pop(name, None)

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    @property
    def beginnings(self) -> int:
        """The number of times that it was told all there is."""
        return sum(news.all for news in self.told)

    async def reached(self, revision: int) -> None:
        """Until it has come so far."""
        await until_async(lambda: self.told and self.told[-1].revision >= revision, f"news of revision {revision}")

    def knows(self, **texts: str) -> bool:
        return {key: text for (_, key), text in self.known.items()} == texts


@contextlib.asynccontextmanager
async def reading(news: AsyncIterator[News]) -> AsyncIterator[Reader]:
    reader = Reader(news)
    try:
        yield reader
    finally:
        await reader.close()


class StoreContract:
    # --- records and transactions

    async def test_what_is_written_is_read(self, store: ClusterStore):
        assert await store.get("service", "a") is None
        revision = await store.commit(Put("service", "a", body("one"), NEW), Put("task", "a", body("two"), NEW))
        found = await store.get("service", "a")
        assert found is not None and (found.kind, found.key, found.version) == ("service", "a", revision)
        assert text_of(found) == "one" and text_of(await store.get("task", "a")) == "two"

    async def test_versions_grow_with_each_transaction_and_listings_tell_their_revision(self, store: ClusterStore):
        first = await store.commit(Put("service", "b", body("1")), Put("service", "a", body("1")))
        second = await store.commit(Put("service", "b", body("2")))
        assert second > first > NEW
        listing = await store.listing("service")
        assert [(record.key, record.version) for record in listing.records] == [("a", first), ("b", second)]
        assert listing.revision == second
        assert (await store.listing("nothing")).records == ()

    async def test_a_kind_whose_name_begins_like_another_is_another(self, store: ClusterStore):
        await store.commit(Put("node", "a", body("1")), Put("nodes", "b", body("2")), Put("node", "x/y", body("3")))
        assert [record.key for record in (await store.listing("node")).records] == ["a", "x/y"]

    async def test_a_snapshot_has_all_kinds_that_are_wanted_at_one_revision(self, store: ClusterStore):
        for number in range(20):
            text = body(str(number))
            await store.commit(Put("service", "a", text), Put("task", "t/1", text), Put("other", "o", text))

        async def write() -> None:
            for number in range(20, 60):
                await store.commit(Put("service", "a", body(str(number))), Put("task", "t/1", body(str(number))))

        writing = asyncio.get_running_loop().create_task(write())
        while not writing.done():
            taken = await store.snapshot(("task", "service"))
            assert [record.name for record in taken.records] == [("service", "a"), ("task", "t/1")]
            assert len({text_of(record) for record in taken.records}) == 1, "both are of one transaction"
            assert {record.version for record in taken.records} == {taken.revision}
        await writing

    async def test_a_transaction_with_one_wrong_version_changes_nothing(self, store: ClusterStore):
        version = await store.commit(Put("service", "a", body("1"), NEW))
        wrong: list[Step] = [
            Put("service", "a", body("x"), NEW),
            Put("service", "a", body("x"), version + 1),
            Put("service", "b", body("x"), version),
            Delete("service", "a", version - 1),
            Delete("service", "b", version),
            Check("service", "a", NEW),
        ]
        for step in wrong:
            with pytest.raises(Stale) as caught:
                await store.commit(Put("task", "t", body("x"), NEW), step)
            assert caught.value.names == ((step.kind, step.key),)
        assert text_of(await store.get("service", "a")) == "1" and await store.get("task", "t") is None
        assert (await store.listing("service")).revision == version

    async def test_a_check_holds_a_transaction_to_what_was_read(self, store: ClusterStore):
        version = await store.commit(Put("service", "a", body("1"), NEW))
        await store.commit(Check("service", "a", version), Put("task", "t", body("of a"), NEW))
        assert text_of(await store.get("task", "t")) == "of a"

    async def test_deleting(self, store: ClusterStore):
        version = await store.commit(Put("service", "a", body("1")), Put("service", "b", body("1")))
        await store.commit(Delete("service", "a", version), Delete("service", "never"))
        assert [record.key for record in (await store.listing("service")).records] == ["b"]
        assert await store.commit(Put("service", "a", body("again"), NEW)) > version

    async def test_of_writers_who_meet_exactly_one_wins_each_time(self, store: ClusterStore):
        await store.commit(Put("counter", "c", body("0"), NEW))
        refused = 0

        async def count() -> None:
            nonlocal refused
            for _ in range(10):
                while True:
                    record = await store.get("counter", "c")
                    assert record is not None
                    step = Put("counter", "c", body(str(int(text_of(record)) + 1)), record.version)
                    try:
                        await store.commit(step)
                        break
                    except Stale:
                        refused += 1

        await asyncio.gather(*(count() for _ in range(4)))
        assert text_of(await store.get("counter", "c")) == "40" and refused > 0

    async def test_who_applies_hears_the_revision_before_the_end(self, store: ClusterStore):
        heard: list[int] = []
        revision = await store.commit(Put("service", "a", body("1")), applied=heard.append, lazy=True, happened=True)
        assert heard == [revision]
        with pytest.raises(Stale):
            await store.commit(Put("service", "a", body("2"), NEW), applied=heard.append)
        assert heard == [revision]

    async def test_what_no_store_could_do_is_refused(self, store: ClusterStore):
        for steps in (
            [Put("service", "a", body("1")), Delete("service", "a")],
            [Put("", "a", body("1"))],
            [Put("a/b", "c", body("1"))],
            [Put("a", "", body("1"))],
            [Put("a", "b", b"no document")],
            [Put("a", "b", b"[1]")],
            [Put("a", "b", body("1"), lease=123456)],
        ):
            with pytest.raises(InvalidParameter):
                await store.commit(*steps)

    async def test_the_version_in_a_body_is_the_stores_own(self, store: ClusterStore):
        revision = await store.commit(Put("service", "a", b'{"version":12345678,"text":"x"}'))
        found = await store.get("service", "a")
        assert found is not None and found.version == version_in(found.body) == revision

    async def test_many_and_large_records(self, store: ClusterStore):
        large = "x" * 1_000_000
        for number in range(20):
            await store.commit(Put("config", f"{number:02}", body(large)))
        listing = await store.listing("config")
        assert [record.key for record in listing.records] == [f"{number:02}" for number in range(20)]
        assert all(text_of(record) == large for record in listing.records)
        async with reading(store.watch("config")) as reader:
            await until_async(lambda: len(reader.known) == 20, "all of them")

    # --- watching

    async def test_a_watch_tells_all_there_is_and_then_what_changes(self, store: ClusterStore):
        await store.commit(Put("task", "a", body("1")), Put("service", "s", body("1")))
        async with reading(store.watch("task")) as reader:
            await until_async(lambda: reader.told, "the beginning")
            assert reader.told[0].all and reader.knows(a="1")
            revision = await store.commit(
                Put("task", "b", body("1")), Delete("task", "a"), Put("service", "s", body("2"))
            )
            await until_async(lambda: len(reader.told) > 1, "the change")
            news = reader.told[1]
            assert (news.revision, news.all, news.gone) == (revision, False, (("task", "a"),))
            assert [record.version for record in news.records] == [revision]
            await store.commit(Put("service", "s", body("3")))
            last = await store.commit(Delete("task", "b"))
            await until_async(lambda: reader.knows(), "the end")
            assert [news.revision for news in reader.told[2:]] == [last], "of other kinds nothing is told"

    async def test_a_watch_of_all_kinds(self, store: ClusterStore):
        await store.commit(Put("task", "a", body("1")), Put("service", "s", body("1")))
        async with reading(store.watch()) as reader:
            await until_async(lambda: reader.knows(a="1", s="1"), "both kinds")
            await store.commit(Put("task", "a", body("2")), Put("service", "s", body("2")))
            await until_async(lambda: reader.knows(a="2", s="2"), "a change of both")
            assert len(reader.told) == 2, "a transaction is told as one"

    async def test_a_watch_goes_on_after_a_listing(self, store: ClusterStore):
        await store.commit(Put("task", "a", body("1")))
        listing = await store.listing("task")
        async with reading(store.watch("task", after=listing.revision)) as reader:
            await store.commit(Put("task", "b", body("1")))
            await until_async(lambda: "b" in {key for _, key in reader.known}, "what came after")

    async def test_every_change_is_told_once_and_in_order(self, store: ClusterStore):
        async with reading(store.watch("task")) as reader, reading(store.watch("task")) as other:
            await until_async(lambda: reader.told and other.told, "the beginnings")
            await asyncio.gather(
                *(store.commit(Put("task", f"t{n % 5}", body(str(n))), lazy=n % 2 == 0) for n in range(50))
            )
            await until_async(lambda: len(reader.told) == len(other.told) == 51, "all changes")
            for one in (reader, other):
                revisions = [news.revision for news in one.told]
                assert revisions == sorted(set(revisions))
            final = {r.name: text_of(r) for r in (await store.listing("task")).records}
            assert reader.known == other.known == final

    # --- leases

    async def test_a_record_under_a_lease_goes_with_it(self, store: ClusterStore):
        async with reading(store.watch("leader")) as reader:
            async with await store.lease(60) as lease:
                await store.commit(Put("leader", "planner", body("me"), NEW, lease.id))
                await until_async(lambda: reader.knows(planner="me"), "the leader")
                with pytest.raises(Stale):
                    await store.commit(Put("leader", "planner", body("you"), NEW))
                assert not lease.lost
            assert lease.lost and await store.get("leader", "planner") is None
            await until_async(lambda: reader.knows(), "nobody leads")
        await store.commit(Put("leader", "planner", body("you"), NEW))

    async def test_a_lease_whose_holder_died_ends_by_itself(self, store: ClusterStore):
        dead, living = await store.lease(2), await store.lease(2)
        await store.commit(
            Put("node", "dead", body("1"), lease=dead.id), Put("node", "living", body("1"), lease=living.id)
        )
        async with reading(store.watch("node")) as reader:
            await until_async(lambda: reader.knows(dead="1", living="1"), "both")
            dead.abandon()
            await until_async(lambda: reader.knows(living="1"), "the end of one")
            await asyncio.wait_for(dead.wait_lost(), 30)
            # The other has outlived it only by being kept alive.
            assert not living.lost
        await living.close()
        assert (await store.listing("node")).records == ()

    async def test_a_record_that_leaves_its_lease_stays(self, store: ClusterStore):
        async with await store.lease(60) as lease:
            await store.commit(Put("node", "a", body("1"), lease=lease.id), Put("node", "b", body("1")))
            await store.commit(Put("node", "a", body("2")), Put("node", "b", body("2"), lease=lease.id))
        assert [(r.key, text_of(r)) for r in (await store.listing("node")).records] == [("a", "2")]
