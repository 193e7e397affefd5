"""Lines of syslog, byte for byte."""

import os
import time

import pytest

from husk.engine.logs import syslog
from husk.engine.logs.messages import LogMessage
from husk.engine.logs.records import STDERR
from tests.unit.engine.logs.samples import HI, TIME


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
    error = LogMessage(TIME, STDERR, b"no")
    assert syslog.line(error, "rfc5424", 16, "t", "h") == b"<131>1 2023-11-14T22:13:20Z h t %d t - no\n" % pid
    micro = b"<131>1 2023-11-14T22:13:20.123456Z h t %d t - no\n" % pid
    assert syslog.line(error, "rfc5424micro", 16, "t", "h") == micro
