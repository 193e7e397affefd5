"""Lines of text in the order of the Dockerfile, however the steps end."""

import asyncio
import re
from typing import Any

import pytest

from husk.aio.tasks import Tasks
from husk.builder.classic.progress import ClassicProgress
from husk.builder.dockerfile.converted import ShownStep
from husk.builder.graph.graph import Graph, Location
from husk.builder.graph.operations import Exec, ExecMount, Operation, ProcessSpec, Source
from husk.builder.graph.progress import LONGEST_LOG


class Seen:
    def __init__(self):
        self.steps: dict[str, int] = {}
        self.images: dict[str, str] = {}

    def made(self, id):
        return self.steps.get(id)

    def image(self, id):
        return self.images.get(id, "")


class Told:
    """A build of a base, two steps that do not need each other, and a setting."""

    def __init__(self, seen=None, **options):
        graph = Graph()
        image = graph.add(Operation(Source("docker-image://busybox")), locations=[Location(0, 1, 1)])
        a, b = (self._step(graph, line, image) for line in (2, 3))
        self.vertices = [graph[edge.digest] for edge in (image, a, b)]
        self.steps = [
            self.shown("FROM busybox", 1, image, [image.digest], base="sha256:" + "b" * 64),
            self.shown("RUN a", 2, a, [a.digest]),
            self.shown("RUN b", 3, b, [b.digest]),
            self.shown("CMD c", 4, b, []),
        ]
        self.said: list[Any] = []
        self.seen = seen or Seen()
        self.later: list[Any] = []
        self.progress = ClassicProgress(4, self.said.append, self.seen, lambda: 77, self.later.append, **options)
        self.progress.begin(["FROM busybox"])

    @staticmethod
    def _step(graph, line, image):
        body = Exec(process=ProcessSpec(args=[str(line)]), mounts=[ExecMount(target="/", input=0)])
        return graph.add(Operation(body, [image]), locations=[Location(0, line, line)])

    @staticmethod
    def shown(code, line, result, vertices, **more):
        keyword = code.split()[0]
        place = Location(0, line, line)
        return ShownStep(code, keyword, place, written=code, result=result, vertices=tuple(vertices), **more)

    def expect(self):
        asyncio.run(self.progress.expect(self.steps, self.vertices))
        return self.vertices

    def end(self, vertex, **how):
        self.progress.started(vertex)
        self.progress.ended(vertex, outputs=[f"diff:{vertex.operation.inputs}"], **how)

    def all(self, **how):
        for vertex in self.expect():
            self.end(vertex, **how)
        self.progress.finish("sha256:" + "1" * 64)
        return self.text

    def ids(self):
        return re.findall(r"^ ---> ([0-9a-f]{12})$", "".join(one.stream for one in self.said), re.MULTILINE)

    @property
    def text(self):
        """With numbers for ids, in the order in which they come."""
        ids: dict[str, int] = {}
        text = "".join(one.stream or f"<{one.aux.id.removeprefix('sha256:')[:12]}>\n" for one in self.said)
        return re.sub(r"\b[0-9a-f]{12}\b", lambda found: str(ids.setdefault(found[0], len(ids))), text)


@pytest.fixture
def told():
    return Told()


BUILT = """\
Step 1/4 : FROM busybox
 ---> 0
Step 2/4 : RUN a
 ---> Running in 1
 ---> Removed intermediate container 1
 ---> 2
Step 3/4 : RUN b
 ---> Running in 3
 ---> Removed intermediate container 3
 ---> 4
Step 4/4 : CMD c
 ---> Running in 5
 ---> Removed intermediate container 5
 ---> 6
<6>
"""


def test_the_first_step_is_told_before_it_is_known_what_is_in_it(told):
    assert told.text == "Step 1/4 : FROM busybox\n"


def test_a_build(told):
    assert told.all() == BUILT


def test_the_same_once_more(told):
    told.all()
    again = Told()
    again.seen.steps, again.seen.images = dict(told.progress.seen), dict(told.progress.images)
    assert again.all(cached=True).count(" ---> Using cache\n") == 3
    assert "Running" not in again.text
    assert told.ids() == again.ids()
    assert again.progress.made == 77


def test_without_a_cache_a_setting_is_new(told):
    told.all()
    again = Told(no_cache=True)
    again.seen.steps = dict.fromkeys(told.progress.seen, 5)
    assert again.all() == BUILT
    assert again.progress.made == 77


def test_containers_that_stay(told):
    assert "Removed" not in Told(removes=False).all()


def test_the_image_of_another_build_is_the_id_of_its_last_step(told):
    told.all()
    longer = Told()
    longer.seen.images = dict(told.progress.images)
    longer.steps.append(told.shown("CMD d", 5, longer.steps[-1].result, []))
    longer.all()
    assert f" ---> {'1' * 12}\n" in [one.stream for one in longer.said]


def test_what_a_step_says_waits_for_its_turn(told):
    image, a, b = told.expect()
    told.end(image)
    told.progress.log(b, b"from b\n", stderr=False)
    told.end(b)
    told.progress.log(a, b"from a\n", stderr=True)
    assert told.text.endswith("Step 2/4 : RUN a\n ---> Running in 1\n\x1b[91mfrom a\n\x1b[0m")
    told.end(a)
    assert "Step 3/4 : RUN b\n ---> Running in 3\nfrom b\n ---> Removed" in told.text


def test_a_command_is_told_to_run_before_it_says_anything(told):
    image, a, _ = told.expect()
    told.end(image)
    told.progress.started(a)
    assert "Running" not in told.text
    for call in told.later:
        call()
    assert told.text.endswith(" ---> Running in 1\n")


def test_letters_that_come_in_pieces(told):
    image, a, _ = told.expect()
    told.end(image)
    for piece in (b"\xe2", b"\x82", b"\xac\xff"):
        told.progress.log(a, piece, stderr=False)
    assert told.text.endswith("€\ufffd")


def test_a_step_that_fails_is_the_last_one(told):
    image, a, _ = told.expect()
    told.end(image)
    told.progress.log(a, b"no\n", stderr=False)
    told.end(a, error="exit code: 1")
    assert told.progress.tell_failure().code == "RUN a"
    assert told.text.endswith("Step 2/4 : RUN a\n ---> Running in 1\nno\n")


def test_a_step_that_fails_is_told_though_others_before_it_go_on():
    told = Told(removes_failed=True)
    image, _, b = told.expect()
    told.end(image)
    told.progress.log(b, b"no\n", stderr=False)
    told.end(b, error="exit code: 1")
    told.progress.tell_failure()
    assert told.text.endswith(
        "Step 2/4 : RUN a\nStep 3/4 : RUN b\n ---> Running in 1\nno\n ---> Removed intermediate container 1\n"
    )


def test_other_stages_have_ids(told):
    two = told.shown("FROM busybox", 5, told.steps[0].result, [], stage=1, base="sha256:" + "b" * 64)
    three = told.shown("FROM scratch", 6, None, [], stage=2)
    last = told.shown("FROM one", 7, told.steps[-1].result, [], stage=3, base_stage=0)
    told.steps += [two, three, last]
    text = told.all()
    assert " ---> 6\n<6>\nStep 5/4 : FROM busybox\n ---> 0\n<0>\nStep 6/4 : FROM scratch\n ---> \nStep 7/4" in text
    assert "Step 7/4 : FROM one\n ---> 6\n" in text


def test_triggers(told):
    step = told.steps[1]
    told.steps[1:3] = [
        told.shown("RUN a", 1, step.result, step.vertices, from_trigger=True),
        told.shown("ENV x", 1, step.result, [], from_trigger=True),
    ]
    told.vertices = told.vertices[:2]
    text = told.all()
    assert text.startswith("Step 1/4 : FROM busybox\n# Executing 2 build triggers\n ---> Running in 0\n")
    assert text.count("\n ---> Running") == 3
    assert "container 1\n ---> 2\nStep 2/4 : CMD c\n" in text


def test_a_step_that_writes_without_end_is_cut_off(told):
    image, a, _ = told.expect()
    told.end(image)
    for _ in range(100):
        told.progress.log(a, b"y" * (LONGEST_LOG // 10), stderr=False)
    assert LONGEST_LOG < len(told.text) < LONGEST_LOG + 200


async def test_thousands_of_instructions_are_told_in_turns():
    told = Told()
    settings = [told.shown(f"MAINTAINER {number}", number, told.steps[0].result, []) for number in range(2, 2002)]
    await told.progress.expect([told.steps[0], *settings], [])
    turns = 0
    tasks = Tasks()
    waiting = tasks.spawn(told.progress.caught_up(), "wait")
    while told.later:
        await asyncio.sleep(0)
        assert not waiting.done()
        before = len(told.said)
        told.later.pop(0)()
        assert len(told.said) - before < 500
        turns += 1
    await tasks.join()
    assert turns == 40
    text = "".join(one.stream or "" for one in told.said)
    assert [int(number) for number in re.findall(r"MAINTAINER (\d+)", text)] == list(range(2, 2002))
