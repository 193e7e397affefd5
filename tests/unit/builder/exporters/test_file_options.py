"""Places of files, and names of the statements about them."""

from typing import Any

import pytest

from husk.builder.exporters.file_options import directories_of, name_in, read
from husk.builder.jobs.results import Predicate, Result
from husk.errors import InvalidParameter
from tests.unit.builder.exporters.test_parts import platforms

REF: Any = object()
SEVERAL = Result(
    refs={"linux/amd64": REF, "linux/arm64": REF}, metadata={"refs.platforms": platforms("amd64", "arm64")}
)
ONE = Result(ref=REF, metadata={"refs.platforms": platforms("amd64")})
SBOM = Predicate(type="t", path="deep/sbom.spdx.json", body=b"{}")


def test_what_a_client_may_say():
    options = read({"platform-split": "false", "attestation-prefix": "p-"}, {"source.date.epoch": b"7"})
    assert (options.split, options.prefix, options.epoch) == (False, "p-", 7)
    assert read({}, {}).split is None


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        ({"platform-split": "nope"}, "non-bool value for platform-split: nope"),
        ({"attestation-prefix": "../x"}, "attestation-prefix"),
        ({"source-date-epoch": "x"}, "SOURCE_DATE_EPOCH"),
    ],
)
def test_what_makes_no_sense(attributes, told):
    with pytest.raises(InvalidParameter, match=told):
        read(attributes, {})


async def test_a_directory_for_each_platform_where_there_may_be_several_or_if_wanted():
    assert list(await directories_of(ONE)) == [""]
    assert list(await directories_of(ONE, split=True)) == ["linux_amd64"]
    assert list(await directories_of(SEVERAL, split=False)) == ["linux_amd64", "linux_arm64"]
    metadata = {"refs.platforms": platforms("..").replace(b"linux/", b"")}
    with pytest.raises(InvalidParameter, match="no directory"):
        await directories_of(Result(refs={"..": REF}, metadata=metadata))


@pytest.mark.parametrize(
    ("attributes", "result", "name"),
    [
        ({}, ONE, "sbom.spdx.json"),
        ({"attestation-prefix": "p-"}, SEVERAL, "p-sbom.spdx.json"),
        ({"platform-split": "false"}, ONE, "sbom.spdx.json"),
        ({"platform-split": "false"}, SEVERAL, "sbom.spdx.linux_amd64.json"),
    ],
)
async def test_names_of_statements(attributes, result, name):
    part = next(iter((await directories_of(result)).values()))
    assert name_in(read(attributes, {}), part, several=bool(result.refs))(SBOM) == name
