"""A client that wants to know more of a source before it decides."""

import pytest

from husk.builder.graph.operations import Source
from husk.builder.jobs.status_log import StatusLog, VertexTold
from husk.builder.solver.asking import Asker
from husk.builder.solver.source_policy import Decision, DescribedImage, Inquiry, Resolved, ResolvedFile, SourceFacts
from husk.builder.solver.source_rules import Action
from husk.builder.sources.session_judge import SessionJudge
from husk.errors import InvalidParameter
from husk.registry.manifest import Platform

IMAGE = DescribedImage("docker.io/library/busybox:1@sha256:1", "sha256:1", b"{}")
COMMIT = Resolved("refs/heads/main", "a" * 40, "a" * 40)
FILE = ResolvedFile("sha256:2", "file")


class Client:
    """Says one thing after the other, and then allows."""

    def __init__(self, *answers: Decision | Inquiry) -> None:
        self.answers = list(answers)
        self.told: list[SourceFacts] = []

    async def check_policy(self, facts: SourceFacts, platform: Platform | None, /) -> Decision | Inquiry:
        self.told.append(facts)
        return self.answers.pop(0) if self.answers else Decision(Action.ALLOW)


class Sources:
    """All kinds of sources in one, and who asked for what."""

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.images = self.git = self.web = self.layouts = self

    async def describe(self, *asked):
        self.asked.append(asked[:3])
        return IMAGE

    async def resolve(self, source, *_):
        return COMMIT if source.identifier.startswith("git") else IMAGE

    async def have(self, source, watcher):
        return FILE, None


def judge(client: Client, log: StatusLog | None = None) -> SessionJudge:
    return SessionJudge(Sources(), client, Asker(log or StatusLog()))


@pytest.mark.parametrize(
    ("identifier", "facts"),
    [
        ("docker-image://docker.io/library/busybox:1", {"image": IMAGE}),
        ("oci-layout://x@sha256:1", {"image": IMAGE}),
        ("git://example.com/x.git#main", {"git": COMMIT}),
        ("https://example.com/x", {"file": FILE}),
        ("local://context", {}),
    ],
)
async def test_what_a_client_asks_for_it_is_told(identifier: str, facts: dict[str, object]) -> None:
    source, log = Source(identifier), StatusLog()
    client = Client(Inquiry(source=source, shown_as="[policy] look"))
    assert (await judge(client, log).decide(source, None)).action == Action.ALLOW
    assert client.told == [SourceFacts(source), SourceFacts(source, **facts)]  # type: ignore[arg-type]
    assert [one.vertex.name for one in log.told if isinstance(one, VertexTold)][:1] == (
        ["[policy] look"] if facts else []
    )


async def test_a_client_cannot_have_another_source_looked_at() -> None:
    asked = Source("https://a/b", {"k": "v"})
    with pytest.raises(InvalidParameter, match="different source identifier"):
        await judge(Client(Inquiry(source=Source("https://secret/b", {"k": "v"})))).decide(asked, None)
    with pytest.raises(InvalidParameter, match="different source attrs"):
        await judge(Client(Inquiry(source=Source("https://a/b")))).decide(asked, None)


async def test_a_client_that_asks_without_end() -> None:
    source = Source("local://context")
    with pytest.raises(InvalidParameter, match="too many policy requests"):
        await judge(Client(*[Inquiry(source=source)] * 50)).decide(source, None)
