"""The client without `await`: what its calls give, on an engine that is played in a thread."""

import pytest

from husk.client.execs import Result
from husk.errors import NotFound
from husk.library import sync, twins
from tests.support.fake_engine import FakeEngine
from tests.support.surface import collections


def test_things_and_their_methods(without_await: sync.SyncClient) -> None:
    (box,) = without_await.containers.list()
    assert (box.name, box.status, type(box).__name__) == ("box", "running", "SyncContainer")
    assert box == without_await.containers.get("c1") and repr(box) == "<Container c1 box>" and len({box}) == 1
    assert box.wait() == 3
    with pytest.raises(NotFound, match="No such container"):
        without_await.containers.get("none")
    with pytest.raises(AttributeError):
        _ = box.nothing  # type: ignore[attr-defined]


def test_processes(without_await: sync.SyncClient) -> None:
    box = without_await.containers.get("c1")
    assert box.exec("x") == Result(exit_code=0, stdout=b"one\ntwo\n", stderr=b"")
    process = box.execing("x")
    assert list(process.lines()) == ["one", "two"] and process.exit_code == 0
    assert [data for _, data in box.execing("x")] == [b"one\ntwo\n"]
    for line in box.execing("x").lines():
        assert line == "one"
        break


def test_blocks(without_await: sync.SyncClient, played: list[FakeEngine]) -> None:
    with pytest.raises(ZeroDivisionError), without_await.container("busybox", "sleep 60", memory="64m") as box:
        assert (box.name, box.attrs["Config"]) == ("box", {"Image": "busybox"})
        with box.attach() as console:
            assert [line for _, line in console] == [b"one\ntwo\n"]
        with box.waiting() as ended:
            assert ended() == 3
        _ = 1 / 0
    assert played[0].last("DELETE", "/containers/c1")


def test_logs_are_read_whole_or_line_by_line(without_await: sync.SyncClient) -> None:
    box = without_await.containers.get("c1")
    assert box.logs().result() == b"ERROR: one\n"
    assert [entry.level for entry in box.logs().entries()] == ["error"]
    assert [entry.container for entry in without_await.logs(box)] == ["box"]


def test_things_are_arguments_and_iterators_too(without_await: sync.SyncClient, played: list[FakeEngine]) -> None:
    without_await.networks.get("n").connect(without_await.containers.get("c1"))
    assert played[0].last("POST", "/networks/n/connect").document["Container"] == "c1"
    (image,) = without_await.images.load(iter([b"a", b"b"]))
    assert (played[0].last("POST", "/images/load").body, image.tags) == (b"ab", ["x"])


def test_what_tab_offers(without_await: sync.SyncClient) -> None:
    assert {"containers", "images", "networks", "run", "logs", "stats", "swarm"} <= set(dir(without_await))
    assert {"attrs", "exec", "execing", "files", "name"} <= set(dir(without_await.containers.get("c1")))
    assert not [name for name in dir(without_await) if name.startswith("_")]
    assert "memory" not in dir(without_await) and "Run a container" in (without_await.run.__doc__ or "")


def test_its_own_thread_is_not_waited_for_in_it(without_await: sync.SyncClient) -> None:
    with pytest.raises(RuntimeError, match="its own thread"):
        without_await._bound.run(lambda: without_await.ping())  # type: ignore[attr-defined]


def test_a_container_in_a_notebook(without_await: sync.SyncClient) -> None:
    box = without_await.containers.get("c1")
    assert "<table>" in box._repr_html_()  # type: ignore[attr-defined]


def test_everything_has_a_twin() -> None:
    """Each class of a client has a twin with all its methods, but for the few that are of no use without a loop."""
    missing = [of.__name__ for of in collections().values() if of not in twins._TWINS]
    assert missing == []
    without = {"upgrade", "connect"}
    for of, twin in twins._TWINS.items():
        methods = {name for name, found in vars(of).items() if callable(found) and not name.startswith("_")}
        assert methods - without <= set(dir(twin)), of
