"""Classic builds in BuildKit's words."""

from husk.api.classic_record import record_of
from husk.builder.classic.build import ClassicRequest
from husk.builder.dockerfile.options import Options
from husk.engine.images.tag import parse_target
from husk.registry.manifest import parse_platform


def request(target: str = "") -> ClassicRequest:
    name = parse_target("me/it:1", "")
    assert name is not None
    options = Options(platform=parse_platform("linux/arm/v7"), build_args={"A": "1"}, target=target)
    return ClassicRequest(options=options, names=[name], dockerfile="d/File")


def test_what_is_asked_for_is_told() -> None:
    record = record_of(request(target="prod"), "https://example.org/repo.git")
    assert record.frontend_attrs == {
        "filename": "d/File",
        "target": "prod",
        "platform": "linux/arm/v7",
        "context": "https://example.org/repo.git",
        "build-arg:A": "1",
    }
    assert [(each.type, each.attrs) for each in record.exporters] == [("image", {"name": "me/it:1"})]


def test_every_build_has_a_name_of_its_own_and_nothing_empty() -> None:
    one, other = record_of(request()), record_of(request())
    assert one.ref != other.ref and len(one.ref) == 25
    assert "target" not in one.frontend_attrs and "context" not in one.frontend_attrs


def test_a_password_in_an_address_is_not_kept() -> None:
    told = record_of(request(), "https://me:hunter2@example.org/repo.git").frontend_attrs["context"]
    assert "hunter2" not in told and "example.org/repo.git" in told
