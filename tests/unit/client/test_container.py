import base64

import pytest

from husk.api.http.hijack import hijack
from husk.api.http.response import Response, Unanswered, fields
from husk.api.streams.framing import frame
from husk.client.container import Container
from husk.client.output import MULTIPLEXED
from husk.errors import CommandFailed, InvalidParameter, NotFound
from tests.support.fake_engine import JSON, failed

INSPECTED = {
    "Id": "c" * 64,
    "Name": "/box",
    "State": {"Status": "running"},
    "Config": {"Image": "busybox", "Labels": {"a": "b"}, "Tty": False},
    "NetworkSettings": {
        "Ports": {"80/tcp": [{"HostIp": "0.0.0.0", "HostPort": "8080"}], "81/tcp": None},
        "Networks": {"none": {"IPAddress": ""}, "bridge": {"IPAddress": "10.0.0.2"}},
    },
}
LISTED = {"Id": "c" * 64, "Names": ["/box"], "State": "running", "Image": "busybox", "Labels": {"a": "b"}}


@pytest.fixture
def box(calls):
    return Container(calls, {"Id": "c1"})


@pytest.mark.parametrize("attrs", [INSPECTED, LISTED])
def test_what_is_known_from_either_document(calls, attrs):
    box = Container(calls, attrs)
    assert (box.name, box.status, box.image, box.labels) == ("box", "running", "busybox", {"a": "b"})
    assert (box.short_id, repr(box)) == ("c" * 12, "<Container cccccccccccc box>")
    assert box == Container(calls, {"Id": "c" * 64})
    assert len({box, Container(calls, LISTED)}) == 1


def test_its_network(calls):
    box = Container(calls, INSPECTED)
    assert box.ports == {"80/tcp": [("0.0.0.0", 8080)], "81/tcp": []}
    assert box.ip == "10.0.0.2"
    assert Container(calls, {"Id": "c1"}).ip == ""


@pytest.mark.parametrize(
    ("verb", "path", "query"),
    [
        (lambda box: box.start(), "start", {}),
        (lambda box: box.stop(), "stop", {}),
        (lambda box: box.stop(timeout=0, signal="INT"), "stop", {"t": "0", "signal": "INT"}),
        (lambda box: box.restart(3), "restart", {"t": "3"}),
        (lambda box: box.kill("TERM"), "kill", {"signal": "TERM"}),
        (lambda box: box.pause(), "pause", {}),
        (lambda box: box.unpause(), "unpause", {}),
        (lambda box: box.resize(24, 80), "resize", {"h": "24", "w": "80"}),
    ],
)
async def test_verbs(box, engine, verb, path, query):
    engine.answers("POST", f"/containers/c1/{path}", None)
    await verb(box)
    assert engine.last("POST", f"/containers/c1/{path}").query == query


async def test_what_a_change_has_made_is_known(calls, engine):
    engine.answers("POST", "/containers/c1/stop", None)
    engine.answers("POST", "/containers/c1/start", None)
    engine.answers("GET", "/containers/c1/json", {**INSPECTED, "State": {"Status": "exited"}})
    listed = Container(calls, {**LISTED, "Id": "c1", "Status": "Up 3 minutes"})
    await listed.stop()
    assert (listed.status, listed.name, listed.ip) == ("exited", "box", "10.0.0.2")
    assert "Status" not in listed.attrs and listed.attrs["Image"] == "busybox", "a list's words, none of them untrue"
    engine.answers("GET", "/containers/c1/json", failed(404, "No such container: c1"))
    for box in (listed, Container(calls, {**INSPECTED, "Id": "c1"})):
        await box.start()
        assert (box.status, box.name) == ("removed", "box"), "it went by itself"


async def test_what_is_done_already_is_no_failure(box, engine):
    engine.answers("POST", "/containers/c1/start", Response(304))
    engine.answers("POST", "/containers/c1/stop", Response(304))
    await box.start()
    await box.stop()


async def test_waiting(box, engine):
    engine.answers("POST", "/containers/c1/wait", {"StatusCode": 3})
    assert await box.wait(condition="next-exit") == 3
    assert engine.last("POST", "/containers/c1/wait").query == {"condition": "next-exit"}
    engine.answers("POST", "/containers/c1/wait", {"StatusCode": 127, "Error": {"Message": "no such program"}})
    with pytest.raises(CommandFailed, match="no such program"):
        await box.wait()


async def test_removing(box, engine):
    engine.answers("DELETE", "/containers/c1", None)
    await box.remove(force=True, volumes=True)
    assert engine.last("DELETE", "/containers/c1").query == {"force": "1", "v": "1", "link": "0"}


async def test_a_new_name_is_known_at_once(box, engine):
    engine.answers("POST", "/containers/c1/rename", None)
    engine.answers("GET", "/containers/c1/json", {**INSPECTED, "Name": "/new"})
    await box.rename("new")
    assert box.name == "new"


async def test_limits_are_changed_in_the_words_of_the_api(box, engine):
    engine.answers("POST", "/containers/c1/update", {"Warnings": ["swap"]})
    assert await box.update(Memory=1 << 20) == ["swap"]
    assert engine.last("POST", "/containers/c1/update").document == {"Memory": 1 << 20}


async def test_logs_whole_and_in_lines(box, engine):
    written = frame(1, b"out\n") + frame(2, b"err\n")
    engine.answers("GET", "/containers/c1/logs", Response(200, written, fields({"Content-Type": MULTIPLEXED})))
    assert await box.logs() == b"out\nerr\n"
    assert [line async for line in box.logs(tail=2, since=1.5).lines()] == ["out", "err"]
    query = engine.last("GET", "/containers/c1/logs").query
    assert (query["tail"], query["since"], query["follow"]) == ("2", "1.5", "0")


async def test_logs_of_a_terminal(box, engine):
    answer = Response(200, b"raw", fields({"Content-Type": "application/vnd.docker.raw-stream"}))
    engine.answers("GET", "/containers/c1/logs", answer)
    assert [piece async for piece in box.logs()] == [("stdout", b"raw")]


async def test_attaching(box, engine):
    async def answer(request):
        stream = hijack(request, b"")
        await stream.write(frame(1, b"hello"))
        await stream.finish()
        return Unanswered()

    engine.answers("POST", "/containers/c1/attach", answer)
    async with box.attach(stdin=True, logs=True) as console:
        await console.write_eof()
        assert [piece async for piece in console] == [("stdout", b"hello")]
    assert engine.last("POST", "/containers/c1/attach").query == {
        "stream": "1",
        "stdin": "1",
        "stdout": "1",
        "stderr": "1",
        "logs": "1",
    }


async def test_files_go_in_and_come_out(box, engine, tmp_path):
    engine.answers("PUT", "/containers/c1/archive", None)
    await box.put("/in/file", "text")
    asked = engine.last("PUT", "/containers/c1/archive")
    assert asked.query == {"path": "/in"}
    engine.answers("GET", "/containers/c1/archive", asked.body)
    assert await box.get("/in/file") == b"text"
    await box.put("/in/tree", tmp_path)
    engine.answers("GET", "/containers/c1/archive", engine.last("PUT", "/containers/c1/archive").body)
    with pytest.raises(InvalidParameter, match="not a regular file"):
        await box.get("/in/tree")


async def test_a_file_goes_into_the_lowest_directory_that_is_there(box, engine):
    """That one may be a volume below a root that is read-only."""
    missing = failed(404, "Could not find the file")
    told = base64.b64encode(b'{"name":"x","size":3,"mode":420,"mtime":"2026-01-02T03:04:05Z"}').decode()
    there = Response(200, b"", fields({"X-Docker-Container-Path-Stat": told}))
    engine.answers("PUT", "/containers/c1/archive", missing, None)
    engine.answers("HEAD", "/containers/c1/archive", missing, there)
    await box.put("/data/a/b/c/file", "text")
    asked = [(each.method, each.query["path"]) for each in engine.asked if each.path == "/containers/c1/archive"]
    assert asked == [("PUT", "/data/a/b/c"), ("HEAD", "/data/a/b"), ("HEAD", "/data/a"), ("PUT", "/data/a")]
    assert b"b/c/file\0" in engine.last("PUT", "/containers/c1/archive").body


async def test_a_file_for_a_container_that_is_not_there(box, engine):
    engine.answers("PUT", "/containers/c1/archive", failed(404, "No such container: c1"))
    with pytest.raises(NotFound, match="No such container"):
        await box.put("/in/file", "text")
    with pytest.raises(InvalidParameter, match="absolute path"):
        await box.put("in/file", "text")


async def test_its_ports_as_a_program_reaches_them(calls):
    box = Container(calls, INSPECTED)
    assert (box.port(80).url, box.port("80/tcp").number) == ("http://127.0.0.1:8080", 8080)
    assert box.port(5432) == ("10.0.0.2", 5432), "not published, and its own address is here"
    calls.address = "tcp://engine.example:2376"
    assert box.port(80).url_of("https", "x") == "https://engine.example:8080/x"
    with pytest.raises(NotFound, match=r"port 81 of box is not published: start it with ports=\{81: None\}"):
        box.port(81)


def test_a_container_in_a_notebook(calls):
    shown = Container(calls, {**INSPECTED, "Name": "/<b>"})._repr_html_()
    assert "&lt;b&gt;" in shown and "busybox" in shown and "0.0.0.0:8080" in shown and "<b>" not in shown


async def test_what_a_path_names(box, engine):
    told = base64.b64encode(b'{"name":"x","size":3,"mode":420,"mtime":"2026-01-02T03:04:05.123456789Z"}').decode()
    answer = Response(200, b"", fields({"X-Docker-Container-Path-Stat": told}))
    engine.answers("HEAD", "/containers/c1/archive", answer)
    found = await box.stat("/x")
    assert (found.name, found.size, found.is_file) == ("x", 3, True)
    assert engine.last("HEAD", "/containers/c1/archive").query == {"path": "/x"}


async def test_a_path_that_names_nothing_is_told_though_the_answer_has_no_body(box, engine):
    engine.answers("HEAD", "/containers/c1/archive", Response(404, b"", fields({})))
    with pytest.raises(NotFound, match=r"^Could not find the file /x in container c1$") as told:
        await box.stat("/x")
    assert told.value.from_engine


async def test_what_goes_on_in_it(box, engine):
    engine.answers("GET", "/containers/c1/top", {"Titles": ["PID"], "Processes": [["1"]]})
    engine.answers("GET", "/containers/c1/changes", [{"Path": "/x", "Kind": 1}])
    sample = {"read": "2026-01-02T03:04:05Z", "pids_stats": {"current": 2}}
    engine.answers("GET", "/containers/c1/stats", sample)
    engine.answers("GET", "/containers/c1/export", b"tar")
    assert (await box.top())["Processes"] == [["1"]]
    assert await box.diff() == [{"Path": "/x", "Kind": 1}]
    assert (await box.stats_now(one_shot=True)).attrs == sample
    assert [each.pids async for each in box.stats()] == [2]
    assert b"".join([piece async for piece in box.export()]) == b"tar"


async def test_nothing_differs(box, engine):
    engine.answers("GET", "/containers/c1/changes", Response(200, b"null", JSON))
    assert await box.diff() == []


async def test_an_image_of_it(box, engine):
    engine.answers("POST", "/commit", {"Id": "sha256:i1"})
    engine.answers("GET", "/images/sha256:i1/json", {"Id": "sha256:i1", "RepoTags": ["mine:1"]})
    image = await box.commit("host:5000/mine:1", message="why", changes=["ENV a=b"])
    assert (image.id, image.tags) == ("sha256:i1", ["mine:1"])
    query = engine.last("POST", "/commit").query
    assert (query["repo"], query["tag"]) == ("host:5000/mine", "1")
    assert (query["comment"], query["changes"]) == ("why", "ENV a=b")


async def test_it_is_gone(box, engine):
    engine.answers("POST", "/containers/c1/kill", failed(404, "No such container: c1"))
    with pytest.raises(Exception, match="No such container"):
        await box.kill()
