import threading

from husk import threads


def pools() -> set[str]:
    return {
        name
        for thread in threading.enumerate()
        if (name := thread.name.partition("_")[0]) in ("trees", "removals", "outside")
    }


def name(suffix: str) -> str:
    return threading.current_thread().name.partition("_")[0] + suffix


async def test_each_purpose_has_threads_of_its_own():
    with threads.held():
        names = [await run(name, "!") for run in (threads.trees, threads.removals, threads.outside)]
    assert names == ["trees!", "removals!", "outside!"]


async def test_threads_end_with_the_last_who_holds_them_and_come_again():
    with threads.held():
        with threads.held():
            await threads.trees(name, "")
        assert "trees" in pools()
    assert pools() == set()
    assert await threads.removals(name, "") == "removals"
    with threads.held():
        pass
    assert pools() == set()
