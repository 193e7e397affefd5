"""Effects of a policy on the sources of a build, and the clients that are asked about them."""

import threading

import pytest

from husk.builder.graph.graph import Graph
from husk.builder.graph.operations import Operation, Source
from husk.builder.solver.source_policy import FREE, Decision, SourcePolicy, admitted
from husk.builder.solver.source_rules import Action, Match, SourceDenied, SourceRule, Update
from husk.errors import InvalidParameter
from husk.registry.manifest import Platform
from tests.unit.builder.solver.solving import step

BUSYBOX = "docker-image://docker.io/library/busybox:latest"
DENY_ALL = [SourceRule(action=Action.DENY, identifier="*")]


class Judge:
    """Says of each source what a test wants."""

    def __init__(self, **decisions: Decision) -> None:
        self.asked: list[tuple[Source, Platform | None]] = []
        self._decisions = decisions

    async def decide(self, source: Source, platform: Platform | None, /) -> Decision:
        self.asked.append((source, platform))
        return self._decisions.get(source.identifier.rpartition("/")[2].partition(":")[0], Decision(Action.ALLOW))


async def test_images_are_known_by_their_full_names():
    policy = SourcePolicy([[SourceRule(action=Action.DENY, identifier=BUSYBOX, match=Match.EXACT)]])
    for name in ("busybox", "docker.io/busybox:latest", "library/busybox"):
        with pytest.raises(SourceDenied, match="library/busybox:latest"):
            await policy.admit(Source(f"docker-image://{name}"), None)
        with pytest.raises(SourceDenied):
            await policy.admit_image(name, None)
    assert await policy.admit_image("busybox:1", None) == "docker.io/library/busybox:1"


async def test_a_client_is_asked_once_about_each_source():
    judge, platform = Judge(), Platform("amd64", "linux")
    policy = SourcePolicy([], judge)
    for _ in range(2):
        assert (await policy.admit(Source("https://x/y", {"a": "b"}), platform)).identifier == "https://x/y"
    await policy.admit(Source("https://x/y", {"a": "c"}), platform)
    assert [source.attributes["a"] for source, _ in judge.asked] == ["b", "c"]
    assert judge.asked[0][1] == platform


async def test_what_a_client_denies_or_replaces():
    other = Decision(Action.CONVERT, Source("https://x/good", {"http.checksum": "sha256:1"}))
    policy = SourcePolicy([], Judge(bad=Decision(Action.DENY, said=["no"]), old=other))
    with pytest.raises(SourceDenied, match='source "https://x/bad" not allowed by policy: action DENY') as caught:
        await policy.admit(Source("https://x/bad"), None)
    assert caught.value.said == ["no"]
    assert await policy.admit(Source("https://x/old"), None) == other.update


async def test_what_takes_a_sources_place_is_asked_about_too():
    judge = Judge(a=Decision(Action.CONVERT, Source("https://x/b")), b=Decision(Action.CONVERT, Source("https://x/a")))
    with pytest.raises(InvalidParameter, match="too many policy requests"):
        await SourcePolicy([], judge).admit(Source("https://x/a"), None)
    with pytest.raises(SourceDenied):
        await SourcePolicy([DENY_ALL], judge).admit(Source("https://x/c"), None)
    with pytest.raises(InvalidParameter, match="requires updated source"):
        await SourcePolicy([], Judge(a=Decision(Action.CONVERT))).admit(Source("https://x/a"), None)


async def test_an_image_is_not_made_another_kind_of_source():
    rule = SourceRule(action=Action.CONVERT, identifier=BUSYBOX, update=Update("https://x/y"))
    with pytest.raises(InvalidParameter, match="which is no image"):
        await SourcePolicy([[rule]]).admit_image("busybox", None)


async def test_a_frontend_can_only_take_away():
    strict = SourcePolicy([DENY_ALL])
    with pytest.raises(SourceDenied):
        await strict.with_policies([[SourceRule(action=Action.ALLOW, identifier="*")]]).admit(
            Source("https://x/y"), None
        )
    assert strict.with_policies([]) is strict
    with pytest.raises(SourceDenied):
        await FREE.with_policies([DENY_ALL]).admit(Source("https://x/y"), None)


async def test_a_graph_has_other_sources_under_the_same_digests():
    graph = Graph()
    base = graph.add(Operation(Source("docker-image://busybox")), name="base")
    unused = graph.add(Operation(Source("https://x/unused")))
    made = step(graph, "make", base)
    rule = SourceRule(action=Action.CONVERT, identifier=BUSYBOX, update=Update("docker-image://mirror/busybox:1"))
    denied = SourceRule(action=Action.DENY, identifier="https://*")
    changed = await admitted(graph, [made], SourcePolicy([[rule, denied]]))
    assert changed[base.digest].operation.body == Source("docker-image://docker.io/mirror/busybox:1")
    assert (changed[base.digest].name, made.digest in changed, unused.digest in changed) == ("base", True, False)
    assert await admitted(graph, [made], FREE) is graph


async def test_what_is_here_already_is_not_asked_about():
    assert await SourcePolicy([DENY_ALL]).admit(Source("stack://abc"), None) == Source("stack://abc")


async def test_many_rules_are_not_read_on_the_loop():
    read: list[threading.Thread] = []

    class Noting(list[SourceRule]):
        def __iter__(self):
            read.append(threading.current_thread())
            return super().__iter__()

    allowed = SourceRule(action=Action.ALLOW, identifier="https://*")
    for rules, address in (([allowed] * 500, "https://x/y"), ([allowed], "https://x/" + "y" * 8000)):
        source = Source(address)
        policy = SourcePolicy([Noting(rules)])
        read.clear()
        assert await policy.admit(source, None) == source
        assert read and threading.current_thread() not in read
    await SourcePolicy([Noting([allowed])]).admit(Source("https://x/y"), None)
    assert read[-1] is threading.current_thread()
