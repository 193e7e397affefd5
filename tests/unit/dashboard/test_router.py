from husk.api.http.response import Response
from husk.dashboard.router import PageKind, PageRouter, change, page, socket, stream
from husk.dashboard.visit import Visit


async def nothing(visit: Visit) -> Response:
    return Response()


ROUTER = PageRouter(
    [
        page("/", nothing),
        page("/containers/{name}", nothing),
        page("/containers/{name}/remove", nothing),
        change("/containers/{name}/remove", nothing),
        page("/images/{name...}", nothing),
        stream("/live", nothing),
        socket("/containers/{name}/terminal", nothing),
    ]
)


def test_words_of_a_path_are_found() -> None:
    route, words, _ = ROUTER.match("GET", "/containers/web-1")
    assert route is not None and route.pattern == "/containers/{name}" and words == {"name": "web-1"}


def test_the_rest_of_a_path_may_have_slashes() -> None:
    _, words, _ = ROUTER.match("GET", "/images/reg:5000/a/b:1")
    assert words == {"name": "reg:5000/a/b:1"}


def test_a_path_may_be_asked_for_and_posted_to() -> None:
    asked, posted = (ROUTER.match(method, "/containers/a/remove").route for method in ("GET", "POST"))
    assert asked is not None and asked.kind is PageKind.PAGE
    assert posted is not None and posted.kind is PageKind.CHANGE


def test_methods_are_told_where_only_they_are_wrong() -> None:
    assert ROUTER.match("DELETE", "/containers/a/remove") == (None, {}, ("GET", "POST"))


def test_other_paths_mean_nothing() -> None:
    for path in ("/nowhere", "/containers/", "/containers/a/b/c", "//", "/images/"):
        assert ROUTER.match("GET", path).route is None
        assert ROUTER.match("GET", path).methods == ()


def test_streams_and_sockets_are_of_their_kind() -> None:
    found = [ROUTER.match("GET", path).route for path in ("/live", "/containers/a/terminal")]
    assert [route.kind for route in found if route] == [PageKind.STREAM, PageKind.SOCKET]
