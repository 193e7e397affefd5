"""A directory stays while a record or somebody at work needs it."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from husk.storage.layers.directories import DIFF, LAYER, Directories, short_name
from husk.storage.state.store import Change, StateStore


@pytest.fixture
async def state(tmp_path: Path) -> AsyncIterator[StateStore]:
    state = StateStore.open(tmp_path / "state.db")
    yield state
    state.close()


def names(directories: Directories) -> list[str]:
    return sorted(os.listdir(directories.path))


async def test_the_last_one_to_let_go_sends_it_to_the_trash(tmp_path: Path, state: StateStore):
    directories = Directories.open(tmp_path / "layers", state)
    name = directories.make()
    directories.hold(name)
    directories.release(name)
    assert names(directories) == [name]
    directories.release(name)
    assert names(directories) == []
    await directories.emptied()
    assert os.listdir(tmp_path / "layers/trash") == []
    await directories.close()


async def test_what_a_layer_and_a_diff_name_stays_until_both_are_gone(tmp_path: Path, state: StateStore):
    for name in ("a", "b", "c"):
        (tmp_path / "layers/l" / name).mkdir(parents=True)
    await state.commit(
        Change(LAYER, "one", b'{"directory": "a"}'),
        Change(DIFF, "two", b'{"directory": "a"}'),
        Change(DIFF, "three", b'{"directory": "b"}'),
    )
    directories = Directories.open(tmp_path / "layers", state)
    assert names(directories) == ["a", "b"]
    directories.release("a")
    assert names(directories) == ["a", "b"]
    directories.release("a")
    assert names(directories) == ["b"]
    await directories.close()


async def test_nothing_is_thrown_away_while_a_record_cannot_be_read(tmp_path: Path, state: StateStore):
    (tmp_path / "layers/l/a").mkdir(parents=True)
    await state.commit(Change(DIFF, "one", b"{"))
    directories = Directories.open(tmp_path / "layers", state)
    assert names(directories) == ["a"]
    await directories.close()


async def test_a_new_one_never_has_the_name_of_one_that_is_there(tmp_path: Path, state: StateStore):
    (tmp_path / "layers/trash/z").mkdir(parents=True)
    (tmp_path / "layers/w/5").mkdir(parents=True)
    directories = Directories.open(tmp_path / "layers", state)
    assert directories.make() == "10"
    assert os.listdir(tmp_path / "layers/w") == []
    await directories.emptied()
    await directories.close()


def test_short_names_count_in_digits_and_letters():
    assert [short_name(number) for number in (0, 9, 10, 35, 36, 36**3)] == ["0", "9", "a", "z", "10", "1000"]
