"""Deeds of a process in a container: the same ones, tried under both engines, with the same outcome."""

import json

from tests.support import probe
from tests.support.parity import Difference, Engine, Pair

NEWER = (
    Difference("*.io_uring_setup", "EFAULT", "EPERM", "dockerd 25 forbids io_uring, which is a way around filters"),
    Difference("*.vsock", "ok", "EPERM", "dockerd 23 forbids the way to the hypervisor"),
)
AS_ROOT = (
    Difference("*.node of tun", "ok", "EPERM", "runc allowed it without being asked until 1.2"),
    Difference("*.read /proc/interrupts", "something", "empty", "dockerd 28 masks it"),
)


def tried(engine: Engine, host: dict[str, object] | None = None, user: str = "") -> dict[str, str]:
    common: dict[str, object] = {"NetworkMode": "none", "Binds": probe.mounts()}
    text = engine.output("box", probe.command(), {**common, **(host or {})}, User=user)
    return dict(json.loads(text))


def test_by_default(pair: Pair) -> None:
    pair.same(lambda engine: {"deeds": tried(engine)}, *NEWER, *AS_ROOT)


def test_with_more_capabilities(pair: Pair) -> None:
    """The filter of system calls opens with them."""

    def script(engine: Engine) -> object:
        return {
            "admin": tried(engine, {"CapAdd": ["SYS_ADMIN"]}),
            "some": tried(engine, {"CapAdd": ["SYS_PTRACE", "SYSLOG", "SYS_NICE"]}),
            "none": tried(engine, {"CapDrop": ["ALL"], "CapAdd": ["MKNOD"]}),
        }

    pair.same(script, *NEWER, *AS_ROOT)


def test_without_a_filter(pair: Pair) -> None:
    """The kernel's own checks are left."""
    pair.same(lambda engine: {"deeds": tried(engine, {"SecurityOpt": ["seccomp=unconfined"]})}, *AS_ROOT)
