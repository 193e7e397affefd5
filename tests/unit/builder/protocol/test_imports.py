"""Modules that builds need are loaded when one begins, and not before: the daemon's memory is unchanged until then."""

import subprocess
import sys

LATE = ("hpack", "husk.rpc.http2", "husk.rpc.grpc", "husk.builder.protocol.messages")


def test_nothing_of_the_protocol_is_loaded_with_the_daemon() -> None:
    code = f"import sys, husk.daemon; print([name for name in {LATE!r} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert loaded.stdout.strip() == "[]"
