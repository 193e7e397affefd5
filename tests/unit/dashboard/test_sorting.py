from husk.dashboard.server import Dashboard
from tests.support.dashboard import Asker
from tests.support.fake_engine import FakeEngine

PAGE = "/containers"


def listed(engine: FakeEngine) -> None:
    rows = [("b", "zeta", "running", "Up 1 hour"), ("a", "yps", "exited", "Exited (1) 1 hour ago"),
            ("c", "alpha", "created", "Created")]  # fmt: skip
    engine.answers(
        "GET", "/containers/json",
        [{"Id": name * 64, "Names": [f"/{name}"], "Image": image, "State": state, "Status": status}
         for name, image, state, status in rows],
    )  # fmt: skip


def order(text: str) -> list[str]:
    return sorted("abc", key=lambda name: text.find(f'title="{name}"') % (1 << 30))


async def test_a_list_is_sorted_as_asked_and_stays_so(asker: Asker, engine: FakeEngine) -> None:
    listed(engine)
    assert order((await asker.get(PAGE)).text) == ["a", "b", "c"]
    page = await asker.get(f"{PAGE}?sort=image")
    assert order(page.text) == ["c", "a", "b"] and 'aria-sort="ascending"' in page.text
    assert order((await asker.get(PAGE)).text) == ["c", "a", "b"]
    page = await asker.get(f"{PAGE}?sort=-image")
    assert order(page.text) == ["b", "a", "c"] and 'aria-sort="descending"' in page.text
    assert f'href="{PAGE}?sort=image"' in page.text and f'href="{PAGE}?sort=-cpu"' in page.text


async def test_words_that_a_list_does_not_have_change_nothing(asker: Asker, engine: FakeEngine) -> None:
    listed(engine)
    for query in ("sort=nonsense", "sort=--name", "sort=", "show=%3Cb%3E", "sort=name%00"):
        page = await asker.get(f"{PAGE}?{query}")
        assert page.status == 200 and order(page.text) == ["a", "b", "c"]


async def test_a_part_of_a_list_is_remembered_by_the_session(
    asker: Asker, dashboard: Dashboard, engine: FakeEngine
) -> None:
    listed(engine)
    page = await asker.get(f"{PAGE}?show=trouble")
    assert 'title="a"' in page.text and 'title="b"' not in page.text
    page = await asker.get(PAGE)
    assert 'title="a"' in page.text and 'title="b"' not in page.text
    assert 'title="c"' in (await asker.get(f"{PAGE}?show=stopped")).text
    assert 'title="b"' in (await asker.get(f"{PAGE}?show=all")).text


async def test_what_has_no_value_comes_last_in_either_direction(asker: Asker, engine: FakeEngine) -> None:
    listed(engine)
    for sign in ("", "-"):
        assert (await asker.get(f"{PAGE}?sort={sign}cpu")).status == 200
    rows = [{"Id": name * 64, "Names": [f"/{name}"], "State": "running", "Ports": ports}
            for name, ports in (("a", []), ("b", [{"PrivatePort": 80, "PublicPort": 90, "Type": "tcp"}]))]  # fmt: skip
    engine.answers("GET", "/containers/json", rows)
    for sign in ("", "-"):
        text = (await asker.get(f"{PAGE}?sort={sign}ports")).text
        assert text.index('title="b"') < text.index('title="a"')
