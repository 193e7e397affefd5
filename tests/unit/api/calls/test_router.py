"""The router: names may hold slashes, methods decide between endings and bare names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.api.calls.errors import PageNotFound
from husk.api.calls.router import Router, change, clean_path, read
from husk.api.edge import missing
from husk.api.routes import all_routes


async def _handler(call: object) -> None: ...


ROUTER = Router((*all_routes(), *missing.ROUTES))


def found(method: str, path: str) -> tuple[str, str]:
    route, argument = ROUTER.match(method, path)
    return route.pattern, argument


@pytest.mark.parametrize(
    ("method", "path", "pattern", "argument"),
    [
        ("GET", "/_ping", "/_ping", ""),
        ("HEAD", "/_ping", "/_ping", ""),
        ("GET", "/containers/json", "/containers/json", ""),
        ("GET", "/containers/abc/json", "/containers/{id}/json", "abc"),
        ("DELETE", "/containers/abc", "/containers/{id}", "abc"),
        ("GET", "/containers/abc/attach/ws", "/containers/{id}/attach/ws", "abc"),
        ("POST", "/containers/abc/attach", "/containers/{id}/attach", "abc"),
        ("GET", "/images/json", "/images/json", ""),
        ("GET", "/images/localhost:5000/a/b:c/json", "/images/{name}/json", "localhost:5000/a/b:c"),
        ("GET", "/images/json/json", "/images/{name}/json", "json"),
        ("DELETE", "/images/a/json", "/images/{name}", "a/json"),
        ("DELETE", "/images/json", "/images/{name}", "json"),
        ("POST", "/images/create", "/images/create", ""),
        ("GET", "/networks/bridge", "/networks/{id}", "bridge"),
        ("GET", "/images/get", "/images/get", ""),
        ("GET", "/images/x/get", "/images/{name}/get", "x"),
    ],
)
def test_a_path_finds_its_operation(method: str, path: str, pattern: str, argument: str) -> None:
    assert found(method, path) == (pattern, argument)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_name_reaches_its_operation(name: str) -> None:
    assert found("GET", f"/images/{name}/json") == ("/images/{name}/json", name)
    assert found("DELETE", f"/images/{name}") == ("/images/{name}", name)


@pytest.mark.parametrize(
    "path", ["", "/", "/x", "/containers", "/containers/", "/containers//json", "/_ping/", "/images/a/x"]
)
def test_an_unknown_path_is_no_page(path: str) -> None:
    with pytest.raises(PageNotFound):
        ROUTER.match("GET", path)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/_ping"),
        ("GET", "/containers/create"),
        ("PUT", "/containers/a/json"),
        ("GET", "/containers/a"),
        ("PATCH", "/containers/a/archive"),
    ],
)
def test_a_path_under_another_method_is_no_page(method: str, path: str) -> None:
    with pytest.raises(PageNotFound):
        ROUTER.match(method, path)


@pytest.mark.parametrize(
    ("path", "clean"),
    [
        ("/_ping", "/_ping"),
        ("/networks/", "/networks/"),
        ("//_ping", "/_ping"),
        ("/v1.44//networks//", "/v1.44/networks/"),
        ("/containers/a/./b/json", "/containers/a/b/json"),
        ("/containers/../_ping", "/_ping"),
        ("/_ping/.", "/_ping"),
        ("/..", "/"),
        ("//", "/"),
        ("/images/a../json", "/images/a../json"),
        ("/images/.a/json", "/images/.a/json"),
    ],
)
def test_doubled_slashes_and_dots_are_cleaned(path: str, clean: str) -> None:
    assert clean_path(path) == clean


def test_two_handlers_for_one_operation_are_a_mistake() -> None:
    with pytest.raises(ValueError, match=r"two routes for GET /x/"):
        Router([read("/x/{id}/y", _handler), read("/x/{name}/y", _handler)])  # type: ignore[arg-type]
    Router([read("/x/{id}/y", _handler), change("POST", "/x/{id}/y", _handler)])  # type: ignore[arg-type]
