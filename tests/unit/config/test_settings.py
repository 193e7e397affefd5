"""A value means the same in the file and on the command line, and one that means nothing names its place."""

from pathlib import Path
from typing import Any

import pytest

from husk.config.keys import BY_FLAG, BY_KEY
from husk.config.settings import (
    PoolSetting,
    RuntimeSetting,
    Settings,
    UlimitSetting,
    from_flags,
    given,
    keys,
    parse_file,
    read_file,
)
from husk.errors import InvalidParameter


def test_every_field_is_a_key_of_the_file() -> None:
    assert set(keys().values()) == {key for key in BY_KEY if key}


@pytest.mark.parametrize(
    ("flag", "texts", "value"),
    [
        ("debug", "true", True),
        ("icc", "F", False),
        ("mtu", "0x5dc", 1500),
        ("label", ("a=1", "b"), ["a=1", "b"]),
        ("host-gateway-ip", ("192.0.2.1, 2001:db8::1",), ["192.0.2.1", "2001:db8::1"]),
        ("log-opt", ("max-size=1m", "tag=a=b"), {"max-size": "1m", "tag": "a=b"}),
        ("feature", ("one", "two=false"), {"one": True, "two": False}),
        ("default-network-opt", ("bridge=mtu=1400", "bridge=x=y=z"), {"bridge": {"mtu": "1400", "x": "y=z"}}),
        ("default-ulimit", ("nofile=5:9",), {"nofile": UlimitSetting(5, 9, "nofile")}),
        ("default-ulimit", ("core=-1",), {"core": UlimitSetting(-1, -1, "core")}),
        ("add-runtime", ("kata=/k",), {"kata": RuntimeSetting("/k")}),
        ("default-address-pool", ("base=10.0.0.0/8, size=24",), [PoolSetting("10.0.0.0/8", 24)]),
    ],
)
def test_what_flags_say(flag: str, texts: Any, value: object) -> None:
    settings = from_flags({flag: texts, "experimental": None})
    assert getattr(settings, BY_FLAG[flag].field) == value
    assert [(option.flag, found) for option, found in given(settings)] == [(flag, value)]


@pytest.mark.parametrize(
    ("flag", "texts"),
    [
        ("debug", "yes"),
        ("mtu", "many"),
        ("log-opt", ("max-size",)),
        ("log-opt", ("=1m",)),
        ("feature", ("two=perhaps",)),
        ("default-network-opt", ("bridge=mtu",)),
        ("default-ulimit", ("nofile=x",)),
        ("add-runtime", ("kata=",)),
        ("default-address-pool", ("base=10.0.0.0/8",)),
        ("default-address-pool", ("base=10.0.0.0/8,size=x",)),
    ],
)
def test_a_flag_that_means_nothing_is_named_with_what_was_said(flag: str, texts: Any) -> None:
    with pytest.raises(InvalidParameter, match=f'invalid argument ".*" for "--{flag}" flag: '):
        from_flags({flag: texts})


def test_a_flag_that_was_not_given_sets_nothing() -> None:
    assert from_flags({"debug": None, "label": ()}) == Settings()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "it is not JSON: .*line 1"),
        ("[]", "it must hold one JSON object"),
        ('{"nonsense": 1, "other": 2}', "don't match any configuration option: nonsense, other"),
        ('{"mtu": "1500"}', "mtu: expected `int`, got `str`"),
        (
            '{"default-address-pools": [{"base": "x"}]}',
            r"default-address-pools\[0\]: object missing required field `size`",
        ),
        ('{"runtimes": {"x": {"path": "/x", "odd": 1}}}', "runtimes"),
        ('{"tlsverify": true, "TLSVerify": false}', "tlsverify is given twice, once as 'TLSVerify'"),
        ('{"runtimes": {"x": {"path": "/x", "Path": "/y"}}}', r"runtimes\.x\.path is given twice, once as 'Path'"),
        ('{"proxies": {"http-proxy": "", "Http-Proxy": ""}}', r"proxies\.http-proxy is given twice"),
        ('{"proxies": [], "runtimes": 5}', "expected `object`, got"),
        ('{"default-address-pools": [5]}', r"default-address-pools\[0\]: expected `object`, got `int`"),
        ('{"labels": ' + "[" * 100_000 + "]" * 100_000 + "}", "it is nested too deeply"),
        ('{"mtu": ' + "9" * 5000 + "}", "mtu|it is not JSON"),
        ('{"mtu": NaN}', "it is not JSON"),
        ('{"labels": ["a=\\ud800"]}', "it is not JSON"),
    ],
)
def test_a_file_that_means_nothing_says_where(text: str, says: str) -> None:
    with pytest.raises(InvalidParameter, match=says):
        parse_file(text)


def test_keys_match_in_any_case() -> None:
    settings = parse_file(
        """{"Debug": true, "LOG-OPTS": {"Max-Size": "1m"}, "Runtimes": {"X": {"PATH": "/x", "runtimeargs": ["a"]}},
        "default-ulimits": {"nofile": {"soft": 1, "HARD": 2}}, "Default-Address-Pools": [{"Base": "b", "SIZE": 24}],
        "Proxies": {"No-Proxy": "n"}, "mtu": null}"""
    )
    assert (settings.debug, settings.log_opts, settings.no_proxy) == (True, {"Max-Size": "1m"}, "n")
    assert settings.runtimes == {"X": RuntimeSetting("/x", ["a"])}
    assert settings.default_ulimits == {"nofile": UlimitSetting(1, 2)}
    assert settings.default_address_pools == [PoolSetting("b", 24)]
    assert parse_file("null") == Settings()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_files_of_every_editor_are_read(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "daemon.json").write_text('{"labels": ["a=\u00fc"]}', encoding=encoding)
    assert read_file(tmp_path / "daemon.json").labels == ["a=\u00fc"]


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="No such file or directory"):
        read_file(tmp_path / "nothing")
    (tmp_path / "daemon.json").write_bytes(b'{"labels": ["\xff"]}')
    with pytest.raises(InvalidParameter, match="it is not UTF-8 text"):
        read_file(tmp_path / "daemon.json")
    (tmp_path / "daemon.json").write_text(" \n")
    assert read_file(tmp_path / "daemon.json") == Settings()


def test_proxies_of_both_places_are_one() -> None:
    settings = parse_file('{"http-proxy": "http://a", "no-proxy": "x", "proxies": {"http-proxy": "http://b"}}')
    assert (settings.http_proxy, settings.no_proxy, settings.proxies) == ("http://b", "x", None)
