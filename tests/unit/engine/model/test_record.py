"""Changes of records are counted, in every part of a container's record."""

from collections.abc import Iterator

import msgspec
import pytest
from msgspec import inspect

from husk.engine.model.container import Container, State
from husk.engine.model.container_config import HostConfig, LogConfig, Mount
from husk.engine.model.record import changes, duplicate
from tests.unit.engine.records import container


def parts(kind: object) -> Iterator[type[msgspec.Struct]]:
    """All structs that a type is made of."""
    if isinstance(kind, inspect.StructType):
        yield kind.cls
        for field in kind.fields:
            yield from parts(field.type)
    for name in ("types", "item_types"):
        for inner in getattr(kind, name, ()):
            yield from parts(inner)
    for name in ("item_type", "value_type"):
        if (inner := getattr(kind, name, None)) is not None:
            yield from parts(inner)


KINDS = sorted(set(parts(inspect.type_info(Container))), key=lambda kind: kind.__name__)


def test_a_record_has_many_parts() -> None:
    assert {kind.__name__ for kind in KINDS} >= {"Container", "State", "Health", "Endpoint", "HostConfig", "Mount"}


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if not kind.__struct_config__.frozen], ids=lambda k: k.__name__
)
def test_setting_a_field_of_any_part_is_noted(kind: type[msgspec.Struct]) -> None:
    part = kind(**dict.fromkeys(kind.__struct_fields__))
    before = changes.count
    setattr(part, kind.__struct_fields__[0], None)
    assert changes.count == before + 1


def test_a_field_that_is_none_is_refused() -> None:
    with pytest.raises(AttributeError):
        State().statsu = "running"  # type: ignore[attr-defined]


def test_reading_and_making_records_changes_nothing() -> None:
    before = changes.count
    record = msgspec.json.decode(msgspec.json.encode(container("a")), type=Container)
    assert record.state.status == "created"
    assert changes.count == before


def test_a_duplicate_shares_nothing():
    config = HostConfig(
        binds=["/a:/b"], log_config=LogConfig(type="none", config={"a": "b"}), mounts=[Mount(target="/c")]
    )
    other = duplicate(config)
    assert other == config
    assert other.binds is not None
    other.binds.append("/x:/y")
    other.log_config.config["c"] = "d"
    assert (config.binds, config.log_config.config) == (["/a:/b"], {"a": "b"})
