"""Statements that clients ask for."""

import pytest

from husk.builder.attest.wanted import DEFAULT_GENERATOR, Provenance, read
from husk.errors import InvalidParameter


def test_nobody_asks():
    wanted = read({"context:x": "y", "build-arg:A": "1"})
    assert (wanted.provenance, wanted.sbom, wanted.history) == (None, None, Provenance())


def test_what_buildx_sends_by_default():
    wanted = read({"attest:provenance": "mode=min,inline-only=true"})
    assert wanted.provenance == Provenance(everything=False, inline_only=True)


def test_all_of_provenance():
    wanted = read({"attest:provenance": '"builder-id=a,b",mode=max,version=v1,reproducible=true'})
    assert wanted.provenance == Provenance(version="v1", builder="a,b", reproducible=True)
    assert wanted.history == Provenance(builder="a,b")


def test_the_history_may_be_told_in_the_newer_form():
    assert read({"build-arg:BUILDKIT_HISTORY_PROVENANCE_V1": "1"}).history.version == "v1"


def test_sboms():
    wanted = read({"attest:sbom": ""})
    assert wanted.sbom is not None
    assert wanted.sbom.generator.endswith(DEFAULT_GENERATOR)
    wanted = read({"build-arg:BUILDKIT_ATTEST_SBOM": "generator=team/scan,DEPTH=2", "no-cache": ""})
    assert wanted.sbom is not None
    assert wanted.sbom.generator == "docker.io/team/scan:latest"
    assert (wanted.sbom.parameters, wanted.sbom.ignore_cache) == ({"DEPTH": "2"}, True)


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"attest:other": ""}, 'unknown attestation type "other"'),
        ({"attest:provenance": "version=v9"}, "invalid provenance SLSA version: v9"),
        ({"attest:provenance": "mode=some"}, 'invalid mode "some"'),
        ({"attest:provenance": "reproducible=maybe"}, "failed to parse reproducible flag"),
        ({"attest:provenance": 'a"b,"c"d'}, "failed to parse provenance"),
        ({"attest:provenance": "a=b," * 1000}, "more than 1000 fields"),
        ({"attest:sbom": "generator="}, "sbom generator cannot be empty"),
        ({"attest:sbom": "generator=A B"}, "failed to parse sbom generator A B"),
    ],
)
def test_what_makes_no_sense(attributes, said):
    with pytest.raises(InvalidParameter, match=said):
        read(attributes)
