"""Flags and daemon.json become one validated configuration, by Docker's rules."""

import json
from pathlib import Path

import pytest

from husk import config_load
from husk.config import AddressPool, Config, RuntimeConfig
from husk.config_load import Source, build, merge, reloadable
from husk.config_settings import RuntimeSetting, Settings, parse_file
from husk.errors import InvalidParameter


@pytest.fixture
def daemon_json(tmp_path: Path):
    def write(**keys: object) -> Path:
        path = tmp_path / "daemon.json"
        path.write_text(json.dumps({key.replace("_", "-"): value for key, value in keys.items()}))
        return path

    return write


def test_without_flags_and_file_the_defaults_hold(monkeypatch, tmp_path):
    monkeypatch.setattr(config_load, "DEFAULT_CONFIG_FILE", tmp_path / "absent.json")
    assert Source(Settings()).load() == Config()


def test_the_default_file_is_read_when_it_exists(monkeypatch, daemon_json):
    monkeypatch.setattr(config_load, "DEFAULT_CONFIG_FILE", daemon_json(labels=["a=b"]))
    assert Source(Settings()).load().labels == ("a=b",)


def test_every_key_of_the_file_reaches_its_setting():
    text = """{
      "hosts": ["unix:///run/x.sock", "tcp://127.0.0.1:2375"], "data-root": "/srv/husk", "exec-root": "/run/x",
      "pidfile": "/run/x.pid", "log-level": "warn", "log-format": "json",
      "insecure-registries": ["10.0.0.0/8", "Reg:5000"],
      "registry-mirrors": ["https://mirror.example"], "default-runtime": "kata",
      "runtimes": {"kata": {"path": "/usr/bin/kata", "runtimeArgs": ["--debug"]}},
      "bridge": "br9", "bip": "172.26.0.1/16",
      "default-address-pools": [{"base": "172.30.0.0/16", "size": 24}], "labels": ["a=b"], "group": "staff",
      "max-layer-size": "20g"
    }"""
    assert build(parse_file(text)) == Config(
        hosts=("unix:///run/x.sock", "tcp://127.0.0.1:2375"),
        data_root=Path("/srv/husk"),
        exec_root=Path("/run/x"),
        pidfile=Path("/run/x.pid"),
        log_level="warn",
        log_format="json",
        insecure_registries=("10.0.0.0/8", "reg:5000"),
        registry_mirrors=("https://mirror.example/",),
        default_runtime="kata",
        runtimes={"kata": RuntimeConfig("/usr/bin/kata", ("--debug",))},
        bridge="br9",
        bip="172.26.0.1/16",
        default_address_pools=(AddressPool("172.30.0.0/16", 24),),
        labels=("a=b",),
        group="staff",
        max_layer_size=20 << 30,
    )


def test_debug_is_a_log_level():
    assert build(parse_file('{"debug": true}')).log_level == "debug"


@pytest.mark.parametrize("text", ["", "  \n", "{}"])
def test_an_empty_file_changes_nothing(text):
    assert build(parse_file(text)) == Config()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"it is not JSON: .* \(line 1, column 2\)"),
        ("[]", "one JSON object"),
        ('{"foo": 1, "bar": 2}', "don't match any configuration option: bar, foo"),
        ('{"hosts": "unix:///x"}', "hosts: expected `array"),
        ('{"labels": ["a=b", 1]}', r"labels\[1\]: expected `str`"),
        ('{"debug": "yes"}', "debug: expected `bool`"),
        ('{"runtimes": {"x": {}}}', "runtimes.*path"),
        ('{"default-address-pools": [{"base": "10.0.0.0/8"}]}', "size"),
    ],
)
def test_a_faulty_file_is_refused_with_what_is_wrong(text, message):
    with pytest.raises(InvalidParameter, match=message):
        parse_file(text)


def test_a_named_file_must_exist(tmp_path):
    with pytest.raises(InvalidParameter, match=r"with file .*/absent: open .*/absent: No such file"):
        Source(Settings(), tmp_path / "absent").load()


def test_a_key_given_as_flag_and_in_the_file_is_a_conflict():
    with pytest.raises(InvalidParameter) as caught:
        merge(Settings(hosts=["unix:///a"], group="x"), Settings(hosts=["unix:///b"], group="y", labels=["a=b"]))
    assert caught.value.message == (
        "the following directives are specified both as a flag and in the configuration file: "
        "hosts: (from flag: [unix:///a], from file: [unix:///b]), group: (from flag: x, from file: y)"
    )


def test_flags_and_file_complete_each_other():
    merged = merge(Settings(labels=["a=b"]), Settings(group="x"))
    assert (merged.labels, merged.group, merged.hosts) == (["a=b"], "x", None)


def test_runtimes_of_flags_and_file_add_up():
    merged = merge(Settings(runtimes={"a": RuntimeSetting("/a")}), Settings(runtimes={"b": RuntimeSetting("/b")}))
    assert merged.runtimes is not None and merged.runtimes.keys() == {"a", "b"}


def test_one_runtime_cannot_be_defined_twice():
    both = {"a": RuntimeSetting("/a")}
    with pytest.raises(InvalidParameter, match="both as a flag and in the configuration file: a"):
        merge(Settings(runtimes=both), Settings(runtimes=both))


def test_reloading_takes_what_can_change_and_names_what_cannot():
    running = Config(labels=("a=1",), group="docker")
    wanted = Config(
        labels=("a=2",), log_level="debug", registry_mirrors=("https://m/",), group="staff", bip="10.1.0.1/24"
    )
    renewed, left = reloadable(running, wanted)
    assert renewed == Config(labels=("a=2",), log_level="debug", registry_mirrors=("https://m/",), group="docker")
    assert set(left) == {"group", "bip"}
