"""Images as a cache, by what their history says."""

import pytest

from husk.builder.classic.history_cache import HistoryCache, instruction, shared_steps, steps_below
from husk.builder.graph import stacks
from husk.builder.graph.graph import Graph
from husk.builder.graph.operations import Edge, Exec, ExecMount, Files, Operation, ProcessSpec, Source
from husk.builder.solver.interfaces import Record
from husk.builder.store.file_actions import Copy, FileAction
from husk.engine.images.make import chain_ids
from husk.engine.model.image import HistoryEntry, ImageConfig, RootFS

DIFFS = [f"sha256:{letter * 64}" for letter in "abcd"]


def layers(count):
    return stacks.of_layers(chain_ids(DIFFS)[:count])


def history(*steps):
    return [HistoryEntry(created_by=text.removeprefix("- "), empty_layer=text.startswith("- ")) for text in steps]


def image(diffs, *steps):
    return ImageConfig(architecture="amd64", os="linux", rootfs=RootFS(diff_ids=diffs), history=history(*steps))


def run(graph: Graph, below: Edge, command: str) -> Edge:
    process = ProcessSpec(args=["/bin/sh", "-c", command], env=[], cwd="/")
    return graph.add(Operation(Exec(process=process, mounts=[ExecMount(target="/", input=0, output=0)]), [below]))


@pytest.fixture
def graph():
    """FROM, RUN one, COPY a /a, RUN two."""
    graph = Graph()
    base = graph.add(Operation(Source("docker-image://busybox")))
    context = graph.add(Operation(Source("stack://diff:context")))
    one = run(graph, base, "one")
    copy = FileAction(action=Copy(source="/a", destination="/a"), input=0, second_input=1, output=0)
    copied = graph.add(Operation(Files([copy]), [one, context]))
    return graph, run(graph, copied, "two")


OURS = ("FROM", "RUN /bin/sh -c one # buildkit", "COPY a /a # buildkit", "RUN /bin/sh -c two # buildkit", "- CMD x")
THEIRS = ("FROM", "/bin/sh -c one", "/bin/sh -c #(nop) COPY file:123 in /a ", "/bin/sh -c two")


class Contents:
    def __init__(self, same=True):
        self.same = same
        self.asked = []

    async def content_digest(self, output, selections):
        self.asked.append((output, [one.path for one in selections]))
        return "same" if self.same else output


def prepared(graph, contents, *others):
    cache = HistoryCache(contents, lambda record: not record.absent)
    made, root = graph
    cache.prepare(made, root, image(DIFFS[:1], *OURS), others)
    return cache


async def found(cache, graph, number, below):
    vertex = steps_below(*graph)[number]
    return await cache.find(vertex, [Record("r", [below])], "key", None, None)


async def test_commands_are_taken_from_the_image(graph):
    contents = Contents()
    cache = prepared(graph, contents, image(DIFFS, *THEIRS))
    assert (await found(cache, graph, 0, layers(1))).outputs == [layers(2)]
    assert contents.asked == []
    below = f"{layers(2)} diff:copied"
    assert (await found(cache, graph, 2, below)).outputs == [layers(4)]
    assert contents.asked == [(below, ["/a"]), (layers(3), ["/a"])]


async def test_other_files_make_another_result(graph):
    cache = prepared(graph, Contents(same=False), image(DIFFS, *THEIRS))
    assert await found(cache, graph, 2, f"{layers(2)} diff:copied") is None


async def test_what_was_run_here_is_not_what_the_image_has(graph):
    cache = prepared(graph, Contents(), image(DIFFS, *THEIRS))
    assert await found(cache, graph, 2, f"{layers(1)} diff:run diff:copied") is None


@pytest.mark.parametrize(
    "other",
    [
        image(DIFFS[1:], *THEIRS),
        image(DIFFS[:3], *THEIRS),
        image(DIFFS, "FROM", "/bin/sh -c other", *THEIRS[2:]),
        image(DIFFS, "- ENV A=b", *THEIRS),
    ],
)
async def test_images_that_tell_another_story(graph, other):
    cache = prepared(graph, Contents(), other)
    assert await found(cache, graph, 0, layers(1)) is None


async def test_copies_and_what_is_not_here_are_not_asked_for(graph):
    cache = prepared(graph, Contents(), image(DIFFS, *THEIRS))
    assert await found(cache, graph, 1, layers(2)) is None
    vertex = steps_below(*graph)[0]
    assert await cache.find(vertex, [Record("r", [layers(1)], absent=True)], "key", None, None) is None


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("/bin/sh -c #(nop)  ENV A=b", "ENV A=b"),
        ("|1 V=1 /bin/sh -c make", "RUN |1 V=1 /bin/sh -c make # buildkit"),
        ("/bin/sh -c #(nop) ADD dir:1 in / ", "ADD . / # buildkit"),
        ('/bin/sh -c #(nop)  CMD ["sh"]', 'CMD ["sh"]'),
    ],
)
def test_instructions_of_several_builders(theirs, ours):
    assert instruction(HistoryEntry(created_by=theirs)) == instruction(HistoryEntry(created_by=ours))


def test_layers_of_the_base_do_not_count():
    assert shared_steps(history("a", "b", "- c", "d"), history("a", "b", "- c", "e"), 1) == 1
    assert shared_steps(history("a"), history("b"), 1) == 0
