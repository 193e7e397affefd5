"""Packets for fluentd, and what it acknowledges."""

import msgspec

from husk.engine.logs import fluentd
from husk.engine.logs.messages import LogMessage
from husk.engine.logs.records import STDERR
from tests.unit.engine.logs.samples import HI, TIME, container


def test_fluentd_packets() -> None:
    receiver = fluentd.receiver(container("fluentd"), {"tag": "x.{{.Name}}", "fluentd-sub-second-precision": "true"})
    (packet,) = receiver.encode([HI, LogMessage(TIME, STDERR, b"\xff", partial=True)])
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
