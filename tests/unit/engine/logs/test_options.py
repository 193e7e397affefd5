"""Log drivers and their options, in dockerd's words."""

import pytest

from husk.engine.logs.options import LogRetention, check, keeping, readable, size
from husk.errors import InvalidParameter, NotImplementedYet

MB = 1024 * 1024


@pytest.mark.parametrize(
    ("driver", "options", "kept"),
    [
        ("json-file", {}, LogRetention()),
        ("json-file", {"max-size": "10m"}, LogRetention(10 * MB, 1)),
        (
            "json-file",
            {"max-size": "10m", "max-file": "3", "compress": "true"},
            LogRetention(10 * MB, 3, True),
        ),
        ("local", {}, LogRetention(20 * MB, 5, True)),
        ("local", {"max-size": "1k", "max-file": "1", "compress": "0"}, LogRetention(1024, 1)),
        ("syslog", {}, LogRetention(20 * MB, 5, True)),
        ("gelf", {"cache-max-size": "1m", "cache-max-file": "2"}, LogRetention(MB, 2, True)),
        ("none", {}, LogRetention()),
    ],
)
def test_what_is_kept(driver: str, options: dict[str, str], kept: LogRetention) -> None:
    check(driver, options)
    assert keeping(driver, options) == kept


def test_one_file_becomes_two_of_half_the_size() -> None:
    assert LogRetention(100, 1).in_parts() == LogRetention(50, 2)
    assert LogRetention(100, 2, True).in_parts() == LogRetention(100, 2, True)
    assert LogRetention().in_parts().max_size == 0


@pytest.mark.parametrize(
    ("text", "number"), [("1", 1), ("1k", 1024), ("2Mb", 2 * MB), ("1.5k", 1536), ("3 GiB", 3 * 1024 * MB), ("0", 0)]
)
def test_sizes(text: str, number: int) -> None:
    assert size(text) == number


@pytest.mark.parametrize(
    ("driver", "options", "message"),
    [
        ("paper", {}, 'error looking up logging plugin paper: plugin "paper" not found'),
        ("json-file", {"x": "1"}, "unknown log opt 'x' for json-file log driver"),
        ("local", {"labels": "1"}, "unknown log opt 'labels' for log driver local"),
        ("gelf", {"x": "1"}, 'unknown log opt "x" for gelf log driver'),
        ("json-file", {"max-size": "-1"}, "failed to initialize logging driver: invalid size: '-1'"),
        ("json-file", {"max-size": "9" * 400}, f"failed to initialize logging driver: invalid size: '{'9' * 400}'"),
        ("json-file", {"max-size": "0"}, "failed to initialize logging driver: max-size must be a positive number"),
        (
            "json-file",
            {"max-file": "x"},
            'failed to initialize logging driver: strconv.Atoi: parsing "x": invalid syntax',
        ),
        (
            "local",
            {"max-file": "1"},
            "failed to initialize logging driver: compression cannot be enabled when max file count is 1",
        ),
        ("json-file", {"mode": "x"}, "logger: logging mode not supported: x"),
        (
            "json-file",
            {"max-buffer-size": "1m"},
            "logger: max-buffer-size option is only supported with 'mode=non-blocking'",
        ),
        (
            "json-file",
            {"tag": "{{"},
            "failed to initialize logging driver: template: log-tag:1: unclosed action",
        ),
    ],
)
def test_what_is_refused(driver: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        check(driver, options)
    assert caught.value.message == message


def test_what_husk_lacks_is_said_so() -> None:
    with pytest.raises(NotImplementedYet):
        check("splunk", {})


def test_what_can_be_read() -> None:
    assert readable("json-file", {}) and readable("local", {}) and readable("syslog", {})
    assert not readable("none", {}) and not readable("syslog", {"cache-disabled": "true"})


@pytest.mark.parametrize("options", [{"tag": "a" * 70_000}, {"labels": "a," * 33_000}, {"x" * 70_000: ""}])
def test_options_have_a_limit(options: dict[str, str]) -> None:
    with pytest.raises(InvalidParameter, match="take more than 65536 characters"):
        check("json-file", options)
