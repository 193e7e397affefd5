"""Bodies: what Go's decoder takes is taken, what it refuses is refused."""

import msgspec
import pytest

from husk.api.types.containers import CreateExtras
from husk.engine.model.container_config import ContainerConfig
from husk.errors import InvalidParameter
from husk.text.gojson import Reader, encode, parse_document

CONFIG = Reader(ContainerConfig)
EXTRAS = Reader(CreateExtras)


@pytest.mark.parametrize("body", [b"", b"{", b"nope", b'{"a": }', b"\xff", b'{"a":"\xff"}', b"[" * 100_000])
def test_what_is_not_json_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidParameter, match=r"^invalid JSON: "):
        parse_document(body)


@pytest.mark.parametrize(("body", "kind"), [(b"[]", "array"), (b'"x"', "string"), (b"1", "number")])
def test_what_is_not_an_object_is_refused(body: bytes, kind: str) -> None:
    with pytest.raises(InvalidParameter, match=f"cannot unmarshal {kind}"):
        parse_document(body)


def test_null_is_an_empty_object() -> None:
    assert parse_document(b" null\n") == {}


def test_null_means_not_given() -> None:
    config = CONFIG.read({"Env": None, "Tty": None, "Labels": None, "Cmd": None, "Healthcheck": None, "Image": "x"})
    assert config == ContainerConfig(image="x")


def test_null_in_a_map_keeps_its_key() -> None:
    assert CONFIG.read({"ExposedPorts": {"80/tcp": None}}).exposed_ports == {"80/tcp": {}}
    assert CONFIG.read({"Labels": {"a": None}}).labels == {"a": ""}
    extras = EXTRAS.read(
        {"HostConfig": {"PortBindings": {"80/tcp": None}}, "NetworkingConfig": {"EndpointsConfig": {"bridge": None}}}
    )
    assert extras.host_config.port_bindings == {"80/tcp": None}
    assert list(extras.networking_config.endpoints_config) == ["bridge"]


def test_null_deep_inside_means_not_given() -> None:
    extras = EXTRAS.read(
        {"HostConfig": {"LogConfig": {"Type": None, "Config": None}, "PidsLimit": None, "Dns": [None]}}
    )
    assert extras.host_config.log_config.type == ""
    assert extras.host_config.pids_limit is None
    assert extras.host_config.dns == [""]


@pytest.mark.parametrize("field", ["Cmd", "Entrypoint", "Shell"])
def test_one_word_is_a_list_of_one(field: str) -> None:
    assert getattr(CONFIG.read({field: "true"}), field.lower()) == ["true"]


def test_field_names_match_in_any_case() -> None:
    config = CONFIG.read({"image": "x", "openstdin": True, "ENV": ["a=b"]})
    assert (config.image, config.open_stdin, config.env) == ("x", True, ["a=b"])


def test_unknown_fields_are_ignored() -> None:
    assert CONFIG.read({"Image": "x", "Colour": "red"}) == ContainerConfig(image="x")


@pytest.mark.parametrize(
    "document",
    [
        {"Env": "a=b"},
        {"Tty": "yes"},
        {"Image": 1},
        {"Labels": []},
        {"Cmd": [1]},
        {"StopTimeout": "5"},
        {"Volumes": "x"},
    ],
)
def test_wrong_types_are_refused(document: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter, match=r"^invalid JSON: .*\$\."):
        CONFIG.read(document)


@pytest.mark.parametrize(
    ("document", "given"), [({}, False), ({"HostConfig": {}}, False), ({"image": "x"}, True), ({"Image": None}, False)]
)
def test_a_reader_knows_whether_it_is_meant(document: dict[str, object], given: bool) -> None:
    assert CONFIG.mentioned(document) is given


class Named(msgspec.Struct, rename="pascal"):
    name: str
    more: list[str] = []


def test_names_that_are_no_text_are_shown_as_go_shows_them():
    value = [Named("a\udcff\udcfeb", ["plain", "\ud800"]), {"\udc80": ("x", 1, None)}]
    assert encode(value) == '[{"Name":"a\ufffd\ufffdb","More":["plain","\ufffd"]},{"\ufffd":["x",1,null]}]'.encode()
