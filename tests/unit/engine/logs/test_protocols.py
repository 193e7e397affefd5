"""What receivers of logs are sent, byte for byte."""

import json
import os
import time
import zlib

import msgspec
import pytest

from husk.engine.logs import attributes, fluentd, gelf, journald, syslog
from husk.engine.logs.messages import LONGEST, Assembler, Message
from husk.engine.logs.records import STDERR, STDOUT, LogRecord
from husk.engine.model.container import Container
from husk.engine.model.container_config import Config, HostConfig, LogConfig

TIME = 1_700_000_000_123_456_789
STAMP = b"2023-11-14T22:13:20.123456789Z"
HI = Message(TIME, STDOUT, b"hi")


def container(driver: str = "json-file", **options: str) -> Container:
    return Container(
        id="0123456789abcdef" * 4,
        name="box",
        created="2023-11-14T22:13:20Z",
        created_ns=0,
        image_id="sha256:" + "f" * 64,
        config=Config(image="busybox", labels={"a": "1", "b": "x y"}, env=["E=1", "F1=2", "G"]),
        host_config=HostConfig(
            log_config=LogConfig(type=driver, config={k.replace("_", "-"): v for k, v in options.items()})
        ),
        path="sh",
        args=["-c", "true"],
    )


def record(data: bytes, stream: int = STDOUT, partial: bool = False) -> LogRecord:
    return LogRecord(stream, STAMP, data, partial)


def test_pieces_of_a_line_become_one_message() -> None:
    assembler = Assembler()
    assert assembler.add([record(b"one\n"), record(b"t", partial=True), record(b"err\n", STDERR)]) == [
        Message(TIME, STDOUT, b"one"),
        Message(TIME, STDERR, b"err"),
    ]
    assert assembler.pending
    assert assembler.add([record(b"wo\n")]) == [Message(TIME, STDOUT, b"two")]
    assert not assembler.pending and assembler.flush() == []
    assembler.add([record(b"end", partial=True)])
    assert assembler.flush() == [Message(TIME, STDOUT, b"end")]


def test_a_line_that_is_too_long_becomes_several_messages() -> None:
    messages = Assembler().add([record(b"x" * LONGEST, partial=True), record(b"x" * 10 + b"\n")])
    assert [(len(m.text), m.partial) for m in messages] == [(LONGEST, True), (10, False)]


@pytest.mark.parametrize(
    ("form", "pattern"),
    [
        ("rfc3164", b"<30>%s host tag[%d]: hi\n"),
        ("", b"<30>%s tag[%d]: hi\n"),
    ],
)
def test_syslog(form: str, pattern: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "localtime", time.gmtime)
    assert syslog.line(HI, form, 3, "tag", "host") == pattern % (b"Nov 14 22:13:20", os.getpid())


def test_syslog_in_its_newer_form() -> None:
    pid = os.getpid()
    error = Message(TIME, STDERR, b"no")
    assert syslog.line(error, "rfc5424", 16, "t", "h") == b"<131>1 2023-11-14T22:13:20Z h t %d t - no\n" % pid
    micro = b"<131>1 2023-11-14T22:13:20.123456Z h t %d t - no\n" % pid
    assert syslog.line(error, "rfc5424micro", 16, "t", "h") == micro


def test_gelf_documents() -> None:
    receiver = gelf.receiver(
        container("gelf", labels="a"), {"gelf-address": "udp://h:1", "gelf-compression-type": "zlib", "labels": "a"}
    )
    (packet,) = receiver.encode([HI])
    document = json.loads(zlib.decompress(packet))
    assert (document["short_message"], document["timestamp"], document["level"]) == ("hi", 1700000000.123, 6)
    assert document["_command"] == "sh -c true" and document["_a"] == "1" and document["_tag"] == "0123456789ab"


def test_gelf_pieces() -> None:
    data = os.urandom(5000)
    pieces = gelf.pieces(data, b"8 bytes!")
    assert [piece[:12] for piece in pieces] == [b"\x1e\x0f8 bytes!" + bytes((n, 4)) for n in range(4)]
    assert b"".join(piece[12:] for piece in pieces) == data and max(map(len, pieces)) <= 1420
    assert gelf.pieces(b"short", b"8 bytes!") == [b"short"]


def test_fluentd_packets() -> None:
    receiver = fluentd.receiver(container("fluentd"), {"tag": "x.{{.Name}}", "fluentd-sub-second-precision": "true"})
    (packet,) = receiver.encode([HI, Message(TIME, STDERR, b"\xff", partial=True)])
    tag, events = msgspec.msgpack.decode(packet)
    assert tag == "x.box"
    (first, one), (_, two) = events
    assert first == msgspec.msgpack.Ext(0, (1_700_000_000).to_bytes(4, "big") + (123_456_789).to_bytes(4, "big"))
    assert (one["log"], one["source"], one["container_name"]) == ("hi", "stdout", "/box")
    assert (two["log"], two["source"], two["partial_message"]) == ("\ufffd", "stderr", "true")


def test_fluentd_acknowledges() -> None:
    receiver = fluentd.receiver(container("fluentd"), {"fluentd-request-ack": "true"})
    (packet,) = receiver.encode([HI])
    asked = msgspec.msgpack.decode(packet)[2]["chunk"]
    assert receiver.acknowledges is not None
    assert msgspec.msgpack.decode(receiver.acknowledges(packet)) == {"ack": asked}


def test_journal_entries() -> None:
    receiver = journald.receiver(container("journald", labels="b"), {"labels": "b"})
    (entry,) = receiver.encode([Message(TIME, STDERR, b"two\nlines")])
    assert b"CONTAINER_NAME=box\n" in entry and b"PRIORITY=3\n" in entry and b"B=x y\n" in entry
    assert entry.endswith(b"MESSAGE\n\x09\0\0\0\0\0\0\0two\nlines\n")


def test_attributes() -> None:
    labelled = container(labels="a,zz", env_regex="^[EF]", tag="{{.ID}}/{{ .DaemonName }}")
    assert attributes.extra(labelled) == {"a": "1", "E": "1", "F1": "2"}
    assert attributes.details(labelled) == "E=1,F1=2,a=1,tag=0123456789ab%2Fdocker"
    assert attributes.details(container("local")) == ""
