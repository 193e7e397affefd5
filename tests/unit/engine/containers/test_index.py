"""The index: who has which name, and every change in the store."""

import asyncio
import threading

import pytest

from husk.aio.tasks import Tasks
from husk.engine.containers.index import ContainerIndex, Exit
from husk.engine.model.container import KIND, Container
from husk.errors import Conflict, DiskFault, InvalidParameter, NotFound
from husk.storage.state.store import Change, StateStore
from tests.support.but import but
from tests.support.full_store import FullStore
from tests.unit.engine.records import container


@pytest.fixture
def index(state: StateStore) -> ContainerIndex:
    return ContainerIndex(state, Tasks())


async def test_a_container_is_found_by_id_name_or_the_beginning_of_its_id(index: ContainerIndex) -> None:
    index.reserve_name("web", "a1" * 32)
    web = await index.add(container("web", id="a1" * 32))
    await index.add(container("other", id="b2" * 32))
    for reference in ("a1" * 32, "web", "/web", "a1", "a1a1a1"):
        assert index.find(reference) is web


async def test_a_name_comes_before_the_beginning_of_an_id(index: ContainerIndex) -> None:
    await index.add(container("x", id="ab" * 32))
    index.reserve_name("ab", "cd" * 32)
    named = await index.add(container("ab", id="cd" * 32))
    assert index.find("ab") is named


@pytest.mark.parametrize("reference", ["", "web", "f", "a1a1"])
async def test_what_is_not_there_is_named(index: ContainerIndex, reference: str) -> None:
    await index.add(container(id="a2" * 32))
    with pytest.raises(NotFound) as caught:
        index.find(reference)
    assert caught.value.message == f"No such container: {reference}"


async def test_an_ambiguous_beginning_is_refused(index: ContainerIndex) -> None:
    await index.add(container(id="aa1" + "0" * 61))
    await index.add(container(id="aa2" + "0" * 61))
    with pytest.raises(InvalidParameter, match=r"^multiple IDs found with provided prefix: aa$"):
        index.find("aa")
    assert index.find("aa2").id.startswith("aa2")


def test_a_name_is_taken_once(index: ContainerIndex) -> None:
    assert index.reserve_name("/web", "1" * 64) == "web"
    with pytest.raises(Conflict) as caught:
        index.reserve_name("web", "2" * 64)
    assert caught.value.message == (
        f'Conflict. The container name "/web" is already in use by container "{"1" * 64}". '
        "You have to remove (or rename) that container to be able to reuse that name."
    )
    index.release_name("web")
    assert index.reserve_name("web", "2" * 64) == "web"


def test_a_reserved_name_has_no_container_yet(index: ContainerIndex) -> None:
    index.reserve_name("web", "1" * 64)
    with pytest.raises(NotFound):
        index.find("web")


@pytest.mark.parametrize("name", ["a", "-a", "_a", "a b", "a/b", "//ab", "é1", "ab\n", "/"])
def test_a_name_docker_would_refuse_is_refused_in_its_words(index: ContainerIndex, name: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        index.reserve_name(name, "1" * 64)
    assert caught.value.message == f"Invalid container name ({name}), only [a-zA-Z0-9][a-zA-Z0-9_.-] are allowed"


def test_who_has_no_name_gets_one(index: ContainerIndex) -> None:
    names = {index.reserve_name("", str(number) * 64) for number in range(10)}
    assert len(names) == 10


async def test_the_next_daemon_finds_what_was_saved(index: ContainerIndex, state: StateStore) -> None:
    index.reserve_name("web", "a" * 64)
    web = await index.add(container("web", id="a" * 64))
    await index.save(web, but(web.record, restart_count=7))
    again = ContainerIndex(state, Tasks())
    assert again.find("web").record == web.record and web.record.restart_count == 7
    with pytest.raises(Conflict):
        again.reserve_name("web", "b" * 64)


async def test_deleting_frees_id_and_name(index: ContainerIndex, state: StateStore) -> None:
    index.reserve_name("web", "a" * 64)
    web = await index.add(container("web", id="a" * 64))
    await index.delete(web)
    assert not index.present(web)
    assert len(index) == 0
    assert state.load(KIND) == {}
    assert index.reserve_name("web", "b" * 64) == "web"


async def test_renaming_frees_the_old_name(index: ContainerIndex, state: StateStore) -> None:
    index.reserve_name("old", "a" * 64)
    web = await index.add(container("old", id="a" * 64))
    await index.rename(web, index.reserve_name("new", web.id))
    assert index.find("new") is web
    assert index.reserve_name("old", "b" * 64) == "old"
    assert ContainerIndex(state, Tasks()).find("new").record.name == "new"


async def test_a_rename_that_cannot_be_written_did_not_happen(index: ContainerIndex, state: FullStore) -> None:
    index.reserve_name("old", "a" * 64)
    web = await index.add(container("old", id="a" * 64))
    before, state.full = web.record, True
    with pytest.raises(DiskFault):
        await index.rename(web, index.reserve_name("new", web.id))
    assert index.find("old") is web and web.record is web.draft.record is before
    assert index.reserve_name("new", "b" * 64) == "new"


async def test_what_is_written_ahead_is_believed_later(index: ContainerIndex, state: FullStore) -> None:
    web = await index.add(container("web"))
    before, after = web.record, but(web.record, restart_count=1)
    await index.save(web, after, ahead=True)
    assert web.record is before and state.records(KIND, Container)[web.id] == after
    state.full = True
    with pytest.raises(DiskFault):
        await index.save(web, but(after, restart_count=2))
    assert web.record is before
    web.believe(after)
    assert web.record is web.draft.record is after


async def test_what_the_store_does_not_take_is_not_there(index: ContainerIndex, state: FullStore) -> None:
    state.full = True
    with pytest.raises(DiskFault):
        await index.add(container("web"))
    assert list(index) == [] and len(index) == 0
    with pytest.raises(NotFound):
        index.find("web")


async def test_a_rename_whose_caller_is_cancelled_has_happened(index: ContainerIndex, state: StateStore) -> None:
    index.reserve_name("old", "a" * 64)
    web = await index.add(container("old", id="a" * 64))
    renaming = asyncio.get_running_loop().create_task(index.rename(web, index.reserve_name("new", web.id)))
    await asyncio.sleep(0)
    renaming.cancel()
    with pytest.raises(asyncio.CancelledError):
        await renaming
    assert index.find("new") is web and index.reserve_name("old", "b" * 64) == "old"
    await state.settle()
    assert [record.name for record in state.records(KIND, Container).values()] == ["new"]


def test_an_id_is_never_taken_for_a_number(index: ContainerIndex) -> None:
    ids = {index.new_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(len(i) == 64 and not i[:12].isdigit() for i in ids)


async def test_every_waiter_hears_of_the_next_exit(index: ContainerIndex) -> None:
    web = await index.add(container())
    waiters = [web.next_exit(), web.next_exit()]
    gone = web.removal()
    waiters[0].cancel()
    web.announce_exit(Exit(3))
    assert await waiters[1] == Exit(3)
    assert not gone.done()
    later = web.next_exit()
    web.announce_removal(Exit(0))
    assert (await gone, await later) == (Exit(0), Exit(0))


async def test_a_new_record_whose_maker_is_cancelled_is_taken_back(state: StateStore, index: ContainerIndex) -> None:
    held = threading.Event()
    state._thread.submit(held.wait)
    work = index.add(container("web", id="a1" * 32), Change("volume", "v", b"{}"))
    adding = Tasks().spawn(work, "add", awaited=True)
    await asyncio.sleep(0)
    adding.cancel()
    held.set()
    with pytest.raises(asyncio.CancelledError):
        await adding
    await state.commit()
    assert (state.load(KIND), state.load("volume"), index.has("a1" * 32)) == ({}, {}, False)


async def test_one_that_ends_with_the_engine_is_not_written_until_it_is_to_stay(
    index: ContainerIndex, state: StateStore
) -> None:
    index.reserve_name("brief", "a1" * 32)
    brief = index.add_fleeting(container("brief", id="a1" * 32))
    await index.save(brief, brief.record)
    await index.settle(brief, brief.record)
    assert index.find("brief") is brief and not state.has(KIND)
    index.make_lasting(brief)
    await index.save(brief, brief.record)
    assert state.has(KIND)
    await index.delete(brief, Change("volume", "none", None))
    assert not index.has(brief.id) and not state.has(KIND)
    index.reserve_name("brief", "b2" * 32)
    await index.delete(index.add_fleeting(container("brief", id="b2" * 32)))
    assert index.names() == {}


async def test_a_layer_is_mounted_while_a_container_on_it_runs_or_is_copied_from(index: ContainerIndex) -> None:
    running = await index.add(but(container(status="running"), layers=["sha256:a"]))
    ended = await index.add(but(container(status="exited"), layers=["sha256:b"]))
    assert list(index.records()) == [running.record, ended.record]
    assert index.mounts("sha256:a") and not index.mounts("sha256:b")
    ended.root_users += 1
    assert index.mounts("sha256:b") and not index.mounts("sha256:c")
