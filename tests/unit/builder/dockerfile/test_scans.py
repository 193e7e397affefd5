"""Stages that an SBOM is to tell of besides the result."""

import pytest

from tests.unit.builder.dockerfile.building import build

STAGES = """FROM busybox AS one
{one}
RUN a
FROM one AS two
RUN b
FROM scratch
{target}
COPY --from=two /x /
COPY y /
"""


def scanned(text: str, **build_args: str) -> list[str]:
    return sorted(build(text, build_args=build_args).scans)


@pytest.mark.parametrize(
    ("one", "target", "found"),
    [
        ("", "", []),
        ("ARG BUILDKIT_SBOM_SCAN_STAGE=true", "", ["one"]),
        ("ARG BUILDKIT_SBOM_SCAN_STAGE=false", "ARG BUILDKIT_SBOM_SCAN_STAGE=true", []),
        ("ARG BUILDKIT_SBOM_SCAN_CONTEXT=true", "", []),
        ("", "ARG BUILDKIT_SBOM_SCAN_CONTEXT=1", ["context"]),
        ("ARG BUILDKIT_SBOM_SCAN_STAGE=one,other", "", ["one"]),
    ],
)
def test_stages_say_it_for_themselves_and_the_target_for_the_context(one, target, found):
    assert scanned(STAGES.format(one=one, target=target)) == found


def test_the_file_and_the_client_say_it_for_all():
    text = STAGES.format(one="", target="")
    assert scanned(f"ARG BUILDKIT_SBOM_SCAN_STAGE=1\nARG BUILDKIT_SBOM_SCAN_CONTEXT=1\n{text}") == [
        "context",
        "one",
        "two",
    ]
    assert scanned(text, BUILDKIT_SBOM_SCAN_STAGE="two") == ["two"]
    refused = STAGES.format(one="ARG BUILDKIT_SBOM_SCAN_STAGE=true", target="")
    assert scanned(refused, BUILDKIT_SBOM_SCAN_STAGE="false") == []


def test_what_is_scanned_is_where_the_stage_has_come_to():
    result = build(STAGES.format(one="ARG BUILDKIT_SBOM_SCAN_STAGE=true", target=""))
    edge = result.scans["one"]
    assert edge is not None
    assert "RUN a" in result.graph[edge.digest].name
